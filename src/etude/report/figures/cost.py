"""What quality costs, and which arms give the most of it for their price."""

from etude.report.comparison import ArmResult, Compared
from etude.report.figures.figure import COLOUR, Figure, axis, error_bars, format_ends, format_known, marks

_COSTS = {"flops": "training FLOPs", "tokens": "target tokens of training", "parameters": "parameters"}
_UNITS = {"hours": 3600.0, "minutes": 60.0}


def costs(compared: Compared) -> dict[str, str]:
    """Return the costs that are known of some arm, with their names; the first that tells arms apart comes first."""
    named = _COSTS | {"seconds": f"{time_unit(compared)[0]} of training"}
    values = {key: {arm.costs.get(key) for arm in compared.arms if arm.runs} for key in named}
    known = {key: name for key, name in named.items() if values[key] - {None}}
    return dict(sorted(known.items(), key=lambda item: len(values[item[0]]) <= 2))


def time_unit(compared: Compared) -> tuple[str, float]:
    """Return the unit of times of training, by the longest of them, and its seconds."""
    longest = max((arm.costs.get("seconds") or 0.0 for arm in compared.arms if arm.runs), default=0.0)
    return next(((unit, seconds) for unit, seconds in _UNITS.items() if longest >= seconds), ("seconds", 1.0))


def cost(compared: Compared, metric: str, of: str) -> Figure | None:
    """Draw one metric over one cost of the arms, such as "flops", and their Pareto front; None if no arm has both."""
    study_metric, name, is_time = compared.study.metrics[metric], costs(compared)[of], of == "seconds"
    unit = time_unit(compared)[1] if is_time else 1.0
    arms = [arm for arm in compared.arms if arm.runs and metric in arm.scores and arm.costs.get(of) is not None]
    if not arms:
        return None
    price = {arm.arm: (arm.costs[of] or 0.0) / unit for arm in arms}
    quality = {arm.arm: (1 if study_metric.better == "higher" else -1) * arm.means[metric].value for arm in arms}
    front = _front(price, quality)
    shape = f"%{{customdata}}: %{{y:.{study_metric.digits}f}}, %{{x:,.4~{'r' if is_time else 's'}}}<extra></extra>"

    def trace(some: list[ArmResult], symbol: str) -> dict[str, object]:
        means = [arm.means[metric] for arm in some]
        heights = [mean.value for mean in means]
        bars = error_bars(heights, [mean.interval for mean in means], color=f"{COLOUR}66")
        names = [arm.arm for arm in some]
        return marks(names, [price[one] for one in names], heights, symbol, error_y=bars, hovertemplate=shape)

    by_name = {arm.arm: arm for arm in arms}
    on = [by_name[arm] for arm in front]
    steps = {"x": [price[arm] for arm in front], "y": [arm.means[metric].value for arm in on]}
    line = {"mode": "lines", "line": {"color": COLOUR, "width": 1.5, "shape": "hv"}, "hoverinfo": "skip"}
    return Figure(
        [
            steps | line,
            trace([arm for arm in arms if arm.arm not in front], "circle-open"),
            trace(on, "circle") | {"meta": {"first": front}},
        ],
        {
            "height": 460,
            "xaxis": axis(name, price.values(), exponentformat="none" if is_time else "SI"),
            "yaxis": axis(study_metric.label),
        },
        f"{study_metric.label} over {name}; on the Pareto front: {', '.join(front)}",
        "Filled and joined are the arms that no other arm beats at no higher cost: the Pareto front.",
        ["arm", name, study_metric.label, "95 % interval", "on the front"],
        [
            [
                arm.arm,
                format_known(price[arm.arm], 3 if is_time else 0),
                format_known(arm.means[metric].value, study_metric.digits),
                format_ends(arm.means[metric].interval, study_metric.digits),
                "yes" if arm.arm in front else "",
            ]
            for arm in sorted(arms, key=lambda arm: price[arm.arm])
        ],
    )


def _front(price: dict[str, float], quality: dict[str, float]) -> list[str]:
    """Return the arms that none beats at no higher cost, cheapest first; of equals all."""

    def beats(one: str, other: str) -> bool:
        no_worse = price[one] <= price[other] and quality[one] >= quality[other]
        return no_worse and (price[one], quality[one]) != (price[other], quality[other])

    return sorted((arm for arm in price if not any(beats(other, arm) for other in price)), key=lambda arm: price[arm])
