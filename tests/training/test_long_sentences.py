"""Sentences longer than the positions that are filled beforehand, in processes that meet them at different steps."""

from pathlib import Path

import pytest

from etude.data.batching import collate_micro_batch
from etude.store.run_dir import RunDir
from etude.tasks import build
from etude.training.build import training_data
from etude.training.run import train

from .conftest import Freeze, distance, in_processes, update, with_plain_descent

LENGTHS = [(127, 130), (130, 127), (129, 131)]  # positions of a batch in the first and in the second process
SEED = 39
STEPS = len(LENGTHS)


def words(length: int, number: int) -> str:
    """A line of `length` tokens with its EOS: every letter is a word, and every word a piece."""
    return " ".join("abcdefgh"[(number * place + place // 8) % 8] for place in range(length - 1))


@pytest.fixture
def long(runs: Freeze, tmp_path: Path) -> list[RunDir]:
    """One run in one process, one in two: every batch is one pair of sentences of `LENGTHS`."""
    pairs = [words(length, 10 * k + j) for k, lengths in enumerate(LENGTHS) for j, length in enumerate(lengths, 1)]
    short = [words(9, number) for number in range(40, 52)]
    for name, lines in {"train": pairs, "held": short}.items():
        (tmp_path / f"{name}.tsv").write_text("".join(f"{line}\t{line}\n" for line in lines))
    files = {"": "train", "valid.": "held", "test.": "held"}
    text = [f"data.{key}tsv={tmp_path / name}.tsv" for key, name in files.items()]
    budget = [
        "budget.max_tokens=200",
        "budget.source_tokens=265",
        "budget.target_tokens=265",
        f"budget.max_steps={STEPS}",
    ]
    settings = [
        *text,
        *budget,
        "tokenizer.vocab_size=21",
        "budget.length_noise=1000",
        f"seed={SEED}",
        "model.dropout=0.0",
    ]
    return [with_plain_descent(runs(f"long-{n}", *settings, f"trainer.devices={n}")) for n in (1, 2)]


@pytest.mark.slow
def test_two_processes_with_sentences_on_both_sides_of_the_table_make_the_update_of_one(long: list[RunDir]) -> None:
    """A table grows where its own sentences ask for it, and is nobody else's."""
    one, two = long
    config = one.config()
    store = build.token_store(config)
    split, stream = store.split("train"), training_data(config, store, start_step=0).train_dataloader()
    batches = [
        [collate_micro_batch(split, stream.micro_batch(step, 0).rows, p, 2) for p in range(2)] for step in range(STEPS)
    ]
    met = [tuple(piece.target_in.size(1) for piece in batch) for batch in batches]
    assert sorted(met) == sorted(LENGTHS), "the seed was chosen for that"
    train(one)
    done = in_processes(two)
    assert two.finished, done.stderr
    assert distance(update(one), update(two)) < 1e-5
