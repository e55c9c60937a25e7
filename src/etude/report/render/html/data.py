"""All that the page draws, as plain lists and numbers: the contract between Python and the scripts in `js/`."""

from dataclasses import asdict
from typing import Any

from etude.config.difference import ABSENT, difference
from etude.report.agreement import Agreement
from etude.report.comparison import BUDGET, TOLERANCE, ArmResult, Compared
from etude.report.render.html.analysis import analyses
from etude.report.render.html.curves import curves
from etude.report.render.html.sentences import bucketed_bleu, buckets, samples
from etude.report.significance import ALPHA, Against, Difference
from etude.report.statistics import Interval, Mean, RankCorrelation
from etude.report.test_set import translations
from etude.studies.metrics import Metric
from etude.terminal import told

FIRST_PICKED = 4  # arms whose curves are shown beside the baseline's before anybody chooses
_NOT_COMPARED = ("seed", "stale", "runs_dir", "cache_dir", "trainer", "logger", "metrics")  # no part of what an arm is


def data(compared: Compared) -> dict[str, Any]:
    """The page's block of JSON.

    `arms` are in the study's order. An interval is [low, high] or null; null stands for whatever is not known. What an
    arm's `config` does not name is as in `config`, the baseline's. `analysis` holds, by arm, what `etude analyze` left
    beside one of its runs.
    """
    study = compared.study
    base = next((arm for arm in [compared.baseline, *compared.arms] if arm.runs), None)
    sentences = _sentences(compared)
    differing = {arm.arm: _config(arm, base) for arm in compared.arms}
    return {
        "study": study.name,
        "metrics": {
            name: asdict(metric) | {"log": metric.is_log, "compared": metric.compared_label}
            for name, metric in study.metrics.items()
        },
        "headline": study.headline.name,
        "baseline": compared.baseline.arm,
        "alpha": ALPHA,
        "budget": BUDGET,
        "tolerance": TOLERANCE,
        "first_picked": _first_picked(compared),
        "config": {key: before for pairs in differing.values() for key, (before, _) in pairs.items()},
        "arms": [
            _arm(arm, study.headline)
            | {"config": {key: after for key, (_, after) in differing[arm.arm].items()}}
            | sentences["arms"].get(arm.arm, {})
            for arm in compared.arms
        ],
        "ranks": {
            metric: {"spearman": _rank(ranks.spearman), "kendall": _rank(ranks.kendall)}
            for metric, ranks in compared.ranks.items()
        },
        "agreement": _agreement(compared.agreement) if compared.agreement else None,
        "buckets": sentences["buckets"],
        "samples": sentences["samples"],
        "analysis": analyses([compared.baseline, *compared.arms]),
    }


def _arm(arm: ArmResult, headline: Metric) -> dict[str, Any]:
    return {
        "name": arm.arm,
        "overrides": arm.overrides,
        "seeds": arm.seeds,
        "runs": [
            {"seed": run.seed, "path": str(run.run_dir.path), "score": run.score(headline.key)} for run in arm.runs
        ],
        "means": {name: _mean(mean) for name, mean in arm.means.items()},
        "variances": asdict(arm.variances) if arm.variances else None,
        "parameters": arm.parameters,
        "steps": arm.steps,
        "tokens": arm.tokens,
        "hours": None if arm.seconds is None else arm.seconds / 3600,
        "flops": arm.flops,
        "paper": arm.paper,
        "comparable": sorted(arm.comparable),
        "budget": arm.budget_differs,
        "against": _describe_against(arm.against) if arm.against else None,
        "curves": curves(arm.runs or arm.diverged or arm.unfinished),
    }


def _mean(mean: Mean) -> dict[str, Any]:
    return {"mean": mean.value, "interval": _interval(mean.interval)}


def _describe_against(found: Against) -> dict[str, Any]:
    return {
        "reference": found.reference,
        "differences": {name: _difference(difference) for name, difference in found.differences.items()},
    }


def _difference(found: Difference) -> dict[str, Any]:
    test, bootstrap = found.test, found.bootstrap
    return {
        "difference": test.difference,
        "interval": _interval(test.interval),
        "holm": found.holm,
        "star": found.star,
        "why": test.why_not,
        "bootstrap": _interval(bootstrap.interval) if bootstrap else None,
        "bootstrap_p": bootstrap.p if bootstrap else None,
        "hedges_g": found.hedges_g,
        "randomisation": found.randomisation,
        "tie": found.tie,
    }


def _rank(found: RankCorrelation) -> dict[str, Any]:
    return {"value": found.value, "interval": _interval(found.interval), "why": found.why_not}


def _agreement(found: Agreement) -> dict[str, Any]:
    """Each arm's difference in nats, ours and the paper's, with what is known of both; and the line through them."""
    return {
        "margin": found.criteria.margin,
        "large": found.criteria.large,
        "points": [asdict(point) for point in found.points.values()],
        "line": asdict(found.line),
    }


def _interval(interval: Interval | None) -> list[float] | None:
    return list(interval) if interval else None


def _config(arm: ArmResult, base: ArmResult | None) -> dict[str, tuple[str, str]]:
    """Where the arm's frozen config is not as the baseline's: key -> (baseline's, the arm's)."""
    if not arm.runs or base is None:
        return {}
    before, after = (
        {key: value for key, value in side.runs[0].config.items() if key not in _NOT_COMPARED} for side in (base, arm)
    )
    found = difference(before, after)
    pairs = found.choices | found.values
    return {
        key: (_format_config_value(one), _format_config_value(other))
        for key, (one, other) in pairs.items()
        if key not in _NOT_COMPARED
    }


def _format_config_value(value: Any) -> str:
    return repr(value) if value is ABSENT else told(value)


def _first_picked(compared: Compared) -> list[str]:
    """The baseline and the arms that are furthest from the one they are held against, in the study's order."""

    def distance(arm: ArmResult) -> float:
        found = arm.against and arm.against.differences.get(compared.study.headline.name)
        return abs(found.test.difference) if found else 0.0

    others = [arm for arm in compared.arms if arm is not compared.baseline and (arm.runs or arm.unfinished)]
    furthest = sorted(others, key=distance, reverse=True)[:FIRST_PICKED]
    return [arm.arm for arm in compared.arms if arm is compared.baseline or arm in furthest]


def _sentences(compared: Compared) -> dict[str, Any]:
    """What the translations tell: nothing of arms whose translations cannot be compared, of which the notes say why."""
    test_set = compared.test_set
    counts = {arm.arm: arm.counts for arm in compared.arms if arm.counts}
    said = {arm.arm: translations(arm.runs[0], test_set) for arm in compared.arms if arm.counts}
    lengths = buckets(test_set.sources)
    found = [sentences for _, sentences in lengths]
    return {
        "buckets": [{"label": label, "sentences": len(some)} for label, some in lengths] if counts else [],
        "arms": {arm: {"buckets": bucketed_bleu(its, found)} for arm, its in counts.items()},
        "samples": samples(test_set, said, counts, compared.baseline.arm) if counts else {"of": 0, "sentences": []},
    }
