"""A ladder: the same arms at several sizes, what they say about a larger one, and how often such predictions came true.

    from etude.report.ladder import ladder_of_csv

    found = ladder_of_csv("ladder.csv", baseline="base", metrics=[Metric("loss", "loss", "loss", "lower")])
    found.laws["rope"].at(math.log(1e21)).interval    # of the difference, at a compute of 1e21
    ladder_table.table(found)                         # what `etude report --ladder` prints

The compute of a rung is 6 x parameters x tokens, those of the baseline there.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from etude.errors import UserError, did_you_mean
from etude.report import frame
from etude.report.statistics import (
    Curve,
    Decisions,
    Differences,
    Judged,
    Law,
    decide,
    find_decay,
    find_noise,
    fit_curve,
    fit_laws,
    judge,
)
from etude.report.wording import format_count, format_fixed, join_words
from etude.store.records import Run, leaving_out, read_run
from etude.store.run_dir import RunDir
from etude.study.ladder import FEWEST, SIZES
from etude.study.metrics import DEFAULT, Metric
from etude.study.study import Study, leaves

FURTHER = 4.0
"""The target, as a multiple of the largest rung's compute, where none is named."""

_APART = math.log(1.1)  # rungs differ by more in their tokens, and the runs of one by less
_UNEQUAL = 0.1


@dataclass(frozen=True)
class Rung:
    """One size, with its runs of all arms."""

    x: float  # ln compute of a run of the baseline
    runs: Mapping[str, Mapping[int, float]]  # arm -> seed -> what is compared of the metric
    compute: float  # of all its runs
    name: str = ""

    @property
    def label(self) -> str:
        """Its name, or its compute."""
        return self.name or format_compute(self.x)


@dataclass(frozen=True)
class Ladder:
    """The rungs of a ladder, the smallest first, and where it leads."""

    name: str
    metric: Metric
    baseline: str
    arms: list[str]  # without the baseline
    rungs: list[Rung]
    target: float  # ln compute
    notes: list[str]

    @property
    def x(self) -> list[float]:
        """Ln compute of each rung."""
        return [rung.x for rung in self.rungs]

    @cached_property
    def differences(self) -> Differences:
        """The differences of each arm from the baseline at each rung, at the seeds that both have."""
        return {
            arm: [
                [
                    value - rung.runs[self.baseline][seed]
                    for seed, value in rung.runs.get(arm, {}).items()
                    if seed in rung.runs[self.baseline]
                ]
                for rung in self.rungs
            ]
            for arm in self.arms
        }

    @cached_property
    def losses(self) -> list[list[float]]:
        """What is compared of the baseline at each rung, one a seed, turned so that less is better."""
        sign = 1 if self.metric.better == "lower" else -1
        return [[sign * value for value in rung.runs[self.baseline].values()] for rung in self.rungs]

    @cached_property
    def laws(self) -> dict[str, Law]:
        """The law of each arm that has two rungs."""
        return fit_laws(self.x, self.differences, find_decay(self.x, self.losses, self.differences))

    @cached_property
    def judged(self) -> list[Judged]:
        """The two largest rungs, predicted from the others."""
        return judge(self.x, self.differences, self.losses)

    @cached_property
    def curve(self) -> Curve | None:
        """The baseline's loss over compute, where it falls."""
        return fit_curve(self.x, [*map(fmean, self.losses)])

    def multiplier(self, arm: str) -> float | None:
        """By how much the baseline's compute would have to grow to reach the arm's loss at the target."""
        if self.curve is None or arm not in self.laws:
            return None
        sign = 1 if self.metric.better == "lower" else -1
        return self.curve.multiplier(self.target, sign * self.laws[arm].at(self.target).value)

    def alone(self, rung: int) -> Decisions:
        """Count the pairs of arms that one rung alone orders as the largest does."""
        noise = find_noise(self.differences) or {}
        known = {arm: rungs for arm, rungs in self.differences.items() if rungs[rung] and rungs[-1]}
        guess, came = ({arm: fmean(rungs[at]) for arm, rungs in known.items()} for at in (rung, -1))
        return decide(guess, came, {arm: noise[arm][0] / len(rungs[-1]) for arm, rungs in known.items()})


def format_compute(x: float) -> str:
    """Format ln compute: 1.2e+18."""
    return f"{math.exp(x):.1e}"


def ladder_of_csv(
    file: str | Path, baseline: str = "", metrics: Sequence[Metric] = (), target: float | None = None
) -> Ladder:
    """Read the ladder in a CSV with the columns arm, seed, parameters, tokens, a metric and, if there is one, rung.

    Args:
        file: the CSV.
        baseline: the arm that the others are compared with; by default the first.
        metrics: of which the first counts; by default perplexity, as étude writes it.
        target: the compute of the larger model; by default four times that of the largest rung.

    Raises:
        UserError: the file is not valid, or its runs make no ladder.
    """
    file = Path(file)
    metric = [*frame.as_columns(file, metrics), DEFAULT["ppl"]][0]
    runs = frame.read_csv(file, file.stem, {metric.name: metric})
    cells = [row for _, row in frame.read_cells(file)[1]]
    for run in runs:
        for column in ("parameters", "tokens"):
            if not (run.score(column) or 0) > 0:
                raise UserError(f"{file}, line {run.changed:.0f}: no {column}: a ladder needs them for its compute")
    if "rung" in cells[0]:
        names = [row["rung"] for row in cells]
    else:
        names = _by_tokens([run.score("tokens") or 0.0 for run in runs])
    found = make_ladder(file.stem, runs, names, baseline or runs[0].arm, metric, str(file), target)
    of_baseline = {name: run for name, run in zip(names, runs, strict=True) if run.arm == found.baseline}
    _refuse_other_changes([*of_baseline.values()], str(file))
    return found


def ladder_of_study(
    study: Study,
    rungs: Sequence[str],
    places: Sequence[RunDir],
    baseline: str = "",
    metrics: Sequence[Metric] = (),
    target: float | None = None,
) -> Ladder:
    """Read the ladder of a study from those of its runs that are finished.

    Args:
        study: the study.
        rungs: the rung of each of its runs.
        places: the directory of each.
        baseline: the arm that the others are compared with; by default that of the study.
        metrics: of which the first counts; by default that for agreement with a paper.
        target: the compute of the larger model; by default that of the study, or four times that of the largest rung.

    Raises:
        UserError: its runs make no ladder.
    """
    found: dict[RunDir, Run] = {}
    notes: list[str] = []
    for place in dict.fromkeys(places):
        with leaving_out(place.path, notes):
            if place.finished:
                found[place] = read_run(place)
    if not found:
        raise UserError(" ".join([f"no run of this ladder is finished: etude sweep {study.name} ladder=true", *notes]))
    there = [(rung, found[place]) for rung, place in zip(rungs, places, strict=True) if place in found]
    there = [(rung, run) for rung, run in there if run.divergence or run.score("tokens")]
    target = target or (study.ladder.target if study.ladder else None)
    metric, name = [*metrics, study.lead][0], baseline or study.baseline
    of_runs, runs = [rung for rung, _ in there], [run for _, run in there]
    made = make_ladder(study.name, runs, of_runs, name, metric, study.name, target)
    missing = len(set(places)) - len(there)
    return replace(made, notes=[*made.notes, *notes, *[f"Not finished: {format_count(missing)}."] * bool(missing)])


def _by_tokens(tokens: Sequence[float]) -> list[str]:
    """Name the rung of each run by the tokens that it was trained on, where no column names it."""
    ends: list[float] = []  # the least of each rung
    before = -math.inf
    for value in sorted(map(math.log, tokens)):
        if value - before > _APART:
            ends.append(value)
        before = value
    return [f" {sum(end <= math.log(value) for end in ends)}" for value in tokens]


def make_ladder(
    name: str,
    runs: Sequence[Run],
    rungs: Sequence[str],
    baseline: str,
    metric: Metric,
    source: str,
    target: float | None = None,
) -> Ladder:
    """Make the ladder of some runs.

    Args:
        name: of the ladder.
        runs: of all rungs.
        rungs: the name of the rung of each; one that begins with a space is not shown.
        baseline: the arm that the others are compared with.
        metric: what is compared.
        source: where the runs are from, for error messages.
        target: the compute of the larger model; by default four times that of the largest rung.

    Raises:
        UserError: they make no ladder.
    """
    arms = [*dict.fromkeys(run.arm for run in runs)]
    if baseline not in arms:
        raise UserError(f"{source}: it has no arm {baseline!r}; {did_you_mean(baseline, arms)}")
    if len(arms) == 1:
        raise UserError(f"{source}: {baseline} is the only arm: a ladder predicts the differences of others from it")
    by_rung: dict[str, list[Run]] = {}
    for run, rung in zip(runs, rungs, strict=True):
        by_rung.setdefault(rung, []).append(run)
    if len(by_rung) < FEWEST:
        how = " (told apart by their tokens; a column rung would name them)" if rungs[0].startswith(" ") else ""
        raise UserError(
            f"{source}: a ladder has {FEWEST} rungs or more, of which two are held out; this has {len(by_rung)}{how}"
        )
    lost = [run for run in runs if run.divergence]
    gone = {run.arm for run in lost}
    made = []
    for rung, some in by_rung.items():
        named = rung.strip() if not rung.startswith(" ") else ""
        bases = [run for run in some if run.arm == baseline and not run.divergence]
        if not bases:
            size = named or f"of {format_fixed(some[0].score('tokens') or 0, 0)} tokens"
            why = "diverged" if any(run.arm == baseline for run in some) else "has no run"
            raise UserError(
                f"{source}: {baseline} {why} at the rung {size}: without it the arms have no difference there"
            )
        values: dict[str, dict[int, float]] = {}
        for run in some:
            if not run.divergence and (run.arm not in gone or run.arm == baseline):
                if run.seed in values.setdefault(run.arm, {}):
                    raise UserError(
                        f"{source}: {run.arm} has seed {run.seed} twice at one rung: a column rung tells rungs apart"
                    )
                values[run.arm][run.seed] = _value(run, metric, source)
        made.append(Rung(math.log(fmean(map(_compute, bases))), values, sum(map(_compute, some)), named))
    made.sort(key=lambda rung: rung.x)
    if alike := next(((one, other) for one, other in pairwise(made) if other.x - one.x < _APART), None):
        names = join_words([rung.name or f"of {format_compute(rung.x)}" for rung in alike])
        raise UserError(
            f"{source}: the rungs {names} have the same compute, 6 x parameters x tokens, along which a ladder "
            "predicts: leave one of them out"
        )
    if target is not None and math.log(target) <= made[-1].x:
        raise UserError(
            f"{source}: the target's compute, {target:.1e}, lies within the ladder, whose largest rung has "
            f"{made[-1].label}: name a larger one"
        )
    others = [arm for arm in arms if arm != baseline]
    kept = [arm for arm in others if arm not in gone]
    found = Ladder(
        name, metric, baseline, kept, made, made[-1].x + math.log(FURTHER) if target is None else math.log(target),
        [*_on_diverged(lost, baseline), *_on_unequal(by_rung.values(), baseline, kept)],
    )  # fmt: skip
    if apart := [arm for arm, rungs in found.differences.items() if not any(rungs)]:
        found = replace(found, notes=[*found.notes, f"No seed in common with {baseline}: {join_words(apart)}."])
    before = {arm: rungs[:-2] for arm, rungs in found.differences.items()}
    if find_noise(before) is None:
        if any(len(rung) > 1 for rungs in before.values() for rung in rungs):
            raise UserError(
                f"{source}: below the two largest rungs, each arm differs from {baseline} by the same at all its "
                f"seeds, so that nothing says how far seeds differ: give {metric.label} with more digits"
            )
        raise UserError(
            f"{source}: no arm has two seeds in common with {baseline} below the two largest rungs, so that nothing "
            "says how far seeds differ: give the smallest rungs two or three seeds"
        )
    return found


def _compute(run: Run) -> float:
    return 6 * (run.score("parameters") or 0.0) * (run.score("tokens") or 0.0)


def _value(run: Run, metric: Metric, source: str) -> float:
    value = run.score(metric.key)
    if value is None:
        raise UserError(f"{source}: {run.arm}, seed {run.seed}, has no {metric.label}: give one, or leave the run out")
    if metric.is_log and value <= 0:
        raise UserError(
            f"{source}: {run.arm}, seed {run.seed}: its {metric.label} is {value:g}, which has no logarithm"
        )
    return math.log(value) if metric.is_log else value


def _on_diverged(lost: Sequence[Run], baseline: str) -> list[str]:
    arms = dict.fromkeys(run.arm for run in lost if run.arm != baseline)
    seeds = dict.fromkeys(str(run.seed) for run in lost if run.arm == baseline)
    notes = [f"Without a law, because a run diverged: {join_words(arms)}."] if arms else []
    return notes + ([f"Left out, because it diverged: {baseline}, seed {join_words(seeds)}."] if seeds else [])


def _on_unequal(by_rung: Iterable[list[Run]], baseline: str, arms: Sequence[str]) -> list[str]:
    """Name the arms whose compute is not the baseline's."""
    ratios: dict[str, list[float]] = {}
    for some in by_rung:
        base = fmean(_compute(run) for run in some if run.arm == baseline and not run.divergence)
        for run in some:
            ratios.setdefault(run.arm, []).append(_compute(run) / base)
    named = [f"{arm} {fmean(ratios[arm]):.2f}" for arm in arms if abs(fmean(ratios[arm]) - 1) > _UNEQUAL]
    return [f"Not the baseline's compute at each rung, as a multiple of it: {', '.join(named)}."] if named else []


def _refuse_other_changes(bases: Sequence[Run], source: str) -> None:
    """Check that what is told of the baseline's config differs between rungs in its size and its budget alone.

    Raises:
        UserError: something else does.
    """
    first = dict(leaves(bases[0].config))
    for run in bases[1:]:
        for key, value in leaves(run.config):
            name = key.removeprefix("choices.")
            if key in first and first[key] != value and not name.startswith(SIZES):
                raise UserError(
                    f"{source}: the rungs of {run.arm} differ in {name} ({first[key]}, {value}), and not in size and "
                    "budget alone: what is said of larger models would be said of that, too"
                )
