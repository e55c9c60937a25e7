from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pytest
import torch
from hydra.utils import instantiate
from omegaconf import OmegaConf
from tests.pieces import sentence_piece

from etude.data.batch import EVALUATION
from etude.data.batching import Batch, BatchStream, check_budget, evaluation_batches
from etude.data.epochs import Epochs
from etude.data.store import TokenStore, prepare
from etude.data.tokenizer import BOS, PAD, SentencePiece
from etude.errors import UserError
from etude.paths import shipped


def stream(
    store: TokenStore, *, start: int = 0, rank: int = 0, world_size: int = 1, micro_batches: int = 1, seed: int = 1
) -> BatchStream:
    split = store.split("train")
    return BatchStream(
        split,
        source_tokens=400,
        target_tokens=400,
        length_noise=2.0,
        seed=seed,
        start=start,
        rank=rank,
        world_size=world_size,
        micro_batches=micro_batches,
    )


def rows_of(batches: Iterator[Batch], count: int) -> list[list[int]]:
    return [batch.rows.tolist() for batch in islice(batches, count)]


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("name", ["train", "test"])
def test_a_row_longer_than_the_budget_is_an_error_that_names_line_and_key(
    side: str, name: str, make_corpus: Callable, bpe: SentencePiece, tmp_path: Path
) -> None:
    long = " ".join(["cat"] * 60)
    corpus = make_corpus()
    corpus.splits[name][2:2] = [(long, "cat") if side == "source" else ("cat", long)]
    split = prepare(corpus, bpe, tmp_path, 1000).split(name)
    tokens = len(split.sources[2] if side == "source" else split.targets[2])
    place = rf"/test\.{side}\.txt, line 3," if name == "test" else f"a {side} line of the train text"
    complaint = (
        rf"{place} has {tokens} tokens, more than budget\.{side}_tokens={tokens - 1} can hold; "
        rf"set it to at least {tokens}, or lower budget\.max_tokens$"
    )
    budget = {"source_tokens": tokens, "target_tokens": tokens}
    check_budget(split, **budget)
    with pytest.raises(UserError, match=complaint):
        check_budget(split, **budget | {f"{side}_tokens": tokens - 1})


def test_columns_by_eight_add_nothing_but_padding(store: TokenStore) -> None:
    batch = store.split("train").collate(np.array([7, 0, 299, 5]), EVALUATION)
    wide = batch.pad_columns(8)
    for name, empty in (("source", PAD), ("source_mask", False), ("target_in", PAD), ("target_out", PAD)):
        before, after = getattr(batch, name), getattr(wide, name)
        length = before.size(1)
        assert after.size(1) % 8 == 0
        assert 0 <= after.size(1) - length < 8
        assert torch.equal(after[:, :length], before)
        assert (after[:, length:] == empty).all()
    assert (wide.target_tokens, wide.step_tokens) == (batch.target_tokens, batch.step_tokens)


def test_a_batch_holds_whole_numbers_a_mask_and_which_rows_it_has(store: TokenStore) -> None:
    batch = store.split("train").collate(np.array([7, 0, 299, 5]), EVALUATION)
    assert batch.rows.tolist() == [7, 0, 299, 5]
    tensors = batch.source, batch.source_mask, batch.target_in, batch.target_out
    assert [tensor.dtype for tensor in tensors] == [torch.int64, torch.bool, torch.int64, torch.int64]


def test_a_target_that_is_cut_is_not_asked_to_end_in_mid_sentence(
    make_corpus: Callable, bpe: SentencePiece, tmp_path: Path
) -> None:
    cut, whole = ("cat", "the cat " * 9), ("cat", "the cat")
    store = prepare(make_corpus(test=[cut, whole]), bpe, tmp_path, 8)
    pieces, short = (store.tokenizer.encode(target) for _, target in (cut, whole))
    assert len(short) < 8
    for rows in ([0], [0, 1]):
        batch = store.split("test").collate(np.array(rows), EVALUATION)
        assert batch.target_out[0].tolist() == pieces[:9]
        assert batch.target_in[0].tolist() == [BOS, *pieces[:8]]
        assert batch.target_tokens == 9 + (len(short) + 1) * (len(rows) - 1)


def test_a_batch_moves_to_a_device_whole(store: TokenStore) -> None:
    batch = store.split("train").collate(np.array([1, 2]), EVALUATION)
    moved = batch.to(torch.device("meta"))
    assert {getattr(moved, side).device.type for side in ("source", "source_mask", "target_in", "target_out")} == {
        "meta"
    }
    assert (moved.target_tokens, moved.rows.tolist()) == (batch.target_tokens, [1, 2])
    assert batch.source.device.type == "cpu"


def test_a_stream_goes_through_every_row_once_an_epoch_and_never_ends(store: TokenStore) -> None:
    batches = stream(store)
    size = batches.batches_per_epoch
    assert size > 5
    seen = rows_of(iter(batches), 3 * size)
    epochs = [seen[:size], seen[size : 2 * size], seen[2 * size :]]
    assert all(sorted(chain.from_iterable(epoch)) == list(range(300)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


@pytest.mark.parametrize("start", [1, 10, 100])
def test_a_stream_that_starts_late_goes_on_as_the_one_that_did_not(store: TokenStore, start: int) -> None:
    assert rows_of(iter(stream(store, start=start)), 20) == rows_of(iter(stream(store)), start + 20)[start:]


def test_any_batch_can_be_made_alone_and_in_any_order(store: TokenStore) -> None:
    batches = stream(store)
    steps = [90, 3, 47, 3, 0]
    in_order = rows_of(iter(stream(store)), 91)
    assert [batches.micro_batch(step, 0).rows.tolist() for step in steps] == [in_order[step] for step in steps]


@pytest.mark.parametrize(("world_size", "micro_batches"), [(1, 2), (2, 1), (3, 2), (40, 1)])
def test_processes_and_micro_batches_share_every_batch_of_one_between_them(
    store: TokenStore, world_size: int, micro_batches: int
) -> None:
    alone = list(islice(stream(store), 20))
    shared = [
        stream(store, rank=rank, world_size=world_size, micro_batches=micro_batches) for rank in range(world_size)
    ]
    pieces = [list(islice(one, 20 * micro_batches)) for one in shared]
    for step, whole in enumerate(alone):
        parts = [part for own in pieces for part in own[step * micro_batches : (step + 1) * micro_batches]]
        assert sorted(row for part in parts for row in part.rows.tolist()) == sorted(whole.rows.tolist())
        assert sum(part.target_tokens for part in parts) == whole.target_tokens
        assert {part.step_tokens for part in parts} == {whole.target_tokens}
        assert [part.micro_batch for part in parts] == list(range(world_size * micro_batches))
        assert all((part.target_out != PAD).sum() == part.target_tokens for part in parts)
        assert all(part.source_mask.any(dim=1).all() for part in parts)  # so that none computes on nothing


def test_the_micro_batches_of_a_batch_are_alike_in_length(store: TokenStore) -> None:
    one, other = (list(islice(stream(store, rank=rank, world_size=2), 50)) for rank in range(2))
    tokens = sum(batch.target_tokens for batch in one), sum(batch.target_tokens for batch in other)
    assert 0.9 < tokens[0] / tokens[1] < 1.1


def test_evaluation_goes_through_every_row_once_from_short_to_long(store: TokenStore) -> None:
    split = store.split("valid")
    batches = evaluation_batches(split, source_tokens=200, target_tokens=200)
    assert len(batches) > 1
    rows = np.concatenate([batch.rows for batch in batches])
    assert sorted(rows.tolist()) == list(range(len(split)))
    assert (np.diff(split.target_lengths[rows]) >= 0).all()
    assert sum(batch.target_tokens for batch in batches) == split.target_lengths.sum()


def test_nine_tenths_of_multi30k_batches_are_real_tokens(multi30k_root: Path, tmp_path: Path) -> None:
    config = OmegaConf.load(shipped("conf") / "data" / "multi30k_en_de.yaml")
    corpus = instantiate(OmegaConf.merge(config, {"root": str(multi30k_root), "download_dir": ""}))
    split = prepare(corpus, sentence_piece(10_000), tmp_path, 128).split("train")
    lengths = split.source_lengths, split.target_lengths
    batches = Epochs(*lengths, source_tokens=2000, target_tokens=2000, length_noise=4.0, seed=1).plan(0)
    places = sum(len(rows) * side[rows].max() for rows in batches for side in lengths)
    assert sum(side.sum() for side in lengths) / places >= 0.9
