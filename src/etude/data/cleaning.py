"""Which pairs of a large, noisy text are left out of training, by rules that anybody can state and count."""

from collections.abc import Mapping
from dataclasses import dataclass

KEPT = "pairs"


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """The rules; a word is what stands between white space."""

    max_words: int  # a side with more is long
    max_ratio: float  # one side with more than so many times the words of the other is uneven

    def sort(self, source: str, target: str) -> str:
        """Under which count a pair goes: "pairs" if it stays, else the first rule that it breaks."""
        lengths = len(source.split()), len(target.split())
        if not min(lengths):
            return "blank"
        if max(lengths) > self.max_words:
            return "long"
        return "uneven" if max(lengths) > self.max_ratio * min(lengths) else KEPT


def describe_source(counts: Mapping[str, int]) -> str:
    """Say what became of the pairs of a source: "997 of 1,000 pairs (2 blank, 1 long left out)"."""
    left_out = ", ".join(f"{number:,} {rule}" for rule, number in sorted(counts.items()) if rule != KEPT)
    told = f"{counts.get(KEPT, 0):,} of {sum(counts.values()):,} pairs"
    return f"{told} ({left_out} left out)" if left_out else told
