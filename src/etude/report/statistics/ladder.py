"""What a ladder of small models says about a larger one: the differences between arms as laws of compute.

A ladder trains each arm at several sizes, its rungs, each of about twice the compute of the one before. What is said of
larger models is said of differences, d = y of the arm - y of the baseline at the same seed: what arms have in common
(the text, most of the curve, much of the luck of a seed) is not in them. A loss falls with compute C as E + A C^-a, and
what it can still lose, differences can, too. So d is taken to be a line, d = α + β (z - z̄), over
z = (1 - (C / C₀)^-a) / a, with C₀ at the smallest rung: ln (C / C₀) near it, and slower further on; a is that of the
baseline, as far as its rungs tell. The line is fitted by least squares with the numbers of seeds as weights. Its
prediction may be wrong by

- luck of seeds, s²: pooled over the rungs of an arm, moderated over arms as the report does (Smyth 2004);
- the slope: β is shrunk towards its mean over arms, as far as the slopes differ no more than luck would make them
  (Efron & Morris 1973). The luck of the baseline is half of s², and the same in all arms: it makes no slopes differ;
- the line: ω² is by how much the points of all arms lie further from their lines than seeds explain. Where a law bends,
  it bends further on, so that it counts (1 + h)² at h times the length of the ladder, in ln C, beyond its end. A few
  arms that lie well by luck do not show that laws are straight: ω² is the median of what it may be, none below zero.

Var(z*) = s² / n + Var(β) (z* - z̄)² + ω² (1 + h)², with n seeds in all; intervals and the probability of a sign are of
Student's t. `docs/simulate_ladders.py` says how often they are right.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from etude.report.statistics.moderated import moderate_variances
from etude.report.statistics.scores import Interval

Differences = Mapping[str, Sequence[Sequence[float]]]
"""Arm -> for each rung, the smallest first, its differences from the baseline, one a seed; none where it has no run."""

LEVEL = 0.9
"""Of all intervals here."""

DECAY = 0.15
"""The exponent with which losses fall with compute where a ladder does not say (Hoffmann et al. 2022)."""

_DECAYS = np.geomspace(0.01, 3.0, 200)


def _progress(x: float, least: float, decay: float) -> float:
    """Return z, from ln compute and that of the smallest rung."""
    return -math.expm1(-decay * (x - least)) / decay


@dataclass(frozen=True)
class Prediction:
    """A predicted difference, as a t distribution."""

    value: float
    error: float  # standard error
    freedom: float

    @property
    def interval(self) -> Interval:
        """The interval that should contain the truth in `LEVEL` of all cases."""
        reach = float(special.stdtrit(self.freedom, (1 + LEVEL) / 2)) * self.error
        return Interval(self.value - reach, self.value + reach)

    @property
    def sign(self) -> float:
        """The probability that the true difference has the sign of `value`, at least 0.5."""
        return float(special.stdtr(self.freedom, abs(self.value) / self.error))


@dataclass(frozen=True)
class Law:
    """The line of an arm's difference over z, and what it may be wrong by."""

    level: float  # α, the difference at `middle`
    slope: float  # β, shrunk
    middle: float  # z̄
    noise: float  # s²: the variance of the difference at one seed
    freedom: float  # its degrees of freedom
    seeds: float  # n, over all rungs
    slope_variance: float  # Var(β)
    beyond: float  # ω²
    least: float  # ln compute of the smallest rung
    end: float  # that of the largest
    decay: float  # a

    def at(self, x: float, seeds: float = math.inf) -> Prediction:
        """Predict the true difference at x = ln compute; given `seeds`, the mean of so many."""
        z = _progress(x, self.least, self.decay)
        variance = self.noise / self.seeds + self.noise / seeds + self.slope_variance * (z - self.middle) ** 2
        variance += self.beyond * max(1.0, (x - self.least) / (self.end - self.least)) ** 2  # (1 + h)²
        return Prediction(self.level + self.slope * (z - self.middle), math.sqrt(variance), self.freedom)

    @property
    def crossing(self) -> float:
        """The x where the difference is zero; infinite if nowhere."""
        left = 1 - self.decay * (self.middle - self.level / self.slope) if self.slope else 0.0
        return self.least - math.log(left) / self.decay if left > 0 else math.inf


def find_noise(differences: Differences) -> dict[str, tuple[float, float]] | None:
    """Estimate the variance of each arm's difference at one seed, pooled over its rungs and moderated over arms.

    Returns:
        The variance and its degrees of freedom of each arm; None if no arm has two seeds at any rung.
    """
    spreads = {arm: _pool(rungs) for arm, rungs in differences.items()}
    prior = moderate_variances(list(spreads.values()))
    return {arm: prior.share(*spread) for arm, spread in spreads.items()} if prior else None


def _pool(rungs: Sequence[Sequence[float]]) -> tuple[float, float]:
    freedom = sum(max(0, len(rung) - 1) for rung in rungs)
    squares = sum(float(np.var(rung)) * len(rung) for rung in rungs if len(rung) > 1)
    return (squares / freedom if freedom else 0.0), float(freedom)


def fit_laws(x: Sequence[float], differences: Differences, decay: float = DECAY) -> dict[str, Law]:
    """Fit the laws of all arms that have two rungs.

    Args:
        x: ln compute of each rung, the smallest first.
        differences: of the arms.
        decay: a, the exponent with which the baseline's loss falls.

    Raises:
        ValueError: no arm has two seeds at any rung.
    """
    noise = find_noise(differences)
    if noise is None:
        raise ValueError("no arm has two seeds at any rung")
    z = [_progress(one, x[0], decay) for one in x]
    lines = {arm: _line(z, rungs, noise[arm][0]) for arm, rungs in differences.items() if sum(map(bool, rungs)) > 1}
    if not lines:
        return {}
    arms = len(lines)
    slopes = np.array([line.slope for line in lines.values()])
    own = np.array([line.variance for line in lines.values()]) / 2
    # τ² of the slopes' own variance; too few arms do not tell it, and keep their slopes
    excess = max(0.0, float(slopes.var(ddof=1) - own.mean())) if arms > 3 else math.inf
    kept = excess / (excess + own) if math.isfinite(excess) else np.ones(arms)
    weights = 1 / (excess + own) if math.isfinite(excess) else np.ones(arms)
    mean = float(weights @ slopes / weights.sum())
    variance = own * (1 + kept + (1 - kept) / arms)
    room, luck = sum(line.room for line in lines.values()), sum(line.luck for line in lines.values())
    over = sum(line.excess for line in lines.values())
    # Arms count as independent. With the luck of the baseline, which they share, the error is up to twice as large:
    # simulated intervals then hold 95 % and more where laws hold.
    beyond = _above_zero(over / room, math.sqrt(luck) / room) if room > 1e-9 else 0.0
    return {
        arm: Law(
            line.level,
            mean + share * (line.slope - mean),
            line.middle,
            *noise[arm],
            line.seeds,
            float(error),
            beyond,
            x[0],
            x[-1],
            decay,
        )
        for (arm, line), share, error in zip(lines.items(), kept, variance, strict=True)
    }


@dataclass(frozen=True)
class _Line:
    level: float
    slope: float
    middle: float
    seeds: float
    variance: float  # of the slope, by seeds alone
    excess: float  # weighted squares of the residuals beyond what seeds explain
    luck: float  # the variance of these by seeds alone
    room: float  # what ω² = 1 would add to them


def _line(z: Sequence[float], rungs: Sequence[Sequence[float]], noise: float) -> _Line:
    """Fit a line by least squares, weighted by the numbers of seeds."""
    there = [at for at, rung in enumerate(rungs) if rung]
    at, means = np.array([z[one] for one in there]), np.array([np.mean(rungs[one]) for one in there])
    seeds = np.array([len(rungs[one]) for one in there], dtype=np.float64)
    middle, level = (float(seeds @ values / seeds.sum()) for values in (at, means))
    away = at - middle
    spread = float(seeds @ away**2)
    slope = float(seeds @ (away * means)) / spread
    residuals = means - level - slope * away
    leverage = seeds / seeds.sum() + seeds * away**2 / spread
    spare = len(there) - 2
    excess = float(seeds @ residuals**2) - noise * spare
    room = float(seeds @ (1 - leverage))
    return _Line(level, slope, middle, float(seeds.sum()), noise / spread, excess, 2 * noise**2 * spare, room)


def _above_zero(value: float, error: float) -> float:
    """Return the median of a quantity that is not negative, of which an estimate with a standard error is known."""
    if error == 0:
        return max(0.0, value)
    return value - error * float(special.ndtri_exp(special.log_ndtr(value / error) - math.log(2)))


def interval_score(interval: Interval, came: float) -> float:
    """Score an interval by what came, the lower the better (Gneiting & Raftery 2007).

    It is the width, and twice the distance of what it missed divided by how often it may miss.
    """
    missed = max(interval.low - came, came - interval.high, 0.0)
    return interval.high - interval.low + 2 / (1 - LEVEL) * missed


@dataclass(frozen=True)
class Decisions:
    """How often pairs of arms have the same order by two columns of differences."""

    right: int
    pairs: int
    clear_right: int  # of the pairs that are further apart than two standard errors
    clear: int

    @property
    def share(self) -> float:
        """The share of all pairs."""
        return self.right / self.pairs if self.pairs else math.nan


def decide(guess: Mapping[str, float], came: Mapping[str, float], error: Mapping[str, float]) -> Decisions:
    """Count the pairs of arms, the baseline among them, that a guess of their differences orders as came.

    Args:
        guess: the differences from the baseline by which one would decide.
        came: those that came.
        error: the variance of each that came; half of it is that of the baseline, which two arms have in common.
    """
    arms = [arm for arm in came if arm in guess]
    pairs = [("", arm) for arm in arms] + [(one, two) for n, one in enumerate(arms) for two in arms[n + 1 :]]
    right, clear = [], []
    for one, two in pairs:
        gap = came.get(one, 0.0) - came[two]
        right.append(np.sign(gap) == np.sign(guess.get(one, 0.0) - guess[two]))
        variance = (error[one] + error[two]) / 2 if one else error[two]
        clear.append(abs(gap) > 2 * math.sqrt(variance))
    both = int(np.logical_and(right, clear).sum())
    return Decisions(int(np.sum(right)), len(pairs), both, int(np.sum(clear)))


@dataclass(frozen=True)
class Judged:
    """What the rungs below predicted of a held-out rung, and what came."""

    predicted: dict[str, Prediction]  # of the mean over the seeds that came
    came: dict[str, float]
    score: float  # mean interval score of the predictions
    carried: float  # that of intervals around the difference at the last rung that was not held out
    decisions: Decisions

    @property
    def covered(self) -> list[str]:
        """The arms whose difference came within its interval."""
        return [arm for arm, one in self.predicted.items() if one.interval.low <= self.came[arm] <= one.interval.high]


def judge(x: Sequence[float], differences: Differences, baseline: Sequence[Sequence[float]]) -> list[Judged]:
    """Predict the two largest rungs from the others, and compare with what came.

    Only arms with a difference at the last rung that is not held out and at the held-out one count.

    Args:
        x: ln compute of each rung, the smallest first.
        differences: of the arms.
        baseline: its losses at each rung, one a seed.

    Raises:
        ValueError: no arm has two seeds at any rung that is not held out.
    """
    kept = len(x) - 2
    noise = find_noise(differences) or {}
    before = {arm: rungs[:kept] for arm, rungs in differences.items()}
    laws = fit_laws(x[:kept], before, find_decay(x[:kept], baseline[:kept], before))
    found = []
    for rung in range(kept, len(x)):
        both = [arm for arm in laws if differences[arm][rung] and differences[arm][kept - 1]]
        came = {arm: float(np.mean(differences[arm][rung])) for arm in both}
        seeds = {arm: len(differences[arm][rung]) for arm in both}
        predicted = {arm: laws[arm].at(x[rung], seeds[arm]) for arm in both}
        carried = {arm: carry(laws[arm], differences[arm][kept - 1], seeds[arm]) for arm in both}
        score, rival = (
            float(np.mean([interval_score(some[arm].interval, came[arm]) for arm in both] or [math.nan]))
            for some in (predicted, carried)
        )
        guess = {arm: one.value for arm, one in predicted.items()}
        error = {arm: noise[arm][0] / seeds[arm] for arm in both}
        found.append(Judged(predicted, came, score, rival, decide(guess, came, error)))
    return found


def carry(law: Law, rung: Sequence[float], seeds: float = math.inf) -> Prediction:
    """Predict that the difference at a rung stays as it is; given `seeds`, the mean of so many."""
    return Prediction(float(np.mean(rung)), math.sqrt(law.noise * (1 / len(rung) + 1 / seeds)), law.freedom)


_FAR = math.log(1e6)  # times the compute


@dataclass(frozen=True)
class Curve:
    """A loss over x = ln compute: E + A exp(-a (x - x0))."""

    floor: float  # E
    scale: float  # A, above E at the smallest rung
    exponent: float  # a
    least: float  # x0

    def at(self, x: float) -> float:
        """The loss at x."""
        return self.floor + self.scale * math.exp(-self.exponent * (x - self.least))

    def multiplier(self, x: float, difference: float) -> float:
        """How many times the compute at x the baseline needs for a loss that differs by so much.

        Infinite if that is below its floor, or further away than a curve says anything about.
        """
        wanted = self.at(x) + difference - self.floor
        further = self.least - x - math.log(wanted / self.scale) / self.exponent if wanted > 0 else math.inf
        return math.exp(further) if further < _FAR else math.inf


def fit_curve(x: Sequence[float], loss: Sequence[float]) -> Curve | None:
    """Fit the curve by least squares with Huber's loss; None if the loss does not fall, or there are fewer than 4."""
    at, y = np.array(x), np.array(loss)
    if len(at) < 4 or np.polyfit(at, y, 1)[0] >= 0:
        return None
    away, fall, floor = at - at[0], float(np.ptp(y)), float(y.min())

    def residuals(parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        return parameters[0] + parameters[1] * np.exp(-parameters[2] * away) - y

    bounds = ([min(0.0, floor - 10 * fall), 1e-9, 1e-3], [floor, np.inf, 3.0])
    start = [floor - fall, 2 * fall, math.log(2) / away[-1]]
    start = [min(max(one, low + 1e-6), high - 1e-6) for one, low, high in zip(start, *bounds, strict=True)]
    found = optimize.least_squares(residuals, start, bounds=bounds, loss="huber", f_scale=0.02 * fall, x_scale="jac")
    floor, scale, exponent = map(float, found.x)
    return Curve(floor, scale, exponent, float(at[0]))


def find_decay(x: Sequence[float], losses: Sequence[Sequence[float]], differences: Differences) -> float:
    """Estimate the exponent with which the baseline's loss falls.

    It is the most probable a of E + A C^-a, given the losses, which luck moves, and before them a normal law of ln a
    around ln `DECAY` with a standard deviation of 1. So three rungs tell it where they lie far further apart than luck
    would have them, and else it is near `DECAY`.

    Args:
        x: ln compute of each rung, the smallest first.
        losses: of the baseline at each rung, one a seed.
        differences: of the arms, whose seeds tell how far luck moves a run.
    """
    noise = find_noise(differences)
    if noise is None:
        return DECAY
    luck = float(np.mean([variance for variance, _ in noise.values()])) / 2  # of a run, half of that of a difference
    weights, y = np.array([len(rung) / luck for rung in losses]), np.array([np.mean(rung) for rung in losses])
    falls = np.exp(-_DECAYS[:, None] * (np.array(x) - x[0]))
    falls -= (falls @ weights / weights.sum())[:, None]
    away = y - y @ weights / weights.sum()
    scale = falls @ (weights * away) / (falls**2 @ weights)  # A, of each a
    misfit = (away - scale[:, None] * falls) ** 2 @ weights + np.log(_DECAYS / DECAY) ** 2
    likely = np.where(scale > 0, misfit, np.inf)
    return float(_DECAYS[likely.argmin()]) if np.isfinite(likely).any() else DECAY
