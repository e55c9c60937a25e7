"""Find the runs of all studies that share a training, and those whose training another run can use."""

from contextlib import suppress
from pathlib import Path

from etude.files import is_whole_archive
from etude.runs.provenance import Code, code_of_run
from etude.runs.run_dir import RunDir


def runs_of_training(runs_dir: Path, seed: int, training: str) -> list[RunDir]:
    """Return all runs in a folder of runs that have this seed and training."""
    found = (RunDir(file.parent) for file in runs_dir.glob(f"*/*/seed{seed}-*/training.txt"))
    return [run for run in found if run.training == training]


def siblings(run: RunDir) -> list[RunDir]:
    """Return the other runs in the same folder of runs that share the training of `run`."""
    if not (run.id and (training := run.training)):  # a folder that was renamed is no run's any more
        return []
    seed = run.path.name.removeprefix("seed").rpartition("-")[0]
    return [other for other in runs_of_training(run.runs_dir, int(seed), training) if not other.path.samefile(run.path)]


def is_trained(run: RunDir) -> bool:
    """Return whether nothing is left to train: this run is finished, or a finished one can hand over its training."""
    return run.finished or any(hands_over(other) for other in siblings(run) if other.finished)


def hands_over(run: RunDir, *, result: bool = False) -> bool:
    """Return whether another run may use the training of `run`: it was computed by today's code and is undamaged.

    Args:
        run: a finished or unfinished run.
        result: whether its result is enough, so that a finished run needs no checkpoint.
    """
    with suppress(OSError):  # deleted meanwhile
        if run.environment_file.exists() and code_of_run(run) is Code.SAME:
            return (result and run.finished) or is_whole_archive(run.checkpoint)
    return False


def same_runs(run: RunDir) -> list[RunDir]:
    """Return the directories of other studies in which the same run is finished."""
    return [other for other in siblings(run) if other.id == run.id and other.finished]


def studies_of(run: RunDir) -> dict[str, str]:
    """Return the studies that have the same finished run, as study -> arm: oldest result first, that of `run` last."""
    same = sorted(same_runs(run), key=lambda other: other.result_file.stat().st_mtime)
    return {one.path.parts[-3]: one.path.parts[-2] for one in [*same, run]}
