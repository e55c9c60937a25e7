"""Messages of a sweep about jobs that are the same run, and about runs that share a training."""

from collections.abc import Iterator, Sequence

from etude.runs.run_dir import RunDir
from etude.studies.arms import override_key

_MOST_CHOICES = 2  # between arms, that are named
Typed = Sequence[Sequence[str]]  # the overrides of some jobs


def notes_on_shared(jobs: Typed, run_dirs: Sequence[RunDir]) -> Iterator[str]:
    """Yield a sentence if there are fewer runs than jobs, and one if there are fewer trainings than runs.

    Args:
        jobs: the overrides of each job.
        run_dirs: the frozen run of each job.
    """
    if keys := _distinguishing_keys(jobs, [str(run.path) for run in run_dirs]):
        runs = len(set(run_dirs))
        yield f"{len(jobs)} jobs are {_count(runs, 'run')}, because {keys} does not change a run"
    own = dict(zip(run_dirs, jobs, strict=True))
    trainings = [run.training or str(run.path) for run in own]
    if keys := _distinguishing_keys([*own.values()], trainings):
        yield f"{len(own)} runs share {_count(len(set(trainings)), 'training')}, for {keys} changes no weight"


def _distinguishing_keys(jobs: Typed, owners: Sequence[str]) -> str:
    """Return the keys in which jobs of the same owner differ; empty if no owner has several jobs."""
    groups: dict[str, list[set[str]]] = {}
    for job, owner in zip(jobs, owners, strict=True):
        groups.setdefault(owner, []).append(set(job))
    apart = [set().union(*group) - group[0].intersection(*group) for group in groups.values() if len(group) > 1]
    words = {override for group in apart for override in group}
    arms = [sorted(word.partition("=")[2] for word in group if override_key(word) == "experiment") for group in apart]
    choices = sorted({" and ".join(names) for names in arms if names})
    more = "" if len(choices) <= _MOST_CHOICES else ", and so on"
    named = (
        {"experiment": f"the choice between {', or between '.join(choices[:_MOST_CHOICES])}{more}"} if choices else {}
    )
    keys = sorted({override_key(word) for word in words})
    return ", ".join(named.get(key, key) for key in keys) or ("what was typed twice" if apart else "")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number > 1 else "")
