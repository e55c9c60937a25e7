"""The simulations of docs/ladders.md: `python docs/simulate_ladders.py` prints its table anew, `... example` its CSV.

A study is a baseline and nineteen arms on five rungs, each of twice the compute of the one before, with 3, 3, 1, 1 and
1 seeds. The target is two doublings above the largest rung, and four: as far from it as it is from the smallest.
"""

import sys
from collections.abc import Callable
from math import log

import numpy as np
from numpy.typing import NDArray

from etude.report import statistics as st

ARMS, SEEDS = 19, (3, 3, 1, 1, 1)
NOISE = 0.01  # nats, of a run
X = [log(2) * rung for rung in range(len(SEEDS))]
Random = np.random.Generator
Array = NDArray[np.float64]


def power_laws(random: Random, x: Array, tail: Callable[[Random, int], Array], fall: float) -> Array:
    """The losses of all arms, the baseline first, over x: E + A C^-a, where E, A and a differ by arm."""
    off = tail(random, 3 * (ARMS + 1)).reshape(3, -1, 1) * np.array([0.02, 0.05, 0.03]).reshape(3, 1, 1)
    off[:, 0] = 0
    return 1.7 + off[0] + 1.8 * np.exp(off[1] - fall * np.exp(off[2]) * x)


def normal(random: Random, n: int) -> Array:
    """Normal deviates."""
    return random.normal(0, 1, n)


def heavy(random: Random, n: int) -> Array:
    """Deviates of Student's t with three degrees of freedom, of variance 1: one in a hundred is further than 3.4."""
    return random.standard_t(3, n) / np.sqrt(3)


def hold(random: Random, x: Array) -> Array:
    """Power laws that hold."""
    return power_laws(random, x, normal, random.uniform(0.05, 0.2))


def break_midway(random: Random, x: Array) -> Array:
    """Power laws whose slopes change after the third rung, by about as much as slopes differ between arms."""
    bend = random.normal(0, 0.01, (ARMS + 1, 1))
    bend[0] = 0
    return hold(random, x) + bend * np.maximum(0, x - X[2])


def tails(random: Random, x: Array) -> Array:
    """Power laws whose arms differ by heavy tails; so do the seeds."""
    return power_laws(random, x, heavy, random.uniform(0.05, 0.2))


def reach_a_floor(random: Random, x: Array) -> Array:
    """Losses that fall fast to a floor: half of what is above it is gone with each tenfold of the compute."""
    return power_laws(random, x, normal, log(2) / log(10))


WORLDS = {
    "power laws": (hold, normal),
    "laws that break at the third rung": (break_midway, normal),
    "heavy tails": (tails, heavy),
    "a floor": (reach_a_floor, normal),
}


def simulate(world: str, studies: int, doublings: int = 2) -> dict[str, float]:
    """Return how predictions fare in so many studies, where the target is so many doublings above the largest rung.

    Of all arms: the coverage of 90 % intervals, their mean score and that of carrying the last rung forward, and by how
    much P(sign) is off in the worst of five bins.
    """
    law, tail = WORLDS[world]
    random, x = np.random.default_rng(0), X[-1] + log(2) * doublings
    covered, scores, carried, chances, right = [], [], [], [], []
    for _ in range(studies):
        *rungs, target = law(random, np.array([*X, x])).T
        runs = [[level + NOISE * tail(random, n) for level in losses] for losses, n in zip(rungs, SEEDS, strict=True)]
        differences = {str(arm): [(rung[arm] - rung[0]).tolist() for rung in runs] for arm in range(1, ARMS + 1)}
        decay = st.find_decay(X, [rung[0].tolist() for rung in runs], differences)
        for arm, fitted in st.fit_laws(X, differences, decay).items():
            truth, found = float(target[int(arm)] - target[0]), fitted.at(x)
            covered.append(found.interval.low <= truth <= found.interval.high)
            scores.append(st.interval_score(found.interval, truth))
            carried.append(st.interval_score(st.carry(fitted, differences[arm][-1]).interval, truth))
            chances.append(found.sign)
            right.append(np.sign(truth) == np.sign(found.value))
    bins = np.minimum((np.array(chances) - 0.5) // 0.1, 4)
    off = [
        abs(np.mean(np.array(chances)[bins == n]) - np.mean(np.array(right)[bins == n]))
        for n in range(5)
        if (bins == n).sum()
    ]
    return {
        "coverage": float(np.mean(covered)),
        "score": float(np.mean(scores)),
        "carried": float(np.mean(carried)),
        "sign": float(max(off)),
    }


def example() -> None:
    """Print the runs of the page's example, whose truth is known."""
    random = np.random.default_rng(1)
    arms = {
        "base": (0.0, 1.0),
        "rope": (-0.02, 0.97),
        "no-dropout": (0.06, 0.93),
        "gelu": (0.0, 1.0),
        "shallow": (0.0, 1.06),
    }
    print("arm,seed,parameters,tokens,loss")
    for arm, (off, share) in arms.items():
        for rung, seeds in enumerate(SEEDS):
            size = 2 ** (rung / 2)
            for seed in range(1, seeds + 1):
                loss = 1.7 + off + 1.8 * share * 2 ** (-0.15 * rung) + NOISE * random.normal()
                print(f"{arm},{seed},{300_000 * size:.0f},{6_000_000 * size:.0f},{loss:.4f}")


def main(studies: int = 2000) -> None:
    """Print the table."""
    print(
        "| the truth | doublings | 90 % intervals hold it | interval score | carried forward | P(sign) off by up to |"
    )
    print("| :-- | --: | --: | --: | --: | --: |")
    for world in WORLDS:
        for doublings in (2, 4):
            found = simulate(world, studies, doublings)
            numbers = f"{found['score']:.3f} | {found['carried']:.3f} | {found['sign']:.2f}"
            print(f"| {world} | {doublings} | {100 * found['coverage']:.0f} % | {numbers} |", flush=True)


if __name__ == "__main__":
    example() if sys.argv[1:] == ["example"] else main(*map(int, sys.argv[1:]))
