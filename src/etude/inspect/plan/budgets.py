"""Compare the parameters and training FLOPs of a study's arms, and find overrides that would make them equal."""

from collections.abc import Sequence
from dataclasses import dataclass

from etude.inspect.plan.runs import RunPlan
from etude.runs.material import is_same_but_for_seed
from etude.studies.arms import override_key
from etude.studies.study import load_study, study_names
from etude.tasks.size import Config, measure_size


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


def find_gaps(runs: Sequence[RunPlan], baseline: RunPlan, tolerance: float) -> list[Gap]:
    """Find every arm whose budget differs from the baseline's by more than `tolerance`, relative to the baseline's."""
    found = []
    others = [run for run in runs if run.name != baseline.name]
    for run in {(run.name, run.parameters, run.training_flops): run for run in others}.values():
        ratio = run.parameters / baseline.parameters
        if abs(ratio - 1) > tolerance:
            override = _matching_d_ff(run.config, run.parameters, baseline.parameters)
            found.append(Gap(run, baseline.name, "parameters", ratio, _unless_set(run, override)))
        ratio = run.training_flops / baseline.training_flops
        if abs(ratio - 1) > tolerance:
            steps = round(run.config["budget"]["max_steps"] / ratio)
            override = f"budget.max_steps={steps}" if steps else None
            found.append(Gap(run, baseline.name, "training FLOPs", ratio, _unless_set(run, override)))
    return found


def find_unchanged(runs: Sequence[RunPlan], baseline: RunPlan) -> list[str]:
    """Find every arm whose config equals the baseline's, because its overrides repeat values that are set anyway."""
    others = (run for run in runs if run.name != baseline.name)
    return [run.config["arm"] for run in others if is_same_but_for_seed(run.config, baseline.config)]


def _unless_set(run: RunPlan, override: str | None) -> str | None:
    """Return the override; None if the arm itself sets its key, so that it would undo what the arm tests."""
    study, arm = run.config["study"], run.config["arm"]
    own = load_study(study).arms.get(arm, []) if study in study_names() else []
    return None if override and override_key(override) in map(override_key, own) else override


def _matching_d_ff(config: Config, parameters: int, wanted: int) -> str | None:
    """Return the `model.d_ff` override that brings the model closest to `wanted` parameters; None if there is none."""
    model = config["model"]
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
