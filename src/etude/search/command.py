"""Take the `command` of a W&B sweep file apart: what it sets in the environment, and the overrides of every run."""

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from etude.errors import UserError, did_you_mean

_ARGUMENTS = [  # each stands for the parameters of a run
    *("${args}", "${args_no_hyphens}", "${args_no_equals}", "${args_no_boolean_flags}", "${args_json}"),
    *("${args_json_file}", "${args_append_hydra}", "${args_override_hydra}"),
]
_ENV = ("${env}", "env", "/usr/bin/env")
_MACROS = ["${env}", "${interpreter}", "${program}", *_ARGUMENTS]
_MACRO = re.compile(r"\$\{.*\}")
_VARIABLE = re.compile(r"\$\{envvar:([A-Z0-9_]*)\}")
_SETTING = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_OVERRIDE = re.compile(r"(\+\+?|~)?[\w@./][\w@./-]*=.*|~[\w@./-]+", re.DOTALL)


@dataclass(frozen=True)
class Command:
    """The `command` of a sweep file.

    Attributes:
        environment: the variables that it sets before the program.
        defaults: overrides before the parameters, which win over them, as the later of two words does.
        fixed: overrides after the parameters, which win over these.
        passes_parameters: whether it names the place of the parameters.
    """

    environment: dict[str, str] = field(default_factory=dict)
    defaults: list[str] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)
    passes_parameters: bool = True


def read_command(file: Path, command: Any) -> Command:
    """Take the `command` of a sweep file apart; how it starts the program is ignored, as étude starts the runs itself.

    Raises:
        UserError: it is neither a list of words nor a text, or a word after `etude train` is no override.
    """
    words = [_VARIABLE.sub(lambda match: os.environ.get(match[1], match[1]), word) for word in _split(file, command)]
    for word in words:
        if _MACRO.fullmatch(word) and word not in _MACROS:
            raise UserError(f"{file}: command: W&B has no {word}; {did_you_mean(word, _MACROS)}")
    words = words[words[:1] in [[name] for name in _ENV] :]
    settings = [*takewhile(_SETTING.fullmatch, words)]
    place = next((n for n, word in enumerate(words) if word in _ARGUMENTS), len(words))
    before, after = words[len(settings) : place], words[place + 1 :]
    if not before:
        raise UserError(f"{file}: command names no program before the parameters: write etude, train there")
    defaults = before[_end_of_program(before) :]
    for word in (*defaults, *after):
        if not _OVERRIDE.fullmatch(word):
            key = word.lstrip("-")
            instead = key if key != word and _OVERRIDE.fullmatch(key) else "key=value, such as budget=smoke"
            raise UserError(f"{file}: command: {word!r} is not an override of a run: leave it out, or write {instead}")
    environment = dict(setting.split("=", 1) for setting in settings)
    return Command(environment, defaults, after, passes_parameters=place < len(words))


def _split(file: Path, command: Any) -> list[str]:
    """Return the words of a command, which may be one text, as typed in a shell."""
    if isinstance(command, str):
        try:
            return shlex.split(command.replace("\\\n", ""))
        except ValueError as error:
            raise UserError(f"{file}: command cannot be split into words: {error}") from error
    if not isinstance(command, list) or any(isinstance(word, list | dict) for word in command):
        raise UserError(f'{file}: command must be a list of words: [etude, train, "${{args_no_hyphens}}"]')
    return [str(word) for word in command]


def _end_of_program(words: Sequence[str]) -> int:
    """Return the place after `etude train`, or after another program: what stands there are its arguments."""
    for ends in (["train"], ["${program}"]):
        if found := [place for place, word in enumerate(words) if word in ends]:
            return found[0] + 1
    return next((place for place, word in enumerate(words) if word.endswith(".py")), 0) + 1
