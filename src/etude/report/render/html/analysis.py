"""What `etude analyze` left beside the runs, as much of it as a page has room for."""

import json
from collections.abc import Sequence
from typing import Any

from etude.report.comparison import ArmResult
from etude.runs.records import Run

ROOM = 400_000  # bytes of attention maps, of all arms together; the rest of an analysis is small


def analyses(arms: Sequence[ArmResult]) -> dict[str, Any]:
    """Collect by arm the first `analysis.json` of its runs (see `etude.inspect.analyze`), with the `seed` of the run.

    Where the maps of all have no room, only the first arms keep theirs.
    """
    found = {arm.arm: told for arm in arms if (told := _analysis(arm.runs))}
    room = ROOM
    for told in found.values():
        room -= len(json.dumps(told.get("maps", [])))
        if room < 0:
            told["maps"] = []
    return found


def _analysis(runs: Sequence[Run]) -> dict[str, Any] | None:
    """An analysis that is being written, or is of another kind, is no reason to have no page."""
    for run in runs:
        file = run.run_dir.path / "analysis.json"
        try:
            told = json.loads(file.read_text(encoding="utf-8"), parse_constant=lambda _: None)
        except (OSError, ValueError):
            continue
        if isinstance(told, dict) and isinstance(told.get("heads"), list):
            return {"seed": run.seed, **_short(told)}
    return None


def _short(told: Any) -> Any:
    """Numbers to six figures: the page is to be small."""
    if isinstance(told, dict):
        return {key: _short(value) for key, value in told.items()}
    if isinstance(told, list):
        return [_short(value) for value in told]
    return float(f"{told:.6g}") if isinstance(told, float) else told
