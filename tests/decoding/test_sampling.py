"""Sampling against the exact distribution of a model whose every probability can be looked up."""

import math
from collections import Counter
from itertools import accumulate, product

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import Tensor

from etude.decoding.beam import NoNumbers
from etude.decoding.sampling import Sampling
from etude.errors import UserError

from .conftest import BOS, EOS, TableModel

PAD, VOCABULARY, LONGEST = 0, 6, 3
PLAIN = {"temperature": 1.0, "top_k": None, "top_p": 1.0, "max_length": LONGEST, "seed": 1}


class LanguageTable(TableModel):
    """The same of one text: its source is an end token, whatever the line."""

    def start(self, source: Tensor, source_mask: Tensor):
        assert source.tolist() == [[EOS]] * len(source)
        return super().start(torch.zeros_like(source), source_mask)


@pytest.fixture
def model() -> LanguageTable:
    table = TableModel.random(3, sentences=1, vocab_size=VOCABULARY, longest=LONGEST, spread=1.0)
    return LanguageTable(table.logits)


def allowed(logits: list[float], temperature: float, top_k: int | None, top_p: float) -> dict[int, float]:
    """The shares of the tokens that may be drawn, by the definitions, one token after the other."""
    weights = {token: math.exp(logit / temperature) for token, logit in enumerate(logits) if token not in (PAD, BOS)}
    ranked = sorted(weights, key=lambda token: -weights[token])[:top_k]
    total = sum(weights[token] for token in ranked)
    kept, mass = [], 0.0
    for token in ranked:
        kept.append(token)
        mass += weights[token] / total
        if mass >= top_p and top_p < 1:
            break
    return {token: weights[token] / sum(weights[one] for one in kept) for token in kept}


LOGIT = st.integers(-256, 256).map(lambda n: n / 64)  # so far apart that rounding cannot change their order


@settings(deadline=None, max_examples=200)
@given(
    logits=st.lists(LOGIT, min_size=VOCABULARY, max_size=VOCABULARY, unique=True),
    temperature=st.floats(0.2, 3),
    top_k=st.none() | st.integers(1, 5),
    top_p=st.floats(0.05, 1),
)
def test_the_shares_are_those_of_the_definitions(
    logits: list[float], temperature: float, top_k: int | None, top_p: float
) -> None:
    sampling = Sampling(**PLAIN | {"temperature": temperature, "top_k": top_k, "top_p": top_p})
    shares, tokens = sampling.candidates(torch.tensor([logits], dtype=torch.float64))
    found = {token: share for token, share in zip(tokens[0].tolist(), shares[0].tolist(), strict=True) if share}
    ranked = sorted(allowed(logits, temperature, top_k, 1.0).values(), reverse=True)
    assume(all(abs(mass - top_p) > 1e-9 for mass in accumulate(ranked)) or top_p == 1)  # rounding decides there
    expected = allowed(logits, temperature, top_k, top_p)
    one, other = ([side.get(token, 0.0) for token in range(VOCABULARY)] for side in (found, expected))
    assert one == pytest.approx(other, abs=1e-12)  # below that a share may be lost to rounding


@pytest.mark.parametrize(
    "changed", [{}, {"temperature": 0.6}, {"top_k": 2}, {"top_p": 0.7}, {"top_k": 3, "top_p": 0.8}]
)
def test_texts_come_as_often_as_they_are_probable(model: LanguageTable, changed: dict[str, float]) -> None:
    values = PLAIN | changed
    texts = Sampling(**values)(model, [[]] * 6000)
    probable: dict[tuple[int, ...], float] = {}
    for length in range(LONGEST + 1):
        for text in product(range(EOS + 1, VOCABULARY), repeat=length):
            share, prefix = 1.0, 0
            for token in (*text, EOS)[:LONGEST]:
                logits = model.logits[0, prefix].tolist()
                share *= allowed(logits, values["temperature"], values["top_k"], values["top_p"]).get(token, 0.0)
                prefix = prefix * VOCABULARY + token - EOS
            probable[text] = share
    assert sum(probable.values()) == pytest.approx(1)
    counts = Counter(map(tuple, texts))
    assert all(probable[text] > 0 for text in counts)
    common = [text for text, share in probable.items() if share * len(texts) >= 5]
    rest = 1 - sum(probable[text] for text in common)
    found = [counts[text] for text in common] + [len(texts) - sum(counts[text] for text in common)]
    expected = [probable[text] * len(texts) for text in common] + [rest * len(texts)]
    if expected[-1] < 1e-6:
        assert found.pop() == 0
        expected.pop()
    share = len(texts) / sum(expected)  # all but rounding
    assert chisquare(found, [share * one for one in expected]).pvalue > 0.001


def test_a_prompt_is_fed_first_and_the_rest_follows_from_it(model: LanguageTable) -> None:
    texts = Sampling(**PLAIN)(model, [[4]] * 4000)
    assert all(text[0] == 4 for text in texts)
    counts = Counter(text[1] if len(text) > 1 else EOS for text in texts)
    expected = allowed(model.logits[0, 4 - EOS].tolist(), 1.0, None, 1.0)
    assert chisquare([counts[t] for t in expected], [4000 * share for share in expected.values()]).pvalue > 0.001


def test_a_line_is_gone_on_with_alike_whoever_stands_beside_it(model: LanguageTable) -> None:
    sampling, prompts = Sampling(**PLAIN), [[4], [], [5, 3], [3], [5, 5, 5, 5]]
    together = sampling(model, prompts)
    assert together == [sampling(model, [prompt], first=n)[0] for n, prompt in enumerate(prompts)]
    assert together[-1] == prompts[-1], "a prompt that is long enough is left as it is"


def test_the_seed_decides(model: LanguageTable) -> None:
    one, other = (Sampling(**PLAIN | {"seed": seed})(model, [[]] * 50) for seed in (1, 2))
    assert one != other
    assert one == Sampling(**PLAIN)(model, [[]] * 50)


def test_without_temperature_the_most_probable_token_is_taken(model: LanguageTable) -> None:
    [text] = Sampling(**PLAIN | {"temperature": 0})(model, [[]])
    prefix = 0
    for token in [*text, EOS][:LONGEST]:
        logits = model.logits[0, prefix].clone()
        logits[[PAD, BOS]] = -torch.inf
        assert int(logits.argmax()) == token
        prefix = prefix * VOCABULARY + token - EOS


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"temperature": -1}, "sampling.temperature is -1; it must be at least 0"),
        ({"temperature": math.inf}, "sampling.temperature is inf; it must be at least 0, and finite"),
        ({"top_k": 0}, "sampling.top_k is 0; it must be at least 1, or null"),
        ({"top_p": 0}, r"sampling.top_p is 0; it must be in \(0, 1\]"),
        ({"max_length": 0}, "sampling.max_length is 0"),
        ({"seed": -1}, "sampling.seed is -1"),
    ],
)
def test_what_cannot_be_is_refused_by_name(changed: dict[str, float], told: str) -> None:
    with pytest.raises(UserError, match=told):
        Sampling(**PLAIN | changed)


@pytest.mark.parametrize("logit", [math.nan, math.inf])
def test_a_model_that_gives_no_numbers_is_told(logit: float) -> None:
    logits = torch.zeros(2, VOCABULARY)
    logits[1, EOS] = logit
    with pytest.raises(NoNumbers, match="the model's logits are NaN or infinite"):
        Sampling(**PLAIN).candidates(logits)


def test_a_temperature_near_zero_takes_the_most_probable_token() -> None:
    shares, tokens = Sampling(**PLAIN | {"temperature": 1e-308}).candidates(torch.tensor([[9.0, 9, 1, 3, 2, 0]]))
    assert (shares[0, 0], tokens[0, 0]) == (1, 3)
