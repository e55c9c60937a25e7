"""How much memory training takes at its peak, by formula."""

from etude.tasks.size import NUMBER, Config, Size

PROCESS = 0.40e9
"""Bytes of a process that has imported PyTorch and Lightning and opened its data, before there is a model: measured."""

HOLES = 2.0
"""Bytes of the heap for each byte in use: 1.8 to 2.4 after four steps of seven models, measured with glibc 2.36.

The hole that an aligned block leaves is a little too small for the next of its size, so that temporaries pile up.
"""

STATES = 4  # numbers of each parameter: itself, its gradient, and Adam's two moments


def estimate_peak_memory(config: Config, size: Size, sentences: int, source: int, target: int) -> float:
    """Bytes at the end of a forward pass and the beginning of a backward pass, on a processor, in float32.

    Args:
        config: resolved.
        size: of its model.
        sentences: B, in a batch.
        source: S, pieces of each source.
        target: T, pieces of each target.
    """
    logits = NUMBER * sentences * target * (config["model"]["vocabulary"] or config["tokenizer"]["vocab_size"])
    states = NUMBER * STATES * size.parameters
    # Three logits: what the loss keeps, and two gradients on the way back.
    return PROCESS + states + HOLES * (sentences * size.saved_bytes(source, target) + 3 * logits)
