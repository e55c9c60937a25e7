"""Translations of validation lines are scored during training, and training does not notice."""

import csv
from pathlib import Path

import pytest
import sacrebleu
import torch
from tests.letters import TINY

from etude.config import parts
from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.config.resolve import resolve_valid
from etude.inspect.plan.device import load_device
from etude.inspect.plan.runs import plan_runs
from etude.tasks import build
from etude.trained.checkpoint import read_checkpoint
from etude.training.run import train
from etude.training.score import validate_translations

from .conftest import Freeze, same

SHORT = ["budget.max_steps=6", "budget.warmup_steps=2", "metrics=[bleu,chrf]", "callbacks=none"]
SCORED = ["budget.val_metrics=[chrf]", "budget.val_sentences=3"]


@pytest.mark.parametrize("average", [[], ["callbacks=ema", "callbacks.ema.decay=0.999"]], ids=["plain", "ema"])
def test_each_validation_has_its_row_and_the_last_is_that_of_the_result(average: list[str], runs: Freeze) -> None:
    torch.set_num_threads(1)
    run = runs(f"scored{len(average)}", *SHORT, *SCORED, *average)
    result = train(run)
    config, store = run.config(), build.token_store(run.config())
    model = build.model(config, store.vocab_size)
    model.load_state_dict(
        {k.removeprefix("model."): v for k, v in read_checkpoint(run.checkpoint)["state_dict"].items()}
    )
    sources, references = (lines[:3] for lines in store.text("valid"))
    search = parts.make(config["decoding"])
    translations = build.translator(config, model, store.tokenizer, search).translate(sources)
    expected = sacrebleu.CHRF().corpus_score(translations, [references]).score
    with run.metrics_file.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["valid_chrf"]]
    assert [row["step"] for row in rows] == ["3", "6"]
    assert float(rows[-1]["valid_chrf"]) == pytest.approx(expected)
    assert result["valid"]["chrf"] == pytest.approx(expected)
    assert expected > 0


def test_they_change_neither_weights_nor_names(runs: Freeze) -> None:
    plain, scored = runs("plain", *SHORT), runs("plain-scored", *SHORT, *SCORED)
    assert (plain.path.name, plain.training) == (scored.path.name, scored.training)
    assert "val_metrics" not in plain.config()["budget"]
    for run in (plain, scored):
        train(run)
    one, other = (read_checkpoint(run.checkpoint)["state_dict"] for run in (plain, scored))
    assert same(one, other)
    assert "valid_chrf" not in plain.metrics_file.read_text()


def test_where_callbacks_may_monitor_them_they_count(runs: Freeze) -> None:
    stopping = [*SHORT[:3], "callbacks=early_stopping", "callbacks.early_stopping.patience=1"]
    on_loss = runs("stopping", *stopping)
    chosen = ["callbacks.early_stopping.monitor=val_chrf", "callbacks.early_stopping.mode=max"]
    others = [[*SCORED, *chosen], [*SCORED[:1], *chosen], [*SCORED, *chosen, "decoding.max_len_offset=3"]]
    ids = {on_loss.training, *(runs("stopping", *stopping, *words).training for words in others)}
    assert len(ids) == 4
    result = train(
        runs("stopping", *stopping, *others[0], "budget.max_steps=30", "schedule=constant", "schedule.peak=1e-9")
    )
    assert result["steps"] == 6, "the second validation is no better than the first"


def test_what_they_cost_is_in_the_plan(tmp_path: Path) -> None:
    words = [*TINY, "budget=smoke", f"cache_dir={tmp_path}", f"runs_dir={tmp_path}", "budget.bleu_sentences=10"]
    config = resolve_valid(compose([*words, "data.valid_pairs=7"]))
    scored = config | {"budget": config["budget"] | {"val_metrics": ["bleu"], "max_steps": 10, "val_every": 5}}
    few = scored | {"budget": scored["budget"] | {"val_sentences": 2}}
    plain, all_lines, some = (plan.decoding_flops for plan in plan_runs([config, scored, few], load_device("cpu")))
    assert all_lines / plain == pytest.approx((10 + 7 * (2 + 1)) / 10)  # after each validation, and at the end
    assert some / plain == pytest.approx((10 + 2 * (2 + 1)) / 10)


def test_a_metric_that_fails_is_nan_and_ends_nothing(runs: Freeze, caplog: pytest.LogCaptureFixture) -> None:
    words = ["+metrics.mine._target_=math.hypot", "budget.val_metrics=[mine]"]
    config = freeze(compose([*TINY, "budget=smoke", *words, f"runs_dir={runs('any', *SHORT).runs_dir}"])).config()
    store = build.token_store(runs("any", *SHORT).config())
    [value] = validate_translations(config | {"data": {}}, build.model(config, store.vocab_size), store).values()
    assert value != value
    assert "metrics.mine failed" in caplog.text


def test_the_early_perplexity_is_that_of_a_run_of_an_eighth_of_the_steps(runs: Freeze) -> None:
    constant = ["schedule=constant", "schedule.peak=0.003", "budget.warmup_steps=1", "callbacks=none", "metrics=[bleu]"]
    whole, eighth = (
        train(runs(f"steps{steps}", *constant, f"budget.max_steps={steps}", "budget.val_every=2")) for steps in (17, 2)
    )
    assert whole["early"] == {"perplexity": pytest.approx(eighth["valid"]["perplexity"]), "step": 2}
    assert whole["valid"]["perplexity"] < whole["early"]["perplexity"]
    assert eighth["early"] == {}
