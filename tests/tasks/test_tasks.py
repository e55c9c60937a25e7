"""What each task makes of a text, against loops in plain Python."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from torch import nn

from etude.data.batch import EVALUATION
from etude.data.batching import BatchStream, Examples, evaluation_batches
from etude.data.store import TokenStore
from etude.data.tokenizer import BOS, EOS, PAD, UNK
from etude.data.vocabularies import Bytes
from etude.tasks.language_modelling import LanguageModelling, count_bytes
from etude.tasks.masked_language_modelling import MASK, MaskedLanguageModelling
from etude.tasks.task import Task
from etude.tasks.translation import Translation

from .conftest import make_store

BERT: Any = {"side": "target", "rate": 0.15, "masked": 0.8, "random": 0.1}
TASKS = [Translation(), LanguageModelling(side="target"), MaskedLanguageModelling(**BERT)]
WORDS = ["the", "old", "dog", "sees", "a", "cat", "and", "never", "hears", "two", "small", "birds", "today"]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    lines = [" ".join(WORDS[(k * j + k // 7) % len(WORDS)] for j in range(1, 3 + k % 11)) for k in range(1, 200)]
    return make_store(tmp_path_factory.mktemp("text"), [(line, line[::-1]) for line in lines])


def tokens_of(side: Any) -> list[list[int]]:
    return [side[row].tolist() for row in range(len(side))]


def padded(lines: list[list[int]]) -> list[list[int]]:
    width = max(map(len, lines))
    return [line + [PAD] * (width - len(line)) for line in lines]


some_rows = st.lists(st.integers(0, 190), min_size=1, max_size=8, unique=True)


@settings(deadline=None, max_examples=40)
@given(rows=some_rows, draw=st.none() | st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 9)))
def test_translation_has_the_pairs_shifted_right_and_leaves_nothing_to_chance(
    store: TokenStore, rows: list[int], draw: Any
) -> None:
    split = store.split("train")
    sources, targets = ([tokens_of(side)[row] for row in rows] for side in (split.sources, split.targets))
    batch = Translation().examples(split).collate(np.array(rows), draw)
    assert batch.source.tolist() == padded(sources)
    assert batch.source_mask.tolist() == [[token != PAD for token in line] for line in padded(sources)]
    assert batch.target_out.tolist() == padded(targets)
    assert batch.target_in.tolist() == padded([[BOS, *line[:-1]] for line in targets])
    assert batch.target_tokens == batch.step_tokens == sum(map(len, targets))


@settings(deadline=None, max_examples=20)
@given(rows=some_rows, side=st.sampled_from(["source", "target"]))
def test_a_language_model_meets_one_side_behind_a_source_of_one_token(
    store: TokenStore, rows: list[int], side: str
) -> None:
    split = store.split("train")
    lines = [tokens_of(split.sources if side == "source" else split.targets)[row] for row in rows]
    batch = LanguageModelling(side=side).examples(split).collate(np.array(rows), EVALUATION)
    assert batch.source.tolist() == [[EOS]] * len(rows)
    assert batch.source_mask.all()
    assert batch.target_out.tolist() == padded(lines)
    assert batch.target_in.tolist() == padded([[BOS, *line[:-1]] for line in lines])
    assert batch.target_tokens == sum(map(len, lines))


@settings(deadline=None, max_examples=40)
@given(rows=some_rows, draw=st.none() | st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 9)))
def test_what_is_hidden_is_asked_for_and_nothing_else_is_touched(store: TokenStore, rows: list[int], draw: Any) -> None:
    split = store.split("train")
    batch = MaskedLanguageModelling(**BERT).examples(split).collate(np.array(rows), draw)
    for row, source, wanted, shown in zip(
        rows, batch.source.tolist(), batch.target_out.tolist(), batch.target_in.tolist(), strict=True
    ):
        line = tokens_of(split.targets)[row]
        chosen = [place for place, token in enumerate(wanted) if token != PAD]
        assert len(chosen) == max(1, math.floor(0.15 * (len(line) - 1) + 0.5))
        assert all(wanted[place] == line[place] != EOS for place in chosen)
        kept = [place for place in range(len(line)) if place not in chosen]
        assert [source[place] for place in kept] == [line[place] for place in kept]
        assert set(source[len(line) :]) <= {PAD}
        assert set(shown) == {PAD}, "a model may not read the answers"


def masked(store: TokenStore, draw: Any, **changed: float) -> Any:
    split = store.split("train")
    return MaskedLanguageModelling(**BERT | changed).examples(split).collate(np.arange(len(split)), draw)


def test_what_is_hidden_depends_on_seed_and_epoch_and_on_nobody_elses_row(store: TokenStore) -> None:
    whole = masked(store, (1, 0))
    assert torch.equal(whole.source, masked(store, (1, 0)).source)
    for other in ((1, 1), (2, 0), EVALUATION):
        assert not torch.equal(whole.target_out, masked(store, other).target_out)
    split = store.split("train")
    alone = MaskedLanguageModelling(**BERT).examples(split).collate(np.array([7]), (1, 0))
    width = alone.source.size(1)
    assert torch.equal(alone.source[0], whole.source[7, :width])
    assert torch.equal(alone.target_out[0], whole.target_out[7, :width])


def test_chosen_tokens_become_the_mask_another_token_or_stay_as_often_as_bert_has_it(store: TokenStore) -> None:
    fates: Counter[str] = Counter()
    others: Counter[int] = Counter()
    for epoch in range(60):
        batch = masked(store, (3, epoch))
        chosen = batch.target_out != PAD
        for shown, true in zip(batch.source[chosen].tolist(), batch.target_out[chosen].tolist(), strict=True):
            fates["mask" if shown == MASK else "same" if shown == true else "other"] += 1
            others[shown] += shown not in (MASK, true)
    total, pieces = fates.total(), store.vocab_size - 4
    expected = {"mask": 0.8, "same": 0.1 + 0.1 / pieces, "other": 0.1 - 0.1 / pieces}
    assert total > 10_000
    assert chisquare([fates[k] for k in expected], [total * share for share in expected.values()]).pvalue > 0.001
    counts = [others[token] for token in range(4, store.vocab_size)]
    assert min(counts) > 0
    assert sum(counts) == others.total(), "nothing but text is drawn"


def test_every_place_of_a_line_is_chosen_as_often(store: TokenStore) -> None:
    lengths = store.split("train").target_lengths
    row = int(lengths.argmax())
    counts = np.zeros(lengths[row] - 1)
    for epoch in range(600):
        counts += masked(store, (5, epoch)).target_out[row, : lengths[row] - 1].numpy() != PAD
    assert chisquare(counts).pvalue > 0.001


@pytest.mark.parametrize("task", TASKS[1:], ids=lambda task: type(task).__name__)
def test_the_tokens_of_a_step_are_known_to_all_its_micro_batches(store: TokenStore, task: Task) -> None:
    examples = task.examples(store.split("train"))
    sizes: Any = {"source_tokens": 300, "target_tokens": 300, "length_noise": 2.0, "seed": 1, "start": 0}
    whole = BatchStream(examples, **sizes, rank=0, world_size=1, micro_batches=1)
    shared = [BatchStream(examples, **sizes, rank=rank, world_size=2, micro_batches=3) for rank in range(2)]
    for step in range(2 * whole.batches_per_epoch):  # the second epoch has another draw
        batch, parts = (
            whole.micro_batch(step, 0),
            [stream.micro_batch(step, n) for stream in shared for n in stream.local_micro_batches],
        )
        assert {part.step_tokens for part in parts} == {batch.target_tokens} == {batch.step_tokens}
        assert sum(part.target_tokens for part in parts) == batch.target_tokens
        found = {tuple(seen(part, n)) for part in parts for n in range(len(part.rows))}
        assert found == {tuple(seen(batch, n)) for n in range(len(batch.rows))}


def seen(batch: Any, n: int) -> list[int]:
    """What stands in a row, without its padding."""
    return [int(batch.rows[n]), *(v for t in (batch.source[n], batch.target_out[n]) for v in t.tolist() if v != PAD)]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_batches_keep_to_their_budgets_and_evaluation_meets_every_row_once(store: TokenStore, task: Task) -> None:
    examples: Examples = task.examples(store.split("test"))
    batches = evaluation_batches(examples, source_tokens=90, target_tokens=80)
    assert sorted(row for batch in batches for row in batch.rows) == list(range(len(store.split("test"))))
    assert all(batch.source.numel() <= 90 and batch.target_out.numel() <= 80 for batch in batches)
    for batch in batches:
        assert batch.source.shape[1] == examples.source_lengths[batch.rows].max()
        assert batch.target_out.shape[1] == examples.target_lengths[batch.rows].max()
        assert batch.target_tokens == examples.target_counts[batch.rows].sum()


class Even(nn.Module):
    """Finds all subwords as probable."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, source: torch.Tensor, source_mask: torch.Tensor, target_in: torch.Tensor) -> torch.Tensor:
        return self.logits.expand(*target_in.shape, -1)


def measured(task: Task, store: TokenStore, model: nn.Module) -> dict[str, Any]:
    batches = evaluation_batches(task.examples(store.split("test")), source_tokens=500, target_tokens=500)
    return task.measure(model, batches, store, "test")


def test_bits_per_byte_are_those_of_the_lines_with_a_byte_for_each_end(tmp_path: Path) -> None:
    store = make_store(tmp_path, [("x", line) for line in ("zwei  Bären", "ä", "so so la la")] * 9)
    found = measured(LanguageModelling(side="target"), store, Even(store.vocab_size))
    tokens = sum(map(len, tokens_of(store.split("test").targets)))
    size = 9 * sum(len(f"{line}\n".encode()) for line in ("zwei Bären", "ä", "so so la la"))
    assert found["perplexity"] == pytest.approx(store.vocab_size)
    assert found["bits_per_byte"] == pytest.approx(tokens * math.log2(store.vocab_size) / size)


def test_bits_per_byte_count_the_white_space_that_the_tokens_keep(tmp_path: Path) -> None:
    lines = ("one  two", "a\u00a0b", "so so")
    pairs = [("x", line) for line in lines] * 9
    store = make_store(tmp_path, pairs, tokenizer=Bytes(vocab_size=260, input_sentence_size=None))
    tokens = sum(map(len, tokens_of(store.split("test").targets)))
    assert (
        count_bytes(store, "test", "target", np.arange(27)) == tokens == 9 * sum(len(f"{x}\n".encode()) for x in lines)
    )


def test_bits_per_byte_are_those_of_the_first_reference_alone(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = (
        make_store(tmp_path / name, [("x", f"so so{more}")] * 9) for name, more in (("one", ""), ("two", "\tla la la"))
    )
    found = [count_bytes(store, "test", "target", np.arange(9)) for store in (one, two)]
    assert found == [9 * len("so so\n")] * 2


def test_a_line_that_just_fits_has_the_bytes_of_its_text_whatever_is_unknown_in_it(tmp_path: Path) -> None:
    common, rare = "a a", "a Ω"
    pairs = [("x", common)] * 80 + [("x", rare)]
    store = make_store(tmp_path, pairs, max_tokens=3, vocab_size=8, character_coverage=0.98)
    assert UNK in store.tokenizer.encode(rare)
    assert len(store.tokenizer.encode(rare)) == 3
    found = count_bytes(store, "test", "target", np.arange(81))
    assert found == 80 * len(f"{common}\n".encode()) + len(f"{rare}\n".encode())


def test_of_a_line_that_was_cut_the_bytes_of_what_is_left_count(tmp_path: Path) -> None:
    store = make_store(tmp_path, [("x", "ab ab ab")] * 30 + [("x", "ab")] * 30, max_tokens=2, vocab_size=12)
    tokens = store.split("test").targets
    kept = [store.tokenizer.decode(line) + "\n" * (line[-1] == EOS) for line in tokens_of(tokens)]
    assert len(set(kept)) == 2
    found = measured(LanguageModelling(side="target"), store, Even(store.vocab_size))
    bits = sum(map(len, tokens_of(tokens))) * math.log2(store.vocab_size)
    assert found["bits_per_byte"] == pytest.approx(bits / len("".join(kept).encode()))


def test_bits_per_byte_say_what_the_tokens_leave_out(tmp_path: Path) -> None:
    """A word that is unknown, or a capital that is lost, costs no bits; the bytes of the text have both."""
    task, pairs = LanguageModelling(side="target"), [("x", "a a")] * 80 + [("x", "a Ω")]

    def signature(**options: Any) -> str | None:
        store = make_store(tmp_path, pairs, vocab_size=8, **options)
        return measured(task, store, Even(store.vocab_size)).get("bits_per_byte_signature")

    tokens = 81 * 3  # two words and the end of each line, one of them unknown
    assert signature() is None
    assert signature(character_coverage=0.98, model_type="word") == f"unknown:{100 / tokens:.2f}%"
    assert signature(normalization="nmt_nfkc_cf") == "normalization:nmt_nfkc_cf"


def test_accuracy_says_how_many_hidden_tokens_were_unknown_before(tmp_path: Path) -> None:
    """They are the mask itself, so that one who answers with it finds them all."""
    task = MaskedLanguageModelling(side="target", rate=1.0, masked=0.8, random=0.1)
    store = make_store(tmp_path, [("x", "a b")] * 60 + [("x", "a Ω")] * 20, vocab_size=7, model_type="word")
    found = measured(task, store, Knowing(store.vocab_size, UNK))
    assert found["accuracy"] == 100 * 20 / 160
    assert found["accuracy_signature"] == "unknown:12.50%"


class Knowing(Even):
    """Is sure of one token."""

    def __init__(self, vocab_size: int, token: int) -> None:
        super().__init__(vocab_size)
        self.logits.data[token] = 5.0


def test_accuracy_counts_the_tokens_that_are_found(tmp_path: Path) -> None:
    store = make_store(tmp_path, [(f"{WORDS[k % 9]} {WORDS[k % 5]}", "yes" if k % 4 else "no") for k in range(60)])
    task = MaskedLanguageModelling(**BERT)
    batches = evaluation_batches(task.examples(store.split("test")), source_tokens=500, target_tokens=500)
    wanted = Counter(t for batch in batches for t in batch.target_out.flatten().tolist() if t != PAD)
    token, count = wanted.most_common(1)[0]
    found = measured(task, store, Knowing(store.vocab_size, token))
    assert found["accuracy"] == pytest.approx(100 * count / wanted.total())
    assert found["tokens"] == wanted.total()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: LanguageModelling(side="middle"), "task.side=middle: say source or target"),
        (lambda: MaskedLanguageModelling(**BERT | {"rate": 0.0}), r"task.rate must lie in \(0, 1\]"),
        (lambda: MaskedLanguageModelling(**BERT | {"random": 0.3}), "must be shares of one whole"),
    ],
)
def test_values_that_no_task_can_have_are_refused(make: Callable[[], Task], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        make()
