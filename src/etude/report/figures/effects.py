"""The matrix of a grid: the effect of each value, and of each pair beyond the sum of both."""

from etude.report.comparison import ALPHA, Compared
from etude.report.effects import effects_of, name_values
from etude.report.figures.figure import Figure, axis, format_ends, format_known


def effects(compared: Compared) -> Figure | None:
    """Draw the effects of a study's grid by its leading metric as a heat map.

    Returns:
        None if the study has no grid, or runs of it are missing.
    """
    found, corrected = effects_of(compared)
    if not found:
        return None
    metric, digits = compared.study.lead, compared.study.lead.compared_digits
    names = [name_values(one) for one in found if len(one.values) == 1]
    cells: dict[tuple[str, str], float] = {}
    for one in found:
        parts = [name_values(one, at) for at in range(len(one.values))]
        for place in {(parts[0], parts[-1]), (parts[-1], parts[0])}:
            cells[place] = one.test.difference
    most = max(map(abs, cells.values())) or 1.0
    heat = {
        "type": "heatmap",
        "x": names,
        "y": names,
        "z": [[cells.get((row, column)) for column in names] for row in names],
        "texttemplate": f"%{{z:+.{digits}f}}",
        "coloraxis": "coloraxis",
        "hovertemplate": f"%{{y}}, %{{x}}: %{{z:+.{digits + 1}f}}<extra></extra>",
        "xgap": 1,
        "ygap": 1,
    }
    return Figure(
        [heat],
        {
            "height": 140 + 44 * len(names),
            "coloraxis": {"showscale": False, "cmin": -most, "cmax": most},
            "xaxis": axis("", showgrid=False, type="category"),
            "yaxis": axis("", showgrid=False, type="category", autorange="reversed"),
        },
        f"Effects on {metric.compared_label} of the values of the grid and of pairs of them",
        "On the diagonal is the effect of a value, averaged over the other keys; elsewhere by how much two together "
        "differ from the sum of both.",
        ["value", "effect", "95 % interval", "p after Holm"],
        [
            [
                name_values(one),
                format_known(one.test.difference, digits, sign=True),
                format_ends(one.test.interval, digits),
                format_known(corrected.get(one.values), 3) + "*" * (corrected.get(one.values, 1.0) < ALPHA),
            ]
            for one in found
        ],
    )
