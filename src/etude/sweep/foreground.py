"""One run on several devices, trained in the foreground: a process for each; what they say goes to the log as well."""

import signal
import subprocess
import sys
from typing import Any

from etude.rundir import RunDir
from etude.sweep.job import train_command


def train_on_several(run: RunDir) -> dict[str, Any]:
    """Train a frozen run in processes of its own and wait for them; Ctrl-C and SIGTERM are theirs to heed.

    Returns:
        What `result.json` holds.

    Raises:
        UserError: the data cannot be had, or the config does not fit it; nothing was started.
        SystemExit: they ended without a result, with their status; they have said why.
    """
    from etude import build

    config = run.config()
    build.shapes(config)
    build.token_store(config)  # made here, where a mistake is one sentence and not one of each process
    process = subprocess.Popen(train_command(run), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda number, frame: process.send_signal(number))
    try:
        with run.log_file.open("ab") as log:
            for line in process.stdout or ():
                log.write(line)
                log.flush()
                sys.stderr.write(line.decode("utf-8", errors="replace"))
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if not run.finished:
        sys.exit(code if code > 0 else 1)
    return run.result()
