"""Translate lines with a trained run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from etude.config.parts import make, override
from etude.data.tokenizer import Tokenizer
from etude.errors import UserError
from etude.model.encoder_decoder import EncoderDecoder
from etude.tasks import build
from etude.trained.align import align

Config = dict[str, Any]


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


def translate(
    config: Config,
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    lines: Iterable[str],
    *,
    n_best: int,
    decoding: Mapping[str, Any],
    alignments: bool = False,
    layer: int | None = None,
    head: int | None = None,
) -> list[list[Translation]]:
    """Return the `n_best` best translations of each line.

    Args:
        config, model, tokenizer: those of a trained run.
        lines: the lines.
        n_best: how many, at most as many as the search keeps.
        decoding: options of the search other than the run's own; or the config of another search, with its `_target_`.
        alignments: whether to align their words.
        layer, head: by which heads; see `etude.trained.align.align`.

    Raises:
        UserError: an option of the search is unknown or out of its range, or it keeps fewer hypotheses; or the model
            has no such heads.
    """
    if not alignments and (layer, head) != (None, None):
        raise UserError("layer and head say by which heads words are aligned: say alignments=true, too")
    search = make(build.check_search(config, override(config["decoding"], decoding, "search")))
    translator = build.translator(config, model, tokenizer, search)
    with build.autocast(config, model):
        found = translator.decode(lines, n_best)
        pairs = [(decoded.source, one.tokens) for decoded in found for one in decoded.hypotheses]
        size = translator.batch_tokens
        aligned = iter(
            align(model, tokenizer, pairs, batch_tokens=size, layer=layer, head=head)
            if alignments
            else [None] * len(pairs)
        )
    return [
        [Translation(translator.text(one), one.score, one.log_probability, next(aligned)) for one in decoded.hypotheses]
        for decoded in found
    ]
