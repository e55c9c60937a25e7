"""Compose, resolve and check many similar configs fast, such as the arms of a study with their seeds.

Hydra takes a fifth of a second to compose a config. Most arms of a study choose the same files as the baseline and only
set values, so they share its composition.
"""

import fnmatch
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from etude.config.explain import explain, explained, no_such_group, refuse_number
from etude.config.groups import group_names, options
from etude.config.quoting import make_readable
from etude.config.resolve import check_resolved, resolve_plain, typed_overrides, without_hydra
from etude.errors import UserError, did_you_mean
from etude.paths import folders_of
from etude.study.arm_names import find_arm, is_arm
from etude.study.study import load_study, study_names

Compose = Callable[[Sequence[str]], DictConfig]
"""Composes overrides to a config with Hydra's own node."""


@dataclass(frozen=True)
class ValidConfig:
    """A valid config: resolved, as written with its interpolations, and the overrides."""

    config: dict[str, Any]
    written: dict[str, Any]
    typed: list[str]


@contextmanager
def naming(run: Sequence[str], runs: Sequence[Sequence[str]]) -> Iterator[None]:
    """Begin the message of a user's mistake within the context with the overrides that only this run of `runs` has.

    Raises:
        UserError: a mistake of the user's.
    """
    try:
        yield
    except Exception as error:
        sentence, own = explain(error), " ".join(word for word in run if not all(word in other for other in runs))
        if sentence is None or str(sentence).startswith(own):
            raise
        raise UserError(f"{own}: {sentence}") from error


class ConfigCache:
    """Composes, resolves and checks configs; those that choose the same files share the composition of these.

    Args:
        compose: composes overrides to a config with Hydra's own node.
    """

    def __init__(self, compose: Compose = compose) -> None:
        self._compose = compose
        self._templates: dict[tuple[str, ...], tuple[DictConfig, dict[str, Any]]] = {}  # by the choices

    def resolve(self, overrides: Sequence[str], *, check: bool = True) -> ValidConfig:
        """Compose, resolve and `check` the config of a run.

        Raises:
            UserError: the config is not valid.
        """
        overrides = make_readable(overrides)  # what a sampler has drawn is as it stands in the sweep file
        typed = plain_overrides(overrides)
        own, choices, words = (typed and self._set_values(overrides, typed)) or self._compose_alone(overrides)
        written: dict[str, Any] = OmegaConf.to_container(own)  # type: ignore[assignment]
        config = resolve_plain(own, choices)
        if check:
            check_resolved(config, words)
        return ValidConfig(config, written, words)

    def resolve_all(self, runs: Sequence[Sequence[str]], *, check: bool = True) -> list[ValidConfig]:
        """Resolve the configs of several runs.

        Raises:
            UserError: a config is not valid; the message begins with the overrides that only this run has.
        """
        resolved = []
        for run in runs:
            with naming(run, runs):
                resolved.append(self.resolve(run, check=check))
        return resolved

    def _compose_alone(self, overrides: Sequence[str]) -> tuple[DictConfig, dict[str, Any], list[str]]:
        config = self._compose(overrides)
        return without_hydra(config), dict(config.hydra.runtime.choices), typed_overrides(config)

    def _set_values(
        self, overrides: Sequence[str], typed: Sequence[Override]
    ) -> tuple[DictConfig, dict[str, Any], list[str]] | None:
        """Set the values among the overrides in the cached composition of their choices.

        Returns None if this fails or could differ from composing all overrides, which must then be done.
        """
        arm = next((str(o.value()) for o in typed if o.key_or_group == "experiment"), "")
        if arm and any(o.key_or_group == "debug" for o in typed):
            return None  # a debug file has precedence over the values of an arm
        spelled_out = _spell_out(arm, typed)
        for override in spelled_out if arm else ():  # what was typed has been looked at, what an arm gives has not
            refuse_number(str(override.input_line))
        chosen = {o.key_or_group: str(o.input_line) for o in spelled_out if is_group(o)}
        key = tuple(sorted(chosen.values()))
        if key not in self._templates:
            template, choices, _ = self._compose_alone(key)
            OmegaConf.set_struct(template, True)  # setting an unknown key is an error
            self._templates[key] = template, choices
        template, choices = self._templates[key]
        own = deepcopy(template)
        try:
            for override in spelled_out:
                if not is_group(override):
                    OmegaConf.update(own, override.key_or_group, override.value())
        except OmegaConfBaseException:
            return None  # composing all overrides gives the full error
        if "hydra" in str(OmegaConf.to_container(own)):
            return None  # an interpolation may read Hydra's node, which differs between runs
        return own, choices | ({"experiment": arm} if arm else {}), list(overrides)


def expand(overrides: Sequence[str]) -> list[list[str]]:
    """Return every combination of a multirun's overrides: lists (`seed=1,2`), `glob(...)`, `range(...)`.

    Raises:
        UserError: an override cannot be parsed.
    """
    with explained(HydraException):
        parsed = [parse_override(override) for override in make_readable(overrides)]
    return [list(combination) for combination in product(*map(_alternatives, parsed))]


def _alternatives(override: Override) -> list[str]:
    if not override.is_sweep_override():
        return [str(override.input_line)]
    value = override.value()
    if isinstance(value, Glob):
        names = value.filter(options(override.key_or_group))
        if not names:
            raise _no_match(override.key_or_group, value.include[0] if value.include else "")
        return [f"{override.key_or_group}={name}" for name in names]
    try:
        values = [*override.sweep_string_iterator()]
    except (HydraException, ValueError):  # an interval, or a range with a step of 0
        values = []
    if not values:
        raise UserError(
            f"{override.input_line} lists no values: write them, as {override.key_or_group}=1,2, or a range from less "
            "to more; interval(...) is for hydra/sweeper=optuna"
        )
    return [f"{override.get_key_element()}={one}" for one in values]


def _no_match(group: str, pattern: str) -> UserError:
    """Make the error for a glob that matches nothing."""
    if group not in [*group_names(), "experiment"]:
        return no_such_group(group)
    first = pattern.partition("/")[0]
    if group == "experiment" and first in study_names():
        load_study(first)  # says what is wrong with it, if anything is
    if fnmatch.filter(options(group), pattern):
        return UserError(f"{group}=glob({pattern}) excludes all that it matches")
    known = {name.partition("/")[0] for name in options(group)}
    nearest = (
        f"there are {first}/{', '.join(n.partition('/')[2] for n in options(group) if n.startswith(f'{first}/'))}"
        if group == "experiment" and first in known
        else did_you_mean(first, known)
    )
    return UserError(f"{group}=glob({pattern}) matches nothing; {nearest}")


def plain_overrides(overrides: Sequence[str]) -> list[Override] | None:
    """Parse the overrides; None unless each is a plain `key=value`, with all keys different."""
    try:
        parsed = [parse_override(override) for override in overrides]
    except HydraException:
        return None
    different = len({override.key_or_group for override in parsed}) == len(parsed)
    return parsed if different and all(map(_is_plain, parsed)) else None


def is_sweep(override: str) -> bool:
    """Return whether an override has several values."""
    return bool(parse_override(*make_readable([override])).is_sweep_override())


@cache
def parse_override(override: str) -> Override:
    """Parse an override that Hydra's grammar has.

    Raises:
        HydraException: it has not.
    """
    [parsed] = OverridesParser.create().parse_overrides([override])
    return parsed


def _is_plain(override: Override) -> bool:
    """Return whether the override is `key=value`: one value, nothing added or removed, and not Hydra's own."""
    changes = override.is_add() or override.is_force_add() or override.is_delete()
    return not (changes or override.is_sweep_override() or override.is_hydra_override() or override.package)


def _spell_out(arm: str, typed: Sequence[Override]) -> list[Override]:
    """Replace `experiment=<arm>` by the overrides of that arm, before the others."""
    if not is_arm(arm):
        return [*typed]
    study, name, overrides = find_arm(arm)
    own = plain_overrides([f"study={study}", f"arm='{name}'", *overrides])
    return [*typed] if own is None else [*own, *(o for o in typed if o.key_or_group != "experiment")]


def is_group(override: Override) -> bool:
    """Return whether the override chooses a file, such as `model/position=learned`, and sets no value."""
    return "." not in override.key_or_group and any(
        (folder / override.key_or_group).is_dir() for folder in folders_of("conf")
    )
