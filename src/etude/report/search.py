"""The table of a hyperparameter search: its trials by validation perplexity, and the expected best of n trials.

A trial is one combination of values, with one or more seeds. Trials are ranked by validation perplexity, because
choosing by the test set means training on it. Only the best trial's test score is shown.
"""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from pathlib import Path
from statistics import fmean

from etude.errors import UserError
from etude.report.render.rows import Column, Row, Rows
from etude.report.statistics import Scores, expected_best
from etude.report.wording import format_count, format_fixed
from etude.runs.provenance import marks_on_code, notes_on_code, notes_on_libraries
from etude.runs.records import Run, leaving_out, read_run
from etude.runs.run_dir import RunDir
from etude.studies.arms import split_override
from etude.studies.study import metrics_of

_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?(e[-+]?\d+)?")
_MAX_CHARACTERS = 8  # longer numbers are rounded
_RANKED = "valid.perplexity"
_TRIAL_COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # for which the expected best is reported


@dataclass(frozen=True)
class Trial:
    """One combination of values that the search tried."""

    words: dict[str, str]  # key -> value, as in the overrides; without the seed and what all trials share
    runs: list[Run]  # its finished runs, one per seed
    drawn: int  # how often the search drew this combination

    @property
    def perplexity(self) -> float:
        """The validation perplexity, the mean over runs; not finite if one diverged."""
        return fmean(nan if run.divergence else run.score(_RANKED) or nan for run in self.runs)


def search(name: str, planned: Sequence[tuple[Sequence[str], RunDir]], drawn: Collection[str]) -> Rows:
    """Make the table of a search.

    Args:
        name: the arguments that started it, such as "sweeps/learning_rate.yaml run_cap=40".
        planned: the overrides and the directory of each run.
        drawn: the keys whose values were drawn at random. The expected best of n trials is reported only if nothing
            else varies.

    Raises:
        UserError: none of its runs is finished, or their perplexities are not over the same subwords.
    """
    wanted = Counter(run for _, run in planned)
    words = {run: dict(map(split_override, overrides)) for overrides, run in planned}
    there, unreadable = _read_finished(wanted)
    if not there:
        raise UserError(
            " ".join([f"no run of this search is finished; this makes them: etude sweep {name}", *unreadable])
        )
    if len({run.result.get("store", "") for run in there.values()}) > 1:
        raise UserError(f"{name}: its runs met different texts or subwords, and perplexities of these cannot be ranked")
    keys = sorted({key for typed in words.values() for key in typed} - {"seed"})
    varied = [key for key in keys if len({typed.get(key, "") for typed in words.values()}) > 1]
    grouped: dict[tuple[str, ...], list[RunDir]] = {}
    for run in there:
        grouped.setdefault(tuple(words[run].get(key, "") for key in varied), []).append(run)
    draws = sum if "seed" in drawn else max  # a draw has one run, unless all seeds of a list are run for it
    trials = [
        Trial(dict(zip(varied, values, strict=True)), [there[run] for run in runs], draws(wanted[run] for run in runs))
        for values, runs in grouped.items()
    ]
    trials.sort(key=lambda trial: trial.perplexity if isfinite(trial.perplexity) else inf)
    missing = sum(not run.finished for run in wanted)
    left_out = [*unreadable, *([f"Not finished: {format_count(missing)} of the search."] if missing else [])]
    return _rows(name, trials, left_out, at_random=bool(varied) and set(varied) <= set(drawn))


def _read_finished(wanted: Iterable[RunDir]) -> tuple[dict[RunDir, Run], list[str]]:
    """Read the finished runs; return them, and a sentence for each that cannot be read."""
    found: dict[RunDir, Run] = {}
    unreadable: list[str] = []
    for run_dir in wanted:
        if run_dir.finished:
            with leaving_out(run_dir.path, unreadable):
                run = read_run(run_dir)
                if run.score(_RANKED) is None:
                    raise ValueError(f"its result has no {_RANKED}")
                found[run_dir] = run
    return found, unreadable


def _rows(name: str, trials: Sequence[Trial], left_out: list[str], at_random: bool) -> Rows:
    several = any(len(trial.runs) > 1 for trial in trials)
    numbers = {key: all(_NUMBER.fullmatch(trial.words[key]) for trial in trials) for key in trials[0].words}
    columns = [*(Column(key, words=not number) for key, number in numbers.items()), Column("PPL", "validation")]
    rows = []
    for trial in trials:
        score = format_fixed(trial.perplexity, 2) + marks_on_code(run.code for run in trial.runs)
        rows.append([*map(_short, trial.words.values()), score, *([str(len(trial.runs))] * several)])
    file = shlex.split(name)[0]
    return Rows(
        file,
        Path(file).stem,
        [*columns, *([Column("seeds")] * several)],
        [Row("", cells, run=True) for cells in rows],
        notes=[f"The runs of: etude sweep {name}", *_notes(trials, at_random)],
        left_out=left_out,
    )


def _short(value: str) -> str:
    """Round a long number to four figures; the note on the best trial has it in full."""
    return f"{float(value):.4g}" if _NUMBER.fullmatch(value) and len(value) > _MAX_CHARACTERS else value


def _notes(trials: Sequence[Trial], at_random: bool) -> list[str]:
    best, finite = trials[0], [trial for trial in trials if isfinite(trial.perplexity)]
    runs = [run for trial in trials for run in trial.runs]
    sentences = notes_on_code((run.code, run.config) for run in runs) + notes_on_libraries(run.result for run in runs)
    if finite:
        what = " ".join(f"{key}={value}" for key, value in best.words.items()) or "the only trial"
        metrics = metrics_of(best.runs[0].study).values()
        scored = [(m, [score for run in best.runs if (score := run.score(m.key)) is not None]) for m in metrics]
        scores = " and ".join(f"{format_fixed(fmean(values), m.digits)} {m.label}" for m, values in scored if values)
        sentences.append(f"Best by validation perplexity: {what}.")
        if scores:
            sentences[-1] += (
                f" On the test set it has {scores}; the others' are not shown, because a test set by which "
                "one chooses can no longer judge."
            )
    if len(finite) < len(trials):
        sentences.append(f"{len(trials) - len(finite)} of {len(trials)} diverged.")
    if at_random and len(finite) > 1:
        sentences.append(_expected_best(finite, among=len(trials)))
    return sentences


def _expected_best(trials: Sequence[Trial], among: int) -> str:
    perplexities = [trial.perplexity for trial in trials for _ in range(trial.drawn)]
    found = expected_best(Scores("the search", perplexities), lower_is_better=True)
    kept = [n for n in _TRIAL_COUNTS if n < len(perplexities)] + [len(perplexities)]
    curve = ", ".join(
        f"{n}: {format_fixed(found.expected[n - 1], 2)} ± {format_fixed(found.deviation[n - 1], 2)}" for n in kept
    )
    which = " that do not diverge" if len(trials) < among else ""
    return (
        f"Expected best of n trials{which} (Dodge et al. 2019) and its standard deviation: {curve}. "
        "Near the end it is too modest: what is better than the best of these, they cannot show."
    )
