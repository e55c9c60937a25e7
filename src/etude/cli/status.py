"""`etude status`: show the state of every run of a study, whoever started it."""

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from etude.cli.arguments import parse
from etude.errors import UserError
from etude.files import format_json
from etude.garbage import pause_garbage_collector
from etude.search.recorded import RecordedSearch, read_journal
from etude.store.overrides import distinguishing_overrides
from etude.store.provenance import MARKS, notes_on_code
from etude.store.records import Run, read_rows, studies_in
from etude.store.run_state import STYLES, State
from etude.study.metrics import Metric
from etude.study.study import load_study, metrics_of, no_such_study, study_names
from etude.terminal import console, format_duration, format_number

HELP = """usage: etude status [STUDY ...] [runs_dir=DIR] [--json]

The state of every run: finished, diverged, running, waiting, stopped or failed,
or paused or pruned by its search; the arms that have no run yet; and a line for
each search. It reads the directories of the runs, so it
works during a sweep and after one.

  STUDY ...      only these studies; by default all that have runs
  runs_dir=DIR   the folder of runs
  --json         print JSON
"""
Metrics = Mapping[str, Collection[Metric]]  # study -> its metrics
_MIN_TYPED_WIDTH = 24  # columns that a run's overrides need to be printed beside it
_STATES = (
    *(State.FINISHED, State.DIVERGED, State.RUNNING, State.WAITING, State.PAUSED, State.PRUNED, State.STOPPED),
    State.FAILED,
)


@dataclass(frozen=True)
class StudyRuns:
    """The runs of one study, in the order of its arms, the arms without any, and its searches."""

    study: str
    runs: list[Run]
    missing: list[str]
    notes: list[str]
    searches: list[RecordedSearch]


@pause_garbage_collector()
def main(words: Sequence[str]) -> None:
    """Print the state of the runs of some studies, or of all."""
    args = parse("status", HELP, words)
    names, runs_dir = args.words, args.runs_dir
    if not runs_dir.is_dir():
        raise UserError(
            f"there is no folder {runs_dir}: train something first, or say where the runs lie with runs_dir=DIR"
        )
    found, notes = studies_in(runs_dir)
    known = {*found, *study_names()}
    for name in names:
        if name not in known:
            raise no_such_study(name, known)
    studies = [_read(name, runs_dir) for name in dict.fromkeys(names or found)]
    runs = [run for study in studies for run in study.runs]
    metrics = {one.study: metrics_of(one.study).values() for one in studies}
    notes = [*([] if names else notes), *(note for study in studies for note in study.notes)]
    if "--json" in args.options:
        sys.stdout.write(format_json(_as_json(runs_dir, studies, runs, metrics, notes)))
        return
    out = console()
    if runs:
        out.print(_table(runs, metrics, out.width))
    for line in (*_lines(studies, runs), *notes, _totals(studies, runs)):
        out.print(line)


def _read(study: str, runs_dir: Path) -> StudyRuns:
    """Read the runs of a study.

    A folder of runs that belongs to no study, such as `single`, has no missing arms.

    Raises:
        UserError: the study's own files are not valid.
    """
    runs, notes = read_rows(runs_dir / study)
    searches = _searches(runs_dir / study, notes)
    runs = [replace(run, overrides=distinguishing_overrides(run.overrides)) for run in runs]
    if study not in study_names():
        return StudyRuns(study, sorted(runs, key=lambda run: (run.arm, run.seed)), [], notes, searches)
    order = {arm: place for place, arm in enumerate(load_study(study).arms)}
    begun = {path.parent.name for path in (runs_dir / study).glob("[!.]*/[!.]*/")}
    notes += [f"{runs_dir / study / arm}: the study has no arm {arm}." for arm in sorted(begun - {*order})]
    common = set.intersection(*(set(run.overrides) for run in runs)) if runs else set()  # no run is told apart by these
    runs = [replace(run, overrides=[one for one in run.overrides if one not in common]) for run in runs]
    runs.sort(key=lambda run: (order.get(run.arm, len(order)), run.arm, run.seed))
    return StudyRuns(study, runs, [arm for arm in order if arm not in begun], notes, searches)


def _searches(folder: Path, notes: list[str]) -> list[RecordedSearch]:
    """Read the searches in the folder of a study; add a sentence for each journal that cannot be read."""
    found = []
    for file in sorted(folder.glob("*.journal")):
        try:
            found += read_journal(file)
        except UserError as error:
            notes.append(f"{error}.")
    return found


def _table(runs: Sequence[Run], metrics: Metrics, width: int) -> RenderableType:
    """Render a table with a row for each run; a column that is empty for all runs is left out.

    All columns but the overrides are aligned here, as rich's own table takes seconds for thousands of runs. The
    overrides are printed beside their run, or below it if the terminal is narrow. Numbers are wrapped, never cut off.
    """
    rows = [_figures(run, metrics) for run in runs]
    headers = [header for header in rows[0] if header != "typed" and any(row[header] for row in rows)]
    names = _align(["run", *(run.name for run in runs)])
    states = _align(["state", *(f"{run.progress.doing or run.state}{MARKS.get(run.code, '')}" for run in runs)])
    figures = [_align([header, *(row[header] for row in rows)], left=False) for header in headers]
    lines = [Text("  ".join(cells)) for cells in zip(names, states, *figures, strict=True)]
    start = len(names[0]) + 2
    lines[0].stylize("bold")
    for line, run in zip(lines[1:], runs, strict=True):
        line.stylize(STYLES[run.state], start, start + len(states[0]))
    typed = [row["typed"] for row in rows]
    if not any(typed):
        return Text("\n").join(lines)
    if width - cell_len(lines[0].plain) < _MIN_TYPED_WIDTH:
        below = [Padding(words, (0, 0, 0, 2)) if words else None for words in ("", *typed)]
        return Group(*(part for both in zip(lines, below, strict=True) for part in both if part))
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(lines[0], no_wrap=True)
    table.add_column("typed")
    for line, words in zip(lines[1:], typed, strict=True):
        table.add_row(line, words)
    return table


def _align(cells: Sequence[str], left: bool = True) -> list[str]:
    """Pad each cell to the width of the widest."""
    width = max(map(cell_len, cells))
    pads = [" " * (width - cell_len(cell)) for cell in cells]
    return [cell + pad if left else pad + cell for cell, pad in zip(cells, pads, strict=True)]


def _figures(run: Run, metrics: Metrics) -> dict[str, str]:
    scores = dict.fromkeys((metric.label for others in metrics.values() for metric in others), "")
    scores |= {metric.label: format_number(_score(run, metric), metric.digits) for metric in metrics[run.study]}
    now, of = run.progress, f"/{run.progress.max_steps:,}" if run.progress.max_steps else ""
    return {
        "step": "" if _step(run) is None else f"{_step(run):,}{of}",
        "loss": format_number(now.loss, 3),
        "tokens/s": format_number(now.tokens_per_second, 0),
        "left": format_duration(now.seconds_left),
        "trained": format_duration(_seconds(run)),
        **scores,
        "typed": " ".join(run.overrides),
    }


def _step(run: Run) -> int | None:
    return run.result.get("steps", run.progress.step)


def _seconds(run: Run) -> float | None:
    """Return the seconds of training; None if not known."""
    seconds = run.score("seconds")
    return seconds if seconds is not None and isfinite(seconds) else None


def _score(run: Run, metric: Metric) -> float | None:
    """Return the score of a finished run; None for any other, including one that diverged."""
    return run.score(metric.key) if run.state is State.FINISHED else None


def _lines(studies: Sequence[StudyRuns], runs: Sequence[Run]) -> Iterator[str]:
    """Yield lines below the table: why runs failed or diverged, how to resume stopped ones, which arms are missing."""
    yield from filter(None, (run.failure for run in runs))
    yield from notes_on_code(run.result for run in runs)
    if any(run.state is State.STOPPED for run in runs):
        yield "Type the same command again, and what is stopped goes on from its last checkpoint if it has one."
    for study in studies:
        yield from (f"{study.study}, search {_describe(search)}" for search in study.searches)
        if study.missing:
            yield f"{study.study} has no run yet of {', '.join(study.missing)}."


def _describe(search: RecordedSearch) -> str:
    """Describe a search in a line: its trials by state, and the best so far."""
    counts = Counter("begun" if one.state is State.RUNNING else str(one.state) for one in search.trials)
    told = ", ".join(f"{number} {state}" for state, number in counts.items())
    best, name = search.best, next(iter(search.recipe.get("objectives", [])), "value")
    first = f"; best {name} {best.values[0]:.6g}, trial {best.number}" if best else ""
    return f"{search.name}: {len(search.trials)} trials{f': {told}' * bool(told)}{first}."


def _totals(studies: Sequence[StudyRuns], runs: Sequence[Run]) -> str:
    """Format the last line: runs in each state, training time of the finished ones, number of arms without a run."""
    counts = _counts(runs)
    parts = [f"{counts[state]} {state}" for state in _STATES if counts[state]]
    if counts[State.FINISHED]:
        finished = [run for run in runs if run.state is State.FINISHED]
        by_training = {run.run_dir.training or run.name: _seconds(run) or 0 for run in finished}
        trained = sum(by_training.values())
        parts[0] += f" ({format_duration(trained)} of training)"
    if missing := sum(len(study.missing) for study in studies):
        parts.append(f"{missing} {'arm' if missing == 1 else 'arms'} missing")
    return ", ".join(parts) or "no runs"


def _as_json(
    runs_dir: Path, studies: Sequence[StudyRuns], runs: Sequence[Run], metrics: Metrics, notes: Sequence[str]
) -> dict[str, Any]:
    return {
        "runs_dir": str(runs_dir),
        "runs": [_plain(run, metrics) for run in runs],
        "missing": {study.study: study.missing for study in studies},
        "searches": [_search_as_json(one.study, search) for one in studies for search in one.searches],
        "notes": list(notes),
        "totals": _counts(runs) | {"missing": sum(len(study.missing) for study in studies)},
    }


def _search_as_json(study: str, search: RecordedSearch) -> dict[str, Any]:
    best = search.best
    return {
        "study": study,
        "name": search.name,
        "trials": Counter(str(trial.state) for trial in search.trials),
        "best": {"trial": best.number, "values": best.values, "overrides": best.overrides} if best else None,
    }


def _plain(run: Run, metrics: Metrics) -> dict[str, Any]:
    """Convert a run for JSON; numbers that are not finite become None."""
    fields: dict[str, Any] = {key: getattr(run, key) for key in ("study", "arm", "seed")}
    fields |= {"run_dir": str(run.run_dir.path), "state": run.state}
    fields |= asdict(run.progress) | {"step": _step(run), "seconds": _seconds(run)}
    fields |= dict.fromkeys(metric.column for others in metrics.values() for metric in others)
    fields |= {metric.column: _score(run, metric) for metric in metrics[run.study]}
    fields |= {"error": run.error, "code": run.code, "typed": " ".join(run.overrides)}
    return {k: None if isinstance(v, float) and not isfinite(v) else v for k, v in fields.items()}


def _counts(runs: Sequence[Run]) -> dict[str, int]:
    counted = Counter(run.state for run in runs)
    return {state.value: counted[state] for state in _STATES}
