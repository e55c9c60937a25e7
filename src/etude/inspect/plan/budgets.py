"""Compare the arms of a study: which have another budget, and what would even it out; which change nothing."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from torch import nn

from etude.inspect.plan.runs import RunPlan
from etude.inspect.show.anatomy import choices_by_module
from etude.store.identity import find_copies
from etude.study.arms import override_key
from etude.study.axes import axes
from etude.study.study import load_if_known
from etude.tasks import build
from etude.tasks.size import Config, is_ours, measure_size

BASELINE = "the baseline"

Comparison = tuple[RunPlan, Sequence[RunPlan]]
"""A baseline, and the runs that are held against it."""


@dataclass(frozen=True)
class Gap:
    """An arm whose budget is not the baseline's.

    Attributes:
        run: the arm.
        baseline: name of the baseline.
        what: "parameters" or "training FLOPs".
        ratio: of the arm's number to the baseline's.
        override: an override that would match them; None if there is none.
    """

    run: RunPlan
    baseline: str
    what: str
    ratio: float
    override: str | None


def find_gaps(comparisons: Iterable[Comparison], tolerance: float) -> list[Gap]:
    """Find every arm whose budget differs from its baseline's by more than `tolerance`, relative to the baseline's.

    Seeds and trials of the same size are found once.
    """
    by_size: dict[tuple[str, int, float], tuple[RunPlan, list[RunPlan]]] = {}
    for baseline, runs in comparisons:
        by_size.setdefault(_size(baseline), (baseline, []))[1].extend(runs)
    return [gap for baseline, runs in by_size.values() for gap in _find_gaps(baseline, runs, tolerance)]


def _find_gaps(baseline: RunPlan, runs: Sequence[RunPlan], tolerance: float) -> Iterator[Gap]:
    for run in {_size(run): run for run in runs if run.name != baseline.name}.values():
        ratio = run.parameters / baseline.parameters
        if abs(ratio - 1) > tolerance:
            override = _matching_d_ff(run.config, run.parameters, baseline.parameters)
            yield Gap(run, baseline.name, "parameters", ratio, _unless_set(run, override))
        ratio = run.training_flops / baseline.training_flops
        if abs(ratio - 1) > tolerance:
            steps = round(run.config["budget"]["max_steps"] / ratio)
            override = f"budget.max_steps={steps}" if steps else None
            yield Gap(run, baseline.name, "training FLOPs", ratio, _unless_set(run, override))


def _size(run: RunPlan) -> tuple[str, int, float]:
    return run.name, run.parameters, run.training_flops


def find_same(comparisons: Iterable[Comparison]) -> dict[str, list[str]]:
    """Find arms that are the same run, because their overrides repeat values that are set anyway, or were copied.

    Returns:
        BASELINE or the name of an arm -> the arms after it that are the same run.
    """
    found: dict[str, dict[str, None]] = {}
    for baseline, runs in comparisons:
        arms = {run.config["arm"]: run.config for run in runs if run.name != baseline.name}
        for first, others in find_copies({BASELINE: baseline.config} | arms).items():
            found.setdefault(first, {}).update(dict.fromkeys(others))
    return {first: [*others] for first, others in found.items()}


def find_idle(runs: Sequence[RunPlan]) -> dict[str, list[str]]:
    """Find choices that change nothing, as the model of the arm has no such part: a norm, say, of a recurrent model.

    Returns:
        Arm -> such as ["model/norm=rms"].
    """
    others = [run for run in {run.name: run for run in runs}.values() if not is_ours(run.config)]
    defaults = {f"{axis.group}={axis.default}" for axis in axes()} if others else set()
    found: dict[str, list[str]] = {}
    for run in others:
        parts = [*build.shapes(run.config).modules()]
        for kind, choice in choices_by_module(run.config).items():
            is_module = isinstance(kind, type) and issubclass(kind, nn.Module)
            if is_module and choice not in defaults and not any(isinstance(part, kind) for part in parts):
                found.setdefault(run.config["arm"], []).append(choice)
    return found


def _unless_set(run: RunPlan, override: str | None) -> str | None:
    """Return the override; None if the arm itself sets its key, so that it would undo what the arm tests."""
    study = load_if_known(run.config["study"])
    own = study.arms.get(run.config["arm"], []) if study else []
    return None if override and override_key(override) in map(override_key, own) else override


def _matching_d_ff(config: Config, parameters: int, wanted: int) -> str | None:
    """Return the `model.d_ff` override that brings the model closest to `wanted` parameters; None if there is none."""
    model = config["model"]
    if model["feedforward"].get("d_ff", model["d_ff"]) != model["d_ff"]:
        return None  # the network has a width of its own, which `model.d_ff` does not change
    twice = measure_size(config | {"model": _with_width(model, 2 * model["d_ff"])}).parameters
    per_unit = (twice - measure_size(config).parameters) / model["d_ff"]
    if per_unit <= 0:
        return None  # there is no feed-forward network to change
    width = round(model["d_ff"] + (wanted - parameters) / per_unit)
    return f"model.d_ff={width}" if width >= 1 else None


def _with_width(model: Config, d_ff: int) -> Config:
    """Return the `model` section with feed-forward networks of width `d_ff`."""
    network = model["feedforward"]
    return model | {"d_ff": d_ff, "feedforward": network | {"d_ff": d_ff} if "d_ff" in network else network}
