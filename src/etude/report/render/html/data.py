"""The data of the HTML page, one block of JSON for the scripts in `js/`.

The dataclasses of `comparison.py` and `statistics` become objects with the same fields, an interval becomes
[low, high], and None becomes null.
"""

from dataclasses import asdict
from typing import Any

from etude.config.difference import difference
from etude.report.comparison import ALPHA, BUDGET, TOLERANCE, ArmResult, Compared
from etude.report.measure import scores, translations
from etude.report.render.html.run_files import analyses, curves
from etude.report.render.html.sentences import bucket_bleu, buckets, samples
from etude.report.render.rows import state_of
from etude.runs.material import IMMATERIAL
from etude.studies.metrics import Metric
from etude.terminal import format_value

FIRST_PICKED = 4  # arms whose curves are shown beside the baseline's at first
_NOT_COMPARED = ("seed", "stale", "runs_dir", "cache_dir", "logger", "metrics")  # sections that do not define an arm


def data(compared: Compared) -> dict[str, Any]:
    """Collect the page's data, which `as_json` serialises.

    `arms` is in the study's order. `config` is the baseline's; an arm's own `config` has only the keys that differ.
    `analysis` holds by arm the output of `etude analyze` for one of its runs.
    """
    study = compared.study
    base = next((arm for arm in [compared.baseline, *compared.arms] if arm.runs), None)
    differing = {arm.arm: _config(arm, base) for arm in compared.arms}
    test_set, counts = compared.test_set, {arm.arm: arm.counts for arm in compared.arms if arm.counts}
    said = {arm.arm: translations(arm.runs[0], test_set) for arm in compared.arms if arm.counts}
    lengths = buckets(test_set.sources) if counts else []
    bleu = {arm: bucket_bleu(its, [sentences for _, sentences in lengths]) for arm, its in counts.items()}
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
            | {"config": {key: after for key, (_, after) in differing[arm.arm].items()}, "buckets": bleu.get(arm.arm)}
            for arm in compared.arms
        ],
        "ranks": compared.ranks,
        "agreement": compared.agreement,
        "buckets": [{"label": label, "sentences": len(some)} for label, some in lengths],
        "samples": samples(test_set, said, counts, compared.baseline.arm) if counts else {"of": 0, "sentences": []},
        "analysis": analyses([compared.baseline, *compared.arms]),
    }


def _arm(arm: ArmResult, headline: Metric) -> dict[str, Any]:
    return {
        "name": arm.arm,
        "overrides": arm.overrides,
        "seeds": arm.seeds,
        "state": "" if arm.runs else state_of(arm),
        "runs": [
            {"seed": run.seed, "path": str(run.run_dir.path), "score": next(iter(scores([run], headline) or ()), None)}
            for run in arm.runs
        ],
        "means": arm.means,
        "variances": arm.variances,
        **arm.costs,
        "paper": arm.paper,
        "comparable": sorted(arm.scores),
        "budget": arm.budget_differs,
        "against": arm.against,
        "curves": curves(arm.runs or arm.diverged or arm.unfinished),
    }


def _config(arm: ArmResult, base: ArmResult | None) -> dict[str, tuple[str, str]]:
    """Return where the arm's frozen config differs from the baseline's: key -> (baseline's value, arm's value)."""
    if not arm.runs or base is None:
        return {}
    found = difference(base.runs[0].config, arm.runs[0].config)
    return {
        key: (format_value(one), format_value(other))
        for key, (one, other) in (found.choices | found.values).items()
        if _is_compared(*key.split(".")[:2])
    }


def _is_compared(section: str, key: str = "") -> bool:
    """Whether a part of a config defines an arm; in `trainer`, only keys that may change a result."""
    if section == "trainer":
        return bool(key) and f"trainer.{key}" not in IMMATERIAL
    return section not in _NOT_COMPARED


def _first_picked(compared: Compared) -> list[str]:
    """Return the baseline and the arms with the largest differences from their reference, in the study's order."""

    def distance(arm: ArmResult) -> float:
        found = arm.against and arm.against.differences.get(compared.study.headline.name)
        return abs(found.test.difference) if found else 0.0

    others = [arm for arm in compared.arms if arm is not compared.baseline and (arm.runs or arm.unfinished)]
    furthest = sorted(others, key=distance, reverse=True)[:FIRST_PICKED]
    return [arm.arm for arm in compared.arms if arm is compared.baseline or arm in furthest]
