"""Every task goes through the same engine: trained, killed and resumed, shared out, evaluated, measured."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import torch

from etude.cli.main import main
from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.errors import UserError
from etude.inspect.evaluate import evaluate
from etude.store.identity import identify
from etude.store.run_dir import RunDir
from etude.tasks import build
from etude.training.run import train

from .conftest import Freeze, distance, found, in_processes, killed_at, update, with_plain_descent

METRIC = {"language_modelling": "bits_per_byte", "masked_language_modelling": "accuracy"}
LINES = [*METRIC]
RUNNING = {  # tasks on running text
    "running": ["task=language_modelling", "budget.context=12", "data.stride=5"],
    "running_masked": ["task=language_modelling", "budget.context=12", "data.documents=mask"],
    "span_corruption": ["task=span_corruption", "budget.context=32", "task.sentinels=3"],
}
METRIC |= dict.fromkeys(["running", "running_masked"], "bits_per_byte")
NAMES = [*LINES, *RUNNING]
SETTING = ["model.dropout=0.3", "budget.max_steps=10", "budget.source_tokens=60", "budget.target_tokens=60"]


@pytest.fixture(scope="module")
def made(runs: Freeze) -> Callable[..., RunDir]:
    """Freezes runs of a task, on the letters that all runs are of."""

    def frozen(task: str, name: str, *overrides: str) -> RunDir:
        chosen = RUNNING.get(task, [f"task={task}"])
        return runs(f"{task}-{name}", *chosen, *SETTING, *overrides, searched=False, is_running=task in RUNNING)

    return frozen


@pytest.mark.parametrize("task", NAMES)
def test_a_run_that_is_killed_and_resumed_ends_bit_for_bit_as_one_that_was_not(
    task: str, made: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    straight, killed = made(task, "straight"), made(task, "killed")
    train(straight)
    killed_at(7, killed, monkeypatch)
    assert killed.checkpoint.exists()
    train(killed)
    assert found(killed) == found(straight)


@pytest.mark.parametrize("task", NAMES)
def test_micro_batches_make_the_update_of_the_whole_batch(task: str, made: Callable[..., RunDir]) -> None:
    whole, parts = (
        with_plain_descent(made(task, name, "model.dropout=0", "budget.max_steps=3", f"trainer.micro_batches={n}"))
        for name, n in (("whole", 1), ("parts", 3))
    )
    train(whole), train(parts)
    assert distance(update(whole), update(parts)) < 1e-5
    assert whole.result()["tokens"] == parts.result()["tokens"]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "tying"), [*product(NAMES, ["all"]), *product([*LINES, "span_corruption"], ["none"])])
def test_two_processes_make_the_update_of_one(task: str, tying: str, made: Callable[..., RunDir]) -> None:
    own = ["model.dropout=0", "budget.max_steps=3", f"model/tying={tying}"]
    one, two = (
        with_plain_descent(made(task, f"{name}-{tying}", *own, f"trainer.devices={n}"))
        for name, n in (("one", 1), ("two", 2))
    )
    train(one)
    done = in_processes(two)
    assert two.finished, done.stderr
    assert distance(update(one), update(two)) < 1e-5
    assert one.result()["tokens"] == two.result()["tokens"]


@pytest.mark.parametrize("task", NAMES)
def test_a_result_holds_what_the_task_measures_and_evaluate_says_it_again(
    task: str, made: Callable[..., RunDir]
) -> None:
    run = made(task, "measured")
    result = train(run)
    assert set(result["test"]) == {
        "perplexity",
        "tokens",
        "sentences",
        "pairs",
        *([METRIC[task]] if task in METRIC else []),
    }
    assert not run.hypotheses_file.exists()
    told = evaluate(
        {"run": str(run.path), "split": "test", "weights": None, "device": "cpu", "decoding": {}, "metrics": {}}
    )
    assert f"test perplexity {result['test']['perplexity']:.2f}" in told
    assert METRIC.get(task, "").replace("_", " ") in told
    assert "BLEU" not in told


@pytest.mark.parametrize("task", ["masked_language_modelling"])
def test_seeds_are_evaluated_on_the_same_hidden_words(task: str, made: Callable[..., RunDir]) -> None:
    batches = []
    for seed in (1, 2):
        config = made(task, "seeds", f"seed={seed}").config()
        batches.append(build.evaluation_batches(config, build.token_store(config).split("test")))
    assert all(torch.equal(one.source, other.source) for one, other in zip(*batches, strict=True))


@pytest.mark.parametrize(
    ("verb", "task"),
    [*product(["translate"], NAMES), *product(["generate"], ["masked_language_modelling", "span_corruption"])],
)
def test_verbs_that_a_task_has_no_use_for_say_so(
    task: str, verb: str, made: Callable[..., RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    run = made(task, "measured")
    if not run.finished:
        train(run)
    with pytest.raises(SystemExit) as ended:
        main([verb, f"run={run.path}", *(["prompt=a"] if verb == "generate" else [])])
    assert ended.value.code == 2
    told = capsys.readouterr().err.strip()
    assert f"`etude {verb}` has no use for a run whose task is" in told
    assert "\n" not in told


@pytest.mark.parametrize("task", LINES)
def test_every_head_of_a_task_is_asked_what_the_model_would_miss(task: str, made: Callable[..., RunDir]) -> None:
    run = made(task, "measured")
    if not run.finished:
        train(run)
    with pytest.raises(SystemExit) as ended:
        main(["analyze", f"run={run.path}", "device=cpu"])
    assert ended.value.code == 0
    analysis = json.loads(run.analysis_file.read_text())
    assert analysis["intact"] == {"perplexity": pytest.approx(run.result()["test"]["perplexity"], rel=1e-4)}
    stack = "decoder" if task == "language_modelling" else "encoder"
    assert [(head["attention"], head["layer"], head["head"]) for head in analysis["heads"]] == [
        (stack, 1, 1),
        (stack, 1, 2),
    ]
    assert any(head["change"] for head in analysis["heads"])
    assert all(head["entropy"] > 0 for head in analysis["heads"])
    assert all(shown[stack] and shown["source"] for shown in analysis["maps"])
    assert (analysis["order"], analysis["lengths"], analysis["decoding"]) == (None, [], []), "nothing is translated"


def test_a_beam_is_refused_where_nothing_is_translated(made: Callable[..., RunDir]) -> None:
    run = made("language_modelling", "measured")
    if not run.finished:
        train(run)
    config = {
        "run": str(run.path),
        "split": "test",
        "weights": None,
        "device": "cpu",
        "decoding": {"beam": 8},
        "metrics": {},
    }
    with pytest.raises(UserError, match=r"decoding\.beam: .*does not translate: leave it out"):
        evaluate(config, ["decoding.beam=8"])
    with pytest.raises(UserError, match=r"decoding\.beam: this config has no decoding .*: leave it out"):
        compose(["task=language_modelling", "decoding.beam=8"])


def test_a_translation_is_not_gone_on_with(runs: Freeze, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs("translation", "budget.max_steps=2")
    train(run)
    with pytest.raises(SystemExit) as ended:
        main(["generate", f"run={run.path}", "prompt=a"])
    assert ended.value.code == 2
    assert "task is Translation: `etude translate run=...`" in capsys.readouterr().err


@pytest.mark.parametrize("task", ["language_modelling", "running"])
def test_generate_goes_on_with_prompts_and_says_the_same_again(
    task: str, made: Callable[..., RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    run = made(task, "measured")
    if not run.finished:
        train(run)
    said = []
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            main(["generate", f"run={run.path}", "prompt=a b", "sampling.max_length=19", "sampling.top_k=5"])
        assert ended.value.code == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert said[0].startswith("a b")


def test_a_text_longer_than_the_learned_positions_or_the_limit_is_told(
    made: Callable[..., RunDir], runs: Freeze, capsys: pytest.CaptureFixture[str]
) -> None:
    run = made("language_modelling", "learned", "model/position=learned", "model.position.max_length=300")
    train(run)
    with pytest.raises(SystemExit) as ended:
        main(["generate", f"run={run.path}", "prompt=a b", "sampling.max_length=301"])
    assert ended.value.code == 2
    assert "sampling.max_length=301 needs 301 positions, and this run has learned 300" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["generate", f"run={run.path}", "prompt=a b a b", "sampling.max_length=2"])
    answer = capsys.readouterr()
    assert answer.out == "a b a b\n"
    assert "line 1 has 4 subwords, and sampling.max_length=2: it stays" in answer.err
    translating = runs("learned", "budget.max_steps=2", "model/position=learned")
    train(translating)
    config = {
        "run": str(translating.path),
        "split": "test",
        "weights": None,
        "device": "cpu",
        "decoding": {"max_len_offset": 900},
    }
    with pytest.raises(
        UserError, match=r"decoding.max_len_offset=900 needs \d+ positions, and this run has learned 512"
    ):
        evaluate(config | {"metrics": {}}, ["decoding.max_len_offset=900"])


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["task=language_modelling", "model/encoder=transformer"], "say model/encoder=none"),
        (["task=translation", "model=encoder_only"], "needs a decoder, .* say model=base"),
        (["task=language_modelling", "model=encoder_only"], "needs a decoder, .* say model=base"),
        (["task=masked_language_modelling", "model=base"], "has a decoder: say model=encoder_only"),
        (["task=language_modelling", "decoding=greedy"], "no text that could be searched for .*: leave decoding out"),
        (["task=masked_language_modelling", "metrics=bleu"], "no text .* compared: leave metrics out"),
        (["data=text"], "Translation reads lines, and data=text is running text: say task=language_modelling"),
        (["task=span_corruption", "data=grammar"], "reads running text, and this data has lines: say data=text"),
        (["task=span_corruption", "model/encoder=none"], "read by an encoder, and there is none"),
        (["task=span_corruption", "data.stride=4"], "data.stride=4 is for a language model"),
        (["task=language_modelling", "data=text", "budget.context=999"], "budget.target_tokens=300 does not hold"),
        (["task=language_modelling", "data=text", "data.stride=129"], "at most budget.context=128: lower it"),
        (
            ["task=language_modelling", "data=text", "model/position=learned", "model.position.max_length=100"],
            "max_length=100 is shorter .* 128 tokens with budget.context=128",
        ),
        (
            ["task=masked_language_modelling", "model/decoder=recurrent"],
            "model/decoder=recurrent is for .*, and model=encoder_only has none: leave it out",
        ),
    ],
)
def test_a_model_that_does_not_suit_the_task_is_refused_before_anything_is_written(
    overrides: list[str], told: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=told):
        freeze(compose([*overrides, f"runs_dir={tmp_path / 'runs'}"]))
    assert not (tmp_path / "runs").exists()


def test_what_a_source_is_worth_may_be_asked_of_translation(runs: Freeze) -> None:
    assert train(runs("without", "model/encoder=none", "budget.max_steps=2"))["test"]["bleu"] >= 0


def test_a_class_without_what_the_task_calls_is_refused_by_name(runs: Freeze) -> None:
    config = runs("translation").config()
    config["model"] |= {"_target_": "etude.model.encoder_only.EncoderOnly", "decoder": None}
    with pytest.raises(UserError, match="EncoderOnly has no start and no step"):
        build.shapes(config)


def test_the_task_identifies_a_training_and_translation_as_none_did(made: Callable[..., RunDir], runs: Freeze) -> None:
    config = runs("translation").config()
    assert identify(config, "text") == identify({k: v for k, v in config.items() if k != "task"}, "text")
    masked = made("masked_language_modelling", "identified").config()
    assert identify(masked, "text") != identify(masked | {"task": masked["task"] | {"rate": 0.3}}, "text")


@pytest.mark.parametrize("task", NAMES)
def test_the_plan_counts_the_positions_of_the_task_and_nothing_to_decode(
    task: str, made: Callable[..., RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    run = made(task, "measured")
    if not run.finished:
        train(run)
    typed = [line for line in run.overrides_file.read_text().splitlines() if line]
    with pytest.raises(SystemExit) as ended:
        main(["plan", *typed, "--json"])
    assert ended.value.code == 0
    [plan] = json.loads(capsys.readouterr().out)["runs"]
    assert plan["decoding_flops"] == 0
    assert plan["parameters"] == run.result()["parameters"]
    assert plan["training_flops"] == pytest.approx(run.result()["flops"])
