"""A run of four processes, or of as many as there are, is the run of one."""

import json

import pytest

from etude.store.metrics_file import read_metrics
from etude.store.run_dir import RunDir
from etude.trained.checkpoint import read_checkpoint
from etude.training.run import train

from .conftest import TIMES, Freeze, distance, in_processes, update, with_plain_descent

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("importable")]
BUDGET = ["model.dropout=0.0", "budget.max_steps=4", "budget.val_every=2"]


def mine(name: str) -> str:
    return f"+callbacks.mine._target_=together.{name}"


@pytest.fixture(scope="module")
def alone(runs: Freeze) -> RunDir:
    run = with_plain_descent(runs("alone", *BUDGET))
    train(run)
    return run


def curves(run: RunDir) -> list[list[float]]:
    """The rows of metrics, without what depends on the clock."""
    rows = read_metrics(run.metrics_file)
    return [[float(value or 0) for name, value in row.items() if name not in TIMES] for row in rows]


def assert_same_run(run: RunDir, alone: RunDir) -> None:
    """Its update, what it validates and tests to, and its translations."""
    assert distance(update(alone), update(run)) < 1e-5
    ours, theirs = run.result(), alone.result()
    for split in ("valid", "test"):
        assert ours[split]["perplexity"] == pytest.approx(theirs[split]["perplexity"], rel=1e-5)
    assert (ours["tokens"], ours["steps"]) == (theirs["tokens"], theirs["steps"])
    assert run.hypotheses_file.read_text() == alone.hypotheses_file.read_text()


def test_four_processes_make_the_run_of_one_and_two_go_on_from_where_they_stood(runs: Freeze, alone: RunDir) -> None:
    four = with_plain_descent(runs("four", *BUDGET, "trainer.devices=4", mine("KeepsHalf")))
    done = in_processes(four)
    assert four.finished, done.stderr
    assert_same_run(four, alone)
    for one, other in zip(curves(alone), curves(four), strict=True):
        assert one == pytest.approx(other, rel=1e-5)

    two = with_plain_descent(runs("four-then-two", *BUDGET, "trainer.devices=2", mine("KeepsHalf")))
    two.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    (four.own_training.path / "half.ckpt").rename(two.checkpoint)
    done = in_processes(two)
    assert two.finished, done.stderr
    assert done.stderr.count("going on from step 2 of 4") == 2
    assert_same_run(two, alone)


def test_a_callback_that_ends_the_training_in_one_process_ends_it_in_all(runs: Freeze) -> None:
    run = runs("one-stops", "budget.max_steps=12", "budget.val_every=3", "trainer.devices=2", mine("StopsInOne"))
    done = in_processes(run)
    assert run.finished, done.stderr
    assert run.result()["steps"] == 6
    assert read_checkpoint(run.checkpoint)["ended"]


def test_a_step_asks_the_other_processes_for_nothing_but_their_gradients(runs: Freeze) -> None:
    """In 49 steps: their gradients, in one bucket, and at most twice whether somebody asked to stop."""
    budget = ["budget.max_steps=2500", "budget.val_every=2500"]
    run = runs("counted", *budget, "trainer.devices=2", mine("CountsCollectives"))
    done = in_processes(run)
    assert run.finished, done.stderr
    said = json.loads((run.own_training.path / "collectives.json").read_text())
    assert said.pop("c10d::allreduce_") == 49
    assert sum(said.values()) <= 4, said


def test_a_process_without_a_sentence_of_a_micro_batch_takes_part_all_the_same(runs: Freeze) -> None:
    setting = [*BUDGET, "trainer.micro_batches=20", "budget.source_tokens=60", "budget.target_tokens=60"]
    one, two = (with_plain_descent(runs(f"few-{n}", *setting, f"trainer.devices={n}")) for n in (1, 2))
    for run in (one, two):
        done = in_processes(run)
        assert run.finished, done.stderr
    assert distance(update(one), update(two)) < 1e-5
