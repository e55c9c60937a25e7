"""The runs of all studies that share a training, and which of them can hand theirs over."""

from contextlib import suppress
from pathlib import Path

from etude.errors import UserError
from etude.files import is_whole_archive
from etude.runs.provenance import code_changed
from etude.runs.run_dir import RunDir


def runs_of_training(runs_dir: Path, seed: int, training: str) -> list[RunDir]:
    """All runs in a folder of runs whose weights are decided by the same."""
    found = (RunDir(file.parent) for file in runs_dir.glob(f"*/*/seed{seed}-*/training.txt"))
    return [run for run in found if run.training == training]


def siblings(run: RunDir) -> list[RunDir]:
    """The other runs of its training in the same folder of runs."""
    if not (training := run.training):
        return []
    seed = run.path.name.removeprefix("seed").rpartition("-")[0]
    return [other for other in runs_of_training(run.runs_dir, int(seed), training) if not other.path.samefile(run.path)]


def is_trained(run: RunDir) -> bool:
    """Whether nothing is left to train: it is finished, or a run of the same training can hand it over whole."""
    return run.finished or any(hands_over(other) for other in siblings(run) if other.finished)


def hands_over(run: RunDir, *, result: bool = False) -> bool:
    """Whether what a run has learned may be used by another: with today's code, and nothing of it damaged.

    Args:
        run: finished or begun.
        result: whether its result is asked for, which holds without the weights.
    """
    with suppress(UserError, OSError):  # torn, or removed meanwhile
        if run.environment_file.exists() and not code_changed(run, run.config()):
            return (result and run.finished) or is_whole_archive(run.checkpoint)
    return False


def studies_of(run: RunDir) -> dict[str, str]:
    """The studies that have this very run, each with its arm there; that which had its result first stands first."""
    same = [other for other in siblings(run) if other.id == run.id and other.finished]
    same.sort(key=lambda other: other.result_file.stat().st_mtime)
    return {one.path.parts[-3]: one.path.parts[-2] for one in [*same, run]}
