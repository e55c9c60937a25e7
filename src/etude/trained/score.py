"""The log-probability that a trained model gives to texts."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from etude.data.batch import Rows, make_batch
from etude.data.tokenizer import EOS, PAD, Tokenizer
from etude.decoding.translator import batches_by_length
from etude.model.encoder_decoder import EncoderDecoder
from etude.tasks import build
from etude.tasks.perplexity import row_nats

logger = logging.getLogger(__name__)


@torch.no_grad()
def score(
    config: dict[str, Any], model: EncoderDecoder, tokenizer: Tokenizer, sources: Iterable[str], targets: Iterable[str]
) -> list[float]:
    """Compute log P(target | source) of each pair, in nats; the end of the target counts, but of running text.

    Args:
        config, model, tokenizer: those of a trained run.
        sources: lines; blank ones for a language model, which does not read them.
        targets: as many lines.

    Raises:
        UserError: a line needs more positions than the run has learned.
    """
    ends = [] if build.is_running(config) else [EOS]
    read = [[*tokens, EOS] for tokens in tokenizer.source.encode_all(sources)]
    written = [tokens + ends for tokens in tokenizer.target.encode_all(targets)]
    lengths = [max(map(len, pair)) if pair[1] else 0 for pair in zip(read, written, strict=True)]
    longest = max(lengths, default=0)
    build.check_positions(config, longest, "the longest line")
    if build.is_running(config) and longest > (most := build.context(config)):
        logger.warning(
            "the longest text has %d tokens, and the model was trained on contexts of %d: what comes behind them is "
            "scored as it was never trained; give texts of at most that length",
            *(longest, most),
        )
    found, device = [0.0] * len(lengths), next(model.parameters()).device
    with build.autocast(config, model):
        for rows in batches_by_length(lengths, min(build.batch_sizes(config).values())):
            batch = make_batch(_pad([read[row] for row in rows]), _pad([written[row] for row in rows]), np.array(rows))
            for row, nats in zip(rows, row_nats(model, batch.to(device)).tolist(), strict=True):
                found[row] = -nats
    return found


def _pad(tokens: Sequence[Sequence[int]]) -> Rows:
    longest = max(map(len, tokens))
    return np.array([[*line, *[PAD] * (longest - len(line))] for line in tokens])
