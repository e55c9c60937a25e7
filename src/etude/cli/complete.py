"""Tab completion of the command line. The shell scripts are Hydra's."""

import os
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from importlib import import_module

from etude.cli.arguments import option_names
from etude.cli.hydra_app import run_task
from etude.errors import UserError
from etude.paths import folders_of
from etude.study.arm_names import arm_names
from etude.study.study import study_names


def complete(words: list[str], verbs: Collection[str]) -> None:
    """Install tab completion, or print the completions that the shell asks for.

    Args:
        words: such as `-sc install=bash`. With `-sc query=bash` the line is in the environment variable COMP_LINE, and
            the cursor position, if the shell sets it, in COMP_POINT.
        verbs: the verbs of étude.
    """
    line = os.environ.get("COMP_LINE", "")
    line = line[: int(os.environ.get("COMP_POINT") or 0) or None]
    program, _, rest = line.partition(" ")
    verb, space, behind = rest.lstrip().partition(" ")
    if not any("=" in word for word in words):
        raise UserError("-sc takes install=SHELL or uninstall=SHELL, with bash or fish, such as -sc install=bash")
    if not any(word.startswith("query=") for word in words):
        run_task("", "train", lambda config: None, words)
    elif not space:
        _print_matching(verbs, verb)
    elif verb in verbs:
        usage = getattr(import_module(f"etude.cli.{verb}"), "HELP", "")
        *before, typed = behind.split(" ")
        if usage:
            names = _NAMES.get(verb, list)() if not any(before) or "key=value" not in usage else []
            _print_matching([*names, *option_names(usage)], typed)
            before = [word for word in before if "=" in word]
        if not typed.startswith("-") and (not usage or "key=value" in usage):
            os.environ["COMP_LINE"] = " ".join([program, *before, typed])
            config_name = verb if verb in ("evaluate", "analyze", "translate", "generate") else "train"
            with suppress(Exception):  # errors are reported when the command runs, not at each tab
                run_task(verb, config_name, lambda config: None, words)


def _print_matching(candidates: Iterable[str], typed: str) -> None:
    """Print the candidates that begin with `typed`, one per line; options only if `typed` begins with a dash."""
    found = [one for one in candidates if one.startswith(typed) and one.startswith("-") == typed.startswith("-")]
    sys.stdout.write("".join(f"{one}\n" for one in found))


def _sweep_names() -> list[str]:
    return sorted({file.stem for folder in folders_of("sweeps") for file in folder.glob("*.yaml")} | {*study_names()})


_NAMES: dict[str, Callable[[], list[str]]] = {
    **dict.fromkeys(("status", "report", "results", "clean"), study_names),
    **dict.fromkeys(("sweep", "plan"), _sweep_names),
    **dict.fromkeys(("show", "diff"), lambda: sorted(arm_names())),
}
