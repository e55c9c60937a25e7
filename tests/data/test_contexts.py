"""Contexts of running text, against loops in plain Python."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.data.batching import BatchStream, evaluation_batches
from etude.data.contexts import Contexts
from etude.data.splits import TokenWriter
from etude.data.tokenizer import BOS, EOS, PAD
from etude.errors import UserError

FIRST = 4  # the first token that is not a special one
WAYS = ["cross", "mask"]
lengths = st.lists(st.integers(1, 30), min_size=1, max_size=8).filter(lambda some: sum(some) + len(some) >= 12)


def contexts(folder: Path, lengths: Sequence[int], name: str = "train", **options: Any) -> Contexts:
    """A stream of documents of so many tokens, which count from FIRST on, each with its EOS."""
    numbers = iter(range(FIRST, FIRST + sum(lengths)))
    documents = [[*(next(numbers) for _ in range(length)), EOS] for length in lengths]
    with TokenWriter(folder / f"{name}.text", 1 << 20) as writer:
        writer.extend(documents)
    return Contexts(folder, name, 1 << 20, **{"context": 12, "documents": "cross", "stride": None} | options)


def stream(text: Contexts, **options: Any) -> BatchStream:
    given = {"source_tokens": 90, "target_tokens": 36, "length_noise": 4.0, "seed": 3, "start": 0}
    return BatchStream(text, **given | {"rank": 0, "world_size": 1, "micro_batches": 1} | options)  # type: ignore[arg-type]


def predicted(batch: Any) -> list[int]:
    return [token for row in batch.target_out.tolist() for token in row if token != PAD]


@pytest.mark.parametrize("documents", WAYS)
@settings(max_examples=30, deadline=None)
@given(lengths=lengths)
def test_every_epoch_predicts_every_token_once_and_none_is_another(
    tmp_path_factory: pytest.TempPathFactory, documents: str, lengths: list[int]
) -> None:
    batches = stream(contexts(tmp_path_factory.mktemp("text"), lengths, documents=documents))
    expected = Counter([*range(FIRST, FIRST + sum(lengths)), *[EOS] * len(lengths)])
    for epoch in range(2):
        steps = range(epoch * batches.batches_per_epoch, (epoch + 1) * batches.batches_per_epoch)
        assert Counter(token for step in steps for token in predicted(batches.micro_batch(step, 0))) == expected


@pytest.mark.parametrize("documents", WAYS)
def test_a_token_is_predicted_from_the_one_before_it_and_the_first_of_a_document_from_bos(
    documents: str, tmp_path: Path
) -> None:
    lengths = [17, 3, 40, 12]
    text = contexts(tmp_path, lengths, documents=documents)
    ends = set(FIRST - 1 + np.cumsum(lengths))
    for draw in (None, (1, 0), (1, 1)):
        batch = text.collate(np.arange(len(text)), draw)
        for told, next_ones in zip(batch.target_in.tolist(), batch.target_out.tolist(), strict=True):
            for before, token in zip(told, next_ones, strict=True):
                if token == EOS:
                    assert before in ends
                elif token != PAD:
                    assert before == (BOS if token - 1 in ends or token == FIRST else token - 1)


def test_another_epoch_and_another_seed_cut_the_stream_elsewhere(tmp_path: Path) -> None:
    text = contexts(tmp_path, [1000])
    firsts = {int(text.collate(np.array([0]), draw).target_out[0, 0]) for draw in ((1, 0), (1, 1), (2, 0), (2, 1))}
    assert len(firsts) == 4


def test_masked_documents_begin_a_context_and_share_none(tmp_path: Path) -> None:
    lengths = [30, 5, 11, 12, 13]
    text = contexts(tmp_path, lengths, documents="mask")
    batch = text.collate(np.arange(len(text)), (1, 0))
    rows = [[token for token in row if token != PAD] for row in batch.target_out.tolist()]
    numbers, expected = iter(range(FIRST, FIRST + sum(lengths))), []
    for length in lengths:
        document = [*(next(numbers) for _ in range(length)), EOS]
        expected += [document[start : start + 12] for start in range(0, length + 1, 12)]
    assert rows == expected
    assert all(
        (row[0] == BOS) == (out[0] - 1 in {3, *(3 + np.cumsum(lengths))})
        for row, out in zip(batch.target_in.tolist(), rows, strict=True)
        if out[0] != EOS
    )


@pytest.mark.parametrize("documents", WAYS)
@pytest.mark.parametrize("stride", [None, 1, 5, 12])
def test_windows_of_evaluation_predict_every_token_once_with_all_the_context_they_can(
    documents: str, stride: int | None, tmp_path: Path
) -> None:
    lengths = [40, 7, 23]
    text = contexts(tmp_path, lengths, name="valid", documents=documents, stride=stride)
    flat = np.load(tmp_path / "valid.text.pieces.npy")
    ends = np.load(tmp_path / "valid.text.ends.npy")
    spans = [(0, len(flat))] if documents == "cross" else list(zip([0, *ends[:-1]], ends, strict=True))
    expected = []
    for start, end in spans:
        place, predicts = start, min(12, end - start)
        while place < end:
            first = max(start, place + predicts - 12)
            expected.append((flat[first : place + predicts].tolist(), predicts))
            place += predicts
            predicts = min(stride or 12, end - place)
            if predicts < (stride or 12) and place < end:  # the last keeps the distance of the others
                first = place - (12 - (stride or 12))
                expected.append((flat[first:end].tolist(), predicts))
                break
    batch = text.collate(np.arange(len(text)), None)
    found = [[token for token in row if token != PAD] for row in batch.target_out.tolist()]
    assert found == [tokens[len(tokens) - predicts :] for tokens, predicts in expected]
    read = [[token for token in row if token != PAD] for row in batch.target_in.tolist()]
    assert [len(row) for row in read] == [len(tokens) for tokens, _ in expected]
    assert [row[1:] for row in read] == [[BOS if t == EOS else t for t in tokens[:-1]] for tokens, _ in expected]
    assert text.target_counts.sum() == len(flat)


def test_validation_batches_hold_all_contexts_in_the_order_of_the_text(tmp_path: Path) -> None:
    text = contexts(tmp_path, [100], name="valid", stride=4)
    batches = evaluation_batches(text, source_tokens=50, target_tokens=36)
    assert sorted(row for batch in batches for row in batch.rows) == list(range(len(text)))
    assert sum(batch.target_tokens for batch in batches) == 101


@pytest.mark.parametrize("documents", WAYS)
def test_a_batch_is_the_same_from_any_step_on_and_however_it_is_shared(documents: str, tmp_path: Path) -> None:
    text = contexts(tmp_path, [29, 50, 8, 14], documents=documents)
    whole, late = stream(text), stream(text, start=5)
    shared = [stream(text, rank=rank, world_size=2, micro_batches=2) for rank in range(2)]
    ahead = iter(late)
    for step in range(5, 3 * whole.batches_per_epoch):
        batch, again = whole.micro_batch(step, 0), next(ahead)
        assert batch.target_in.tolist() == again.target_in.tolist()
        parts = [one.micro_batch(step, n) for one in shared for n in one.local_micro_batches]
        assert Counter(predicted(batch)) == sum((Counter(predicted(part)) for part in parts), Counter())
        assert {part.step_tokens for part in parts} == {batch.target_tokens}


@pytest.mark.parametrize("documents", WAYS)
def test_packing_wastes_less_than_a_hundredth(documents: str, tmp_path: Path) -> None:
    lengths = np.random.default_rng(1).geometric(1 / 300, size=3000)
    text = contexts(tmp_path, lengths.tolist(), documents=documents, context=128)
    batches = stream(text, target_tokens=128 * 16, source_tokens=1000)
    made = [batches.micro_batch(step, 0) for step in range(batches.batches_per_epoch)]
    real, padded = (sum(one) for one in zip(*((b.target_tokens, b.target_out.numel()) for b in made), strict=True))
    assert real / padded >= 0.99


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "valid", "context": 50}, "the valid text has 21 tokens, fewer than a context of 50: give more text"),
        ({"stride": 13}, "data.stride=13 would leave out tokens between contexts of 12: lower it"),
    ],
)
def test_a_context_that_does_not_fit_its_text_is_refused(options: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=told):
        contexts(tmp_path, [20], **options)
