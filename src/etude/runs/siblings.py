"""The runs of all studies that share a training."""

from etude.runs.run_dir import RunDir


def siblings(run: RunDir) -> list[RunDir]:
    """The other runs in the same folder of runs whose weights are decided by the same."""
    training = run.training
    if not training:
        return []
    seed = run.path.name.rpartition("-")[0]
    found = (RunDir(file.parent) for file in run.path.parents[2].glob(f"*/*/{seed}-*/training.txt"))
    return [other for other in found if other.path != run.path and other.training == training]


def is_trained(run: RunDir) -> bool:
    """Whether its training is complete: some run that shares it has a result."""
    return run.finished or any(other.finished for other in siblings(run))


def studies_of(run: RunDir) -> dict[str, str]:
    """The studies that have this very run, each with its arm there; that which had its result first stands first."""
    same = [other for other in siblings(run) if other.id == run.id and other.finished]
    same.sort(key=lambda other: other.result_file.stat().st_mtime)
    return {one.path.parts[-3]: one.path.parts[-2] for one in [*same, run]}
