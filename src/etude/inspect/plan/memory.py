"""Estimate the peak memory of training by formula."""

from etude.model.chunks import sentences_per_chunk
from etude.model.precision import computed_precision
from etude.tasks.size import HALF, NUMBER, Config, Size

PROCESS = 0.40e9
"""Bytes of a process that has imported PyTorch and Lightning and opened its data but built no model: measured."""

HOLES = 2.0
"""Bytes of heap for each byte in use: 1.8 to 2.4 after four steps of seven models, measured with glibc 2.36.

The heap is fragmented: the gap that an aligned block leaves is slightly too small for the next block of that size.
"""

STATES = 4  # numbers per parameter: itself, its gradient, and Adam's two moments


_LOGIT_COPIES = 3  # of a chunk: the logits, the gradient that the loss saves, and the gradient in the backward pass


def estimate_peak_memory(
    config: Config, size: Size, sentences: int, source: int, target: int, *, gpu: bool = False
) -> float:
    """Estimate the bytes in use when a forward pass ends and the backward pass begins.

    Args:
        config: the resolved config.
        size: the size of its model.
        sentences: B, per batch.
        source: S, tokens of each source.
        target: T, tokens of each target.
        gpu: if true, the memory that PyTorch allocates on a GPU; else the memory of the whole process on this CPU. It
            is that of the precision in which the device computes.
    """
    vocab_size = config["model"]["vocabulary"] or config["tokenizer"]["vocab_size"]
    device = "cuda" if gpu else "cpu"
    half = computed_precision(config["precision"], device).endswith("-mixed")
    at_once = sentences_per_chunk(device, target, vocab_size) if size.takes_cost else sentences
    logits = NUMBER * min(sentences, at_once) * target * vocab_size
    states = (NUMBER * STATES + HALF * half) * size.parameters  # autocast keeps a 16-bit copy of the weights
    activations = sentences * size.saved_bytes(source, target, half=half) + _LOGIT_COPIES * logits
    if config["precision"] == "64-true":
        states, activations = 2 * states, 2 * activations
    return states + activations if gpu else PROCESS + states + HOLES * activations
