"""A Python that asks a warm server to run étude or a script, and waits; `warm.python` fills in the two places."""

import json
import os
import signal
import socket
import sys

PROGRAMS = {
    "etude": "etude.cli.main:main",
    "etude.training.run": "etude.training.run:main",
    "torch.distributed.run": "torch.distributed.run:main",
}
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> None:
    words = sys.argv[2:] if sys.argv[1:2] == ["-u"] else sys.argv[1:]  # torchrun starts Python with -u
    if words[:1] == ["-m"] and words[1] in PROGRAMS:
        program, *words = PROGRAMS[words[1]], *words[2:]
    elif words and words[0].endswith(".py"):
        program, *words = words
    else:
        os.execv("PYTHON", ["PYTHON", *sys.argv[1:]])
    request = {
        "program": program,
        "words": words,
        "cwd": os.getcwd(),  # noqa: PTH109 - pathlib is slow to import
        "environments": [dict(os.environ)],
        "files": [f"/proc/{os.getpid()}/fd/{stream}" for stream in range(3)],
        "timeout": 600,
        "python": sys.argv[0],
    }
    with socket.socket(socket.AF_UNIX) as server:
        server.connect("SOCKET")
        server.sendall(json.dumps(request).encode() + b"\n")
        for number in PASSED_ON:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, lambda number, _: server.send(bytes([number])))
        [status] = json.loads(server.makefile().readline())
    if status < 0:
        if -status in PASSED_ON:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main()
