"""Where a head looks, in two numbers: how widely, and how far."""

from collections import defaultdict

import torch
from torch import Tensor

from etude.data.tokenizer import PAD
from etude.inspect.analyze.heads import Place, watch_heads
from etude.inspect.analyze.subject import Subject, Text

Head = tuple[str, int, int]  # kind, layer, head; both from 1


@torch.no_grad()
def measure_spreads(subject: Subject, text: Text) -> dict[Head, dict[str, float]]:
    """For each head its "entropy" and "distance", means over all real tokens that look.

    Targets are fed as in training, the reference one piece after another. Source and target share no axis: from the
    decoder to the encoder a small distance says that the head goes through both in step.
    """
    sums: dict[tuple[str, int], Tensor] = defaultdict(lambda: torch.zeros(2, 1, dtype=torch.float64))
    tokens: dict[str, int] = defaultdict(int)
    for batch in text.batches:
        source, target = batch.source_mask, batch.target_out != PAD
        looking = {"encoder": source, "decoder": target, "cross": target}

        def see(place: Place, weights: Tensor, looking: dict[str, Tensor] = looking) -> None:
            real = looking[place.kind][:, None].expand(weights.shape[:3])
            both = torch.stack([entropy(weights), distance(weights)]) * real
            sums[place.kind, place.layer] = sums[place.kind, place.layer] + both.sum(dim=(1, 3)).cpu()

        with watch_heads(subject.model, see):
            subject.model.hidden(batch.source, batch.source_mask, batch.target_in)
        for kind, real in looking.items():
            tokens[kind] += int(real.sum())
    return {
        (kind, layer, head): {"entropy": wide / tokens[kind], "distance": far / tokens[kind]}
        for (kind, layer), both in sums.items()
        for head, (wide, far) in enumerate(both.T.tolist(), start=1)
    }


def entropy(weights: Tensor) -> Tensor:
    """(B, H, T, S) to (B, H, T), in nats: 0 where all weight lies on one key, ln n where n keys share it evenly."""
    return torch.special.entr(weights).sum(dim=-1)


def distance(weights: Tensor) -> Tensor:
    """(B, H, T, S) to (B, H, T): the mean of |i - j| from query i to the keys j it looks at, by their weights."""
    queries, keys = (torch.arange(n, device=weights.device) for n in weights.shape[-2:])
    return (weights * (queries[:, None] - keys).abs()).sum(dim=-1)
