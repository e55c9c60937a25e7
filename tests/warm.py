"""Commands in forks of one process that has imported what training needs: seconds that each would spend again.

This file is also the program of that process. It listens on a socket; a request is a line of JSON, the answer the exit
statuses. `warm_python.py` makes the same requests, for whoever wants a Python to start.
"""

import atexit
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

ETUDE, TRAINING = "etude.cli.main:main", "etude.training.run:main"
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
CLIENT = Path(__file__).with_name("warm_python.py")
LINUX = Path("/proc").is_dir()  # where the client's own streams can be handed on by name


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
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
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
            "python": str(python()),
        }
        server.connect(str(_server(sys.executable) / "socket"))
        server.sendall(json.dumps(request).encode() + b"\n")
        statuses = json.loads(server.makefile().readline())
        status = next((status for status in statuses if status), 0)  # of the first to fail, not of those it took along
        out, err = (file.read_text(errors="replace") for file in files[1:])
        return subprocess.CompletedProcess([program, *request["words"]], status, out, err)


def python(executable: str = sys.executable) -> Path:
    """A program to start in place of Python: forks for étude, its training, torchrun and scripts, else Python.

    Beside it lies the file `etude`, which says where the étude of this Python is. Elsewhere than on Linux it is Python.
    """
    return _server(executable) / "python" if LINUX else Path(executable)


@cache
def _server(executable: str) -> Path:
    """The folder of one server for all tests of a worker; it ends when its input does."""
    folder = Path(tempfile.mkdtemp(prefix="warm"))
    client = CLIENT.read_text().replace("SOCKET", f"{folder}/socket").replace("PYTHON", executable)
    (folder / "python").write_text(f"#!{sys.executable} -IS\n{client}")
    (folder / "python").chmod(0o755)
    server = subprocess.Popen(
        [executable, __file__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "ETUDE_CONFIG_DIR"} | ONE_THREAD,
        cwd=CLIENT.parent,  # where no file of a test's is composed
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"listening\n"
    _servers.append(server)
    return folder


_servers: list[subprocess.Popen[bytes]] = []


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
    sys.executable = request.get("python", sys.executable)
    sys.path[:1] = ["", *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]  # as with -m
    if program.endswith(".py"):
        sys.path[0] = str(Path(program).parent)
        runpy.run_path(program, run_name="__main__")
        return
    module, function = program.split(":")
    getattr(import_module(module), function)()


def _end_at_once(status: object) -> NoReturn:
    """End as `sys.exit(status)` does, but leave what was imported to the system: freeing it takes half a second."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if isinstance(status, str):
        print(status, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


def _statuses(children: list[int], timeout: float, asking: socket.socket) -> list[int]:
    """What the forks end with, the first to end first; where one fails, the others are stopped, as torchrun does.

    A signal that whoever waits for the answer passes on is theirs; all are killed where nobody waits any more.
    """
    ended: dict[int, int] = {}
    deadline = time.monotonic() + timeout
    while len(ended) < len(children):
        for child in children:
            if child not in ended:
                found, status = os.waitpid(child, os.WNOHANG)
                if found:
                    ended[child] = os.waitstatus_to_exitcode(status)
        told = asking.recv(1) if select.select([asking], [], [], 0.01)[0] else None
        left = told == b""
        for child in children if told else []:
            if child not in ended:
                os.kill(child, told[0])
        if left or any(ended.values()) or time.monotonic() > deadline:
            for child in children:
                if child not in ended:
                    os.kill(child, 15 if time.monotonic() < deadline and not left else 9)
            deadline = min(deadline, time.monotonic() + 30)
    return list(ended.values())


def _answer(asking: socket.socket) -> None:
    request = json.loads(asking.makefile("rb", buffering=0).readline())  # and not the signals behind it
    children = []
    for environment in request["environments"]:
        child = os.fork()
        if child == 0:
            asking.close()
            try:
                _become(request, environment)
            except SystemExit as end:
                _end_at_once(end.code)
            _end_at_once(None)
        children.append(child)
    asking.sendall(json.dumps(_statuses(children, request["timeout"], asking)).encode() + b"\n")


def _read_what_all_read() -> None:
    """Once, in place of in each fork: `conf/`, the code, and what is imported late."""
    import pandas  # noqa: F401 - W&B imports it
    import sacrebleu  # noqa: F401
    import sacremoses  # noqa: F401
    import sentencepiece  # noqa: F401
    import wandb.sdk.launch  # noqa: F401

    import etude.cli.report  # noqa: F401
    from etude.config.compose import compose
    from remembered import parse_nothing_twice

    parse_nothing_twice(setattr)
    compose(["budget=smoke"])


def _serve(folder: Path) -> None:
    import torch

    import etude.cli.main
    import etude.training.run

    torch.set_num_threads(1)
    _read_what_all_read()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / "socket"))
    listening.listen()
    (folder / "etude").write_text(etude.cli.main.__file__)
    print("listening", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks that have answered leave nothing behind
    while sys.stdin not in (ready := select.select([listening, sys.stdin], [], [])[0]):
        if listening in ready:
            asking, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _answer(asking)
                os._exit(0)
            asking.close()
    shutil.rmtree(folder)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
