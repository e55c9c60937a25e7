"""Accuracy at every single distance, drawn: python draw.py OUT.svg RUN_DIR..., runs of one arm taken together."""

import sys
from collections import defaultdict
from pathlib import Path

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")  # Okabe and Ito's
LEAST = 30  # answers of a run without which a distance is not drawn
WIDTH, HEIGHT, LEFT, TOP = 30, 3, 60, 20  # of a word and of a per cent; where 1 word and 100 % are


def accuracies(runs: list[Path]) -> dict[int, float]:
    """Right answers in a hundred, by distance."""
    answers = defaultdict(list)
    for run in runs:
        said, right = ((run / f"{name}.test.txt").read_text().splitlines() for name in ("hypotheses", "references"))
        for one, other in zip(said, right, strict=True):
            answers[int(other.split()[1])].append(one == other)
    return {d: 100 * sum(of) / len(of) for d, of in sorted(answers.items()) if len(of) >= LEAST * len(runs)}


def draw(lines: dict[str, dict[int, float]]) -> str:
    """A line for each arm, from 40 to 100 %."""
    last = max(d for line in lines.values() for d in line)
    right, bottom = LEFT + WIDTH * last, TOP + 60 * HEIGHT
    drawn = [f'<rect width="100%" height="100%" fill="white"/><text x="{LEFT}" y="{bottom + 34}">words</text>']
    for d in range(1, last + 1):
        drawn.append(f'<text x="{LEFT + WIDTH * (d - 1)}" y="{bottom + 18}" text-anchor="middle">{d}</text>')
    for percent in range(40, 101, 10):
        y = TOP + HEIGHT * (100 - percent)
        drawn.append(f'<line x1="{LEFT - 10}" x2="{right}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        drawn.append(f'<text x="{LEFT - 14}" y="{y + 4}" text-anchor="end">{percent} %</text>')
    for n, ((arm, line), colour) in enumerate(zip(lines.items(), COLOURS, strict=False)):
        points = " ".join(f"{LEFT + WIDTH * (d - 1)},{TOP + HEIGHT * (100 - y):.1f}" for d, y in line.items())
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn.append(f'<text x="{right + 10}" y="{TOP + 24 + 20 * n}" fill="{colour}">{arm}</text>')
    size = f'viewBox="0 0 {right + 130} {bottom + 44}" font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(drawn)}</svg>\n'


if __name__ == "__main__":
    of_arm = defaultdict(list)
    for folder in map(Path, sys.argv[2:]):
        of_arm[folder.resolve().parent.name].append(folder)
    Path(sys.argv[1]).write_text(draw({arm: accuracies(runs) for arm, runs in of_arm.items()}))
