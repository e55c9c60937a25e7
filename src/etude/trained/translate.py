"""A translation by a trained run, with its scores."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Translation:
    """A translation of a line.

    Attributes:
        text: the translation.
        score: what translations are ranked by: the log-probability over the length penalty, higher is better.
        log_probability: log P(translation | line), in nats, its end counted.
        alignment: pairs (i, j): word i of the line is aligned with word j of the translation, counted from 0; None if
            it was not asked for.
    """

    text: str
    score: float
    log_probability: float
    alignment: list[tuple[int, int]] | None = None

    @property
    def pharaoh(self) -> str:
        """The alignment as `i-j` pairs, such as "0-0 1-2"; empty if it was not asked for."""
        return " ".join(f"{i}-{j}" for i, j in self.alignment or [])
