"""Compare the code that computed a run with today's, and mark results of other code.

Such runs are kept, or on request (`stale=rerun`) put aside and computed again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from etude.files import read_json
from etude.store.own_parts import find_own_file, hash_content
from etude.store.results_version import RESULTS_VERSION
from etude.store.run_dir import RunDir


class Code(StrEnum):
    """How the code that computed a run compares to today's."""

    SAME = "same"
    OTHER = "other"
    UNCHECKED = "unchecked"  # a file of the user's is not found here
    REPLACED = "replaced"  # its training has other weights now


MARKS: dict[Code | None, str] = {Code.OTHER: "†", Code.UNCHECKED: "¶", Code.REPLACED: "‡"}
"""The marks in tables for results that today's code may not reproduce."""

_MEANINGS = {  # with the files of the user's that are the reason
    Code.OTHER: "made by other code than today's{}, and kept; stale=rerun computes it again.",
    Code.UNCHECKED: "cannot be checked: a file of its own parts is not found here{}; PYTHONPATH says where.",
    Code.REPLACED: "made of other weights than its training has now, and kept; delete its directory to score it again.",
}


def marks_on_code(codes: Iterable[Code | None]) -> str:
    """Return the marks of some finished runs, each once."""
    found = set(codes)
    return "".join(mark for code, mark in MARKS.items() if code in found)


def notes_on_code(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each mark among finished runs: what it means, and what to do; an empty result is none."""
    return [f"{mark} {told}" for mark, told in explain_marks(results).items()]


def explain_marks(results: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return each mark among finished runs with what it means."""
    found: dict[Code, set[str]] = {}
    for code, files in (_compare(result) for result in results if result):
        found.setdefault(code, set()).update(files)
    reasons = {code: f" ({', '.join(sorted(files))})" if files else "" for code, files in found.items()}
    return {MARKS[code]: told.format(reasons[code]) for code, told in _MEANINGS.items() if code in found}


def notes_on_libraries(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each library whose version differs between finished runs."""
    met: dict[str, Counter[str]] = {}
    for result in results:
        for name, versions in (result.get("libraries") or {}).items():
            met.setdefault(name, Counter()).update([versions] if versions else [])
    counts = {name: ", ".join(f"{one} ({number})" for one, number in sorted(of.items())) for name, of in met.items()}
    return [
        f"These runs were not all made with the same {name}: {counts[name]}; they may differ by rounding."
        for name, versions in met.items()
        if len(versions) > 1
    ]


def code_of(recorded: Mapping[str, Any]) -> Code:
    """Compare the code that computed a run, as its result or its environment records it, with today's."""
    return _compare(recorded)[0]


def _compare(recorded: Mapping[str, Any]) -> tuple[Code, list[str]]:
    """Return how the recorded code compares to today's, and the files of the user's that are the reason."""
    number, own = recorded.get("results_version"), recorded.get("own_files") or {}
    files = {path: find_own_file(path) for path in own}
    changed = [path for path, file in files.items() if file and hash_content(file) != own[path]]
    if changed or number != RESULTS_VERSION:
        return Code.OTHER, changed
    if recorded.get("replaced"):
        return Code.REPLACED, []
    missing = [path for path, file in files.items() if not file]
    return (Code.UNCHECKED, missing) if missing else (Code.SAME, [])


def is_one_code(results: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether the code that computed these runs is the same, as far as they record it."""
    numbers: set[str] = set()
    files: dict[str, set[str]] = {}
    for result in results:
        numbers.add(str(result.get("results_version")))
        for path, content in (result.get("own_files") or {}).items():
            files.setdefault(path, set()).add(str(content))
    return all(len(met) <= 1 for met in (numbers, *files.values()))


def code_of_run(run: RunDir) -> Code | None:
    """Compare the code that finished a run, or else began it, with today's; None if it was never started."""
    file = run.result_file if run.finished else run.environment_file
    return code_of(read_json(file) or {}) if file.exists() else None
