"""Read what a study fixes before its runs are looked at: seeds, criteria of agreement, reference arms, and tuning.

The readers take the file, for error messages, and the content under their key.

Raises:
    UserError: the content is not valid; the message names the file and the key.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, inf, isfinite, log
from pathlib import Path
from typing import Any, TypeVar

from etude.errors import UserError, did_you_mean

Value = TypeVar("Value", bound=Hashable)

_TUNE_OPTIONS = ("trials", "hours", "sampler", "manner", "rungs", "eta", "pruner", "early_terminate", "n_jobs")
_TUNE = (
    "tune must map config keys to lists of values, such as budget.lr_factor: [0.5, 1, 2], or to distributions as in "
    "sweep files"
)

OTHER_TEXTS = (
    "with other values of {} the text or the subwords are others, and perplexities of these cannot be ranked: tune "
    "what leaves the text as it is"
)
"""Why no value is the best, for an arm whose trials on one seed met different texts; the tuned keys are put in."""


@dataclass(frozen=True)
class Criteria:
    """What counts as agreement with the paper, in nats per token; fixed before the runs are looked at.

    If an arm's log perplexity differs from the baseline's by more than is `large` in the paper, ours must differ in the
    same direction. Any other arm is a tie: our difference must be smaller than `margin`, and a test should show it.

    Attributes:
        large: nats; None if `deviations` says it.
        deviations: what is large, in standard deviations of the difference; the paper prints those of its losses.
    """

    margin: float
    large: float | None = None
    deviations: float | None = None

    def threshold(self, *deviations: float | None) -> float:
        """Return the nats above which a difference in the paper is large, given both deviations that it prints."""
        return self.large if self.large is not None else (self.deviations or 0) * hypot(*(d or 0 for d in deviations))

    @property
    def meaning(self) -> str:
        """What is large, in words."""
        if self.large is not None:
            return f"{self.large:g} nats"
        return f"{self.deviations:g} standard deviations of the difference"


@dataclass(frozen=True)
class UntilDecided:
    """Seeds that are added until an arm is decided: it has a star, or a tie is shown.

    Attributes:
        least: the seeds that every arm gets.
        most: the seeds that an arm gets which is never decided; the baseline gets as many as any arm.
    """

    least: int
    most: int


def read_against(file: Path, given: Any, arms: Mapping[str, list[str]], baseline: str) -> dict[str, str]:
    """Read the reference arms that are not the baseline: arm -> reference."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise UserError(f"{file}: against must map an arm to the one it is held against, such as B: A")
    for name in (*given, *given.values()):
        if not isinstance(name, str) or name not in arms:
            raise UserError(f"{file}: against: the study has no arm {name!r}: {did_you_mean(str(name), arms)}")
    for arm in given:
        if arm in (baseline, given[arm]):
            raise UserError(f"{file}: against.{arm}: the baseline, or an arm itself, is not compared with another")
    return dict(given)


def read_seeds(file: Path, given: Any) -> int | UntilDecided | None:
    """Read the planned number of runs per arm: `3`, or `{least: 2, most: 8, until: decided}`."""
    if isinstance(given, dict):
        least, most = (given.get(key) for key in ("least", "most"))
        if given.keys() != {"least", "most", "until"} or given["until"] != "decided":
            raise UserError(f"{file}: seeds must be a number, or such as {{least: 2, most: 8, until: decided}}")
        if type(least) is not int or type(most) is not int or not 2 <= least < most:
            raise UserError(
                f"{file}: seeds.least and seeds.most must be whole numbers, such as 2 and 8: from one seed nothing can "
                "be decided, and most is more than least"
            )
        return UntilDecided(least, most)
    if given is not None and (type(given) is not int or given < 1):
        raise UserError(f"{file}: seeds must be a whole number of runs an arm, such as 3, not {given!r}")
    return given


def read_criteria(file: Path, given: Any) -> Criteria | None:
    """Read the criteria of agreement with the paper."""
    if given is None:
        return None
    if not isinstance(given, dict) or set(given) not in ({"margin", "large"}, {"margin", "deviations"}):
        raise UserError(
            f"{file}: agreement must hold margin, and large or deviations, such as {{large: 0.03, margin: 0.05}}"
        )
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise UserError(f"{file}: agreement.{name} must be above 0, not {value!r}")
    return Criteria(**given)


def read_tuning(file: Path, content: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[int]]:
    """Read the tuned keys, each with its values or what these are drawn from; how they are drawn; and the pilot seeds.

    Distributions and the other options are read where they are used, as those of sweep files are.
    """
    given, pilots = content.get("tune") or {}, content.get("pilots") or []
    if not isinstance(given, dict):
        raise UserError(f"{file}: {_TUNE}")
    options = {key: value for key, value in given.items() if key in _TUNE_OPTIONS}
    tune = {key: value for key, value in given.items() if key not in options}
    for key, values in tune.items():
        is_key = isinstance(key, str) and "." in key and "/" not in key
        listed = values if isinstance(values, list) else []
        if not is_key or not all(isinstance(one, str | int | float) for one in listed):
            raise UserError(
                f"{file}: tune.{key}: what is tuned is a config key with plain values, such as budget.lr_factor; "
                f"beside such keys there are {', '.join(_TUNE_OPTIONS)}"
            )
        if not isinstance(values, list | dict) or not values:
            raise UserError(f"{file}: {_TUNE}")
    trials = options.get("trials")
    if trials is not None and (type(trials) is not int or trials < 1):
        raise UserError(f"{file}: tune.trials must be a whole number, 1 or more, not {trials!r}")
    hours = options.get("hours", 1)
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not hours > 0:
        raise UserError(f"{file}: tune.hours must be a number above 0, not {hours!r}")
    drawn = [key for key, values in tune.items() if isinstance(values, dict)]
    if trials is None and (needs := [*drawn, *options]):
        raise UserError(f"{file}: tune.{needs[0]} needs the number of trials of each arm, such as  trials: 20")
    if options and not tune:
        raise UserError(f"{file}: {_TUNE}")
    if not isinstance(pilots, list) or not all(type(seed) is int and seed >= 0 for seed in pilots):
        raise UserError(f"{file}: pilots must be a list of seeds, such as [101, 102, 103]")
    if tune and not pilots:
        raise UserError(f"{file}: tune needs pilots, the seeds on which values are tried, such as [101]")
    return tune, options, pilots


def best_value(tried: Mapping[Value, Mapping[int, Any]], pilots: Sequence[int]) -> Value | None:
    """Find the value with the lowest validation loss, the mean over all pilot seeds in nats per token.

    Args:
        tried: value -> seed -> validation perplexity; anything but a finite number above zero counts as diverged.
        pilots: the seeds; a value that was not tried on all of them, or diverged on one, cannot be the best.

    Returns:
        The value; None if there is none.
    """
    losses = {value: mean_loss(found, pilots) for value, found in tried.items()}
    best = min(losses, key=lambda value: losses[value], default=None)
    return best if best is not None and losses[best] < inf else None


def mean_loss(found: Mapping[int, Any], pilots: Sequence[int]) -> float:
    """Return the mean over all pilot seeds in nats per token, infinite if one has no finite loss.

    Args:
        found: seed -> validation perplexity.
        pilots: the seeds.
    """
    return sum(_loss(found.get(seed)) for seed in pilots) / len(pilots)


def _loss(perplexity: Any) -> float:
    known = isinstance(perplexity, int | float) and isfinite(perplexity) and perplexity > 0
    return log(perplexity) if known else inf
