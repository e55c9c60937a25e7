"""Runs that share a training: what decides their weights is the same, so that one of them trains for all.

The others take over what it has learned, as links to the same files: each directory stays whole, whatever becomes of
the others. A run that another study has too is taken over with its result.
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from etude.errors import UserError
from etude.files import replacing
from etude.runs.provenance import code_changed
from etude.runs.run_dir import RunDir
from etude.runs.siblings import siblings


def take_over(run: RunDir, *, result: bool = True) -> RunDir | None:
    """Take over what a run of the same training has learned with today's code; nothing where this one is ahead of it.

    Args:
        run: frozen; nobody else works on its training.
        result: whether the result of the same run of another study is taken over too.

    Returns:
        The other run.
    """
    others = [*_of_today(siblings(run))]
    same = [other for other in others if other.finished and other.id == run.id]
    if result and same:
        _link(same[0], run, ["*.txt", "tokenizer.model", "metrics.csv", "environment.json", "checkpoints/*"])
        _link(same[0], run, ["wandb/*.rows"])
        names = dict(zip(("study", "arm"), run.path.parts[-3:-1], strict=True))
        run.write_result(same[0].result() | names)
        return same[0]
    begun = [other for other in others if other.checkpoint.is_file()]
    ahead = [other for other in begun if other.finished or not run.checkpoint.exists()]
    if not ahead:
        return None
    best = max(ahead, key=lambda other: (other.finished, other.checkpoint.stat().st_mtime))
    _link(best, run, ["tokenizer.model", "metrics.csv", "environment.json", "checkpoints/*.ckpt"])
    return best


def _of_today(runs: list[RunDir]) -> Iterator[RunDir]:
    for run in runs:
        with suppress(UserError):  # torn
            if run.environment_file.exists() and not code_changed(run, run.config()):
                yield run


_OWN = {"overrides.txt", "text.txt", "training.txt", "log.txt"}


def _link(other: RunDir, run: RunDir, patterns: list[str]) -> None:
    """Give files of another run to this one: those that are replaced whole are linked, those that grow are copied."""
    for file in [file for pattern in patterns for file in other.path.glob(pattern) if file.name not in _OWN]:
        with replacing(run.path / file.relative_to(other.path)) as temporary:
            _hardlink(file, temporary) if file.suffix == ".ckpt" else shutil.copy2(file, temporary)


def _hardlink(file: Path, to: Path) -> None:
    try:
        to.hardlink_to(file)
    except OSError:  # another file system, or one that knows no links
        shutil.copy2(file, to)
