"""The metric that ranks the runs of a sweep: `metric: {name: test/bleu, goal: maximize}` in its file."""

from dataclasses import dataclass

from etude.search.sweep_file import find_file
from etude.search.wandb_sweep import read_sweep


@dataclass(frozen=True)
class Ranking:
    """A metric, and which way it is better.

    Attributes:
        name: its key in `result.json`, or its name at W&B.
        maximize: whether the best run has the highest value.
    """

    name: str = "valid.perplexity"
    maximize: bool = False


def ranking_of(name: str) -> Ranking | None:
    """Read the metric of the sweep `name`, None if it names none; as at W&B it is minimized if nothing else is said.

    Raises:
        UserError: there is no such sweep, or its file is not valid.
    """
    file = find_file(name)
    metric = read_sweep(file).metric if file else {}
    return Ranking(metric["name"], metric.get("goal") == "maximize") if metric else None
