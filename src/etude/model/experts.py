"""Mixture of experts: several feed-forward networks, of which each position uses a few (Shazeer et al. 2017)."""

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.model.parts import Factory
from etude.model.precision import without_autocast


class Balance(nn.Module):
    """How the router is kept from sending all positions to the same experts; this one does nothing.

    Args:
        experts: E.
    """

    def __init__(self, experts: int) -> None:
        super().__init__()

    def disturb(self, rows: Tensor) -> Tensor:
        """Return what the router reads of the positions (N, D)."""
        return rows

    def preference(self, scores: Tensor) -> Tensor:
        """Return by what the experts are chosen: the router's scores (N, E)."""
        return scores

    def cost(self, scores: Tensor, chosen: Tensor) -> Tensor | None:
        """Return what training adds to the loss of each token for scores (N, E) and the choice (N, E) of 0 and 1."""
        return None

    def after_step(self, load: Tensor) -> None:
        """Take note of the positions (E,) that each expert was given in an update."""


class AuxiliaryLoss(Balance):
    """`coefficient * E * sum_i f_i P_i`, the share and the mean score of each expert (Fedus et al. 2021, equation 4).

    The share is divided by k, so that an even load costs the coefficient for every k.
    """

    def __init__(self, experts: int, *, coefficient: float) -> None:
        super().__init__(experts)
        self.coefficient = coefficient

    def cost(self, scores: Tensor, chosen: Tensor) -> Tensor:
        """See `Balance.cost`."""
        shares = chosen.sum(dim=0) / chosen.sum()
        return self.coefficient * scores.size(1) * (shares * scores.mean(dim=0)).sum()


class Jitter(AuxiliaryLoss):
    """The auxiliary loss, and in training noise on what the router reads (Fedus et al. 2021, section 2.2).

    Args:
        experts: E.
        coefficient: of the loss.
        jitter: each number is multiplied by one from U(1 - jitter, 1 + jitter).
    """

    def __init__(self, experts: int, *, coefficient: float, jitter: float) -> None:
        super().__init__(experts, coefficient=coefficient)
        self.jitter = jitter

    def disturb(self, rows: Tensor) -> Tensor:
        """Return the positions (N, D) times noise, in evaluation as they are."""
        return rows * torch.empty_like(rows).uniform_(1 - self.jitter, 1 + self.jitter) if self.training else rows


class LossFree(Balance):
    """A bias for choosing that falls for experts with more than the mean load, and rises for others (Wang et al. 2024).

    Args:
        experts: E.
        rate: by how much, after each update.
    """

    bias: Tensor

    def __init__(self, experts: int, *, rate: float) -> None:
        super().__init__(experts)
        self.rate = rate
        self.register_buffer("bias", torch.zeros(experts))

    def preference(self, scores: Tensor) -> Tensor:
        """Return the scores (N, E) plus the bias; it decides which experts are used, not with what weight."""
        return scores + self.bias

    def after_step(self, load: Tensor) -> None:
        """Move the bias towards an even load."""
        self.bias += self.rate * (load.mean() - load).sign()


class MixtureOfExperts(nn.Module):
    """Feed-forward networks of which a router chooses `chosen` for each position, plus `shared` that all use.

    The router's scores are `softmax(x W_r)`. A position gets the sum of the outputs of the experts with its highest
    scores, each times its score. In training, an expert takes at most `capacity` times the positions of an even load,
    those with the highest scores first, and what is beyond gets nothing from it; evaluation has no limit, so that a
    sentence does not depend on others. Positions of padding are routed as all others are.

    Args:
        expert: makes a feed-forward network.
        balance: called with the number of experts.
        d_model: D.
        experts: E.
        chosen: k, the experts of each position.
        shared: how many further networks every position uses (Dai et al. 2024).
        capacity: c; an expert takes `ceil(c k N / E)` of N positions in training; null: no limit, and every expert is
            computed for every position, as in evaluation.

    Raises:
        ValueError: `chosen` is not among 1, ..., E, or the capacity is not above zero.
    """

    load: Tensor
    unreported: Tensor

    def __init__(
        self,
        *,
        expert: Factory,
        balance: Factory,
        d_model: int,
        experts: int,
        chosen: int,
        shared: int,
        capacity: float | None,
    ) -> None:
        super().__init__()
        if not 1 <= chosen <= experts:
            raise ValueError(f"chosen={chosen} of experts={experts}: say model.feedforward.chosen={max(1, experts)}")
        if capacity is not None and capacity <= 0:
            raise ValueError(f"model.feedforward.capacity must be above 0, not {capacity}: 1 is that of an even load")
        self.router = nn.Linear(d_model, experts, bias=False)
        self.experts = nn.ModuleList(expert() for _ in range(experts))
        self.shared = nn.ModuleList(expert() for _ in range(shared))
        self.balance = balance(experts)
        self.chosen, self.capacity = chosen, capacity
        self.register_buffer("load", torch.zeros(experts), persistent=False)  # positions in this update
        self.register_buffer("unreported", torch.zeros(experts), persistent=False)  # in all since the last report
        self.unpaid: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, D), each position by itself."""
        rows = x.flatten(0, -2)
        with without_autocast(x.device):  # a choice by half the digits would often be another
            exact = self.balance.disturb(rows.to(torch.promote_types(rows.dtype, torch.float32)))
            scores = F.linear(exact, self.router.weight.to(exact.dtype)).softmax(dim=-1)
        best = self.balance.preference(scores).topk(self.chosen, dim=-1).indices
        choice = torch.zeros_like(scores).scatter(1, best, 1.0)
        weights = scores * choice
        if self.training and torch.is_grad_enabled():
            self.unpaid = _add(self.unpaid, self.balance.cost(scores, choice))
            self.load += choice.detach().sum(dim=0).to(self.load.dtype)
        out = sum((network(rows) for network in self.shared), torch.zeros_like(rows))
        for n, network in enumerate(self.experts):
            out = out + self._output(network, rows, weights[:, n])
        return cast(Tensor, out).view_as(x)

    def _output(self, network: nn.Module, rows: Tensor, weights: Tensor) -> Tensor:
        """Compute one expert for the rows (N, D) with the highest weights (N,), as many as it takes; else zero."""
        if not self.training or self.capacity is None:
            return network(rows) * weights[:, None].to(rows.dtype)
        places = min(len(rows), math.ceil(self.capacity * self.chosen * len(rows) / len(self.experts) - 1e-9))
        heaviest, index = weights.topk(places)
        found = network(rows[index]) * heaviest[:, None]
        return torch.zeros_like(rows).index_add(0, index, found.to(rows.dtype))

    def take_cost(self) -> Tensor | None:
        """Return what balancing adds to the loss of each token, once: the sum over the uses of a layer since then."""
        cost, self.unpaid = self.unpaid, None
        return cost

    def after_step(self, load: Tensor) -> None:
        """Take note of the load (E,) of an update, of all processes, and begin the next."""
        self.balance.after_step(load)
        self.unreported += load
        self.unpaid = None  # of a loss that did not ask
        self.load.zero_()


def _add(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    return other if one is None else one if other is None else one + other


def mixtures(model: nn.Module) -> dict[str, MixtureOfExperts]:
    """Return the mixtures of experts in a model by their names."""
    return {name: part for name, part in model.named_modules() if isinstance(part, MixtureOfExperts)}
