"""How much memory training takes at its peak, by formula."""

from etude.model.chunks import sentences_per_chunk
from etude.tasks.size import HALF, NUMBER, Config, Size

PROCESS = 0.40e9
"""Bytes of a process that has imported PyTorch and Lightning and opened its data, before there is a model: measured."""

HOLES = 2.0
"""Bytes of the heap for each byte in use: 1.8 to 2.4 after four steps of seven models, measured with glibc 2.36.

The hole that an aligned block leaves is a little too small for the next of its size, so that temporaries pile up.
"""

STATES = 4  # numbers of each parameter: itself, its gradient, and Adam's two moments


_COSTED = 3  # times the logits of a chunk: they, the gradient that the loss keeps, and that on its way back


def estimate_peak_memory(
    config: Config, size: Size, sentences: int, source: int, target: int, *, gpu: bool = False
) -> float:
    """Bytes at the end of a forward pass and the beginning of a backward pass.

    Args:
        config: resolved.
        size: of its model.
        sentences: B, in a batch.
        source: S, tokens of each source.
        target: T, tokens of each target.
        gpu: of a GPU's own memory, in the precision of the config, as PyTorch hands it out; else of a processor's, the
            whole process, in float32.
    """
    vocab_size = config["model"]["vocabulary"] or config["tokenizer"]["vocab_size"]
    half = gpu and config["precision"].endswith("-mixed")
    at_once = sentences_per_chunk("cuda" if gpu else "cpu", target, vocab_size) if size.takes_cost else sentences
    logits = NUMBER * min(sentences, at_once) * target * vocab_size
    states = (NUMBER * STATES + HALF * half) * size.parameters  # autocast keeps a copy of what it multiplies with
    activations = sentences * size.saved_bytes(source, target, half=half) + _COSTED * logits
    return states + activations if gpu else PROCESS + states + HOLES * activations
