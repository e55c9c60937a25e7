"""Notes below a table on how far its arms agree with the paper's."""

from etude.report.comparison import Compared
from etude.report.statistics import Interval
from etude.report.wording import format_fixed, format_interval


def on_agreement(compared: Compared, subject: str = "Agreement") -> list[str]:
    """Report how far the study agrees with its paper; `subject` opens the first sentence."""
    lead, found = compared.study.lead, compared.agreement
    if found is None:
        return []
    right, large = found.signs
    shown, within, ties = found.ties
    margin = f"±{found.criteria.margin:g} nats"
    of_ties = f"ties {shown} of {ties} within {margin}"
    if not compared.several_seeds:
        of_ties = f"ties {within} of {ties} within {margin} (one seed: not tested)"
    elif within > shown:
        of_ties = f"ties {shown} of {ties} shown to be within {margin} ({within} by their means)"
    sentences = [f"signs {right} of {large}", of_ties]
    if (ranks := compared.ranks.get(lead.name)) and ranks.spearman.value is not None:
        sentences.append(f"ρ {_correlation(ranks.spearman.value, ranks.spearman.interval)}")
    line = found.line
    over = "All"
    if line.r is not None and line.slope is not None:
        sentences += [
            f"r {_correlation(line.r, line.r_interval)}",
            f"slope {_correlation(line.slope, line.slope_interval)}",
        ]
        over = f"r and slope: over {line.points} differences; all"
    wrong = [point for point in found.points.values() if not point.agrees]
    against_paper = ", ".join(point.arm for point in wrong if point.large)
    apart = ", ".join(point.arm for point in wrong if not point.large)
    parts = [*[f"{against_paper} with another sign"] * bool(against_paper), *[f"{apart} no tie"] * bool(apart)]
    missing = f"No result, and so not as in the paper either: {', '.join(found.missing)}."
    return [
        f"{subject} with the paper in {lead.compared_label}: {', '.join(sentences)}.",
        *[f"Not as in the paper: {'; '.join(parts)}."] * bool(parts),
        *[missing] * bool(found.missing),
        f"Signs: of the arms whose {lead.compared_label} differs from {compared.baseline.arm}'s by more than "
        f"{found.criteria.meaning} in the paper; the others are ties. {over} intervals are of 95 %.",
    ]


def on_ranks(compared: Compared) -> list[str]:
    """Report the rank correlations of the arms with the paper."""
    known, unknown = [], set()
    for name, ranks in compared.ranks.items():
        rho, tau = ranks.spearman, ranks.kendall
        if rho.value is None:
            unknown.add(rho.why_not)
        else:
            label = compared.study.metrics[name].label
            known.append(
                f"{label} ρ {_correlation(rho.value, rho.interval)}, τ {_correlation(tau.value, tau.interval)}"
            )
    if known:
        return [f"Rank correlation with the paper, and its 95 % interval: {'; '.join(known)}."]
    return [f"No rank correlation with the paper, for {'; '.join(sorted(unknown))}."] * bool(unknown)


def _correlation(value: float | None, interval: Interval | None) -> str:
    text = "–" if value is None else format_fixed(value, 2)
    return f"{text} {format_interval(interval, 2)}" if interval else text
