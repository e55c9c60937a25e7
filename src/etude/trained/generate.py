"""Continue texts with a trained language model."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from etude.config.parts import make, override
from etude.data.tokenizer import Tokenizer
from etude.decoding.sliding import Sliding
from etude.model.encoder_decoder import EncoderDecoder
from etude.paths import find_file
from etude.tasks import build
from etude.yaml_file import read_yaml

Config = dict[str, Any]

log = logging.getLogger(__name__)


def generate(
    config: Config,
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    prompts: Iterable[str],
    *,
    first: int,
    sampling: Mapping[str, Any],
) -> list[str]:
    """Continue each prompt, which may be empty; returns the texts with their prompts.

    Args:
        config, model, tokenizer: those of a trained run.
        prompts: how the texts begin.
        first: the number of the first prompt, from 0: a text depends on the seed and its number.
        sampling: options of the sampling other than those of `conf/generate.yaml`; or the config of another sampling,
            with its `_target_`.

    Raises:
        UserError: an option is unknown or out of its range, or needs more positions than the run has learned.
    """
    usual: Config = read_yaml(find_file("conf", "generate.yaml"))["sampling"]
    sample = make(override(usual, sampling, "sampling"))
    most = getattr(sample, "max_length", None)  # a sampling of the user's own need not have it
    is_running = build.is_running(config)
    read = Sliding(model, build.context(config)) if is_running else model
    if not is_running and most is not None:
        build.check_positions(config, most, f"sampling.max_length={most}")
    tokens = [tokenizer.encode(prompt) for prompt in prompts]
    for number, prompt in enumerate(tokens, start=first + 1):
        if most is not None and len(prompt) >= most:
            log.warning("line %d has %d subwords, and sampling.max_length=%d: it stays", number, len(prompt), most)
    if not tokens:
        return []
    with build.autocast(config, model):
        return [tokenizer.decode(text) for text in sample(read, tokens, first)]
