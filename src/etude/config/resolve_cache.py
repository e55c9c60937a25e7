"""Resolving many configs that differ in a few numbers, such as the seeds of an arm: one of them, the others by it.

A number that no interpolation reads changes nothing but itself. The checks are made for each config all the same.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from etude.config.check import check
from etude.config.compose import compose
from etude.config.compose_cache import Compose, Composer, plain_overrides
from etude.config.references import is_read, references
from etude.config.resolve import resolve_checked
from etude.config.rules import check_rules
from etude.studies.study import value_at

_Shape = tuple[str, ...]  # overrides, some of them without their values


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
        self._composed = Composer(compose)
        self._free: dict[_Shape, list[str]] = {}  # keys of numbers that nothing reads, by overrides without numbers
        self._sound: dict[_Shape, tuple[ValidConfig, DictConfig]] = {}  # by overrides without those

    def resolve(self, overrides: Sequence[str]) -> ValidConfig:
        """The config of a run, after every check.

        Raises:
            UserError: the config cannot run.
        """
        typed = plain_overrides(overrides) or []
        numbers = {o.key_or_group: o.value() for o in typed if type(o.value()) in (int, float, bool)}
        alike = _shape(typed, numbers)
        if alike in self._free:
            free = {key: numbers[key] for key in self._free[alike]}
            if same := self._sound.get(_shape(typed, free)):
                return replace(_with(free, *same), typed=list(overrides))
        composed = self._composed(overrides)
        config = resolve_checked(composed.own, composed.choices)
        node: DictConfig = OmegaConf.create(config)
        check_rules(node)
        made = ValidConfig(config, OmegaConf.to_container(composed.own), composed.typed)  # type: ignore[arg-type]
        if typed and made.typed == list(overrides):
            self._free[alike] = _unread(numbers, made)
            self._sound[_shape(typed, self._free[alike])] = made, node
        return made


def _shape(typed: Sequence[Override], without: Container[str]) -> _Shape:
    """The overrides with a number's type in the place of a number."""
    return tuple(
        f"{o.key_or_group}: {type(o.value()).__name__}" if o.key_or_group in without else str(o.input_line)
        for o in typed
    )


def _unread(numbers: Mapping[str, Any], made: ValidConfig) -> list[str]:
    """The keys of the numbers that stand in the config as they were typed, and that nothing else reads."""
    read = references(made.written)
    if read is None:
        return []
    return [
        key for key, number in numbers.items() if _is(value_at(made.config, key), number) and not is_read(key, read)
    ]


def _is(value: Any, number: Any) -> bool:
    return type(value) is type(number) and value == number


def _with(numbers: Mapping[str, Any], made: ValidConfig, node: DictConfig) -> ValidConfig:
    """The config with other numbers in it, after every check; they are left in `node`, which is the same config.

    Raises:
        UserError: it cannot run.
    """
    config, as_written = made.config, made.written
    for key, number in numbers.items():
        config = _replaced(config, key.split("."), number)
        as_written = _replaced(as_written, key.split("."), number)
        OmegaConf.update(node, key, number)
    check(config)
    check_rules(node)
    return replace(made, config=config, written=as_written)


def _replaced(plain: dict[str, Any], key: Sequence[str], value: Any) -> dict[str, Any]:
    """The same with another value in one place."""
    name, *rest = key
    return plain | {name: _replaced(plain[name], rest, value) if rest else value}
