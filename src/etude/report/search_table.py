"""The table of a search: a row for each trial, the best first, and what is to be said of them."""

from collections import Counter
from dataclasses import replace
from math import isfinite

from etude.errors import UserError
from etude.report.confirmation import on_optimism, spread_of
from etude.report.notes import Note
from etude.report.render.rows import Cell, Column, Row, Rows
from etude.report.search import on_expected_best, on_the_test_set
from etude.report.searched import Searched, Tried, rungs, text_of
from etude.report.wording import format_fixed, format_interval
from etude.store.metrics_file import to_number
from etude.store.provenance import code_of, explain_marks, marks_on_code, notes_on_libraries
from etude.store.run_state import State
from etude.terminal import NUMBER, shorten_value

_UNBIASED = ("RandomSampler", "QMCSampler", "DrawnSampler")  # their trials do not depend on those before them
_REFUSALS = 3  # sentences on refused trials, at most
_WORDS = {State.RUNNING: "unfinished", State.FAILED: "refused"}  # what is "running" may have been killed, too


def table(found: Searched) -> Rows:
    """Make the table of a search: a row for each trial, the best first.

    How much luck is in the best one's score is told by the spread between the seeds of trials, if they have several, or
    else of the confirmation.

    Raises:
        UserError: it has no trial yet.
    """
    if not found.trials:
        raise UserError(f"{found.typed}: the search has no trial yet")
    plain = {key: all(NUMBER.fullmatch(t.words.get(key, "0")) for t in found.trials) for key in found.keys}
    all_finished = all(_state(trial) == State.FINISHED for trial in found.trials)
    columns = [Column("trial", words=True), *(Column(k, about_arm=True, words=not p) for k, p in plain.items())]
    columns += [Column(metric.label, text_of(metric)) for metric in found.metrics]
    columns += [] if all_finished else [Column("state", words=True), Column("step")]
    return Rows(
        found.recorded.name,
        found.recorded.name,
        columns,
        [_row(found, trial, all_finished) for trial in found.ranked],
        _notes(found),
        found.left_out,
    )


def _row(found: Searched, trial: Tried, all_finished: bool) -> Row:
    words = [Cell(shorten_value(trial.words[key]) if key in trial.words else None) for key in found.keys]
    numbers = [to_number(trial.words.get(key, "")) for key in found.keys]
    words = [replace(c, order=n) if isfinite(n) else c for c, n in zip(words, numbers, strict=True)]
    finished = trial.state in (State.FINISHED, State.DIVERGED)
    values = trial.recorded.values if finished else [trial.score]
    values = [*values, *[None] * (len(found.metrics) - len(values))]
    mark = marks_on_code(map(code_of, trial.results))
    scores = [
        Cell("–") if value is None else Cell(value, metric.digits, marks=mark)
        for value, metric in zip(values, found.metrics, strict=True)
    ]
    cells = [Cell(str(trial.number)), *words, *scores]
    if not all_finished:
        cells += [Cell(_state(trial)), Cell(trial.step, 0) if trial.runs else Cell()]
    group = str(trial.state) if finished or trial.state is State.FAILED else "unfinished"
    return Row(group, cells, run=finished)


def _state(trial: Tried) -> str:
    if trial.recorded.is_repeated:
        return f"as trial {trial.recorded.notes['same_as']}"
    if not trial.recorded.is_feasible:
        return "infeasible"
    return _WORDS.get(trial.state, str(trial.state))


def _notes(found: Searched) -> list[Note]:
    results = [result for trial in found.trials for result in trial.results]
    marks = [Note(text, mark) for mark, text in explain_marks(results).items()]
    first = [f"Of the search {found.typed}: {_on_states(found)}", *_on_refused(found), *notes_on_libraries(results)]
    notes = [*map(Note, first), *marks]
    rest = [*_on_rungs(found), *_on_expected_best(found)]
    if found.judged:
        best = found.judged[0]
        notes += [Note(_on_first(found)), Note(found.command(best), is_command=True)]
        confirmed, baseline = found.confirmation
        spread = spread_of([*confirmed, *([baseline] if baseline else [])])
        selection = found.selection if found.selection.spread else replace(found.selection, spread=spread)
        rest = [*on_the_test_set(best.results, found.study, found.metrics[0]), on_optimism(selection), *rest]
    return [*notes, *map(Note, rest)]


def _on_states(found: Searched) -> str:
    """Count the trials by state, and give the share of the steps that was spent."""
    counts = Counter(_state(trial) if not trial.recorded.is_repeated else "repeated" for trial in found.ranked)
    told = ", ".join(f"{number} {state}" for state, number in counts.items())
    whole = sum(trial.steps or 0 for trial in found.own)
    spent = sum(trial.step for trial in found.own if trial.steps)
    share = f"; {100 * spent / whole:.0f} % of the steps that all would take to their end" if whole else ""
    steps = {trial.steps for trial in found.own if trial.steps}
    budget = f", {steps.pop():,} each" if len(steps) == 1 else ""
    return f"{len(found.trials)} trials, {told}{share}{budget}."


def _on_refused(found: Searched) -> list[str]:
    """Say why trials were refused, the most frequent reasons first."""
    why = Counter(t.recorded.notes.get("error", "its run failed") for t in found.trials if t.state is State.FAILED)
    numbers = dict(why.most_common(_REFUSALS))
    told = "; ".join(f"{sentence}{f' ({count} trials)' * (count > 1)}" for sentence, count in numbers.items())
    further = f"; and {len(why) - _REFUSALS} other reasons" if len(why) > _REFUSALS else ""
    return [f"Refused: {told}{further}."] if told else []


def _on_first(found: Searched) -> str:
    """Name what follows: the command of the first trial, which with several objectives is one of a front."""
    if len(found.metrics) == 1:
        return f"First by {found.name}:"
    front = ", ".join(str(trial.number) for trial in found.front)
    return f"No trial is as good as these in all of {len(found.metrics)} numbers: {front}. First by {found.name}:"


def _on_rungs(found: Searched) -> list[str]:
    """Give the rank correlation of each rung with the end."""
    told = []
    for step, correlation in rungs(found).items():
        if correlation.value is not None:  # it takes four trials
            ends = f" {format_interval(correlation.interval, 2)}" if correlation.interval else ""
            told.append(f"step {step:,}: {format_fixed(correlation.value, 2)}{ends}, {correlation.arms} trials")
    if not told:
        return []
    return [
        "Rank correlation of each rung with the end, among the trials that came there (Spearman, 95 %): "
        f"{'; '.join(told)}. These are the best of their rungs, which lowers it; and rungs before the learning rate "
        "has come down favour low rates."
    ]


def _on_expected_best(found: Searched) -> list[str]:
    """Give the expected best of n trials, if no trial depends on those before it and all came to their end."""
    done = all(trial.state in (State.FINISHED, State.DIVERGED, State.FAILED) for trial in found.trials)
    if found.recorded.recipe.get("sampler") not in _UNBIASED or len(found.judged) < 2 or not done:
        return []
    scores = [trial.recorded.values[0] for trial in found.trials if trial.is_judged]
    every = len(scores) == sum(trial.state is not State.FAILED for trial in found.trials)
    return [on_expected_best(scores, found.metrics[0].digits, found.sign < 0, all_of_them=every)]
