"""Runs that share a training: what decides their weights is the same, so that one of them trains for all.

The others take over what it has learned, as links to the same files: each directory stays whole, whatever becomes of
the others. A run that another study has too is taken over with its result.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from etude.files import link_or_copy, read_json, write_json
from etude.runs.code import code_fingerprint
from etude.runs.run_dir import RunDir
from etude.runs.siblings import hands_over, siblings

_RECORDS = ["tokenizer.model", "metrics.csv", "environment.json"]
_WEIGHTS = ["checkpoints/step-*.ckpt", "checkpoints/best.ckpt", "checkpoints/last.ckpt"]  # the last says: all is there


def take_over(run: RunDir, config: dict[str, Any], *, result: bool = True) -> RunDir | None:
    """Take over what a run of the same training has learned; nothing where this one is ahead of it.

    Args:
        run: frozen; nobody else works on its training.
        config: of the run.
        result: whether the result of the same run of another study is taken over too.

    Returns:
        The other run.
    """
    others = siblings(run)
    code = {"code": code_fingerprint(config)}  # today's, for that is whose runs hand over
    same = [other for other in others if other.finished and other.id == run.id and hands_over(other, result=True)]
    if result and same:
        texts = [f"{name}.test.txt" for name in ("hypotheses", "sources", "references")]
        _link(same[0], run, [*_RECORDS, *texts, "wandb/*.rows", *_WEIGHTS])
        names = dict(zip(("study", "arm"), run.path.parts[-3:-1], strict=True))
        _note(run, code)
        run.write_result(same[0].result() | names | code)
        return same[0]
    begun = [other for other in others if _age(other) > _age(run) and hands_over(other)]
    if not begun:
        return None
    best = max(begun, key=lambda other: (other.finished, _age(other)))
    _link(best, run, [*_RECORDS, *_WEIGHTS])
    _note(run, code)
    return best


def _age(run: RunDir) -> float:
    """When its newest checkpoint was written; one that is linked is as old as the other."""
    with suppress(OSError):
        return run.checkpoint.stat().st_mtime
    return 0.0


def _note(run: RunDir, code: dict[str, str]) -> None:
    write_json(run.environment_file, (read_json(run.environment_file) or {}) | code)


def _link(other: RunDir, run: RunDir, patterns: Sequence[str]) -> None:
    """Give files of another run to this one: those that are replaced whole are linked, those that grow are copied."""
    for file in [file for pattern in patterns for file in sorted(other.path.glob(pattern))]:
        to = run.path / file.relative_to(other.path)
        to.parent.mkdir(exist_ok=True)
        temporary = to.with_name(f".{to.name}.{os.getpid()}.part")
        with suppress(FileNotFoundError):  # it has been cleaned meanwhile
            link_or_copy(file, temporary) if file.suffix == ".ckpt" else shutil.copy2(file, temporary)
            temporary.replace(to)
