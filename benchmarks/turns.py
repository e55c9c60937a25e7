"""Measuring several things in turns, so that what else the machine does befalls all of them alike.

Each peer works in a process of its own, with its own allocator, its own libraries and the same number of threads.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
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
            said = json.loads(workers[name].stdout.readline() or '"failed"')
            found[name] = [] if said == "ready" else said
            if said != "ready":
                del workers[name]
        for _ in range(rounds):
            for name, worker in workers.items():
                worker.stdin.write("go\n")
                worker.stdin.flush()
                found[name].append(json.loads(worker.stdout.readline()))
    return {name: found[name] for name in peers}


def seconds_in_turns(commands: Mapping[str, Sequence[str]], rounds: int, threads: int) -> dict[str, Figures]:
    """The seconds of each command in each round, from the start of its process to its end; `{round}` is which."""
    found: dict[str, Figures] = {name: [] for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            words = [word.replace("{round}", str(number)) for word in command]
            started = time.perf_counter()
            subprocess.run(words, check=True, capture_output=True, env=environment(threads))
            found[name].append(time.perf_counter() - started)
    return found


def work(kind: str, options: dict[str, Any]) -> None:
    """Be a peer: say that it is ready once it is warm, then the rate of a round for each line that comes in."""
    module, _, name = kind.partition(":")
    answers = sys.stdout
    with redirect_stdout(sys.stderr):
        try:
            peer = getattr(import_module(f"peers.{module}"), name)(**options)
            peer.round()
        except ModuleNotFoundError as error:
            print(json.dumps(f"not installed: {error.name}"), file=answers, flush=True)
            return
        print('"ready"', file=answers, flush=True)
        for _ in sys.stdin:
            print(json.dumps(peer.round()), file=answers, flush=True)


if __name__ == "__main__":
    work(sys.argv[1], json.loads(sys.argv[2]))
