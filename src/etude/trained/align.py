"""Align the words of translations with those of their sources, by where the decoder looks (Garg et al. 2019).

Which layer aligns best differs from model to model: of six layers it is the last but one, of three the last. Its heads
agree with one another where those of other layers do not, and so it is found without alignments made by hand.
"""

from collections.abc import Sequence
from itertools import accumulate
from numbers import Integral

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from etude.data.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from etude.decoding.translator import batches_by_length
from etude.errors import UserError
from etude.model.encoder_decoder import EncoderDecoder
from etude.trained.heads import attention_weights, readable

Tokens = Sequence[int]
Alignment = list[tuple[int, int]]


def align(
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    pairs: Sequence[tuple[Tokens, Tokens]],
    *,
    batch_tokens: int,
    layer: int | None = None,
    head: int | None = None,
    lines: Sequence[str] = (),
) -> list[Alignment]:
    """Align every word of each translation with the word of its source that the decoder looks at most.

    The model reads the pair once more. The weights of a word are the mean over its subwords of where the decoder looks
    to write them, summed over the subwords of each source word; what falls on the end of the source is left out.
    They are the mean over the heads of a layer. Unless it is given, it is for each pair the layer of which two heads
    align a word alike most often, and the last but one if none is ahead.

    Args:
        model: in evaluation mode.
        tokenizer: its tokenizer.
        pairs: the tokens of each source, with its end token, and of its translation, without.
        batch_tokens: tokens that a batch may hold on either side, padding counted.
        layer: the layer of cross-attention, from 1; None: the one whose heads agree best.
        head: the head, from 1; None: the mean over all.
        lines: the text of each source, which alone says where unknown words begin.

    Returns:
        For each pair a list of (source word, word of the translation), counted from 0, in the order of the translation.

    Raises:
        UserError: the model has no cross-attention that can be read, or no such layer or head.
    """
    _check(model, layer, head)
    device = next(model.parameters()).device
    found: list[Alignment] = [[] for _ in pairs]
    for rows in batches_by_length([max(map(len, pair)) if pair[1] else 0 for pair in pairs], batch_tokens):
        source, target_in = (
            pad_sequence([torch.tensor(line) for line in lines], batch_first=True, padding_value=PAD).to(device)
            for lines in ([pairs[row][0] for row in rows], [[BOS, *pairs[row][1]] for row in rows])
        )
        seen = attention_weights(model, source, source != PAD, target_in, kinds=["cross"])["cross"]  # (B, H, T, S) each
        layers = [weights.float().cpu().numpy() for weights in (seen if layer is None else [seen[layer - 1]])]
        for n, row in enumerate(rows):
            line = lines[row] if lines else ""
            found[row] = _align_words([weights[n] for weights in layers], head, *pairs[row], tokenizer, line)
    return found


def _check(model: EncoderDecoder, layer: int | None, head: int | None) -> None:
    """Check that there is such a layer and head. The model reads next to nothing, as a stack may repeat its layer."""
    if all(place.kind != "cross" for place in readable(model)):
        raise UserError("this model has no cross-attention that can be read, so there are no alignments")
    for name, number in (("layer", layer), ("head", head)):
        if number is not None and not isinstance(number, Integral):
            raise UserError(f"{name}={number!r} must be a whole number")
    ends = torch.full((1, 1), EOS, device=next(model.parameters()).device)
    seen = attention_weights(model, ends, ends != PAD, ends, kinds=["cross"])["cross"]
    if layer is not None and not 1 <= layer <= len(seen):
        raise UserError(f"layer={layer}: the cross-attention of this model has the layers 1 to {len(seen)}")
    fewest, place = min((weights.shape[1], n) for n, weights in enumerate(seen, start=1) if layer in (None, n))
    if head is not None and not 1 <= head <= fewest:
        raise UserError(f"head={head}: layer {place} of this model has the heads 1 to {fewest}")


def _align_words(
    layers: Sequence[np.ndarray], head: int | None, source: Tokens, target: Tokens, tokenizer: Tokenizer, line: str
) -> Alignment:
    """Align the words of a pair, given for each layer the weights (H, T, S) of its tokens, and which head counts."""
    source = source[:-1]
    of_source = word_numbers(tokenizer.source, source, as_read=True, line=line)
    of_target = word_numbers(tokenizer.target, target)
    if not (of_source and of_target):
        return []
    reads, writes = (np.equal.outer(numbers, range(max(numbers) + 1)) for numbers in (of_source, of_target))
    words = [writes.T @ weights[:, : len(target), : len(source)] @ reads for weights in layers]  # (H, J, I) each
    preferred = max(0, len(words) - 2)
    best = max(range(len(words)), key=lambda layer: (_agreement(words[layer]), layer == preferred))
    chosen = words[best].sum(axis=0) if head is None else words[best][head - 1]
    return [(int(most), word) for word, most in enumerate(chosen.argmax(axis=1))]


def _agreement(words: np.ndarray) -> float:
    """Return how many pairs of heads align a word alike, in the mean over all words; 0 if there is one head."""
    links = words.argmax(axis=2)  # (H, J)
    alike = (links[:, None] == links).mean(axis=2)
    return float(alike[np.triu_indices(len(links), 1)].mean()) if len(links) > 1 else 0.0


def word_numbers(tokenizer: Tokenizer, tokens: Tokens, *, as_read: bool = False, line: str = "") -> list[int]:
    """Return for each token which word of the text it belongs to, from 0; words are separated by white space.

    Args:
        tokenizer: decodes the tokens.
        tokens: without an end token; of no word, the list is empty.
        as_read: whether the words are those of the text that was read, in which an unknown part of a word separates
            nothing, and not those of the text that is written, in which it is a word, ⁇.
        line: the text that was read; a token may stand for several unknown words of it.
    """
    if as_read and UNK in tokens:
        pieces = tokenizer.pieces(line)[: len(tokens)] if line else tokenizer.subwords(tokens)
        begun = [0, *accumulate(piece.count("▁") for piece in pieces)]
        return [max(0, before + piece.startswith("▁") - 1) for before, piece in zip(begun, pieces, strict=False)]
    texts = [tokenizer.decode(tokens[:n]).split() for n in range(len(tokens) + 1)]
    if not texts[-1]:
        return []
    number, numbers = len(texts[-1]) - 1, []
    for before, text in zip(reversed(texts[:-1]), reversed(texts[1:]), strict=True):
        if "".join(before) != "".join(text):  # else it is a space, and belongs to the word that it begins
            number = max(0, len(text) - 1)
        numbers.append(number)
    return numbers[::-1]
