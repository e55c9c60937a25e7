"""Share a training between runs: everything that determines their weights is the same, so one of them trains for all.

The others link to its checkpoints, so that each directory stays complete if another one is deleted. If another study
has the same run, its result is shared too: `result_of` another.
"""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from etude.files import link_or_copy, temporary_path
from etude.runs.run_dir import RunDir
from etude.runs.siblings import hands_over, siblings

_RECORDS = ["tokenizer.model", "metrics.csv", "environment.json"]
_WEIGHTS = "checkpoints/*.ckpt"


def take_over(run: RunDir, config: dict[str, Any], *, result: bool = True) -> RunDir | None:
    """Link checkpoints and records of another run of the same training into this one, if that run is ahead.

    Args:
        run: a frozen run; no other process may be working on its training.
        config: the config of the run.
        result: whether to take over what belongs to a result too, if another study has the same run.

    Returns:
        The run that was taken over from; None if there is none ahead of this one, or if the training is to be profiled.
    """
    if config.get("trainer", {}).get("profiler"):  # it reports on a training, so there must be one
        return None
    others = siblings(run)
    same = [other for other in others if other.finished and other.id == run.id and hands_over(other, result=True)]
    if result and same:
        texts = [f"{name}.test.txt" for name in ("hypotheses", "sources", "references")]
        _link(same[0], run, [*_RECORDS, *texts, "wandb/*.rows", "checkpoints/cleaned.txt", _WEIGHTS])
        return same[0]
    begun = [other for other in others if _age(other) > _age(run) and hands_over(other)]
    if not begun:
        return None
    best = max(begun, key=lambda other: (other.finished, _age(other)))
    _link(best, run, [*_RECORDS, _WEIGHTS])
    return best


def result_of(other: RunDir, run: RunDir) -> dict[str, Any]:
    """Return the result of the same run in another study, with the names of `run`."""
    return other.result() | dict(zip(("study", "arm"), run.path.parts[-3:-1], strict=True))


def _age(run: RunDir) -> float:
    """Return when the last checkpoint was written, 0 if there is none; a linked checkpoint keeps its original time."""
    with suppress(OSError):
        return run.checkpoint.stat().st_mtime
    return 0.0


def _link(other: RunDir, run: RunDir, patterns: Sequence[str]) -> None:
    """Link checkpoints of another run, which are only ever replaced as a whole, and copy its other files."""
    found = [file for pattern in patterns for file in sorted(other.path.glob(pattern)) if file.name != "previous.ckpt"]
    found.sort(key=lambda file: file == other.checkpoint)  # at the end: its presence means that the others are there
    for file in found:
        to = run.path / file.relative_to(other.path)
        to.parent.mkdir(exist_ok=True)
        temporary = temporary_path(to)
        with suppress(FileNotFoundError):  # `etude clean` may have deleted it meanwhile
            link_or_copy(file, temporary) if file.suffix == ".ckpt" else shutil.copy2(file, temporary)
            temporary.replace(to)
