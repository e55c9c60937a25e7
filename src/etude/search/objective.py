"""What a search optimises, and what ranks the runs of a sweep: `metric: {name: test/bleu, goal: maximize}`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Objective:
    """A metric, and which way it is better.

    Attributes:
        name: its key in `result.json`, or its name at W&B.
        maximize: whether the best run has the highest value.
    """

    name: str = "valid.perplexity"
    maximize: bool = False
