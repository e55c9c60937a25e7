"""Composing, resolving and checking many configs that differ little, such as the arms of a study with their seeds.

Hydra takes a tenth of a second to compose a config. Most arms of a study choose no other file than the baseline does
and only set values, so that they share its composition; the seeds of an arm share all but the seed.
"""

import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from etude.config.compose import compose
from etude.config.explain import explain
from etude.config.quoting import make_readable
from etude.config.resolve import check_and_resolve, typed_overrides, without_hydra
from etude.config.resolvers import RESOLVERS
from etude.config.rules import check_rules
from etude.errors import UserError
from etude.paths import folders_of
from etude.studies.study import arm_names, load_study

Compose = Callable[[Sequence[str]], DictConfig]
"""What makes a config of overrides, with Hydra's own node."""

_INTERPOLATION = re.compile(r"\$\{\s*([\w.]*)\s*(.?)")


@dataclass(frozen=True)
class ValidConfig:
    """A config that can run: resolved, as it is written with its interpolations, and what was typed."""

    config: dict[str, Any]
    written: dict[str, Any]
    typed: list[str]


class ConfigCache:
    """Composes, resolves and checks configs, and shares what several of them have in common.

    Args:
        compose: what makes a config of overrides, Hydra's own node included.
    """

    def __init__(self, compose: Compose = compose) -> None:
        self._compose = compose
        self._templates: dict[tuple[str, ...], tuple[DictConfig, dict[str, Any]]] = {}  # by the choices
        self._seeded: dict[tuple[str, ...], ValidConfig] = {}  # by what was typed beside the seed

    def resolve(self, overrides: Sequence[str]) -> ValidConfig:
        """The config of a run, after every check.

        Raises:
            UserError: the config cannot run.
        """
        typed = plain_overrides(overrides)
        if typed is None:
            return self._valid(*self._alone(overrides))
        seed = next((o.value() for o in typed if o.key_or_group == "seed" and type(o.value()) is int), None)
        beside = tuple(str(o.input_line) for o in typed if o.key_or_group != "seed")
        if seed is not None and beside in self._seeded:
            alike = self._seeded[beside]
            config = alike.config | {"seed": seed}
            check_rules(config)
            return ValidConfig(config, alike.written | {"seed": seed}, list(overrides))
        valid = self._valid(*(self._set_values(overrides, typed) or self._alone(overrides)))
        if seed is not None and not _may_read(valid.written, "seed", "hydra"):
            self._seeded[beside] = valid
        return valid

    def resolve_all(self, runs: Sequence[Sequence[str]]) -> list[ValidConfig]:
        """The config of each of several runs; of a mistake it is told in which, by what the others do not say.

        Raises:
            UserError: the config of one cannot run.
        """
        resolved = []
        for run in runs:
            try:
                resolved.append(self.resolve(run))
            except Exception as error:
                sentence, own = explain(error), [word for word in run if not all(word in other for other in runs)]
                if sentence is None or not own:
                    raise
                raise UserError(f"{' '.join(own)}: {sentence}") from error
        return resolved

    @staticmethod
    def _valid(own: DictConfig, choices: dict[str, Any], typed: list[str]) -> ValidConfig:
        written: dict[str, Any] = OmegaConf.to_container(own)  # type: ignore[assignment]
        return ValidConfig(check_and_resolve(own, choices, typed), written, typed)

    def _alone(self, overrides: Sequence[str]) -> tuple[DictConfig, dict[str, Any], list[str]]:
        config = self._compose(overrides)
        return without_hydra(config), dict(config.hydra.runtime.choices), typed_overrides(config)

    def _set_values(
        self, overrides: Sequence[str], typed: Sequence[Override]
    ) -> tuple[DictConfig, dict[str, Any], list[str]] | None:
        """The config of the choices among the overrides, with their values in it; None where that is a mistake."""
        arm = next((str(o.value()) for o in typed if o.key_or_group == "experiment"), "")
        if arm and any(o.key_or_group == "debug" for o in typed):
            return None  # it says more than the arm
        said = _spell_out(arm, typed)
        chosen = {o.key_or_group: str(o.input_line) for o in said if is_group(o)}
        key = tuple(sorted(chosen.values()))
        if key not in self._templates:
            template, choices, _ = self._alone(key)
            OmegaConf.set_struct(template, True)  # a key that is not there is a mistake
            self._templates[key] = template, choices
        template, choices = self._templates[key]
        own = deepcopy(template)
        try:
            for override in said:
                if not is_group(override):
                    OmegaConf.update(own, override.key_or_group, override.value())
        except OmegaConfBaseException:
            return None  # composing alone tells it in full
        if _may_read(OmegaConf.to_container(own), "hydra"):
            return None  # which is another for each run
        return own, choices | ({"experiment": arm} if arm else {}), list(overrides)


def _may_read(node: Any, *keys: str) -> bool:
    """Whether an interpolation may read one of these; of a computed name or an unknown resolver nobody can say."""
    return any(
        name not in RESOLVERS if mark == ":" else mark != "}" or name.partition(".")[0] in ("", *keys)
        for name, mark in _INTERPOLATION.findall(str(node))
    )


def expand(overrides: Sequence[str]) -> list[list[str]]:
    """Every combination of what a multirun's overrides stand for: lists (`seed=1,2`), `glob(...)`, `range(...)`.

    Raises:
        UserError: a word is no override.
    """
    try:
        parsed = [_parse(override) for override in make_readable(overrides)]
    except HydraException as error:
        raise explain(error) or error from error
    return [list(combination) for combination in product(*map(_alternatives, parsed))]


def _alternatives(override: Override) -> list[str]:
    if not override.is_sweep_override():
        return [str(override.input_line)]
    value = override.value()
    if isinstance(value, Glob):
        return [f"{override.key_or_group}={name}" for name in value.filter(_options(override.key_or_group))]
    return [f"{override.get_key_element()}={one}" for one in override.sweep_string_iterator()]


def _options(group: str) -> list[str]:
    if group == "experiment":
        return sorted(arm_names())
    return sorted({file.stem for folder in folders_of("conf") for file in (folder / group).glob("*.yaml")})


def plain_overrides(overrides: Sequence[str]) -> list[Override] | None:
    """The overrides as Hydra reads them, where each is a plain `key=value` of its own; else None."""
    try:
        parsed = [_parse(override) for override in overrides]
    except HydraException:
        return None
    different = len({override.key_or_group for override in parsed}) == len(parsed)
    return parsed if different and all(map(_is_plain, parsed)) else None


@cache
def _parse(override: str) -> Override:
    [parsed] = OverridesParser.create().parse_overrides([override])
    return parsed


def _is_plain(override: Override) -> bool:
    """`key=value`: it adds nothing, removes nothing, is one value, and not Hydra's."""
    changes = override.is_add() or override.is_force_add() or override.is_delete()
    return not (changes or override.is_sweep_override() or override.is_hydra_override() or override.package)


def _spell_out(arm: str, typed: Sequence[Override]) -> list[Override]:
    """What was typed, with an arm's own overrides before it in the place of its name."""
    if arm not in arm_names():
        return [*typed]
    study, _, name = arm.partition("/")
    own = plain_overrides([f"study={study}", f"arm={name}", *load_study(study).arms[name]])
    return [*typed] if own is None else [*own, *(o for o in typed if o.key_or_group != "experiment")]


def is_group(override: Override) -> bool:
    """`model/position=learned` and `model=big` choose a file; `model.heads=1` sets a value."""
    return "." not in override.key_or_group and any(
        (folder / override.key_or_group).is_dir() for folder in folders_of("conf")
    )
