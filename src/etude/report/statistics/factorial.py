"""Effects in a grid of factors: what each value does, and what two of them do together, by least squares.

The model has the main effects and all two-way interactions. The effect of a value is its difference from the first
value of its factor, averaged over the values of all other factors. The interaction of two is by how much their joint
difference from the two first values is more than the sum of each one's, averaged over the other factors. Where the arms
do not tell an interaction from others (a fraction of a grid, or arms that are missing), it is left out; where they do
not tell a value from interactions, its effect is that of a model without any.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from etude.report.statistics.difference import Comparison, add_variances, t_test
from etude.report.statistics.moderated import moderate
from etude.report.statistics.scores import Scores

Array = NDArray[np.float64]
Value = tuple[str, str]
"""A factor and one of its values but the first."""


@dataclass(frozen=True)
class Effect:
    """The effect of one value, or the interaction of two."""

    values: tuple[Value, ...]
    plain: Comparison  # with the variance of the residuals of the model
    moderated: Comparison | None  # with the moderated variance over the seeds of each arm; None without several seeds
    among_pairs: bool = True  # whether it is told apart from two-way interactions

    @property
    def test(self) -> Comparison:
        """The moderated test, or the plain one."""
        return self.moderated or self.plain


def fit_effects(levels: Mapping[str, Mapping[str, str]], arms: Sequence[Scores]) -> list[Effect]:
    """Estimate the main effects, then the two-way interactions, that the arms tell.

    Args:
        levels: arm -> factor -> value; the first arm has the first value of each factor.
        arms: their scores.
    """
    factors = {key: [*dict.fromkeys(of[key] for of in levels.values())] for key in next(iter(levels.values()))}
    mains = [(key, value) for key, values in factors.items() for value in values[1:]]
    pairs = [(one, two) for one, two in combinations(mains, 2) if one[0] != two[0]]
    runs = [(scores.arm, value) for scores in arms for value in scores.values]
    y = np.array([value for _, value in runs])
    of_value = {one: np.array([levels[arm][one[0]] == one[1] for arm, _ in runs], dtype=float) for one in mains}
    only_mains = np.array([np.ones(len(y)), *of_value.values()]).T
    both = np.array([*only_mains.T, *(of_value[one] * of_value[two] for one, two in pairs)]).T
    prior = moderate(arms)
    found = []
    for values in [*((one,) for one in mains), *pairs]:
        contrast = np.zeros(both.shape[1])
        if len(values) == 2:
            contrast[1 + len(mains) + pairs.index((values[0], values[1]))] = 1
        else:
            contrast[1 + mains.index(values[0])] = 1
            for at, pair in enumerate(pairs):
                if values[0] in pair:
                    [other] = set(pair) - {values[0]}
                    contrast[1 + len(mains) + at] = 1 / len(factors[other[0]])
        weights, design = _weights(both, contrast), both
        if weights is None and len(values) == 1:
            design = only_mains
            weights = _weights(only_mains, contrast[: only_mains.shape[1]])
        if weights is not None:
            parts = []
            for scores in arms if prior else ():
                squares = float((weights[[arm == scores.arm for arm, _ in runs]] ** 2).sum())
                if squares > 1e-20 and prior:
                    variance, freedom = prior.of(scores)
                    parts.append((squares * variance, freedom))
            moderated = None
            if parts and prior:
                variance, freedom = add_variances(parts)
                moderated = t_test(float(weights @ y), variance, min(freedom, prior.total))
            found.append(Effect(values, _plain(design, y, weights), moderated, design is both))
    return found


def _weights(design: Array, contrast: Array) -> Array | None:
    """Return the weights of the runs in a contrast of the coefficients; None if the runs do not tell it."""
    weights: Array = design @ np.linalg.pinv(design.T @ design) @ contrast
    return weights if np.allclose(design.T @ weights, contrast, atol=1e-8) else None


def _plain(design: Array, y: Array, weights: Array) -> Comparison:
    coefficients, _, rank, _ = np.linalg.lstsq(design, y, rcond=None)
    residuals, freedom, estimate = y - design @ coefficients, len(y) - int(rank), float(weights @ y)
    squares = float(residuals @ residuals)
    if freedom < 1 or squares < 1e-20 * float(y @ y):
        return Comparison(estimate, None, None, "the model leaves nothing over that would tell how far runs vary")
    return t_test(estimate, squares / freedom * float(weights @ weights), freedom)
