"""What the search adds to the model: the same weights, translated with other beams and other length penalties."""

from collections.abc import Iterator, Sequence
from typing import Any

from etude.inspect.analyze.change import change
from etude.inspect.analyze.subject import Subject, Text
from etude.inspect.analyze.translations import Translations


def score_searches(
    subject: Subject, text: Text, own: Translations, beams: Sequence[int], alphas: Sequence[float], *, seed: int
) -> Iterator[dict[str, Any]]:
    """BLEU and length for every beam with every alpha, and the change of BLEU from the run's `own` search.

    Raises:
        UserError: a beam or an alpha is out of its range.
    """
    for beam in beams:
        for alpha in alphas:
            found = subject.translations(text, beam=beam, alpha=alpha)
            risen, interval = change(own, found, seed)
            yield {
                "beam": beam,
                "alpha": alpha,
                "bleu": found.bleu,
                "change": risen,
                "interval": interval,
                "length_ratio": found.length_ratio,
            }
