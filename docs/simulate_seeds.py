"""The simulation of "Seeds until decided" in docs/statistics.md: `python docs/simulate_seeds.py` prints its table anew.

A study is a baseline and nineteen arms whose runs vary by 0.01 nats. In one kind no arm differs, and none can be shown
to be a tie; in the other arms differ as the paper's Table 3 has it, and a tie is a difference of less than 0.02 nats.
Each study is decided from 2 seeds to 8, and tested with 8 seeds of every arm, too.
"""

from math import log
from pathlib import Path

import numpy as np

from etude.report import statistics as st
from etude.report.sequential import levels
from etude.study.criteria import UntilDecided
from etude.yaml_file import read_yaml

PLAN, STUDIES, ALPHA = UntilDecided(2, 8), 400, 0.05
DEVIATION, MARGIN = 0.01, 0.02  # nats


def differences() -> list[float]:
    """By how much the paper's arms differ from its baseline, in nats."""
    arms = read_yaml(Path(__file__).parents[1] / "experiments" / "table3" / "paper.yaml")["arms"]
    return [log(row["ppl"] / arms["base"]["ppl"]) for arm, row in arms.items() if arm != "base"]


def decide(drawn: np.ndarray, margin: float | None) -> tuple[list[bool], int]:
    """Which arms get a star, and how many runs that takes, looking after each seed; `drawn` is of (1 + arms, seeds)."""
    number, starred = [PLAN.least] * len(drawn), [False] * len(drawn)
    stars, ties = levels(PLAN, len(drawn) - 1)
    going = [*range(1, len(drawn))]
    for look, seeds in enumerate(range(PLAN.least, PLAN.most + 1)):
        for arm in (0, *going):
            number[arm] = seeds
        scores = [
            st.Scores(str(n), row[:have].tolist()) for n, (row, have) in enumerate(zip(drawn, number, strict=True))
        ]
        prior = st.moderate(scores)
        assert prior
        for arm in [*going]:
            p = st.moderated_test(scores[arm], scores[0], prior).p
            tie = st.equivalence(scores[arm], scores[0], prior, margin) if margin else 1.0
            assert p is not None
            assert tie is not None
            starred[arm] = p < stars[look]
            if starred[arm] or tie < ties[look]:
                going.remove(arm)
        if not going:
            break
    return starred[1:], sum(number)


def stars_at_once(drawn: np.ndarray) -> list[bool]:
    """Which arms get a star if all seeds of all arms are there."""
    scores = [st.Scores(str(n), row.tolist()) for n, row in enumerate(drawn)]
    prior = st.moderate(scores)
    p = {arm.arm: st.moderated_test(arm, scores[0], prior).p or 0.0 for arm in scores[1:]}
    return [corrected < ALPHA for corrected in st.holm(p).values()]


def simulate(away: list[float], margin: float | None, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return by study and arm which has a star, seed by seed and at once, and the share of runs that is saved."""
    random, one_by_one, at_once, runs = np.random.default_rng(seed), [], [], 0
    for _ in range(STUDIES):
        drawn = random.normal(0, DEVIATION, (1 + len(away), PLAN.most)) + np.array([[0.0], *([one] for one in away)])
        starred, needed = decide(drawn, margin)
        one_by_one.append(starred)
        at_once.append(stars_at_once(drawn))
        runs += needed
    return np.array(one_by_one), np.array(at_once), 1 - runs / STUDIES / PLAN.most / (1 + len(away))


def main() -> None:
    """Print the table."""
    null, null_at_once, _ = simulate([0.0] * 19, None, 1)
    away = differences()
    found, found_at_once, saved = simulate(away, MARGIN, 2)
    large, small = (np.array([abs(one) > 0.03 for one in away]), np.array([abs(one) < 0.03 for one in away]))
    rows = [("a star somewhere, where no arm differs", null.any(axis=1).mean(), null_at_once.any(axis=1).mean())]
    for name, which in (("further than 0.03 nats", large), ("nearer", small)):
        shares = [each[:, which].mean() for each in (found, found_at_once)]
        rows.append((f"stars of the {which.sum()} arms that are {name}", *shares))
    rows.append(("runs, of 160", 1 - saved, 1.0))
    print("| | seeds until decided, 2 to 8 | 8 seeds of each arm |\n| :-- | --: | --: |")
    for name, *shares in rows:
        print(f"| {name} | {' | '.join(f'{share:.0%}'.replace('%', ' %') for share in shares)} |")


if __name__ == "__main__":
    main()
