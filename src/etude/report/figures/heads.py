"""What `etude analyze` found of a run: what each head is worth and where it looks, and what else was asked."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from etude.report.figures.figure import UNKNOWN, Figure, axis, format_known

Analysis = Mapping[str, Any]
"""The content of `analysis.json`, with the `seed` of the run."""

SHOWN = {
    "change": ("what its removal adds to the perplexity", 3),
    "entropy": ("the entropy of its weights, in nats", 2),
    "distance": ("how far it looks, in subwords", 2),
}
"""What can be shown of a head: key -> its description, and the digits of its numbers."""

_KINDS = ("encoder", "decoder", "cross")
_PROBES = {
    "order": "With the words of the source in random order",
    "lengths": "By the length of the source, pairs joined to longer ones included",
    "decoding": "Other searches",
    "averaging": "The mean of the last checkpoints",
}
_UNITS = {"bleu": "BLEU", "bracket_f1": "bracket F1"}
_ONE_DIGIT = ("alpha", *_UNITS)


def heads(arm: str, analysis: Analysis, shown: str) -> Figure:
    """Draw a number of each head, such as "entropy", as a heat map for each kind of attention."""
    what, digits = SHOWN[shown]
    known = [head for head in analysis["heads"] if head.get(shown) is not None]
    kinds = [kind for kind in _KINDS if any(head["attention"] == kind for head in known)]
    layers, most = (max((head[key] for head in known), default=0) for key in ("layer", "head"))
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for number, kind in enumerate(kinds, start=1):
        some, n = [head for head in known if head["attention"] == kind], str(number) if number > 1 else ""
        axes |= {f"xaxis{n}": axis(f"{kind}: head", dtick=1, showgrid=False)}
        axes |= {f"yaxis{n}": axis("layer", dtick=1, autorange="reversed", showgrid=False)}
        traces.append(
            {"type": "heatmap", "x": [head["head"] for head in some], "y": [head["layer"] for head in some]}
            | {"z": [head[shown] for head in some], "xaxis": f"x{n}", "yaxis": f"y{n}", "coloraxis": "coloraxis"}
            | {"texttemplate": f"%{{z:.{digits}f}}" if most <= 8 else "", "xgap": 1, "ygap": 1}
            | {"hovertemplate": f"{kind}, layer %{{y}}, head %{{x}}: %{{z:.4f}}<extra></extra>"}
        )
    height, many = 90 + 34 * layers, max(1, len(kinds))
    settings = analysis.get("settings")
    of_text = f", {settings['sentences']:,} sentences of the test set" if settings else ""
    return Figure(
        traces,
        axes
        | {"height": max(240, height), "coloraxis": {"showscale": False}}
        | {"grid": {"rows": 1, "columns": many, "pattern": "independent"}},
        f"Of each head of {arm}: {what}",
        f"Of each head: {what}. Removal asks whether the model would miss it; entropy and distance say where it looks. "
        f"Seed {analysis['seed']}{of_text}; an interval is over sentences, of this one run, and none is corrected "
        "for how many heads there are.",
        ["head", "removal", "95 % interval", "entropy", "distance"],
        [
            [
                f"{head['attention']} {head['layer']}.{head['head']}",
                format_known(head.get("change"), 3, sign=True),
                _range(head.get("interval"), 3),
                format_known(head.get("entropy"), 2),
                format_known(head.get("distance"), 2),
            ]
            for head in known
        ],
        narrow={"height": height * many, "grid": {"rows": many, "columns": 1, "pattern": "independent"}},
    )


def probes(analysis: Analysis) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return the answers to the other questions of an analysis: the title, the header and the rows of a table each."""
    tables = []
    for question, title in _PROBES.items():
        answers = analysis.get(question) or []
        if rows := [answers] if isinstance(answers, Mapping) else answers:
            columns = [_column(key, [row.get(key) for row in rows]) for key in rows[0]]
            head = [_UNITS.get(key, key.replace("_", " ")) for key in rows[0]]
            tables.append((title, head, [list(row) for row in zip(*columns, strict=True)]))
    return tables


def _column(key: str, values: Sequence[Any]) -> list[str]:
    """Format a column of numbers or ranges; without digits if all of them are whole."""
    numbers = [one for value in values for one in (value if isinstance(value, list) else [value])]
    whole = all(one is None or float(one).is_integer() for one in numbers)
    digits = 0 if whole else 1 if key in _ONE_DIGIT else 2
    return [_range(value, digits) if isinstance(value, list) else format_known(value, digits) for value in values]


def _range(ends: Iterable[float | None] | None, digits: int) -> str:
    return " to ".join(format_known(end, digits) for end in ends) if ends else UNKNOWN
