"""The words behind a verb, by the options that its help lists. (Behind train, evaluate and such stand Hydra's.)"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from etude.errors import UserError, did_you_mean

_OPTION = re.compile(r"^  (?:(--[\w-]+)(?: ([A-Z]+))?|(\w+)=[A-Z]+)  ", re.MULTILINE)


@dataclass(frozen=True)
class Arguments:
    """What was typed behind a verb.

    Attributes:
        words: names and overrides, in their order.
        options: the value of each option that was given, by `--tolerance` or `device`; empty for a flag.
    """

    words: list[str]
    options: dict[str, str]


def parse(verb: str, usage: str, words: Sequence[str]) -> Arguments:
    """Part the options of a verb from its other words; print the usage and leave where that is asked for.

    Args:
        verb: its name.
        usage: its help, in which a line `  --json  ...` makes a flag, `  --tolerance SHARE  ...` an option with a value
            (`--tolerance 0.1`, `--tolerance=0.1`), and `  device=NAME  ...` a key of the verb's own.
        words: behind the verb.

    Raises:
        UserError: a word begins as an option and is none.
        SystemExit: the usage was asked for, and is printed.
    """
    if {"-h", "--help"} & set(words):
        sys.stdout.write(usage)
        sys.exit(0)
    flags = {flag: bool(metavar) for flag, metavar, _ in _OPTION.findall(usage) if flag}
    keys = {key for _, _, key in _OPTION.findall(usage) if key}
    plain: list[str] = []
    options: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in keys and equals:
            options[name] = value
        elif word in flags:
            options[word] = next(rest, "") if flags[word] else ""
        elif flags.get(name):
            options[name] = value
        elif word.startswith("-"):
            raise UserError(f"etude {verb} takes key=value and no {word}; {did_you_mean(name, [*flags, '--help'])}")
        else:
            plain.append(word)
    return Arguments(plain, options)
