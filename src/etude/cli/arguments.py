"""Parse the arguments of a verb by the options that its help lists.

The verbs train, evaluate, analyze, translate, generate and prepare use Hydra's command line instead.
"""

import re
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from etude.cli.verbs import VERBS
from etude.errors import UserError, did_you_mean
from etude.files import typed_path
from etude.store.find_run import default_runs_dir
from etude.study.arms import split_override, unquote
from etude.study.study import study_names

_OPTION = re.compile(r"^  (?:(--[\w-]+)(?:( |\[=)([A-Z]+)\]?)?|(\w+)=[A-Z]+)  +(.*(?:\n {8,}\S.*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Arguments:
    """The parsed arguments of a verb.

    Attributes:
        words: names and overrides, in order.
        options: maps each given option, such as `--tolerance` or `device`, to its value; empty for a flag.
    """

    words: list[str]
    options: dict[str, str]

    @property
    def study(self) -> str:
        """The first word, which names a study.

        Raises:
            UserError: there is none.
        """
        if not self.words:
            raise UserError(f"no study is named; {did_you_mean('', study_names())}")
        return self.words[0]

    @property
    def where(self) -> dict[str, str]:
        """The selection of runs of the study, from the words key=value.

        Raises:
            UserError: a word after the first is not key=value.
        """
        if others := [word for word in self.words[1:] if "=" not in word]:
            raise UserError(f"{others[0]!r} is not key=value, such as scale=small")
        return dict(map(split_override, self.words[1:]))

    @property
    def runs_dir(self) -> Path:
        """The folder of runs: the option `runs_dir`, or the default of the config."""
        return typed_path(self.options.get("runs_dir") or default_runs_dir())


def option_names(usage: str) -> list[str]:
    """List the options of a usage as they are typed: `--json`, `runs_dir=`."""
    return [flag or f"{key}=" for flag, _, _, key, _ in _OPTION.findall(usage)]


def _verbs_with(option: str) -> list[str]:
    """List the commands whose usage has an option."""
    usages = {verb: getattr(import_module(f"etude.cli.{verb}"), "HELP", "") for verb in VERBS}
    return [f"etude {verb}" for verb, usage in usages.items() if option in option_names(usage)]


def parse(verb: str, usage: str, words: Sequence[str]) -> Arguments:
    """Separate the options of a verb from its other words; for -h or --help print the usage and exit.

    Args:
        verb: the verb's name.
        usage: its help. A line `  --json  ...` defines a flag, `  --tolerance SHARE  ...` an option with a value
            (`--tolerance 0.1`, `--tolerance=0.1`), `  --serve[=PORT]  ...` an option with an optional value, and
            `  device=NAME  ...` a key of this verb. Other keys are accepted if the usage mentions `key=value`.
        words: the words after the verb.

    Raises:
        UserError: an option is not known, or lacks its value.
        SystemExit: the usage has been printed.
    """
    if {"-h", "--help"} & set(words):
        sys.stdout.write(usage)
        sys.exit(0)
    lines = _OPTION.findall(usage)
    takes = {flag: (mark, metavar, description) for flag, mark, metavar, _, description in lines if flag}
    keys = {key for *_, key, _ in lines if key}
    plain: list[str] = []
    options: dict[str, str] = {}
    rest = deque(words)
    while rest:
        word = rest.popleft()
        name, equals, value = word.partition("=")
        mark, metavar, description = takes.get(name, ("", "", ""))
        if name in keys and equals:
            options[name] = unquote(value)
        elif name in takes and (metavar or not equals):
            follows = mark == " " and not equals and rest and not rest[0].startswith("--")
            options[name] = rest.popleft() if follows else value
            if mark == " " and not options[name]:
                raise UserError(f"{name} needs {metavar}: {' '.join(description.split())}")
        elif word.startswith("-") or (equals and keys and "key=value" not in usage):
            known = [*takes, *(f"{key}=" for key in keys), "--help"]
            others = "" if name in takes else ", ".join(_verbs_with(name))
            way_out = f"it is for {others}" if others else did_you_mean(name, known)
            raise UserError(f"etude {verb} takes no {word}; {way_out}")
        else:
            plain.append(word)
    return Arguments(plain, options)
