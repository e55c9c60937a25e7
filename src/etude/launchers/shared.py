"""What a sweep says of jobs that are one run, and of runs that share a training."""

from collections.abc import Iterator, Sequence

from etude.runs.run_dir import RunDir
from etude.studies.arms import override_key

Typed = Sequence[Sequence[str]]  # the overrides of some jobs


def notes_on_shared(jobs: Typed, run_dirs: Sequence[RunDir]) -> Iterator[str]:
    """A sentence where fewer runs than jobs are needed, and one where fewer trainings than runs are.

    Args:
        jobs: the overrides of each.
        run_dirs: the frozen run of each.
    """
    if keys := _telling_apart(jobs, [str(run.path) for run in run_dirs]):
        runs = len(set(run_dirs))
        yield f"{len(jobs)} jobs are {_count(runs, 'run')}, for {keys} tells no runs apart"
    own = dict(zip(run_dirs, jobs, strict=True))
    trainings = [run.training or str(run.path) for run in own]
    if keys := _telling_apart([*own.values()], trainings):
        yield f"{len(own)} runs share {_count(len(set(trainings)), 'training')}, for {keys} changes no weight"


def _telling_apart(jobs: Typed, owners: Sequence[str]) -> str:
    """The keys that tell jobs apart which belong together; empty where each stands alone."""
    groups: dict[str, list[set[str]]] = {}
    for job, owner in zip(jobs, owners, strict=True):
        groups.setdefault(owner, []).append(set(job))
    apart = [set().union(*group) - group[0].intersection(*group) for group in groups.values() if len(group) > 1]
    keys = sorted({override_key(override) for words in apart for override in words})
    return ", ".join(keys) or ("what was typed twice" if apart else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number > 1 else "")
