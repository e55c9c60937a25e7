"""`etude status`: where every run of a study stands, whoever started it."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from etude.errors import UserError, did_you_mean
from etude.launchers.dashboard import duration
from etude.paths import shipped
from etude.runs.provenance import MARKS, notes_on_code
from etude.runs.run_state import Standing, State, StudyStanding, studies_in, study_standing
from etude.studies.study import study_names
from etude.terminal import console
from etude.yaml_file import read_yaml

HELP = """usage: etude status [STUDY ...] [runs_dir=DIR] [--json]

Where every run stands: finished, diverged, running, waiting for its turn, stopped or failed, and which arms have no run
yet. All of it is read from the directories of the runs, so that it works beside a sweep and after one.

  STUDY ...      these studies; every one that has runs if nothing is said
  runs_dir=DIR   where the runs lie
  --json         for machines
"""
_STYLES = {
    State.FINISHED: "green",
    State.DIVERGED: "bold magenta",
    State.RUNNING: "cyan",
    State.STOPPED: "yellow",
    State.FAILED: "bold red",
}
_STATES = (State.FINISHED, State.DIVERGED, State.RUNNING, State.WAITING, State.STOPPED, State.FAILED)


def main(words: Sequence[str]) -> None:
    """Print where the runs of all studies, or of some, stand.

    Raises:
        UserError: a word is not understood, or there is no such study or folder of runs.
    """
    if "-h" in words or "--help" in words:
        sys.stdout.write(HELP)
        return
    asked: list[str] = []
    where = ""
    for word in words:
        if word.startswith("runs_dir="):
            where = word.removeprefix("runs_dir=")
        elif "=" in word or (word.startswith("-") and word != "--json"):
            raise UserError(f"status: {word!r}: {did_you_mean(word, ['runs_dir=DIR', '--json', '--help'])}")
        elif word != "--json":
            asked.append(word)
    runs_dir = Path(where or read_yaml(shipped("conf") / "train.yaml")["runs_dir"]).expanduser()
    if not runs_dir.is_dir():
        raise UserError(f"there is no folder of runs {runs_dir}: train something first, or say where with runs_dir=DIR")
    found, notes = studies_in(runs_dir)
    known = {*found, *study_names()}
    for name in asked:
        if name not in known:
            raise UserError(f"there is no study {name!r}: {did_you_mean(name, known)}")
    studies = [study_standing(name, runs_dir) for name in dict.fromkeys(asked or found)]
    notes = [*([] if asked else notes), *(note for study in studies for note in study.notes)]
    if "--json" in words:
        sys.stdout.write(json.dumps(_as_json(runs_dir, studies, notes), indent=2, ensure_ascii=False) + "\n")
        return
    out = console()
    runs = [run for study in studies for run in study.runs]
    if runs:
        out.print(_table(runs))
    for line in (*_lines(studies), *notes, _totals(studies)):
        out.print(line)


def _table(runs: Sequence[Standing]) -> Table:
    """A row a run; a figure that no run has takes no column."""
    rows = [_figures(run) for run in runs]
    headers = [header for header in rows[0] if any(row[header] for row in rows)]
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("run", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for header in headers:
        words = header == "typed"  # which give way where the terminal is narrow
        table.add_column(header, justify="left" if words else "right", no_wrap=not words)
    for run, row in zip(runs, rows, strict=True):
        state = Text(run.doing or run.state, _STYLES.get(run.state, "dim"))
        state.append(MARKS.get(run.code, ""))
        table.add_row(Text(_name(run)), state, *(row[header] for header in headers))
    return table


def _figures(run: Standing) -> dict[str, str]:
    of = f"/{run.max_steps:,}" if run.max_steps else ""
    return {
        "step": "" if run.step is None else f"{run.step:,}{of}",
        "loss": _number(run.loss, 3),
        "tokens/s": _number(run.tokens_per_second, 0),
        "left": duration(run.seconds_left),
        "trained": duration(run.seconds),
        "PPL": _number(run.perplexity, 2),
        "BLEU": _number(run.bleu, 1),
        "typed": run.typed,
    }


def _lines(studies: Sequence[StudyStanding]) -> Iterator[str]:
    """What the table cannot hold: why runs failed or diverged, how stopped ones go on, which arms are missing."""
    runs = [run for study in studies for run in study.runs]
    for run in runs:
        if run.error:
            yield f"{_name(run)} {run.state}: {run.error} ({run.run_dir.log_file})"
    yield from notes_on_code(run.code for run in runs)
    if any(run.state is State.STOPPED for run in runs):
        yield "Type the same command again, and what is stopped goes on from its last checkpoint if it has one."
    for study in studies:
        if study.missing:
            yield f"{study.study} has no run yet of {', '.join(study.missing)}."


def _totals(studies: Sequence[StudyStanding]) -> str:
    """The last line: how many runs are in each state, how long the finished ones trained, how many arms have none."""
    runs = [run for study in studies for run in study.runs]
    counts = _counts(runs)
    parts = [f"{counts[state]} {state}" for state in _STATES if counts[state]]
    if counts[State.FINISHED]:
        parts[0] += f" ({duration(sum(run.seconds or 0 for run in runs if run.state is State.FINISHED))} of training)"
    if missing := sum(len(study.missing) for study in studies):
        parts.append(f"{missing} {'arm' if missing == 1 else 'arms'} missing")
    return ", ".join(parts) or "no runs"


def _as_json(runs_dir: Path, studies: Sequence[StudyStanding], notes: Sequence[str]) -> dict[str, Any]:
    runs = [run for study in studies for run in study.runs]
    return {
        "runs_dir": str(runs_dir),
        "runs": [_plain(run) for run in runs],
        "missing": {study.study: study.missing for study in studies},
        "notes": list(notes),
        "totals": _counts(runs) | {"missing": sum(len(study.missing) for study in studies)},
    }


def _plain(run: Standing) -> dict[str, Any]:
    """A run for machines: JSON has no word for what is not finite."""
    told = asdict(run) | {"run_dir": str(run.run_dir.path)}
    return {k: None if isinstance(v, float) and not isfinite(v) else v for k, v in told.items()}


def _counts(runs: Sequence[Standing]) -> dict[str, int]:
    counted = Counter(run.state for run in runs)
    return {state.value: counted[state] for state in _STATES}


def _name(run: Standing) -> str:
    """Study, arm and directory, as one would type them behind the folder of runs."""
    return "/".join(run.run_dir.path.parts[-3:])


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"
