"""What lies in a folder of runs: every study and search with the states of its runs, the newest first."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import localtime, strftime
from urllib.parse import quote

from etude.errors import UserError
from etude.report.render.rows import Cell, Column, Row, Rows
from etude.search.recorded import read_journal
from etude.store.records import Run, leaving_out, read_run, studies_in
from etude.store.run_dir import RunDir
from etude.store.run_state import DONE, STYLES, State
from etude.study.study import load_study, study_names
from etude.terminal import format_duration, format_number, shorten_value

_COUNTED = (State.FINISHED, State.RUNNING, State.FAILED, State.PAUSED, State.PRUNED, State.STOPPED, State.DIVERGED)

_WHY = {
    State.PRUNED: "others of its search were better",
    State.PAUSED: "its search, or the same command, may let it go on",
    State.STOPPED: "the same command goes on from its last checkpoint",
}


@dataclass(frozen=True)
class Entry:
    """A study, or a search among its runs.

    Attributes:
        study: the name of its folder in the folder of runs.
        search: the name of the search; empty for a study.
        states: how many runs or trials are in each state.
        changed: when one of its files was last written, in seconds since the epoch.
    """

    study: str
    search: str
    states: Counter[State]
    changed: float

    @property
    def name(self) -> str:
        """How it is shown: `table3`, or `table3: search`."""
        return f"{self.study}: {self.search}" if self.search else self.study

    @property
    def page(self) -> str:
        """The name of its page; a slash stands in no name of a study or search, and `index.html` is the index."""
        return f"{self.study}/{self.search or 'study'}{'.search' * bool(self.search)}.html"


@dataclass
class Overview:
    """Reads the entries of a folder of runs again and again; a run that is done is read once."""

    runs_dir: Path
    _done: dict[Path, State] = field(default_factory=dict)

    def entries(self) -> list[Entry]:
        """Return the studies and searches, the newest first."""
        found = []
        for study in studies_in(self.runs_dir)[0]:
            folder = self.runs_dir / study
            states, changed = Counter[State](), 0.0
            for path in folder.glob("[!.]*/seed*/"):
                with leaving_out(path, []):
                    is_done = path in self._done and RunDir(path).finished
                    state = self._done[path] if is_done else read_run(RunDir(path)).state
                    states[state] += 1
                    if state in DONE:
                        self._done[path] = state
                    changed = max(changed, path.stat().st_mtime)
            found.append(Entry(study, "", states, changed))
            for journal in folder.glob("*.journal"):
                with suppress(UserError, OSError):
                    for search in read_journal(journal):
                        counts = Counter(trial.state for trial in search.trials)
                        found.append(Entry(study, search.name, counts, journal.stat().st_mtime))
        return sorted(found, key=lambda entry: entry.changed, reverse=True)


def index(runs_dir: Path, entries: Sequence[Entry]) -> Rows:
    """Make the table of all studies and searches."""
    known = study_names()
    shown = [state for state in _COUNTED if any(entry.states[state] for entry in entries)]
    columns = [Column("study or search", words=True), Column("what it is", words=True)]
    columns += [*(Column(str(state)) for state in shown), Column("last change", words=True)]
    rows = []
    for entry in entries:
        title = "a search" if entry.search else "runs of no study"
        with suppress(UserError):
            title = load_study(entry.study).title if not entry.search and entry.study in known else title
        counts = [Cell(entry.states[state] or None) for state in shown]
        age = Cell(strftime("%Y-%m-%d %H:%M", localtime(entry.changed)))
        rows.append(Row(entry.study, [Cell(entry.name), Cell(title), *counts, age], True, link=quote(entry.page)))
    return Rows(str(runs_dir), f"Runs in {runs_dir}", columns, rows)


def under_way(runs: Sequence[Run]) -> Rows | None:
    """Make the table of unfinished runs: how far they are and how fast, or why they are not; None if there are none."""
    order = [*STYLES]
    begun = [run for run in runs if not run.finished]
    common = set.intersection(*(set(run.typed.items()) for run in begun)) if begun else set()  # no run is told apart
    words = {"run": True, "state": True, "step": False, "loss": False, "tokens/s": False, "left": False, "why": True}
    rows = []
    for run in sorted(begun, key=lambda run: (order.index(run.state), run.arm, run.seed)):
        now = run.progress
        of = f" / {now.max_steps:,}" if now.max_steps else ""
        step = "" if now.step is None else f"{now.step:,}{of}"
        own = (pair for pair in run.typed.items() if pair not in common)
        typed = "".join(f", {key}={shorten_value(value)}" for key, value in own)
        numbers = [
            (step, now.step),
            (format_number(now.loss, 3), now.loss),
            (format_number(now.tokens_per_second, 0), now.tokens_per_second),
            (format_duration(now.seconds_left), now.seconds_left),
        ]
        cells = [Cell(f"{run.arm}, seed {run.seed}{typed}"), Cell(str(now.doing or run.state))]
        cells += [Cell(text or None, order=None if number != number else number) for text, number in numbers]
        rows.append(Row(run.arm, [*cells, Cell(run.error or _WHY.get(run.state))], True))
    columns = [Column(header, words=is_words) for header, is_words in words.items()]
    return Rows("runs", "Runs under way, and those that ended early", columns, rows) if rows else None
