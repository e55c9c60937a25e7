"""Composing many configs that differ little, such as the arms of a study: one composition for each set of choices.

Hydra takes a tenth of a second to compose a config. Most arms of a study choose no other file than the baseline does
and only set values, so that they can share its composition.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from itertools import product
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from etude.config.arms import arm_names, is_group
from etude.config.compose import compose
from etude.config.explain import explain
from etude.config.studies import load_study, study_names
from etude.paths import shipped


def compose_many(runs: Iterable[Sequence[str]]) -> list[DictConfig]:
    """What `compose` gives for each list of overrides, in less time.

    Raises:
        UserError: an override names what does not exist.
    """
    shared: dict[tuple[str, ...], DictConfig] = {}
    return [_composed(list(overrides), shared) for overrides in runs]


def expand(overrides: Sequence[str]) -> list[list[str]]:
    """Every combination of what a multirun's overrides stand for: lists (`seed=1,2`), `glob(...)`, `range(...)`.

    Raises:
        UserError: a word is no override.
    """
    try:
        parsed = _parsed(overrides)
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
        return [f"{study}/{arm}" for study in study_names() for arm in load_study(study).arms]
    return sorted(file.stem for file in (shipped("conf") / group).glob("*.yaml"))


def _composed(overrides: list[str], shared: dict[tuple[str, ...], DictConfig]) -> DictConfig:
    typed = _parsed(overrides)
    if not all(_is_plain(override) for override in typed):
        return compose(overrides)
    arm = _arm_of_values(typed)
    choices = tuple(str(o.input_line) for o in typed if _is_choice(o) and not (arm and o.key_or_group == "experiment"))
    if choices not in shared:
        shared[choices] = compose(choices)
    config = deepcopy(shared[choices])
    with open_dict(config.hydra):
        config.hydra.overrides.task = overrides
        if arm:
            config.hydra.runtime.choices.experiment = "/".join(arm.values())
    try:
        for key, value in (arm | _values_of_arm(arm) | _values(typed)).items():
            OmegaConf.update(config, key, value)
    except OmegaConfBaseException:
        return compose(overrides)  # which tells the mistake in full
    return config


def _arm_of_values(typed: Sequence[Override]) -> dict[str, str]:
    """Study and arm, where an arm is asked for that sets values and chooses no files; else nothing."""
    asked = [str(override.value()) for override in typed if override.key_or_group == "experiment"]
    if not asked or asked[-1] not in arm_names():
        return {}
    study, _, arm = asked[-1].partition("/")
    parsed = _parsed(load_study(study).arms[arm])
    return {"study": study, "arm": arm} if all(_is_plain(o) and not _is_choice(o) for o in parsed) else {}


def _values_of_arm(arm: dict[str, str]) -> dict[str, Any]:
    return _values(_parsed(load_study(arm["study"]).arms[arm["arm"]])) if arm else {}


def _values(overrides: Iterable[Override]) -> dict[str, Any]:
    return {override.key_or_group: override.value() for override in overrides if not _is_choice(override)}


def _parsed(overrides: Sequence[str]) -> list[Override]:
    return OverridesParser.create().parse_overrides(list(overrides))


def _is_plain(override: Override) -> bool:
    """`key=value`: it adds nothing, removes nothing, and is one value."""
    return not (override.is_add() or override.is_force_add() or override.is_delete() or override.is_sweep_override())


def _is_choice(override: Override) -> bool:
    return override.key_or_group == "experiment" or is_group(override)
