"""Measuring several things in turns, so that what else the machine does befalls all of them alike.

Each peer works in a process of its own, with its own allocator, its own libraries and the same number of threads.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

Figures = list[float] | str
"""One a round; or why there are none."""

Peer = tuple[str, dict[str, Any]]
"""A class of `peers`, as module:Class, and what it is made with."""


def environment(threads: int) -> dict[str, str]:
    """In which a process finds these files, and the same étude."""
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": str(threads)}


def rates_in_turns(peers: Mapping[str, Peer], rounds: int, threads: int) -> dict[str, Figures]:
    """The rate of each peer in each round; in the place of one that is not installed, or fails, why."""
    found: dict[str, Figures] = {}
    workers: dict[str, subprocess.Popen[str]] = {}
    with ExitStack() as ending:
        for name, (kind, options) in peers.items():
            command = [sys.executable, __file__, kind, json.dumps(options)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            workers[name] = subprocess.Popen(command, text=True, env=environment(threads), **pipes)
            ending.callback(workers[name].kill)
        for name in peers:
            said = _answer(workers[name])
            found[name] = [] if said == "ready" else str(said)
        for _ in range(rounds):
            for name, figures in found.items():
                if isinstance(figures, str):
                    continue
                with suppress(BrokenPipeError):  # it has ended, and so has what it answers
                    workers[name].stdin.write("go\n")
                    workers[name].stdin.flush()
                said = _answer(workers[name])
                found[name] = said if isinstance(said, str) else [*figures, said]
    return {name: found[name] for name in peers}


def _answer(worker: subprocess.Popen[str]) -> float | str:
    """What a peer says: the rate of a round, that it is ready, or why there will be none."""
    said: float | str = json.loads(worker.stdout.readline() or '"failed"')
    return said


def seconds_in_turns(commands: Mapping[str, Sequence[str]], rounds: int, threads: int) -> dict[str, Figures]:
    """The seconds of each command in each round, from the start of its process to its end; `{round}` is which.

    In the place of one that fails stands the last line of what it said.
    """
    found: dict[str, Figures] = {name: [] for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            figures = found[name]
            if isinstance(figures, str):
                continue
            words = [word.replace("{round}", str(number)) for word in command]
            started = time.perf_counter()
            done = subprocess.run(words, capture_output=True, text=True, env=environment(threads))
            took = time.perf_counter() - started
            why = "failed: " + (done.stderr.splitlines() or [f"exit status {done.returncode}"])[-1]
            found[name] = why if done.returncode else [*figures, took]
    return found


def seconds_of(*words: str, **options: Any) -> float:
    """The seconds of one command of étude's, from the start of its process to its end."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "etude", *words], check=True, stdout=subprocess.DEVNULL, **options)
    return time.perf_counter() - started


def work(kind: str, options: dict[str, Any]) -> None:
    """Be a peer: say that it is ready once it is warm, then the rate of a round for each line that comes in."""
    module, _, name = kind.partition(":")
    answers = sys.stdout
    with redirect_stdout(sys.stderr):
        try:
            peer = getattr(import_module(f"peers.{module}"), name)(**options)
            peer.round()
            print('"ready"', file=answers, flush=True)
            for _ in sys.stdin:
                print(json.dumps(peer.round()), file=answers, flush=True)
        except ModuleNotFoundError as error:
            print(json.dumps(f"not installed: {error.name}"), file=answers, flush=True)
        except Exception as error:
            print(json.dumps(f"failed: {type(error).__name__}: {error}"), file=answers, flush=True)


if __name__ == "__main__":
    work(sys.argv[1], json.loads(sys.argv[2]))
