"""Spans of running text that are taken out, against loops in plain Python."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from etude.data.contexts import Contexts
from etude.data.splits import TokenWriter
from etude.data.tokenizer import BOS, EOS, PAD
from etude.errors import UserError
from etude.tasks.span_corruption import SpanCorruption

V = 2000
T5 = SpanCorruption(rate=0.15, mean_span=3.0, sentinels=100)


def contexts(folder: Path, length: int, context: int, split: str = "train", stride: int | None = None) -> Contexts:
    with TokenWriter(folder / f"{split}.text", V) as writer:
        writer.extend([[*range(4, 3 + length), EOS]])
    return Contexts(folder, split, V, context=context, documents="mask", stride=stride)


def without_padding(row: list[int]) -> list[int]:
    return [token for token in row if token != PAD]


@settings(deadline=None, max_examples=60)
@given(
    context=st.integers(1, 70),
    rate=st.floats(0.05, 0.95),
    mean_span=st.floats(1, 5),
    draw=st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
)
def test_source_and_target_together_are_the_text(
    tmp_path_factory: pytest.TempPathFactory, context: int, rate: float, mean_span: float, draw: Any
) -> None:
    text = contexts(tmp_path_factory.mktemp("text"), 2 * context + 1, context)
    task = SpanCorruption(rate=rate, mean_span=mean_span, sentinels=100)
    examples = task.contexts(text)
    batch = examples.collate(np.arange(3), draw)
    whole = text.collate(np.arange(3), draw)
    for row in range(3):
        source, target, tokens = (
            without_padding(one[row].tolist()) for one in (batch.source, batch.target_out, whole.target_out)
        )
        assert (len(source), len(target)) == (examples.source_lengths[row], examples.target_lengths[row])
        assert source[-1] == target[-1] == EOS
        spans: dict[int, list[int]] = {}
        for token in target[:-1]:
            if token >= V:
                spans[token] = []
            else:
                spans[[*spans][-1]].append(token)
        assert [*spans] == [V + n for n in range(len(spans))] == [token for token in source if token >= V]
        assert all(spans.values())
        assert [t for token in source[:-1] for t in spans.get(token, [token])] == tokens
        taken = min(max(1, int(rate * len(tokens) + 0.5)), max(1, len(tokens) - 1))
        assert sum(map(len, spans.values())) == taken
        assert without_padding(batch.target_in[row].tolist()) == [BOS, *target[:-1]]
    assert batch.target_tokens == examples.target_counts[:3].sum()


def test_all_ways_to_take_spans_out_are_as_likely(tmp_path: Path) -> None:
    """Eight tokens, four of them in two spans: 3 ways to divide what is taken, and 3 to divide what is left."""
    examples = SpanCorruption(rate=0.5, mean_span=2.0, sentinels=9).contexts(contexts(tmp_path, 16, 8))
    ways = Counter(
        tuple(examples.collate(np.array([0]), (seed, epoch)).source[0].tolist())
        for seed in range(30)
        for epoch in range(30)
    )
    assert len(ways) == 9
    assert chisquare([*ways.values()]).pvalue > 1e-4


def test_t5_takes_15_percent_in_spans_of_three(tmp_path: Path) -> None:
    examples = T5.contexts(contexts(tmp_path, 1024, 512))
    assert [*zip(examples.source_lengths, examples.target_lengths, strict=True)] == 2 * [
        (512 - 77 + 26 + 1, 77 + 26 + 1)
    ]
    assert T5.columns(512, 512) == (462, 104)


def test_what_the_task_cannot_do_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a context of 60 tokens has 3 spans: raise it"):
        SpanCorruption(rate=0.15, mean_span=3.0, sentinels=2).contexts(contexts(tmp_path, 60, 60))
    with pytest.raises(UserError, match=r"data\.stride: contexts of the test text overlap, as spans may not"):
        T5.contexts(contexts(tmp_path, 60, 16, "test", stride=4))
    with pytest.raises(UserError, match="this data has lines: say data=text"):
        T5.examples(None)  # type: ignore[arg-type]
    for values, told in (({"rate": 1.0}, "task.rate must lie"), ({"mean_span": 0.5}, "must be at least 1")):
        with pytest.raises(ValueError, match=told):
            SpanCorruption(**{"rate": 0.15, "mean_span": 3.0, "sentinels": 5} | values)  # type: ignore[arg-type]
