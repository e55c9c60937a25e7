"""What averaging the last checkpoints gives (section 6.1), where a run has kept some: `averaging.checkpoints`."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

from etude.inspect.analyze.change import change
from etude.inspect.analyze.likelihood import SentenceNll
from etude.inspect.analyze.subject import Subject, Text
from etude.training.averaging import mean_weights


def score_averages(subject: Subject, text: Text, own: SentenceNll, *, seed: int) -> Iterator[dict[str, Any]]:
    """Perplexity and BLEU of the mean of the last checkpoint, of the last two, and so on; nothing where none was kept.

    Args:
        subject, text: what is asked, and on which sentences.
        own: of the weights that the run ended with, from which perplexity changes.
        seed: of the interval's draws.

    Raises:
        UserError: a checkpoint is torn.
    """
    files = sorted(subject.run.checkpoint.parent.glob("step-*.ckpt"))
    mean = replace(subject, model=deepcopy(subject.model))
    for count in range(1, len(files) + 1):
        mean.model.load_state_dict(mean_weights(files[-count:]))
        found = mean.likelihoods(text)
        risen, interval = change(own, found, seed)
        yield {
            "checkpoints": count,
            "perplexity": found.perplexity,
            "change": risen,
            "interval": interval,
            "bleu": mean.translations(text).bleu,
        }
