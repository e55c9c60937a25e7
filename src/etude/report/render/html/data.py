"""The data of the HTML page, one block of JSON for the scripts in `js/`: figures become objects, None becomes null."""

from typing import Any

from etude.config.difference import difference
from etude.report import figures
from etude.report.comparison import ArmResult, Compared
from etude.report.figures.cost import time_unit
from etude.report.figures.figure import UNKNOWN, Figure, format_ends, format_known
from etude.report.figures.forest import describe_budget, name_compared
from etude.report.render.html.run_files import analyses, curves
from etude.report.render.html.sentences import bucket_bleu, buckets, samples
from etude.report.render.rows import state_of
from etude.report.scores import scores, translations
from etude.store.identity import IMMATERIAL
from etude.study.arms import split_override
from etude.study.study import value_at
from etude.terminal import format_value

FIRST_PICKED = 4  # arms whose curves are shown beside the baseline's at first
_NOT_COMPARED = ("seed", "stale", "runs_dir", "cache_dir", "logger", "metrics")  # sections that do not define an arm


def data(compared: Compared) -> dict[str, Any]:
    """Collect the page's data, which `as_json` serialises.

    `arms` is in the study's order. `config` is the baseline's; an arm's own `config` has only the keys that differ.
    `figures` are made (`etude.report.figures`): for each name, what can be chosen, and a figure for each choice. Curves
    and attention maps are drawn on the page, from numbers.
    """
    study = compared.study
    base = next((arm for arm in [compared.baseline, *compared.arms] if arm.runs), None)
    differing = {arm.arm: _config(arm, base) for arm in compared.arms}
    test_set, counts = compared.test_set, {arm.arm: arm.counts for arm in compared.arms if arm.counts}
    said = {arm.arm: translations(arm.runs[0], test_set) for arm in compared.arms if arm.counts}
    lengths = buckets(test_set.sources) if counts else []
    bleu = {arm: bucket_bleu(its, [sentences for _, sentences in lengths]) for arm, its in counts.items()}
    analysed = analyses([compared.baseline, *compared.arms])
    over_tokens = [name for name, metric in study.metrics.items() if metric.over == "tokens"]
    facts = {arm.arm: _facts(compared, arm) for arm in compared.arms}
    known = [title for title in facts[compared.arms[0].arm] if any(its[title] != UNKNOWN for its in facts.values())]
    return {
        "study": study.name,
        "baseline": compared.baseline.arm,
        "first_picked": _first_picked(compared),
        "config": {key: before for pairs in differing.values() for key, (before, _) in pairs.items()},
        "arms": [
            {
                "name": arm.arm,
                "seeds": arm.seeds,
                "state": "" if arm.runs else state_of(arm),
                "facts": {title: facts[arm.arm][title] for title in known},
                "same_tokens": not arm.runs or all(name in arm.scores for name in over_tokens),
                "curves": curves(arm.runs or arm.diverged or arm.unfinished),
                "config": {key: after for key, (_, after) in differing[arm.arm].items()},
                "buckets": bleu.get(arm.arm),
            }
            for arm in compared.arms
        ],
        "figures": _figures(compared, analysed),
        "buckets": [{"label": label, "sentences": len(some)} for label, some in lengths],
        "samples": samples(test_set, said, counts, compared.baseline.arm) if counts else {"of": 0, "sentences": []},
        "maps": {arm: {"maps": found.get("maps", []), "heads": found["heads"]} for arm, found in analysed.items()},
        "probes": {arm: figures.probes(found) for arm, found in analysed.items()},
    }


def _figures(compared: Compared, analysed: dict[str, Any]) -> dict[str, Any]:
    """Make every figure that can be chosen: name -> its choosers (label, options) and choice -> figure."""
    metrics = compared.study.metrics.values()
    labels = {metric.name: metric.label for metric in metrics}
    forests = {metric.name: figures.forest(compared, metric.name) for metric in metrics}
    papers = {"nats": figures.agreement(compared)} | {name: figures.order(compared, name) for name in labels}
    named = figures.costs(compared)
    costs = {name: {of: figures.cost(compared, name, of) for of in named} for name in labels}
    cost_labels = {name: label for name, label in labels.items() if all(costs[name].values())}
    forest_labels = {metric.name: name_compared(metric) for metric in metrics if forests[metric.name]}
    paper_labels = {"nats": "differences in nats"} | labels
    shown = {key: what for key, (what, _) in figures.SHOWN.items()}
    found: dict[str, tuple[dict[str, Any], dict[str, Figure | None]]] = {
        "forest": ({"y": ("Show", forest_labels)}, forests),
        "cost": (
            {"y": ("Show", cost_labels), "x": ("over", named)},
            {f"{name} {of}": one for name in cost_labels for of, one in costs[name].items()},
        ),
        "effects": ({}, {"": figures.effects(compared)}),
        "paper": ({"y": ("Show", {key: paper_labels[key] for key in papers if papers[key]})}, papers),
        "analysis": (
            {"arm": ("Arm", {arm: arm for arm in analysed}), "what": ("Show", shown)},
            {f"{arm} {what}": figures.heads(arm, its, what) for arm, its in analysed.items() for what in shown},
        ),
    }
    return {
        name: {"choosers": choosers, "made": {key: one for key, one in made.items() if one}}
        for name, (choosers, made) in found.items()
        if any(made.values())
    }


def _facts(compared: Compared, arm: ArmResult) -> dict[str, str]:
    """Return what is told of an arm beside another one: title -> text."""
    headline, costs, (unit, seconds) = compared.study.headline, arm.costs, time_unit(compared)
    changes = any(other.overrides for other in compared.arms)
    facts = {"what is changed": "  ".join(_changed(compared, arm)) or ("nothing" if changes else UNKNOWN)}
    for metric in compared.study.metrics.values():
        mean = arm.means.get(metric.name)
        interval = f" ({format_ends(mean.interval, metric.digits)})" if mean and mean.interval else ""
        title = metric.label + " (95 % interval over seeds)" * (metric is headline)
        facts[title] = format_known(mean.value if mean else None, metric.digits) + interval
    for title, key in (("parameters", "parameters"), ("steps", "steps"), ("target tokens", "tokens")):
        facts[title] = format_known(costs.get(key), 0)
    flops, took = costs.get("flops"), costs.get("seconds")
    facts["training FLOPs"] = UNKNOWN if flops is None else f"{flops:.2e}"
    facts[f"{unit} of training"] = format_known(None if took is None else took / seconds, 1)
    budgets = [describe_budget(compared, one) for one in (arm, *compared.arms)]
    facts["budget beside the baseline’s"] = budgets[0] if {*budgets} - {UNKNOWN, "the same"} else UNKNOWN
    scored = [(run.seed, next(iter(scores([run], headline) or ()), None)) for run in arm.runs]
    facts[f"seeds ({headline.label})"] = ", ".join(
        f"{s} ({format_known(score, headline.digits)})" for s, score in scored
    )
    spread = arm.variances
    both = (spread.seeds, spread.test_set) if spread else (None, None)
    told = " / ".join(format_known(one, 2) for one in both) if spread else UNKNOWN
    resampled = next((metric for metric in compared.study.metrics.values() if metric.sentences), headline)
    facts[f"variance of {resampled.label}, seeds / test sets"] = told
    facts["run"] = "\n".join(str(run.run_dir.path) for run in arm.runs)
    return facts


def _changed(compared: Compared, arm: ArmResult) -> list[str]:
    """Return what an arm changes as the table names it: `h 1`, and not `model.heads=${heads:1}`."""
    headers = {key.removeprefix("choices."): header for header, key in compared.study.columns.items()}
    told = []
    for override in arm.overrides:
        key, text = split_override(override)
        value = arm.runs[0].choices.get(key, value_at(arm.runs[0].config, key)) if arm.runs else None
        named = override.startswith("~") or (value is None and key not in headers)
        shown = text if value is None else format_value(value)
        told.append(override if named else f"{headers[key]} {shown}" if key in headers else f"{key}={shown}")
    return told


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
