"""Translate lines with a trained run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from etude.config.parts import make
from etude.config.signature import signature
from etude.data.tokenizer import Tokenizer
from etude.errors import UserError, did_you_mean
from etude.model.encoder_decoder import EncoderDecoder
from etude.tasks import build

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
) -> list[list[Translation]]:
    """Return the `n_best` best translations of each line.

    Args:
        config, model, tokenizer: those of a trained run.
        lines: the lines.
        n_best: how many, at most as many as the search keeps.
        decoding: options of the search other than the run's own; or the config of another search, with its `_target_`.

    Raises:
        UserError: an option of the search is unknown or out of its range, or it keeps fewer hypotheses.
    """
    translator = build.translator(config, model, tokenizer, make(_search(config, decoding)))
    with build.autocast(config, model):
        found = translator.decode(lines, n_best)
    return [
        [Translation(translator.text(one), one.score, one.log_probability) for one in decoded.hypotheses]
        for decoded in found
    ]


def _search(config: Config, decoding: Mapping[str, Any]) -> Config:
    if "_target_" in decoding:
        return build.check_search(config, dict(decoding))
    own = config["decoding"]
    if unknown := decoding.keys() - signature(own["_target_"]).keywords.keys():
        known = [key for key in own if not key.startswith("_")]
        raise UserError(f"the search has no option {min(unknown)!r}; {did_you_mean(min(unknown), known)}")
    return build.check_search(config, own | decoding)
