"""The table of a hyperparameter search: its trials, the best first, and the expected best of n trials.

A trial is one combination of values, with one or more seeds. Trials are ranked by validation perplexity unless the file
names another metric, because choosing by the test set means training on it. Only the best trial's test score is shown.
"""

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from pathlib import Path
from statistics import fmean
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.report.notes import Note
from etude.report.render.rows import Cell, Column, Row, Rows
from etude.report.searched import command_of, find_metric, name_metric, text_of
from etude.report.statistics import Scores, expected_best
from etude.report.wording import format_count, format_fixed
from etude.search.score import read_value
from etude.search.search import Objective
from etude.store.provenance import explain_marks, marks_on_code, notes_on_libraries
from etude.store.records import Run, leaving_out, read_run
from etude.store.run_dir import RunDir
from etude.study.arms import split_override
from etude.study.metrics import Metric
from etude.study.study import metrics_of, number_at, value_at
from etude.terminal import NUMBER, shorten_value

_TRIAL_COUNTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # for which the expected best is reported


@dataclass(frozen=True)
class Trial:
    """One combination of values that the search tried."""

    words: dict[str, str]  # key -> value, as in the overrides; without the seed and what all trials share
    runs: list[Run]  # its finished runs, one per seed
    command: str  # trains it
    score: float  # ranks it: the mean over runs, not finite if one diverged
    drawn: int  # how often the search drew this combination


def search(
    name: str,
    planned: Sequence[tuple[Sequence[str], RunDir]],
    drawn: Collection[str],
    objective: Objective | None = None,
) -> Rows:
    """Make the table of a search.

    Args:
        name: the arguments that started it, such as "sweeps/learning_rate.yaml run_cap=40".
        planned: the overrides and the directory of each run.
        drawn: the keys whose values were drawn at random. The expected best of n trials is reported only if nothing
            else varies.
        objective: the metric that ranks the trials; None: validation perplexity.

    Raises:
        UserError: none of its runs is finished, none has the metric, or their scores cannot be compared.
    """
    wanted = Counter(run for _, run in planned)
    typed = {run: overrides for overrides, run in planned}
    words = {run: dict(map(split_override, overrides)) for run, overrides in typed.items()}
    ranked = objective or Objective()
    found, unreadable = read_finished(wanted)
    scores = {
        run: score for run, row in found.items() if (score := read_value(run, row.result, ranked.name)[0]) is not None
    }
    there = {run: found[run] for run in scores}
    if found and not there and objective:
        run, row = next(iter(found.items()))
        known = did_you_mean(objective.name, read_value(run, row.result, objective.name)[1])
        raise UserError(
            f"{shlex.split(name)[0]}: metric.name={objective.name}: no finished run has this number; {known}"
        )
    lacks = f"which cannot be read (its result has no {ranked.name})"
    unreadable += [f"Left out: {run.path}, {lacks}." for run in found if run not in there]
    if not there:
        raise UserError(
            " ".join([f"no run of this search is finished; this makes them: etude sweep {name}", *unreadable])
        )
    metric = find_metric(ranked.name, next(iter(there.values())).study)
    _refuse_incomparable(name, metric, [*there.values()])
    keys = sorted({key for its in words.values() for key in its} - {"seed"})
    varied = [key for key in keys if len({its.get(key, "") for its in words.values()}) > 1]
    grouped: dict[tuple[str, ...], list[RunDir]] = {}
    for run in there:
        grouped.setdefault(tuple(words[run].get(key, "") for key in varied), []).append(run)
    draws = sum if "seed" in drawn else max  # a draw has one run, unless all seeds of a list are run for it
    trials = [
        Trial(
            dict(zip(varied, values, strict=True)),
            [there[run] for run in runs],
            command_of([typed[run] for run in runs]),
            fmean(nan if there[run].divergence else scores[run] for run in runs),
            draws(wanted[run] for run in runs),
        )
        for values, runs in grouped.items()
    ]
    sign = -1 if ranked.maximize else 1
    trials.sort(key=lambda trial: sign * trial.score if isfinite(trial.score) else inf)
    missing = sum(not run.finished for run in wanted)
    left_out = [*unreadable, *([f"Not finished: {format_count(missing)} of the search."] if missing else [])]
    at_random = bool(varied) and set(varied) <= set(drawn)
    notes = [Note(f"The runs of: etude sweep {name}"), *_notes(trials, metric, ranked.maximize, at_random)]
    return _rows(shlex.split(name)[0], trials, metric, notes, left_out)


def read_finished(wanted: Iterable[RunDir]) -> tuple[dict[RunDir, Run], list[str]]:
    """Read the finished runs; return them, and a sentence for each that cannot be read."""
    found: dict[RunDir, Run] = {}
    unreadable: list[str] = []
    for run_dir in wanted:
        if run_dir.finished:
            with leaving_out(run_dir.path, unreadable):
                found[run_dir] = read_run(run_dir)
    return found, unreadable


def _refuse_incomparable(name: str, metric: Metric, runs: Sequence[Run]) -> None:
    """Raise a UserError if scores of the runs are over different texts or subwords, or were computed differently."""
    if metric.over == "tokens" and len({run.result.get("store", "") for run in runs}) > 1:
        raise UserError(f"{name}: its runs met different texts or subwords, and perplexities of these cannot be ranked")
    if (
        metric.over == "text"
        and text_of(metric)
        and len({(run.text, value_at(run.result, metric.signature)) for run in runs}) > 1
    ):
        raise UserError(f"{name}: its runs met different texts, or were scored differently, and cannot be ranked")


def _rows(file: str, trials: Sequence[Trial], metric: Metric, notes: list[Note], left_out: list[str]) -> Rows:
    several = any(len(trial.runs) > 1 for trial in trials)
    plain = {key: all(NUMBER.fullmatch(trial.words[key]) for trial in trials) for key in trials[0].words}
    columns = [*(Column(key, words=not number) for key, number in plain.items()), Column(metric.label, text_of(metric))]
    rows = []
    for trial in trials:
        score = Cell(trial.score, metric.digits, marks=marks_on_code(run.code for run in trial.runs))
        words = [Cell(shorten_value(word)) for word in trial.words.values()]
        rows.append([*words, score, *([Cell(len(trial.runs))] * several)])
    return Rows(
        file,
        Path(file).stem,
        [*columns, *([Column("seeds")] * several)],
        [Row("", cells, run=True) for cells in rows],
        notes=notes,
        left_out=left_out,
    )


def _notes(trials: Sequence[Trial], metric: Metric, maximize: bool, at_random: bool) -> list[Note]:
    best, finite = trials[0], [trial for trial in trials if isfinite(trial.score)]
    runs = [run for trial in trials for run in trial.runs]
    notes = [Note(text, mark) for mark, text in explain_marks(run.result for run in runs).items()]
    sentences = notes_on_libraries(run.result for run in runs)
    if metric.better == ("lower" if maximize else "higher"):
        goals = ("maximize", "minimize") if maximize else ("minimize", "maximize")
        sentences.append(
            f"metric.goal is {goals[0]}, and {metric.label} is better {metric.better}: the first trial is the worst; "
            f"with goal: {goals[1]} in the file it is the best."
        )
    if finite:
        sentences.append(f"First by {name_metric(metric)}:")
        notes += [*map(Note, sentences), Note(best.command, is_command=True)]
        sentences = on_the_test_set([run.result for run in best.runs], best.runs[0].study, metric)
    if len(finite) < len(trials):
        sentences.append(f"{len(trials) - len(finite)} of {len(trials)} diverged.")
    if at_random and len(finite) > 1:
        scores = [trial.score for trial in finite for _ in range(trial.drawn)]
        sentences.append(on_expected_best(scores, metric.digits, maximize, all_of_them=len(finite) == len(trials)))
    return [*notes, *map(Note, sentences)]


def on_the_test_set(results: Sequence[Mapping[str, Any]], study: str, metric: Metric) -> list[str]:
    """Give the test scores of the best trial, the mean of its runs, or say why they judge nothing."""
    if text_of(metric) == "test":
        return ["The test set by which one chooses can no longer judge: on other text the best is less good."]
    scored = []
    for one in metrics_of(study).values():
        if values := [score for result in results if (score := number_at(result, one.key)) is not None]:
            scored.append(f"{format_fixed(fmean(values), one.digits)} {one.label}")
    if not scored:
        return []
    return [
        f"On the test set it has {' and '.join(scored)}; the others' are not shown, because a test set by which one "
        "chooses can no longer judge."
    ]


def on_expected_best(scores: Sequence[float], digits: int, maximize: bool, *, all_of_them: bool) -> str:
    """Give the expected best of n trials, for some n.

    Args:
        scores: of the trials that do not diverge, each as often as it was drawn.
        digits: of the metric.
        maximize: whether the highest score is the best.
        all_of_them: whether no trial diverged.
    """
    found = expected_best(Scores("the search", scores), lower_is_better=not maximize)
    told = []
    for n in [*(n for n in _TRIAL_COUNTS if n < len(scores)), len(scores)]:
        about = f" ± {format_fixed(found.deviation[n - 1], digits)}" if 2 * n <= len(scores) else ""
        told.append(f"{n}: {format_fixed(found.expected[n - 1], digits)}{about}")
    return (
        f"Expected best of n trials{'' if all_of_them else ' that do not diverge'} (Dodge et al. 2019, by the unbiased "
        f"estimator of Tang et al. 2020), with its standard deviation: {', '.join(told)}. Beyond half of the "
        f"{len(scores)} it rests on few of them, at the end on the best alone."
    )
