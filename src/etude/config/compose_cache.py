"""Composing many configs that differ little, such as the arms of a study: one composition for each set of choices.

Hydra takes a tenth of a second to compose a config. Most arms of a study choose no other file than the baseline does
and only set values, so that they can share its composition.
"""

from collections.abc import Callable, Iterable, Sequence
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
from etude.config.config_source import is_group
from etude.config.explain import explain
from etude.config.quoting import make_readable
from etude.config.references import is_read, references
from etude.config.resolve import typed_overrides, without_hydra
from etude.paths import found
from etude.studies.study import arm_names, load_study

Compose = Callable[[Sequence[str]], DictConfig]
"""What makes a config of overrides, with Hydra's own node."""


@dataclass(frozen=True)
class Composed:
    """A config, and of Hydra's own node what a run needs: choosing is quick to copy, the rest is not."""

    own: DictConfig
    choices: dict[str, str | None]  # config group -> file
    typed: list[str]

    @classmethod
    def of(cls, config: DictConfig) -> "Composed":
        """The same of a config with Hydra's own node."""
        return cls(without_hydra(config), dict(config.hydra.runtime.choices), typed_overrides(config))


class Composer:
    """Composes configs as `compose` does, and shares compositions.

    Args:
        compose: what makes a config of overrides.
    """

    def __init__(self, compose: Compose = compose) -> None:
        self._compose = compose
        self._shared: dict[tuple[str, ...], Composed | None] = {}

    def __call__(self, overrides: Sequence[str]) -> Composed:
        """The config of some overrides.

        Raises:
            UserError: an override names what does not exist.
        """
        parsed = plain_overrides(overrides)
        if parsed is None:
            return Composed.of(self._compose(overrides))
        arm = _arm_of_values(parsed)
        values = arm | _values_of_arm(arm) | _values(parsed)
        shared = self._template(tuple(str(o.input_line) for o in parsed if _is_choice(o) and not (arm and _is_arm(o))))
        if shared is None or references(values) is None or any(is_read(key, values.keys() - {key}) for key in values):
            return Composed.of(self._compose(overrides))
        own = deepcopy(shared.own)
        try:
            for key, value in values.items():
                OmegaConf.update(own, key, value)
        except OmegaConfBaseException:
            return Composed.of(self._compose(overrides))  # which tells the mistake in full
        named = {"experiment": "/".join(arm.values())} if arm else {}
        return Composed(own, {**shared.choices, **named}, list(overrides))

    def _template(self, choices: tuple[str, ...]) -> Composed | None:
        """The config of these choices, or None where values cannot be set in it as Hydra would set them."""
        if choices not in self._shared:
            config = self._compose(choices)
            composed = Composed.of(config)
            OmegaConf.set_struct(composed.own, True)  # a key that is not there is a mistake
            sources = {f"{source.schema}://{source.path}" for source in config.hydra.runtime.config_sources}
            ours = composed.typed == list(choices) and sources <= _sources()
            known = references(OmegaConf.to_container(composed.own)) is not None
            self._shared[choices] = composed if ours and known else None
        return self._shared[choices]


def expand(overrides: Sequence[str]) -> list[list[str]]:
    """Every combination of what a multirun's overrides stand for: lists (`seed=1,2`), `glob(...)`, `range(...)`.

    Raises:
        UserError: a word is no override.
    """
    try:
        parsed = [_parsed(override) for override in make_readable(overrides)]
    except HydraException as error:
        raise explain(error) or error from error
    return [list(combination) for combination in product(*map(_alternatives, parsed))]


def plain_overrides(overrides: Sequence[str]) -> list[Override] | None:
    """The overrides as Hydra reads them, where each is a plain `key=value` of its own; else None."""
    try:
        parsed = [_parsed(override) for override in overrides]
    except HydraException:
        return None
    different = len({override.key_or_group for override in parsed}) == len(parsed)
    return parsed if different and all(map(_is_plain, parsed)) else None


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
    return sorted({file.stem for folder in found("conf") for file in (folder / group).glob("*.yaml")})


def _sources() -> set[str]:
    """Where Hydra finds our files and the user's."""
    return {"pkg://hydra.conf", "study://", "structured://", *(f"file://{folder}" for folder in found("conf"))}


def _arm_of_values(overrides: Sequence[Override]) -> dict[str, str]:
    """Study and arm, where an arm is asked for that sets values and chooses no files; else nothing."""
    asked = next((str(override.value()) for override in overrides if _is_arm(override)), None)
    debugging = any(override.key_or_group == "debug" for override in overrides)  # which says more than the arm
    if asked is None or asked not in arm_names() or debugging:
        return {}
    study, _, arm = asked.partition("/")
    parsed = plain_overrides(load_study(study).arms[arm])
    return {} if parsed is None or any(map(_is_choice, parsed)) else {"study": study, "arm": arm}


def _values_of_arm(arm: dict[str, str]) -> dict[str, Any]:
    return _values(map(_parsed, load_study(arm["study"]).arms[arm["arm"]])) if arm else {}


def _values(overrides: Iterable[Override]) -> dict[str, Any]:
    return {override.key_or_group: override.value() for override in overrides if not _is_choice(override)}


@cache
def _parsed(override: str) -> Override:
    [parsed] = OverridesParser.create().parse_overrides([override])
    return parsed


def _is_plain(override: Override) -> bool:
    """`key=value`: it adds nothing, removes nothing, is one value, and not Hydra's."""
    changes = override.is_add() or override.is_force_add() or override.is_delete()
    return not (changes or override.is_sweep_override() or override.is_hydra_override() or override.package)


def _is_choice(override: Override) -> bool:
    return _is_arm(override) or is_group(override)


def _is_arm(override: Override) -> bool:
    return override.key_or_group == "experiment"
