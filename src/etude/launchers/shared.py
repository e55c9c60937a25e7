"""Messages of a sweep about jobs that are the same run, and about runs that share a training."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from etude.config.quoting import quote
from etude.runs.run_dir import RunDir
from etude.studies.arms import override_key
from etude.studies.study import value_at

_MOST_CHOICES = 2  # between arms, that are named
Typed = Sequence[Sequence[str]]  # the overrides of some jobs


def notes_on_shared(
    jobs: Typed, run_dirs: Sequence[RunDir], config_of: Callable[[Sequence[str]], Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a sentence if there are fewer runs than jobs, and one if there are fewer trainings than runs.

    Args:
        jobs: the overrides of each job.
        run_dirs: the frozen run of each job.
        config_of: resolves the config of a job from its overrides; only called for jobs that are the same run.
    """
    if alike := _group(jobs, [str(run.path) for run in run_dirs]):
        runs = len(set(run_dirs))
        yield f"{len(jobs)} jobs are {_count(runs, 'run')}, because {_why_one_run(alike, config_of)}"
    own = dict(zip(run_dirs, jobs, strict=True))
    trainings = [run.training or str(run.path) for run in own]
    if alike := _group([*own.values()], trainings):
        keys = _name(alike, _keys_apart(alike))
        yield f"{len(own)} runs share {_count(len(set(trainings)), 'training')}, for {keys} changes no weight"


def _group(jobs: Typed, owners: Sequence[str]) -> list[Typed]:
    """Return the jobs of each owner that has several."""
    groups: dict[str, list[Sequence[str]]] = {}
    for job, owner in zip(jobs, owners, strict=True):
        groups.setdefault(owner, []).append(job)
    return [group for group in groups.values() if len(group) > 1]


def _why_one_run(groups: Sequence[Typed], config_of: Callable[[Sequence[str]], Mapping[str, Any]]) -> str:
    """Say of each key in which jobs of one run differ whether it has one value in their configs, or changes no run."""
    reasons, idle = [], []
    for key in (keys := _keys_apart(groups)):
        one, other = _pair_apart(groups, key)
        values = [
            value_at(config, f"choices.{key}") or value_at(config, key) for config in map(config_of, (one, other))
        ]
        if values[0] == values[1]:
            reasons.append(f"several values typed for {key} come to the same, {quote(values[0])}")
        else:
            idle.append(key)
    if idle or not keys:
        reasons.append(f"{_name(groups, idle) or 'what was typed twice'} does not change a run")
    return ", and ".join(reasons)


def _pair_apart(groups: Sequence[Typed], key: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return two jobs of one run that differ in what is typed for the key."""
    pairs = ((group[0], job) for group in groups for job in group)
    return next(pair for pair in pairs if _words(pair[0], key) != _words(pair[1], key))


def _words(job: Sequence[str], key: str) -> set[str]:
    return {word for word in job if override_key(word) == key}


def _keys_apart(groups: Sequence[Typed]) -> list[str]:
    """Return the keys in which jobs of a group differ."""
    return sorted({override_key(word) for words in _words_apart(groups) for word in words})


def _words_apart(groups: Sequence[Typed]) -> list[set[str]]:
    """Return, for each group, the overrides that not all of its jobs have."""
    return [set().union(*group) - set(group[0]).intersection(*group) for group in groups]


def _name(groups: Sequence[Typed], keys: Sequence[str]) -> str:
    """Name the keys in which jobs differ; of `experiment` the arms are named."""
    apart = _words_apart(groups)
    arms = [sorted(word.partition("=")[2] for word in words if override_key(word) == "experiment") for words in apart]
    choices = sorted({" and ".join(names) for names in arms if names})
    more = "" if len(choices) <= _MOST_CHOICES else ", and so on"
    named = (
        {"experiment": f"the choice between {', or between '.join(choices[:_MOST_CHOICES])}{more}"} if choices else {}
    )
    return ", ".join(named.get(key, key) for key in keys)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number > 1 else "")
