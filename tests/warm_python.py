"""A Python that asks a warm server to run étude, and waits for its end; `warm.python` fills in the two places."""

import json
import os
import socket
import sys

PROGRAMS = {"etude": "etude.cli.main:main", "etude.training.run": "etude.training.run:main"}


def main() -> None:
    words = sys.argv[1:]
    if words[:1] != ["-m"] or words[1] not in PROGRAMS:
        os.execv("PYTHON", ["PYTHON", *words])
    request = {
        "program": PROGRAMS[words[1]],
        "words": words[2:],
        "cwd": os.getcwd(),  # noqa: PTH109 - pathlib is slow to import
        "environments": [dict(os.environ)],
        "files": [f"/proc/{os.getpid()}/fd/{stream}" for stream in range(3)],
        "timeout": 600,
        "python": sys.argv[0],
    }
    with socket.socket(socket.AF_UNIX) as server:
        server.connect("SOCKET")
        server.sendall(json.dumps(request).encode() + b"\n")
        [status] = json.loads(server.makefile().readline())
    if status < 0:
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main()
