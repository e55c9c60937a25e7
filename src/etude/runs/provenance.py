"""Compare the code that computed a run with today's, and mark results of other code.

Such runs are kept, or on request (`stale=rerun`) put aside and computed again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from etude.files import read_json
from etude.runs.code import code_fingerprint, known_as, unread_of
from etude.runs.run_dir import RunDir


class Code(StrEnum):
    """How the code that computed a run compares to today's."""

    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"  # it was not recorded
    UNCHECKED = "unchecked"  # a class of its config is not found here


MARKS: dict[Code | None, str] = {Code.OTHER: "†", Code.UNKNOWN: "‡", Code.UNCHECKED: "¶"}
"""The marks in tables for results that today's code may not reproduce."""

_MEANINGS = {
    Code.OTHER: "made by other code than today's, and kept; stale=rerun computes it again.",
    Code.UNKNOWN: "made before étude recorded its code, and kept; stale=rerun computes it again.",
    Code.UNCHECKED: "cannot be checked: a class that its config names is not found here ({}); PYTHONPATH says where.",
}


def marks_on_code(codes: Iterable[Code | None]) -> str:
    """Return the marks of some finished runs, each once."""
    found = set(codes)
    return "".join(mark for code, mark in MARKS.items() if code in found)


def notes_on_code(made: Iterable[tuple[Code | None, Mapping[str, Any]]]) -> list[str]:
    """Return a sentence for each mark among finished runs: what it means, and what to do.

    Args:
        made: for each run, how its code compares to today's, and its config.
    """
    found: dict[Code | None, set[str]] = {}  # with the classes that are not found here
    for code, config in made:
        found.setdefault(code, set()).update(unread_of(config) if code is Code.UNCHECKED else ())
    present = {code: meaning for code, meaning in _MEANINGS.items() if code in found}
    return [f"{MARKS[code]} {meaning.format(', '.join(sorted(found[code])))}" for code, meaning in present.items()]


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


def code_of(result: Mapping[str, Any], config: Mapping[str, Any]) -> Code:
    """Compare the code that computed a finished run with today's, given its result and its frozen config."""
    recorded = result.get("code")
    if not recorded:
        return Code.UNKNOWN
    if known_as(recorded) == code_fingerprint(config):
        return Code.SAME
    return Code.UNCHECKED if unread_of(config) else Code.OTHER


def code_changed(run: RunDir, config: Mapping[str, Any]) -> bool:
    """Return whether a run that has been started was computed by other code than today's, or by unrecorded code."""
    return run.environment_file.exists() and recorded_code(run) != code_fingerprint(config)


def recorded_code(run: RunDir) -> str | None:
    """Return the fingerprint of the code that finished the run, or else began it; None if it was not recorded."""
    file = run.result_file if run.finished else run.environment_file
    code: str | None = (read_json(file) or {}).get("code")
    return code and known_as(code)
