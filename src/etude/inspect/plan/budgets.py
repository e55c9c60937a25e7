"""Do the arms of a study get the same? Where they do not, the override that would even it out."""

from collections.abc import Sequence
from dataclasses import dataclass

from etude.inspect.plan.runs import RunPlan
from etude.runs.material import is_same_but_for_seed
from etude.studies.study import load_study, study_names
from etude.tasks.size import Config, measure_size


@dataclass(frozen=True)
class Gap:
    """An arm whose budget is not the baseline's.

    Attributes:
        run: the arm.
        baseline: its name.
        what: "parameters" or "training FLOPs".
        ratio: the arm's share of the baseline's.
        override: what would match them, or None where nothing does.
    """

    run: RunPlan
    baseline: str
    what: str
    ratio: float
    override: str | None


def find_gaps(runs: Sequence[RunPlan], baseline: RunPlan, tolerance: float) -> list[Gap]:
    """Every arm that differs from the baseline by more than `tolerance`, a share of the baseline's."""
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
    """Every arm whose config is the baseline's, for what it says is so anyway."""
    others = (run for run in runs if run.name != baseline.name)
    return [run.config["arm"] for run in others if is_same_but_for_seed(run.config, baseline.config)]


def _unless_set(run: RunPlan, override: str | None) -> str | None:
    """The override, but for one that would undo what the arm is about."""
    study, arm = run.config["study"], run.config["arm"]
    own = load_study(study).arms.get(arm, []) if study in study_names() else []
    keys = {line.partition("=")[0].lstrip("+") for line in own}
    return None if override and override.partition("=")[0] in keys else override


def _matching_d_ff(config: Config, parameters: int, wanted: int) -> str | None:
    """The feed-forward width with which the model has as many parameters as are wanted, as near as a width comes."""
    model = config["model"]
    twice = measure_size(config | {"model": _with_width(model, 2 * model["d_ff"])}).parameters
    per_unit = (twice - measure_size(config).parameters) / model["d_ff"]
    if per_unit <= 0:
        return None  # no feed-forward network to make up for it
    width = round(model["d_ff"] + (wanted - parameters) / per_unit)
    return f"model.d_ff={width}" if width >= 1 else None


def _with_width(model: Config, d_ff: int) -> Config:
    """The section `model` with feed-forward networks of that width."""
    network = model["feedforward"]
    return model | {"d_ff": d_ff, "feedforward": network | {"d_ff": d_ff} if "d_ff" in network else network}
