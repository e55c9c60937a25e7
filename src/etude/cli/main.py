"""`etude VERB`: each verb is a module of this package, imported when it is needed."""

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from etude.cli.verbs import HELP, VERBS
from etude.errors import UserError, did_you_mean
from etude.paths import CONFIG_DIR, import_from_here
from etude.processor.threads import wait_briefly


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one verb, and exit.

    Exit status: 0 success, 1 a run failed, 2 a user's mistake with a message that says how to fix it, 3 the run
    diverged, 4 its search or W&B has paused or pruned it, 75 another process works on the run, 130 interrupted. A sweep
    succeeds when every run has a result; a run that diverged has one.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_closed_streams()
    import_from_here()
    wait_briefly()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError):  # it may be no file
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # for an encoding without Δ or é
    try:
        _dispatch(_without_config_dir(words))
    except UserError as error:
        _fail(str(error), error.exit_status)
    except KeyboardInterrupt as stop:
        _fail("; ".join(["interrupted", *map(str, stop.args)]), getattr(stop, "exit_status", 130))
    except BrokenPipeError:  # the reader of our output, such as `head`, has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        _exit_explaining(error)
    sys.exit(0)


def _open_closed_streams() -> None:
    """Discard what is written to a standard stream that is closed; no other file takes its number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def _without_config_dir(words: list[str]) -> list[str]:
    """Remove Hydra's `-cd DIR` from the words; set an environment variable instead, which child processes inherit."""
    os.environ.pop(CONFIG_DIR, None)
    rest: list[str] = []
    behind = iter(words)
    for word in behind:
        flag, equals, folder = word.partition("=")
        if flag not in ("-cd", "--config-dir"):
            rest.append(word)
            continue
        folder = folder if equals else next(behind, "")
        if not Path(folder).is_dir() or not folder:
            raise UserError(f"{flag} {folder}: name a folder of configs, such as {flag} ../conf")
        os.environ[CONFIG_DIR] = str(Path(folder).absolute())
    return rest


def _dispatch(words: list[str]) -> None:
    if words[:1] in (["-h"], ["--help"], ["help"]) and words[1:2] and words[1] in VERBS:
        import_module(f"etude.cli.{words[1]}").main(["--help"])
    elif not words or words[0] in ("-h", "--help", "help"):
        sys.stdout.write(HELP)
    elif words[0] == "--version":
        from etude import __version__
        from etude.store.machine import torch_version

        sys.stdout.write(f"etude {__version__}, {torch_version()}\n")
    elif words[0] in ("-sc", "--shell-completion"):
        from etude.cli.complete import complete

        complete(words, VERBS)
    elif words[0] in VERBS:
        import_module(f"etude.cli.{words[0]}").main(words[1:])
    else:
        raise UserError(f"{words[0]!r} is not a verb of etude; {_nearest_verb(words[0])}")


def _nearest_verb(word: str) -> str:
    """Suggest, as the end of an error sentence, the verbs whose help contains the word, or with similar spelling."""
    if not word:
        return did_you_mean(word, VERBS)
    described = re.findall(rf"^  (\w+) +(?:\S+ )*{re.escape(word)}s?\b", HELP, re.MULTILINE)
    return f"did you mean {' or '.join(described)}?" if described else did_you_mean(word, VERBS)


def _exit_explaining(error: Exception) -> NoReturn:
    """Exit with one sentence if the config, the disk or failed runs of a sweep explain the error; else raise it."""
    from etude.config.explain import explain
    from etude.launch.sweep import SweepFailed

    if isinstance(error, SweepFailed):
        _fail(str(error), 1)
    try:
        sentence = explain(error)
    except UserError as mistake:  # in a file of the user's that it reads
        sentence = mistake
    if sentence is None:
        raise error
    _fail(str(sentence), sentence.exit_status)


def _fail(message: str, status: int) -> NoReturn:
    sys.stderr.write(f"etude: {message}\n")
    sys.exit(status)
