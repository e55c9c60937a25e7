"""Filter the pairs of a large, noisy text before training, by simple rules whose effects are counted."""

from collections.abc import Mapping
from dataclasses import dataclass

KEPT = "pairs"


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """The filtering rules; words are separated by white space."""

    max_words: int  # a pair with a longer side is "long"
    max_ratio: float  # a pair with more than so many words on one side per word on the other is "uneven"

    def classify(self, source: str, target: str) -> str:
        """Return "pairs" for a pair that is kept, else the name of the first rule that it breaks."""
        lengths = len(source.split()), len(target.split())
        if not min(lengths):
            return "blank"
        if max(lengths) > self.max_words:
            return "long"
        return "uneven" if max(lengths) > self.max_ratio * min(lengths) else KEPT


def describe_source(counts: Mapping[str, int]) -> str:
    """Format the counts of a source: "997 of 1,000 pairs (2 blank, 1 long left out)"."""
    left_out = ", ".join(f"{number:,} {rule}" for rule, number in sorted(counts.items()) if rule != KEPT)
    kept = f"{counts.get(KEPT, 0):,} of {sum(counts.values()):,} pairs"
    return f"{kept} ({left_out} left out)" if left_out else kept
