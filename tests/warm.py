"""Commands in forks of one process that has imported what training needs: seconds that each would spend again.

This file is also the program of that process. It reads requests from standard input, a line of JSON each, and answers
with the exit statuses.
"""

import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ETUDE, TRAINING = "etude.cli.main:main", "etude.training.run:main"
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def run(
    program: str,
    *words: object,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    text: bytes = b"",
    ranks: Sequence[Mapping[str, str]] = ({},),
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` would have it, with output as text.

    Args:
        program: "module:function", or the path of a file.
        words: its arguments.
        cwd, env: the folder, and what the environment has besides.
        text: the input.
        ranks: for each of several processes at once, what its own environment has besides.
        timeout: seconds; then they are killed.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("in", "out", "err")]
        files[0].write_bytes(text)
        common = {**os.environ, **ONE_THREAD, **(env or {})}
        request = {
            "program": program,
            "words": [str(word) for word in words],
            "cwd": str(cwd or Path.cwd()),
            "environments": [common | own for own in ranks],
            "files": [str(file) for file in files],
            "timeout": timeout,
        }
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(request) + "\n")
        statuses = json.loads(server.stdout.readline())
        status = next((status for status in statuses if status), 0)  # of the first to fail, not of those it took along
        out, err = (file.read_text(errors="replace") for file in files[1:])
        return subprocess.CompletedProcess([program, *request["words"]], status, out, err)


@cache
def _server() -> subprocess.Popen[str]:
    """One for all tests of a worker; it ends when its input does."""
    return subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env={**os.environ, **ONE_THREAD},
    )


def _become(request: dict[str, Any], environment: dict[str, str]) -> None:
    """Turn this fork into the program, and run it."""
    read, *write = request["files"]
    os.dup2(os.open(read, os.O_RDONLY), 0)
    for stream, file in enumerate(write, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(request["cwd"])
    program = request["program"]
    sys.argv = [program, *request["words"]]
    sys.path[:1] = ["", *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]  # as with -m
    if program.endswith(".py"):
        sys.path[0] = str(Path(program).parent)
        runpy.run_path(program, run_name="__main__")
        return
    module, function = program.split(":")
    getattr(import_module(module), function)()


def _statuses(children: list[int], timeout: float) -> list[int]:
    """What the forks end with, the first to end first; where one fails, the others are stopped, as torchrun does."""
    ended: dict[int, int] = {}
    deadline = time.monotonic() + timeout
    while len(ended) < len(children):
        for child in children:
            if child not in ended:
                found, status = os.waitpid(child, os.WNOHANG)
                if found:
                    ended[child] = os.waitstatus_to_exitcode(status)
        if any(ended.values()) or time.monotonic() > deadline:
            for child in children:
                if child not in ended:
                    os.kill(child, 15 if time.monotonic() < deadline else 9)
            deadline = min(deadline, time.monotonic() + 30)
        time.sleep(0.01)
    return list(ended.values())


def _serve() -> None:
    import torch

    import etude.cli.main
    import etude.training.run  # noqa: F401

    torch.set_num_threads(1)
    for line in sys.stdin:
        request = json.loads(line)
        children = []
        for environment in request["environments"]:
            child = os.fork()
            if child == 0:
                _become(request, environment)
                sys.exit(0)
            children.append(child)
        print(json.dumps(_statuses(children, request["timeout"])), flush=True)


if __name__ == "__main__":
    _serve()
