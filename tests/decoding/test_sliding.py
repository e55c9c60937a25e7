"""A model that slides over a text sees its context alone."""

import torch
from torch import Tensor, nn

from etude.decoding.sampling import Sampling
from etude.decoding.sliding import Sliding

CONTEXT = 6


class Remembered:
    """The tokens that a row was given so far."""

    def __init__(self, rows: int) -> None:
        self.tokens: list[list[int]] = [[] for _ in range(rows)]

    def reorder(self, rows: Tensor) -> None:
        self.tokens = [[*self.tokens[row]] for row in rows.tolist()]


class Chain(nn.Module):
    """The next token follows from the sum of all that it was given; it notes what that was."""

    def __init__(self) -> None:
        super().__init__()
        self.anchor, self.seen = nn.Parameter(torch.zeros(())), list[list[list[int]]]()

    def start(self, source: Tensor, mask: Tensor) -> Remembered:
        return Remembered(len(source))

    def step(self, tokens: Tensor, state: Remembered) -> Tensor:
        for row, token in zip(state.tokens, tokens.tolist(), strict=True):
            row.append(token)
        self.seen.append([[*row] for row in state.tokens])
        wanted = torch.tensor([4 + sum(row) % 7 for row in state.tokens])
        return 4.0 * nn.functional.one_hot(wanted, 12)


def test_a_sliding_model_goes_on_from_the_last_half_of_a_full_context() -> None:
    greedy = Sampling(temperature=0, top_k=None, top_p=1.0, max_length=15, seed=1)
    model = Chain()
    [text] = greedy(Sliding(model, CONTEXT), [[5, 6]])
    assert max(len(rows[0]) for rows in model.seen) == CONTEXT
    fed, context, expected = [1, 5, 6], list[int](), []
    while len(expected) < 15:
        context = [*(context[-(CONTEXT // 2) :] if len(context) == CONTEXT else context), fed[len(expected)]]
        expected.append(fed[len(expected) + 1] if len(expected) < 2 else 4 + sum(context) % 7)
        fed = fed if len(expected) < 3 else [*fed, expected[-1]]
    assert text == expected


def test_rows_that_end_leave_the_others_as_they_were() -> None:
    drawn = Sampling(temperature=1.0, top_k=None, top_p=1.0, max_length=40, seed=3)
    together = drawn(Sliding(Chain(), CONTEXT), [[5], [7, 8], [9]])
    assert [
        drawn(Sliding(Chain(), CONTEXT), [prompt], first)[0] for first, prompt in enumerate([[5], [7, 8], [9]])
    ] == together
    assert len({len(text) for text in together}) > 1, "one has ended before another"
