"""What a plan says of a run, and what it rests on."""

from dataclasses import replace
from itertools import islice

import pytest
import yaml

from etude.config.compose import compose
from etude.config.freeze import fingerprints, run_dir
from etude.config.resolve import resolve
from etude.files import write_json
from etude.inspect.plan.device import Device
from etude.inspect.plan.runs import PROPORTIONS, Proportions, RunPlan, compute_proportions, plan_runs
from etude.inspect.plan.table import _lengths, _on_lengths, as_json
from etude.store.identity import identify_training
from etude.store.results_version import RESULTS_VERSION
from etude.store.run_dir import RunDir
from etude.study.study import load_study
from etude.tasks import build
from etude.tasks.size import measure_size
from etude.training.build import training_data

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
    run = run_dir(config, fingerprints(config).all)
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
    assert planned.target_tokens == 7 * 500  # 20 sentences of 25 pieces
    assert planned.flops_per_step == 20 * measure_size(config).training_flops(25, 25)
    assert planned.training_flops == 7 * planned.flops_per_step


@pytest.mark.parametrize(
    "task",
    [
        ["translation"],
        ["language_modelling"],
        ["masked_language_modelling", "model=encoder_only", "~decoding", "metrics=none"],
    ],
    ids=lambda task: task[0],
)
def test_of_prepared_text_the_tokens_are_those_that_are_trained_on(config_of, task: list[str]):
    """A batch is never quite full, so that sizes alone promise a fifth too many."""
    config = config_of(*SMALL_TEXT, f"task={task[0]}", *task[1:], "budget.source_tokens=90", "budget.target_tokens=90")
    batches = training_data(config, build.token_store(config), start_step=0).train_dataloader()
    config["budget"]["max_steps"] = steps = 2 * batches.batches_per_epoch
    trained = sum(batch.step_tokens for batch in islice(batches, steps))
    planned = only(config)
    assert planned.target_tokens == trained
    assert planned.proportions["epochs"] == 2


def test_of_runs_that_share_a_training_the_first_trains_and_the_others_only_translate(config_of):
    configs = [config_of("data.test_pairs=40", f"decoding.beam={beam}") for beam in (1, 4)]
    other = config_of("data.test_pairs=40", "seed=2")
    first, second, third = plan_runs([*configs, other], SOMEWHERE)
    assert [one.state for one in (first, second, third)] == ["to do", "shared", "to do"]
    assert second.hours == pytest.approx(second.decoding_flops / 2e12 / 3600)
    assert (second.training, second.training_hours) == (first.training, first.training_hours)
    assert first.hours == pytest.approx(first.training_hours + first.decoding_flops / 2e12 / 3600)
    told = as_json([first, second, third], [{}] * 3, [None] * 3, [], {}, {}, SOMEWHERE)["to_do"]
    assert told["runs"] == 3
    assert told["training_flops"] == first.training_flops + third.training_flops
    assert told["hours"] == first.hours + second.hours + third.hours


def test_what_another_study_has_trained_is_not_trained_again(config_of):
    config = config_of(*SMALL_TEXT)
    build.token_store(config)
    done, asked = compose_run(config), config | {"study": "mine"}
    done.write_result({"results_version": RESULTS_VERSION})
    done.own_training.checkpoint.parent.mkdir(parents=True)
    assert only(asked).state == "to do"
    done.own_training.checkpoint.touch()
    assert only(asked).state == "begun"
    write_json(done.own_training.trained_file, {"diverged": None})
    assert only(asked).state == "shared"


def compose_run(config) -> RunDir:
    """Its directory, with what identifies its training."""
    run = run_dir(config, fingerprints(config).all)
    run.path.mkdir(parents=True)
    run.config_file.write_text(yaml.safe_dump(config))
    run.training_file.write_text(identify_training(config, fingerprints(config).training))
    return run


def test_hours_and_price_are_those_of_training_and_of_translating_the_test_set(config_of):
    config = config_of("data.test_pairs=40")
    planned = only(config)
    assert planned.decoding_flops == 40 * measure_size(config).decoding_flops(25, 25, beam=4)
    assert planned.hours == pytest.approx((planned.training_flops + planned.decoding_flops) / 2e12 / 3600)
    assert planned.us_dollars == pytest.approx(3 * planned.hours)


def test_a_search_of_ones_own_without_a_beam_keeps_one_hypothesis(config_of):
    config = config_of("data.test_pairs=40")
    mine = config | {"decoding": {"_target_": "mine.Sampling"}}
    assert only(mine).decoding_flops == only(config_of("data.test_pairs=40", "decoding=greedy")).decoding_flops


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
    states, run = [only(config).state], compose_run(config)
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
    assert base.peak_memory_bytes < long.peak_memory_bytes
    assert base.peak_memory_bytes < wide.peak_memory_bytes


def test_devices_share_the_hours_and_devices_and_micro_batches_the_memory(config_of):
    alone, four = only(config_of()), only(config_of("trainer.devices=4"))
    assert (four.target_tokens, four.training_flops) == (alone.target_tokens, alone.training_flops)
    decoding = alone.decoding_flops / 2e12 / 3600
    assert four.hours - decoding == pytest.approx((alone.hours - decoding) / 4)
    assert four.us_dollars == pytest.approx(4 * 3 * four.hours)
    assert four.peak_memory_bytes < alone.peak_memory_bytes
    assert only(config_of("trainer.micro_batches=4")).peak_memory_bytes == four.peak_memory_bytes


def of(*overrides: str, **given: float) -> Proportions:
    known = {"parameters": 1000, "tokens": 8000, "text_tokens": 2000.0, "length": 10.0} | given
    return compute_proportions(resolve(compose(overrides)), **known)  # type: ignore[arg-type]


def test_each_number_is_the_ratio_that_its_name_says():
    found = of("model.d_model=64", "model.heads=4", "budget.max_steps=1000", "budget.warmup_steps=100")
    assert found["epochs"] == 4
    assert found["tokens_per_parameter"] == 8
    assert found["unique_tokens_per_parameter"] == 2
    assert found["d_k_over_length"] == 1.6
    assert found["warmup_share"] == 0.1
    assert of("budget.max_steps=1")["warmup_share"] == 1


def test_at_full_scale_the_schedule_is_the_papers():
    paper = load_study("table3").paper.proportions
    found = of("scale=full")
    assert found["warmup_share"] == pytest.approx(paper["warmup_share"], rel=0.001)
    assert found["peak_over_final_rate"] == pytest.approx(paper["peak_over_final_rate"], abs=0.01)


def test_the_papers_own_numbers_follow_from_what_it_prints():
    """100,000 steps of 25,000 target tokens, about 4.5 million pairs of about 28 target tokens, 65 million weights."""
    paper = load_study("table3").paper.proportions
    assert set(paper) == set(PROPORTIONS)
    found = of("scale=full", parameters=65_000_000, tokens=2_500_000_000, text_tokens=4.5e6 * 28, length=28)
    for name, value in found.items():
        assert value == pytest.approx(paper[name], rel=0.03), name


def test_a_plan_tells_them_of_every_run_and_not_what_nobody_has_counted(tmp_path):
    nowhere = ["data=files", "data.source=nowhere.en", "data.target=nowhere.de"]
    configs = [resolve(compose([f"cache_dir={tmp_path}", *text])) for text in ([], nowhere)]
    grammar, unknown = plan_runs(configs, SOMEWHERE)
    assert grammar.proportions["epochs"] is not None
    assert unknown.proportions["epochs"] is unknown.proportions["unique_tokens_per_parameter"] is None
    assert unknown.proportions["tokens_per_parameter"] > 0
    assert "25 tokens long: there is no file nowhere.en; " in _lengths(unknown)


def test_a_text_of_one_side_is_assumed_to_be_as_long_as_any(config_of):
    planned = only(config_of("task=language_modelling", *SMALL_TEXT))
    assert "are taken to be 25 tokens long" in _lengths(planned)


def test_lengths_that_differ_are_told_by_arm(config_of):
    """Arms with subwords of their own have sentences of their own, of which only some may have been counted."""
    counted = only(config_of("task=language_modelling", *SMALL_TEXT))
    text = replace(counted.text, prepared=True, source=20.5, target=21.5)
    other = replace(counted, text=text, config=counted.config | {"arm": "pieces"})
    assert _on_lengths([counted, counted]) == [_lengths(counted)]
    assert _on_lengths([counted, other]) == [
        "base: sentences of grammar are taken to be 25 tokens long: it has not been prepared (etude prepare, with the "
        "arm's overrides, does).",
        "pieces: sentences of grammar have 20.5 tokens of source and 21.5 of target: counted.",
    ]
