"""The overrides of a search: those that all trials have, and those with several values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from etude.config.compose_cache import expand, parse_override
from etude.config.quoting import quote
from etude.errors import UserError
from etude.search.distributions import Distribution, choice
from etude.study.arms import override_key


@dataclass(frozen=True)
class Values:
    """Overrides, taken apart.

    Attributes:
        fixed: those with one value.
        several: key -> its values, of the others.
    """

    fixed: tuple[str, ...]
    several: dict[str, list[Any]]

    @property
    def count(self) -> int:
        """The number of combinations of the values."""
        return prod(map(len, self.several.values()))

    def combination(self, place: int) -> dict[str, Any]:
        """Return what is drawn from the choices for one combination, in the order of a multirun."""
        combination = {}
        for key, one in reversed(self.choices().items()):
            place, index = divmod(place, len(self.several[key]))
            combination[key] = one.draw((index + 0.5) / len(self.several[key]))
        return combination

    def choices(self) -> dict[str, Distribution]:
        """Return a choice between its values for each key."""
        return {key: choice(values, text_of(values)) for key, values in self.several.items()}

    def seeds(self, number: int, where: str) -> tuple[tuple[int, ...], "Values"]:
        """Return the seeds of each trial, and the values without them.

        Args:
            number: how many; they begin with the seed among the overrides. 0: the seeds are those that are listed.
            where: the place of `number` in error messages.

        Raises:
            UserError: both say how many, or a seed is not a whole number.
        """
        listed = next((values for key, values in self.several.items() if override_key(key) == "seed"), [])
        own = [word for word in self.fixed if override_key(word) == "seed"]
        if listed and number:
            raise UserError(f"{where} and seed={text_of(listed)} both list seeds: leave one of them out")
        if not (listed or number):
            return (), self
        first: Any = parse_override(own[-1]).value() if own else 1
        for seed in (*listed, first):
            if type(seed) is not int:
                raise UserError(f"seed={seed}: it must be a whole number")
        without = Values(
            tuple(word for word in self.fixed if word not in own),
            {key: values for key, values in self.several.items() if override_key(key) != "seed"},
        )
        return tuple(listed or range(first, first + number)), without


def take_apart(overrides: Iterable[str]) -> Values:
    """Separate the overrides with several values from the others.

    Raises:
        UserError: an override cannot be parsed, or has several values that are not listed.
    """
    fixed, several = [], {}
    for word in overrides:
        alternatives = [one for [one] in expand([word])]
        if len(alternatives) == 1:
            fixed += alternatives
        else:
            several[word.partition("=")[0]] = [parse_override(one).value() for one in alternatives]
    return Values(tuple(fixed), several)


def text_of(values: Sequence[Any]) -> str:
    """Return how a list of values is typed."""
    return ",".join(map(quote, values))
