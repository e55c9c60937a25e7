"""Run the runs of a sweep wherever a launcher starts them, and report how each ends."""

import logging
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from etude.launch.dashboard import Dashboard, dashboard
from etude.launch.interrupts import Interrupts, interrupts
from etude.launch.job import Job
from etude.search.together import Together
from etude.store.overrides import distinguishing_overrides
from etude.store.run_dir import RunDir
from etude.store.run_state import DONE, State
from etude.store.wandb_id import is_kept_back
from etude.study.study import value_at

logger = logging.getLogger(__name__)


class SweepFailed(Exception):  # noqa: N818
    """Some runs of a sweep failed; the message names them, each with the last lines of its log."""


class Source(Protocol):
    """Where further runs of a sweep come from, which depend on how the others do: a search."""

    def more(self, room: int) -> list[tuple[RunDir, str]]:
        """Return up to `room` runs to be trained now, each with its name; none if there are none until others end."""

    def watch(self) -> None:
        """Look at the runs that are being trained."""

    def figures(self) -> Mapping[RunDir, Mapping[str, str]]:
        """Return what the live table shows of its runs besides: run -> column -> cell."""

    def ended(self, run: RunDir, state: State, reason: str) -> None:
        """Take note of how a run has ended, and why if it failed."""


NOTHING_MORE = Together(())
"""The source of a sweep whose runs are all known beforehand."""


class Launcher(Protocol):
    """Where runs are started: slots of this machine, SLURM or Ray."""

    is_here: bool
    """Whether a run that it takes begins at once on this machine, where its progress is shown, and is stopped when the
    sweep is."""

    def submit(self, jobs: Sequence[Job]) -> list[Job]:
        """Start or queue runs, the first ones first; return those that it took, as there may be no room for others.

        The state of each is RUNNING, or FAILED if it could not be started, unless another process works on it or has
        finished it.
        """

    def wait(self, jobs: Sequence[Job], signals: Interrupts) -> list[Job]:
        """Wait for a moment or until a signal comes; return the runs that have ended since, their states updated."""

    def cancel(self, jobs: Sequence[Job], signals: Interrupts, show: Dashboard) -> None:
        """Ask runs to stop, and wait until they have ended; a further signal ends them at once."""


def run_all(
    jobs: list[Job],
    launcher: Launcher,
    *,
    order: Sequence[Job] | None = None,
    running: Iterable[Job] = (),
    outlives: bool = False,
    fail_fast: bool = False,
    source: Source = NOTHING_MORE,
    at_once: int = 0,
    retries: int = 0,
) -> None:
    """Run all waiting runs, one of each training that is not complete first, and show their progress.

    A run that another process works on is skipped at first. The sweep checks on it until it is finished, and takes it
    over if the other process leaves it unfinished. So several sweeps can share the same runs.

    Args:
        jobs: all runs.
        launcher: where they are started.
        order: the waiting runs in the order in which they start; by default as they are listed.
        running: those that the launcher has started before.
        outlives: whether the runs go on if the sweep is interrupted.
        fail_fast: whether the first run that fails for good ends the sweep, and stops the others.
        source: where further runs come from, which are added to `jobs`.
        at_once: how many runs there may be at a time if there is such a source.
        retries: how often a run of such a source is tried again after a failure.

    Raises:
        SweepFailed: at least one run failed.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    going = [*running]
    waiting = [job for job in order or jobs if job.state is State.WAITING and job not in going]
    for job in going:
        job.state = State.RUNNING

    def has_failed() -> bool:
        return fail_fast and any(job.state is State.FAILED for job in jobs)  # one that is tried again is WAITING

    def is_over() -> bool:
        return has_failed() or not (waiting or going or any(job.state is State.ELSEWHERE for job in jobs))

    with interrupts() as signals, dashboard(jobs, live=launcher.is_here, searched=source.figures) as show:
        try:
            while not signals.caught:
                waiting = [*take_back(jobs, show, source), *waiting]
                source.watch()
                waiting += add_jobs(jobs, source.more(at_once - len(going) - len(waiting)), retries)
                if is_over():
                    break
                for job in launcher.submit(startable(waiting, going)):
                    waiting.remove(job)
                    if job.state not in (State.RUNNING, State.FAILED):  # another process has it, or has ended it
                        show.elsewhere(job)
                        if job.state is not State.ELSEWHERE:
                            source.ended(job.run_dir, job.state, "")
                        continue
                    going.append(job)  # if it could not be started, its end is told at once
                    if launcher.is_here and job.state is State.RUNNING:
                        show.started(job)
                show.refresh()
                for job in launcher.wait(going, signals):
                    going.remove(job)
                    if job.state is State.ELSEWHERE:  # another process took the lock first
                        show.elsewhere(job)
                        continue
                    show.ended(job)
                    if job.retriable:
                        job.state = State.WAITING
                        waiting.append(job)
                        continue
                    source.ended(job.run_dir, job.state, job.reason)
        finally:
            if going and (has_failed() or not outlives):
                launcher.cancel(going, signals, show)
    conclude(jobs, stopped=bool(signals.caught), searched=source is not NOTHING_MORE)


def jobs_of(run_dirs: Sequence[RunDir], retries: int = 0) -> list[Job]:
    """Make the jobs of a sweep, one per distinct run, with names that distinguish them.

    Raises:
        UserError, OSError: as `Job`.
    """
    jobs = [Job(run_dir, retries) for run_dir in dict.fromkeys(run_dirs)]
    alike: dict[str, list[Job]] = {}
    for job in jobs:
        alike.setdefault(job.name, []).append(job)
    for group in alike.values():
        typed = {job: distinguishing_overrides(job.run_dir.overrides()) for job in group}
        shared = set.intersection(*map(set, typed.values()))
        for job, words in typed.items():
            job.name_suffix = " ".join(word for word in words if word not in shared)
    return jobs


def startable(waiting: Iterable[Job], running: Iterable[Job]) -> list[Job]:
    """Return the runs that may start: one of each training that is not complete, any number of one that is."""
    begun = {job.run_dir.own_training for job in running if job.trains}
    ready = []
    for job in waiting:
        training = job.run_dir.own_training
        if training not in begun:
            ready.append(job)
            begun |= {training} if job.trains else set()
    return ready


def add_jobs(jobs: list[Job], runs: Iterable[tuple[RunDir, str]], retries: int = 0) -> list[Job]:
    """Return the jobs of runs with these names, which are added to `jobs` unless they are there from before."""
    known, found = {job.run_dir: job for job in jobs}, []
    for run, name in runs:
        job = known.get(run) or Job(run, retries)
        job.state, job.name_suffix, job.attempts = State.WAITING, name, 0
        found.append(job)
    jobs += [job for job in found if job.run_dir not in known]
    return found


def take_back(jobs: Sequence[Job], show: Dashboard, source: Source) -> list[Job]:
    """Return the runs that other processes worked on and left unfinished; announce those that they finished."""
    elsewhere = [job for job in jobs if job.state is State.ELSEWHERE]
    for job in elsewhere:
        job.refresh_state()
        if job.state in DONE:
            show.elsewhere(job)
        if job.state not in (State.ELSEWHERE, State.WAITING):
            source.ended(job.run_dir, job.state, "")
    return [job for job in elsewhere if job.state is State.WAITING]


def conclude(jobs: Sequence[Job], *, stopped: bool, searched: bool = False) -> None:
    """Log which runs diverged or are not synced to W&B, and raise an error if the sweep was stopped or runs failed.

    Divergence and missing synchronization are no errors: a diverged run has a result, and no result depends on W&B.

    Args:
        jobs: all runs.
        stopped: whether the sweep was interrupted.
        searched: whether a search pauses and prunes runs, which then are not to go on.

    Raises:
        SweepFailed: at least one run failed, or was stopped though nothing searches.
        KeyboardInterrupt: the sweep was interrupted.
    """
    if diverged := [f"{job.name} ({job.divergence})" for job in jobs if job.state is State.DIVERGED]:
        logger.warning(
            "%d of %d runs diverged, which no retry would change: %s", len(diverged), len(jobs), "; ".join(diverged)
        )
    offline = [job for job in jobs if is_kept_back(job.run_dir)]
    if kept := [job for job in offline if value_at(job.config, "logger.wandb.mode") == "online"]:
        studies = dict.fromkeys(job.run_dir.path.parents[1] for job in kept)
        folders = " ".join(f"{shlex.quote(str(study))}/*/*/wandb" for study in studies)
        logger.warning("W&B lacks %d of %d runs; this sends them: wandb sync %s", len(kept), len(jobs), folders)
    if stopped:
        done = sum(job.state in DONE for job in jobs)
        others = "; the same command goes on with the others" if searched or done < len(jobs) else ""
        raise KeyboardInterrupt(f"{done} of {len(jobs)} runs are finished{others}")
    failed = [job for job in jobs if job.state is State.FAILED]
    ended = (*DONE, State.FAILED, *((State.PAUSED, State.PRUNED) if searched else ()))
    unfinished = [job for job in jobs if job.state not in ended]
    if failed:
        failures = "\n\n".join(job.failure() for job in failed)
        others = "the others are finished" if len(failed) < len(jobs) else "none is finished"
        again = "the same command runs only these again"
        if searched:
            others, again = "the others have ended", "the same command goes on with the search"
        if unfinished:  # after fail_fast
            others, again = f"{len(unfinished)} were stopped or not begun", "the same command goes on with all of them"
        raise SweepFailed(f"{len(failed)} of {len(jobs)} runs failed:\n\n{failures}\n\n{others}; {again}")
    if unfinished:
        names = "; ".join(job.name for job in unfinished)
        raise SweepFailed(
            f"{len(unfinished)} of {len(jobs)} runs were stopped, by W&B for instance; the same command goes on with "
            f"them: {names}"
        )
