"""Sampling of text from a language model, token by token.

Every text has a random generator of its own, so that its tokens do not depend on the rest of the batch.
"""

from collections.abc import Sequence
from math import inf

import torch
from torch import Tensor, nn

from etude.data.tokenizer import BOS, EOS, PAD
from etude.decoding.beam import NoNumbers, State, StepwiseModel
from etude.errors import UserError


class Sampling:
    """Samples each next token with temperature, top-k and nucleus (top-p) sampling.

    Logits are divided by the temperature. Only the `top_k` most probable tokens are kept, and of these the fewest that
    hold `top_p` of their probability (Holtzman et al. 2020). The probabilities are then rescaled to a sum of one.
    Padding and the start token are never drawn.

    Args:
        temperature: at least 0; 0 takes the most probable token.
        top_k: the number of tokens that may be drawn; null: all.
        top_p: the share of the probability that may be drawn from, in (0, 1].
        max_length: the most tokens of a text, its prompt counted.
        seed: of the random generators.

    Raises:
        UserError: an argument is out of its range.
    """

    def __init__(self, *, temperature: float, top_k: int | None, top_p: float, max_length: int, seed: int) -> None:
        for name, value, is_right, requirement in (
            ("temperature", temperature, 0 <= temperature < inf, "at least 0, and finite"),
            ("top_k", top_k, top_k is None or top_k >= 1, "at least 1, or null"),
            ("top_p", top_p, 0 < top_p <= 1, "in (0, 1]"),
            ("max_length", max_length, max_length >= 1, "at least 1"),
            ("seed", seed, seed >= 0, "at least 0"),
        ):
            if not is_right:
                raise UserError(f"sampling.{name} is {value}; it must be {requirement}")
        self.temperature, self.top_p = temperature or 1.0, top_p
        self.top_k = 1 if temperature == 0 else top_k
        self.max_length, self.seed = max_length, seed

    @torch.inference_mode()
    def __call__(
        self, model: StepwiseModel[State], prompts: Sequence[Sequence[int]], first: int = 0
    ) -> list[list[int]]:
        """Continue prompts.

        Args:
            model: a language model in evaluation mode; its source is a single end token.
            prompts: the tokens that each text begins with; may be empty.
            first: the number of the first prompt; a text's random generator is seeded with its number.

        Returns:
            The tokens of each text, with its prompt and without its end token.
        """
        texts = [list(prompt) for prompt in prompts]
        generators = [torch.Generator().manual_seed(_seed(self.seed, first + n)) for n in range(len(texts))]
        live = list(range(len(texts)))
        device = next(model.parameters()).device if isinstance(model, nn.Module) else torch.device("cpu")
        source = torch.full((len(texts), 1), EOS, device=device)
        state = model.start(source, torch.ones_like(source, dtype=torch.bool))
        tokens = torch.full((len(texts),), BOS, device=device)
        for length in range(self.max_length):
            shares, candidates = self.candidates(model.step(tokens, state))
            places = [float(torch.rand((), dtype=torch.float64, generator=generators[n])) for n in live]
            drawn = draw(shares.cpu(), candidates.cpu(), torch.tensor(places, dtype=torch.float64)).tolist()
            going, fed = [], []  # rows of the state that continue, and their tokens
            for row, (n, token) in enumerate(zip(live, drawn, strict=True)):
                if length < len(texts[n]):
                    token = texts[n][length]  # still in the prompt
                elif token != EOS:
                    texts[n].append(token)
                if token != EOS:
                    going.append(row)
                    fed.append(token)
            if not going:
                break
            if len(going) < len(live):
                state.reorder(torch.tensor(going, device=device))
            live = [live[row] for row in going]
            tokens = torch.tensor(fed, device=device)
        return texts

    def candidates(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the probabilities from logits (R, V) of the tokens that may be drawn.

        Returns:
            Probabilities, the largest first and zero where a token may not be drawn, and their tokens; both (R, V).

        Raises:
            NoNumbers: a logit is NaN or +inf.
        """
        logits = logits.double()
        logits[:, [PAD, BOS]] = -torch.inf
        logits = (logits - logits.amax(dim=-1, keepdim=True)) / self.temperature  # a low one cannot make them infinite
        shares, tokens = logits.softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
        if shares.isnan().any():
            raise NoNumbers
        if self.top_k is not None:
            shares[:, self.top_k :] = 0.0
            shares = shares / shares.sum(dim=-1, keepdim=True)
        before = shares.cumsum(dim=-1) - shares
        shares = shares.masked_fill(before >= self.top_p, 0.0)
        return shares / shares.sum(dim=-1, keepdim=True), tokens


def draw(shares: Tensor, tokens: Tensor, places: Tensor) -> Tensor:
    """Draw a token (R,) for each row by inverting the cumulative distribution.

    Args:
        shares: (R, C), the probabilities of the tokens.
        tokens: (R, C).
        places: (R,), uniform random numbers in [0, 1).
    """
    ends = shares.cumsum(dim=-1)
    index = torch.searchsorted(ends, (places * ends[:, -1])[:, None], right=True)
    last = (shares > 0).sum(dim=-1, keepdim=True) - 1  # rounding must not select a token after the last possible one
    return tokens.gather(1, torch.minimum(index, last))[:, 0]


def _seed(seed: int, line: int) -> int:
    """Combine the seed and the number of a text to a seed, such that different pairs do not collide in practice."""
    return (seed * 0x9E3779B97F4A7C15 + line * 0xBF58476D1CE4E5B9) % 2**63
