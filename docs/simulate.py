"""The simulations of docs/statistics.md: `python docs/simulate.py` prints its tables and draws its pictures anew.

Scores are normal and vary over seeds by `DEVIATION` nats, about as much as the arms of Table 3 do at pocket scale. A
study is a baseline and nineteen arms, as Table 3 is.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from etude.report import statistics as st

DEVIATION, MARGIN = 0.01, 0.05  # nats
ARMS, STUDIES, SINGLE = 19, 200, 1000
DIFFERENCES = [n / 200 for n in range(13)]  # nats
PICTURES = Path(__file__).parent / "pictures"
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"  # Okabe and Ito's


def intervals(seeds: int) -> list[st.Interval]:
    """95 % intervals of arms whose true mean is 0."""
    drawn = np.random.default_rng(seeds).normal(0, DEVIATION, (SINGLE, seeds))
    return [found for row in drawn.tolist() if (found := st.mean_interval(st.Scores("arm", row)).interval)]


def studies(seeds: int) -> Iterator[tuple[list[st.Scores], st.Prior]]:
    """Studies whose arms do not differ, the baseline first, with what their spread tells of each other."""
    for drawn in np.random.default_rng(seeds).normal(0, DEVIATION, (STUDIES, ARMS + 1, seeds)).tolist():
        arms = [st.Scores(f"arm {n}", row) for n, row in enumerate(drawn)]
        if prior := st.moderate(arms):
            yield arms, prior


def stars_and_ties(seeds: int) -> tuple[dict[float, float], dict[float, float], tuple[float, float]]:
    """How often one arm gets a star, or is shown to be a tie, by its true difference while no other differs.

    Third: how often any arm has p < 0.05, and any a star, where none differs.
    """
    stars, ties = dict.fromkeys(DIFFERENCES, 0.0), dict.fromkeys(DIFFERENCES, 0.0)
    uncorrected = starred = 0.0
    for (base, first, *others), prior in studies(seeds):
        p = {arm.arm: st.moderated_test(arm, base, prior).p or 0.0 for arm in others}
        for difference in DIFFERENCES:
            arm = st.Scores(first.arm, [value + difference for value in first.values])
            tested = p | {arm.arm: st.moderated_test(arm, base, prior).p or 0.0}
            corrected = st.holm(tested)
            stars[difference] += (corrected[arm.arm] < 0.05) / STUDIES
            ties[difference] += ((st.equivalence(arm, base, prior, MARGIN) or 0.0) < 0.05) / STUDIES
            if not difference:
                uncorrected += (min(tested.values()) < 0.05) / STUDIES
                starred += (min(corrected.values()) < 0.05) / STUDIES
    return stars, ties, (uncorrected, starred)


def unlike(seeds: int, arm: float, base: float) -> list[float]:
    """How one arm fares that does not differ, where it or the baseline vary so many times as much as the others.

    How often it has p < 0.05 and a star, and how often its interval contains the true difference. The baseline and the
    others have three seeds.
    """
    drawn, found = np.random.default_rng(seeds), []
    for _ in range(2 * STUDIES):
        rows = [drawn.normal(0, base, 3), drawn.normal(0, arm, seeds), *drawn.normal(0, 1, (ARMS - 1, 3))]
        arms = [st.Scores(f"arm {n}", (DEVIATION * row).tolist()) for n, row in enumerate(rows)]
        found.append(st.moderated_test(arms[1], arms[0], st.moderate(arms)))
    p = np.array([one.p for one in found], dtype=float)
    covered = [one.interval is not None and one.interval.low <= 0 <= one.interval.high for one in found]
    return [float(np.mean(share)) for share in (p < 0.05, p < 0.05 / ARMS, covered)]


def draw_intervals(found: list[st.Interval]) -> str:
    """A line for each interval; one that misses 0 stands out."""
    scale = 3300
    lines = [f'<line x1="340" x2="340" y1="10" y2="{20 + 12 * len(found)}" stroke="#888" stroke-dasharray="4 3"/>']
    for n, (low, high) in enumerate(found):
        colour = BLUE if low <= 0 <= high else ORANGE
        ends, y = f'x1="{340 + scale * low:.0f}" x2="{340 + scale * high:.0f}"', 20 + 12 * n
        lines.append(f'<line {ends} y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"/>')
    lines.append(f'<text x="340" y="{40 + 12 * len(found)}" text-anchor="middle">the true mean</text>')
    return _svg(680, 50 + 12 * len(found), lines)


def draw_curves(curves: dict[str, tuple[str, dict[float, float]]]) -> str:
    """Shares of studies over the true difference in nats."""
    left, top, width, height = 60, 20, 440, 240
    lines = []
    for percent in range(0, 101, 20):
        y = top + height * (1 - percent / 100)
        lines.append(f'<line x1="{left}" x2="{left + width}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>')
        lines.append(f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">{percent} %</text>')
    for difference in DIFFERENCES[::2]:
        x = left + width * difference / DIFFERENCES[-1]
        lines.append(f'<text x="{x:.0f}" y="{top + height + 18}" text-anchor="middle">{difference:.2f}</text>')
    lines.append(f'<text x="{left + width / 2:.0f}" y="{top + height + 38}" text-anchor="middle">nats apart</text>')
    for n, (name, (colour, shares)) in enumerate(curves.items()):
        points = (
            f"{left + width * d / DIFFERENCES[-1]:.0f},{top + height * (1 - share):.0f}" for d, share in shares.items()
        )
        lines.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        lines.append(f'<text x="{left + width + 16}" y="{top + 20 + 22 * n}" fill="{colour}">{name}</text>')
    return _svg(680, top + height + 50, lines)


def _svg(width: int, height: int, lines: list[str]) -> str:
    size = f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13"'
    ground = '<rect width="100%" height="100%" fill="white"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{ground}{"".join(lines)}</svg>\n'


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown, all but its first column to the right."""
    rule = [":--"] + ["--:"] * (len(header) - 1)
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, rule, *rows))


def percent(share: float) -> str:
    """0.5 is 50 %."""
    return f"{100 * share:.0f} %"


def main(pictures: Path = PICTURES) -> None:
    """Print the tables and draw the pictures."""
    of = {seeds: intervals(seeds) for seeds in (2, 3, 5, 10)}
    rows = []
    for seeds, found in of.items():
        half = np.mean([high - low for low, high in found]) / 2 / DEVIATION
        rows.append([str(seeds), percent(np.mean([low <= 0 <= high for low, high in found])), f"{half:.1f}"])
    print(table(["seeds", "contain the true mean", "half-width, in standard deviations of a run"], rows))
    (pictures / "intervals.svg").write_text(draw_intervals(of[3][:40]))
    found = {seeds: stars_and_ties(seeds) for seeds in (2, 3, 5)}
    rows = [[str(seeds), *map(percent, luck)] for seeds, (_, _, luck) in found.items()]
    print(table(["seeds", "some arm has p < 0.05", "some arm has a star"], rows))
    shown = DIFFERENCES[::2]
    rows = [
        [f"{what}, {seeds} seeds", *(percent(found[seeds][which][d]) for d in shown)]
        for which, what in enumerate(("star", "tie"))
        for seeds in found
    ]
    print(table(["true difference, nats", *(f"{d:.2f}" for d in shown)], rows))
    curves = {f"star, {seeds} seeds": (colour, found[seeds][0]) for seeds, colour in ((3, BLUE), (5, GREEN))}
    (pictures / "stars.svg").write_text(draw_curves(curves | {"tie shown, 3 seeds": (ORANGE, found[3][1])}))
    rows = [
        [what, *map(percent, unlike(seeds, its, bases))]
        for what, seeds, its, bases in (
            ("nothing, three seeds", 3, 1.0, 1.0),
            ("nothing, two seeds", 2, 1.0, 1.0),
            ("the arm, three seeds", 3, 5.0, 1.0),
            ("the arm, two seeds", 2, 5.0, 1.0),
            ("the baseline", 3, 1.0, 5.0),
        )
    ]
    print(table(["five times the spread", "p < 0.05", "star", "interval contains the difference"], rows))


if __name__ == "__main__":
    main()
