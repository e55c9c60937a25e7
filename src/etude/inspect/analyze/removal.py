"""Would the model miss a head? Each is taken away in turn, and the rest left as it was (Michel, Levy & Neubig 2019)."""

from collections.abc import Iterator
from typing import Any

from etude.inspect.analyze.change import change
from etude.inspect.analyze.heads import places, silence_head
from etude.inspect.analyze.likelihood import SentenceNll
from etude.inspect.analyze.subject import Subject, Text


def score_removals(
    subject: Subject, text: Text, intact: SentenceNll, *, with_bleu: bool, seed: int
) -> Iterator[dict[str, Any]]:
    """For each head of each attention, the perplexity without it and how much that is more.

    Args:
        subject, text: what is asked, and on which sentences.
        intact: of the whole model on that text.
        with_bleu: also translate without each head, which takes much longer.
        seed: of the interval's draws.
    """
    for place in places(subject.model):
        for head in range(place.attention.heads):
            with silence_head(place.attention, head):
                without = subject.likelihoods(text)
                bleu = subject.translations(text).bleu if with_bleu else None
            risen, interval = change(intact, without, seed)
            yield {
                "attention": place.kind,
                "layer": place.layer,
                "head": head + 1,
                "perplexity": without.perplexity,
                "change": risen,
                "interval": interval,
                "bleu": bleu,
            }
