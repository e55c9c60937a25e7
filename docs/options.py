"""The tables of options.md made anew, from `conf/` and the records of our studies: `python docs/options.py`."""

import re
from collections import defaultdict
from pathlib import Path

from etude.paths import find_file
from etude.report import results_of_csv
from etude.report.comparison import ALPHA
from etude.report.significance_notes import differences_of
from etude.study.arms import override_key
from etude.study.axes import axes
from etude.study.study import study_names

PAGE = Path(__file__).parent / "options.md"
PAPER = re.compile(r"(?P<before>.*?),? (?P<address>https://\S+) \((?P<paper>[^)]*)\)(?P<after>.*)")


def axes_table() -> str:
    """A row for each axis, with its values, the default in bold."""
    rows = ["| axis | values, the default in bold |", "| :-- | :-- |"]
    for axis in axes():
        values = (f"**`{name}`**" if name == axis.default else f"`{name}`" for name in axis.values)
        where = f" with `{axis.needs}`" if axis.needs else ""
        rows.append(f"| [`{axis.group}`](../conf/{axis.group}){where} | {' '.join(values)} |")
    return "\n".join([*rows, ""])


def parts_table() -> str:
    """A row for each value whose file has a paper's address: part, paper, what it changes, and what that was worth."""
    described = [(axis, value, PAPER.fullmatch(what)) for axis in axes() for value, what in axis.values.items()]
    parts = {f"{axis.group}={value}": (axis.needs, found) for axis, value, found in described if found}
    worth = differences(set(parts))
    rows = ["| part | paper | what it changes | Δ ln PPL in our studies |", "| :-- | :-- | :-- | :-- |"]
    for part, (needs, found) in parts.items():
        what = (found["before"] + found["after"]).rstrip(".")
        paper = f"[{found['paper']}]({found['address']})"
        rows.append(f"| `{f'{needs} {part}'.strip()}` | {paper} | {what} | {', '.join(worth[part])} |")
    return "\n".join([*rows, ""])


def differences(parts: set[str]) -> dict[str, list[str]]:
    """What each part changed in each recorded study that has an arm with this part alone, in nats a token."""
    found, nested = defaultdict(list), [axis for axis in axes() if axis.needs]
    for name in study_names():
        record = find_file("experiments", f"{name}/record.csv")
        if not record.is_file():
            continue
        compared = results_of_csv(record, name).compare()
        references = {arm.arm: arm.against.reference for arm in compared.arms if arm.against}
        metric = compared.study.metrics.get("ppl")
        for arm, difference in differences_of(compared, metric).items() if metric else ():
            changed = {*compared.study.arms[arm]} - {*compared.study.arms[references[arm]]}
            changed -= {*compared.study.arms[compared.study.baseline]}  # which a leave-one-out goes back to
            keys = {override_key(word) for word in changed}
            brought = {f"{axis.group}={axis.default}" for axis in nested if axis.needs in changed}
            brought = {word for word in brought if override_key(word) not in keys}
            if len(alone := (changed | brought) & parts) == 1:
                star = "\\*" * (difference.holm is not None and difference.holm < ALPHA)
                nats = f"{difference.test.difference:+.3f}".replace("-", "−")
                found[alone.pop()].append(f"[{name}](../experiments/{name}/README.md) {nats}{star}")
    return found


def renew(page: str) -> str:
    """The page with today's tables between its markers."""
    for name, table in {"axes": axes_table(), "parts": parts_table()}.items():
        before, _, rest = page.partition(f"<!-- {name} -->\n")
        page = f"{before}<!-- {name} -->\n{table}{rest[rest.index(f'<!-- /{name} -->') :]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(renew(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
