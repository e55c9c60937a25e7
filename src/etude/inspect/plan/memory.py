"""How much memory training takes at its peak, by formula."""

from etude.tasks.size import Config, Size

PROCESS = 0.40e9
"""Bytes of a process that has imported PyTorch and Lightning and opened its data, before there is a model: measured."""

HOLES = 2.0
"""Bytes of the heap for each byte in use: 1.8 to 2.4 after four steps of seven models, measured with glibc 2.36.

The hole that an aligned block leaves is a little too small for the next of its size, so that temporaries pile up.
"""

NUMBER = 4  # bytes of a number in float32
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
    return PROCESS + states + HOLES * (sentences * saved_bytes(config, size, source, target) + 3 * logits)


def saved_bytes(config: Config, size: Size, source: int, target: int) -> float:
    """What the layers keep of one sentence for the backward pass, without the logits.

    Each product keeps its two factors, each norm its input, each softmax its output, each dropout a mask of bytes.

    Args:
        config: resolved.
        size: of its model.
        source: S, pieces of the source.
        target: T, pieces of the target.
    """
    model = config["model"]
    d_model, heads = model["d_model"], size.heads
    dropped = 1 if model["dropout"] else 0
    around = NUMBER * d_model + dropped * d_model  # a norm's input and a mask, for each sub-layer
    reading = NUMBER * (d_model + heads * size.d_k + heads * size.d_v)  # sub-layer input, queries, what was read
    read = NUMBER * heads * (size.d_k + size.d_v)  # keys and values
    weights = heads * (NUMBER + (NUMBER + 1) * bool(model["attention_dropout"]))  # of a query for a key
    feedforward = NUMBER * (d_model + size.inner) + around
    encoder = source * (around + reading + read + feedforward) + weights * source**2
    own = target * (around + reading + read) + weights * target**2
    cross = target * (around + reading) + source * read + weights * target * source
    return size.layers * (encoder + own + cross + target * feedforward)
