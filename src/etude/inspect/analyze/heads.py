"""Ablate single heads of a model, with forward hooks that are removed afterwards; the model itself is not changed."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from etude.inspect.analyze.subject import Subject, Text
from etude.inspect.analyze.sums import Sums, change
from etude.model.differential import DifferentialAttention
from etude.trained.heads import Place, places


def silence_head(place: Place, head: int) -> RemovableHandle:
    """Set the output of a head (from 0) to zero before W_O, as if its rows of W_O were zero, within the context.

    Of differential attention, it is the map of the head, before it is subtracted or subtracted from.
    """

    def silence(module: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        outputs = inputs[0].clone()  # (B, T, H d_v), or longer for an alignment
        outputs[..., head * place.width : (head + 1) * place.width] = 0.0
        return outputs

    def silence_map(module: nn.Module, inputs: tuple[Tensor, ...], out: Tensor) -> Tensor:
        outputs = out.clone()  # (B, H, T, V)
        outputs[:, head] = 0.0
        return outputs

    if isinstance(place.attention, DifferentialAttention):  # whose heads meet before W_O
        return place.attention.backend.register_forward_hook(silence_map)
    return place.output.register_forward_pre_hook(silence)


def score_removals(
    subject: Subject, text: Text, intact: Sums, *, translated: bool, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield, for each head of each attention, the perplexity without it and its change (Michel et al. 2019).

    Args:
        subject: the run.
        text: the sentences.
        intact: likelihoods of the whole model on `text`.
        translated: whether to translate without each head too, which takes much longer.
        seed: of the bootstrap for the interval.
    """
    for place in places(subject.model):
        for head in range(place.heads):
            with silence_head(place, head):
                without = subject.likelihoods(text)
                score = subject.translations(text).score if translated and subject.metric else None
            of_head = {"attention": place.kind, "layer": place.layer, "head": head + 1, "perplexity": without.score}
            yield of_head | change(intact, without, seed) | ({subject.metric: score} if subject.metric else {})
