"""Which jobs are in SLURM's queue, by squeue: unlike sacct, it needs no accounting and knows of a job at once."""

import os
import subprocess
import time

from etude.errors import UserError

_PATIENCE = 60.0  # seconds for squeue, and those that a job may be out of the queue while SLURM requeues it
_POLL_INTERVAL = 20.0  # seconds between calls of squeue


def queued_jobs() -> set[str]:
    """Return the ids of this user's jobs that are in the queue, whether they run or not; of an array, its tasks'.

    Raises:
        UserError: squeue does not answer.
    """
    command = ["squeue", "--noheader", "--array", "--format=%i", f"--user={os.getuid()}"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"squeue does not answer ({error}): are you on a SLURM cluster?") from error
    if answer.returncode:
        raise UserError(f"squeue: {answer.stderr.strip() or f'exit status {answer.returncode}'}; try again later")
    return set(answer.stdout.split())


class Queue:
    """Tells which jobs have left the queue, without asking SLURM too often."""

    def __init__(self) -> None:
        self._asked = self._answered = time.monotonic()
        self._seen: dict[str, float] = {}

    def has_left(self, job_id: str) -> bool:
        """Return whether a job has been out of the queue for a minute, counted from the first time that this is asked.

        While squeue does not answer, it has not.
        """
        if time.monotonic() > self._asked + _POLL_INTERVAL:
            self._asked = time.monotonic()
            try:
                there = queued_jobs()
            except UserError:  # SLURM's controller restarts, or is busy
                there = None
            if there is not None:
                self._answered = self._asked
                self._seen |= dict.fromkeys(there, self._asked)
        return self._answered > self._seen.setdefault(job_id, time.monotonic()) + _PATIENCE
