"""The pages of the small server: the index of what lies in a folder of runs, and studies and searches under way."""

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path

from etude.errors import UserError
from etude.report import confirmation_table, results, search_table
from etude.report.grouping import with_settings
from etude.report.overview import Entry, index, under_way
from etude.report.render.html.document import Page, document, page, study_sections
from etude.report.render.html.run_files import curves
from etude.report.render.html.search_page import search_page
from etude.report.render.rows import Rows
from etude.report.searched import Searched, read_search
from etude.store.records import Run, read_rows
from etude.study.study import load_if_known

INTERVAL = 2.0  # seconds between two checks for changes, by the server and by the page
_CURVES = "dom looks table figures curves page"


def index_page(runs_dir: Path, entries: Sequence[Entry]) -> str:
    """Render the index of all studies and searches."""
    frame = Page("all runs", f"Runs in {runs_dir}", "A name leads to its page.", {}, "", "dom table page")
    rows = index(runs_dir, entries)
    content = {"study": "index", "baseline": "", "arms": [], "figures": {}}
    return page(frame, rows, content, "etude report --serve", INTERVAL)


def page_of(runs_dir: Path, entry: Entry) -> str:
    """Render the page of a study or a search of the index.

    Raises:
        UserError: there is nothing to show yet.
    """
    if not entry.search:
        return study_page(entry.study, runs_dir)
    journals = (runs_dir / entry.study).glob(f"{glob.escape(entry.search)}*.journal")
    journal = min(journals, key=lambda file: len(file.name), default=None) or next(
        (runs_dir / entry.study).glob("*.journal")
    )
    return page_of_search(read_search(journal, entry.search))


def page_of_search(found: Searched) -> str:
    """Render the page of a search, with the runs that are under way.

    Raises:
        UserError: it has no trial yet.
    """
    best, baseline = found.confirmation
    rows = search_table.table(found)
    title = f"{rows.name} confirmed"
    confirmed = [confirmation_table.table(title, found.selection, best, baseline)] if best else []
    return search_page(found, rows, f"etude report {found.typed} --serve", confirmed, INTERVAL)


def study_page(name: str, runs_dir: Path, where: Mapping[str, str] | None = None, baseline: str = "") -> str:
    """Render the page of a study while it goes on: with its unfinished runs, and before any run is finished only these.

    Raises:
        UserError: no run has begun, or none is what `where` asks for.
    """
    known = load_if_known(name)
    runs, _ = read_rows(runs_dir / name, known.arms if known else None)
    is_finished = any(run.finished for run in runs)
    runs = _choose(with_settings(known, runs) if known else runs, where or {})
    if where and not runs and not is_finished:
        raise UserError(f"no run has {' and '.join(f'{key}={value}' for key, value in where.items())}")
    begun, command = under_way(runs), f"etude report {name} --serve"
    if begun is None or any(run.finished for run in runs):
        compared = results(name, runs_dir, where).compare(baseline)
        return document(compared, INTERVAL, command, [begun] if begun else [])
    return _begun_page(name, known.title if known else name, runs, begun, command)


def _choose(runs: Sequence[Run], where: Mapping[str, str]) -> list[Run]:
    """Return each run that is of the setting that is asked for once, finished or not."""
    of = {key: value.split(",") if key == "seed" else [value] for key, value in where.items()}
    text = where.get("text", "")
    asked = {key: values for key, values in of.items() if key != "text"}
    fitting = [run for run in runs if all(run.chosen(key) in values for key, values in asked.items())]
    found = {run.run_dir.path: run for run in fitting if run.text.startswith(text)}
    return [*found.values()]


def _begun_page(name: str, title: str, runs: Sequence[Run], begun: Rows, command: str) -> str:
    """Render the page of a study none of whose runs is finished: how far they are, and each arm's newest curves."""
    by_arm: dict[str, list[Run]] = {}
    for run in runs:
        by_arm.setdefault(run.arm, []).append(run)
    last = {arm: max(some, key=lambda run: run.changed) for arm, some in by_arm.items()}
    alike = {arm: [run for run in some if run.differs_only_in_seed(last[arm])] for arm, some in by_arm.items()}
    arms = [
        {"name": arm, "seeds": [], "state": "begun", "same_tokens": True, "curves": curves(some)}
        for arm, some in alike.items()
    ]
    content = {"study": name, "baseline": "", "first_picked": [*by_arm], "arms": arms, "figures": {}}
    frame = Page(
        name, title, "No run is finished yet.", {"curves": "Learning curves"}, study_sections("curves"), _CURVES
    )
    return page(frame, begun, content, command, INTERVAL)
