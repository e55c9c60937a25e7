"""What a plan says of a run, and what it rests on."""

import pytest

from etude.config.compose import compose
from etude.config.identity import fingerprint, resolve, run_dir
from etude.inspect.plan.device import Device
from etude.inspect.plan.runs import RunPlan, plan_runs
from etude.tasks import build
from etude.tasks.flops import decoding_flops, training_flops
from etude.tasks.size import measure_size

SOMEWHERE = Device("somewhere", full=2e12, half=2e12, price=3.0)
SIZES = ["model.d_model=16", "model.d_ff=16", "model.heads=2", "model.n_layers=1", "budget.max_steps=7"]
SMALL_TEXT = ["data.train_pairs=200", "data.valid_pairs=10", "data.test_pairs=12", "data.vocab_size=120"]


@pytest.fixture
def config_of(tmp_path):
    def make(*overrides: str) -> dict:
        return resolve(compose([*SIZES, f"runs_dir={tmp_path}/runs", f"cache_dir={tmp_path}/cache", *overrides]))

    return make


def only(config: dict) -> RunPlan:
    (planned,) = plan_runs([config], SOMEWHERE)
    return planned


def test_a_run_that_diverged_is_no_longer_to_do_and_said_to_have(config_of):
    config = config_of(*SMALL_TEXT)
    build.token_store(config)
    run = run_dir(config, fingerprint(config))
    run.path.mkdir(parents=True)
    for result, state in (({"diverged": "the loss is nan at step 3"}, "diverged"), ({"steps": 7}, "finished")):
        run.write_result(result)
        planned = only(config)
        assert planned.state == state
        assert planned.done


@pytest.mark.parametrize("tokenizer", ["bpe", "char", "word"])
def test_the_vocabulary_is_the_one_that_was_learned_where_it_has_been(config_of, tokenizer: str):
    """A text has fewer characters than data.vocab_size allows."""
    config = config_of(*SMALL_TEXT, f"tokenizer={tokenizer}")
    store = build.token_store(config)
    built = build.model(config, store.vocab_size)
    assert only(config).parameters == sum(weight.numel() for weight in built.parameters())


def test_a_batch_holds_as_many_sentences_as_the_budget_of_tokens(config_of):
    config = config_of("budget.source_tokens=1000", "budget.target_tokens=500")
    planned = only(config)
    assert planned.tokens == 7 * 500  # 20 sentences of 25 pieces
    assert planned.step_flops == 20 * training_flops(measure_size(config), 25, 25)
    assert planned.training_flops == 7 * planned.step_flops


def test_hours_and_price_are_those_of_training_and_of_translating_the_test_set(config_of):
    config = config_of("data.test_pairs=40")
    planned = only(config)
    assert planned.decoding_flops == 40 * decoding_flops(measure_size(config), 25, 25, beam=4)
    assert planned.hours == pytest.approx((planned.training_flops + planned.decoding_flops) / 2e12 / 3600)
    assert planned.price == pytest.approx(3 * planned.hours)


def test_lengths_are_counted_where_the_text_has_been_prepared_and_assumed_where_not(config_of):
    config = config_of(*SMALL_TEXT)
    before = only(config)
    store = build.token_store(config)
    after = only(config)
    train = store.split("train")
    assert not before.text.prepared
    assert (before.text.source, before.text.target) == (25, 25)
    assert after.text.prepared
    assert after.text.source == pytest.approx(train.source_lengths.mean())
    assert after.text.target == pytest.approx(train.target_lengths.mean())
    assert before.text.sentences == after.text.sentences == 12


def test_a_run_is_to_do_then_begun_then_finished(config_of):
    config = config_of()
    run = run_dir(config, fingerprint(config))
    states = [only(config).state]
    run.checkpoint.parent.mkdir(parents=True)
    run.checkpoint.touch()
    states.append(only(config).state)
    run.write_result({})
    states.append(only(config).state)
    assert states == ["to do", "begun", "finished"]


def test_without_the_text_nobody_can_say_whether_a_run_is_finished_or_how_much_there_is_to_translate(config_of):
    planned = only(config_of("data=files", "data.source=nowhere.en", "data.target=nowhere.de"))
    assert planned.state == "?"
    assert planned.decoding_flops is None
    assert planned.training_flops > 0


def test_planning_makes_no_directory(config_of, tmp_path):
    plan_runs([config_of(), config_of("seed=2", "model.heads=1")], SOMEWHERE)
    assert list(tmp_path.iterdir()) == []


def test_runs_are_planned_in_the_order_in_which_they_were_given(config_of):
    layers = [3, 1, 2, 1]
    planned = plan_runs([config_of(f"model.n_layers={n}") for n in layers], SOMEWHERE)
    assert [one.config["model"]["n_layers"] for one in planned] == layers
    assert planned[1].parameters == planned[3].parameters < planned[2].parameters < planned[0].parameters


def test_more_sentences_and_more_weights_take_more_memory(config_of):
    base, long, wide = plan_runs(
        [config_of(), config_of("budget.source_tokens=9000", "budget.target_tokens=9000"), config_of("model.d_ff=999")],
        SOMEWHERE,
    )
    assert base.memory < long.memory
    assert base.memory < wide.memory


def test_devices_share_the_hours_and_devices_and_micro_batches_the_memory(config_of):
    alone, four = only(config_of()), only(config_of("trainer.devices=4"))
    assert (four.tokens, four.training_flops) == (alone.tokens, alone.training_flops)
    decoding = alone.decoding_flops / 2e12 / 3600
    assert four.hours - decoding == pytest.approx((alone.hours - decoding) / 4)
    assert four.price == pytest.approx(4 * 3 * four.hours)
    assert four.memory < alone.memory
    assert only(config_of("trainer.micro_batches=4")).memory == four.memory
