"""What a study.yaml says of its metrics."""

from pathlib import Path
from typing import Any

import pytest

from etude.errors import UserError
from etude.study.metrics import DEFAULT, Metric, read_metrics
from etude.study.study import load_study

FILE = Path("experiments/mine/study.yaml")


def test_a_study_that_declares_nothing_has_perplexity_in_nats_and_bleu_over_sentences() -> None:
    found = read_metrics(FILE, None)
    assert [*found] == ["ppl", "bleu"]
    assert (found["ppl"].is_log, found["ppl"].over, found["ppl"].compared_label) == (True, "tokens", "ln PPL")
    assert (found["bleu"].sentences, found["bleu"].better) == ("bleu", "higher")


def test_what_a_known_metric_does_not_say_is_as_by_default() -> None:
    found = read_metrics(FILE, {"bleu": {"label": "sacreBLEU"}, "ppl": None})
    assert found["bleu"].sentences == "bleu"
    assert found["bleu"].label == "sacreBLEU"
    assert found["ppl"] == DEFAULT["ppl"]
    assert [*found] == ["bleu", "ppl"], "the table has its order"


def test_another_score_under_a_known_name_has_no_statistics_over_its_sentences() -> None:
    found = read_metrics(FILE, {"bleu": {"key": "test.paper_bleu", "signature": "test.paper_signature"}})
    assert found["bleu"].sentences == ""


def test_a_metric_lies_in_the_result_under_its_name_unless_it_says_where() -> None:
    assert read_metrics(FILE, {"chrf": {}})["chrf"] == Metric(
        "chrf", "test.chrf", "chrf", signature="test.chrf_signature"
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["bleu"], "metrics must map names to what they are"),
        ({"chrf": {"beter": "lower"}}, "metrics.chrf: unknown key 'beter': did you mean better?"),
        ({"chrf": {"better": "low"}}, "metrics.chrf.better: 'low': did you mean lower?"),
        ({"chrf": {"scale": "nats"}}, "metrics.chrf.scale: 'nats': choose one of linear, log"),
        ({"chrf": {"digits": "two"}}, "metrics.chrf.digits must be a whole number, 0 or more, not 'two'"),
        ({"chrf": {"digits": -1}}, "metrics.chrf.digits must be a whole number, 0 or more, not -1"),
        ({"chr f": {}}, "metrics.chr f must be a word"),
        ({"chrf": "test.chrf"}, "metrics.chrf must be a word and say what it is"),
        ({"lower": {"sentences": "bleu"}}, "metrics.lower.sentences: bleu resamples sentences for test.bleu"),
        (
            {"bleu": {"scale": "log"}},
            "metrics.bleu.sentences: bleu resamples sentences for test.bleu, on a linear scale",
        ),
    ],
)
def test_what_cannot_be_meant_is_told_with_the_file_and_the_key(given: Any, told: str) -> None:
    with pytest.raises(UserError) as refusal:
        read_metrics(FILE, given)
    assert str(refusal.value).startswith(f"{FILE}: ")
    assert told in str(refusal.value)


@pytest.mark.parametrize(
    ("overrides", "shown"),
    [
        ([], ["ppl", "bleu"]),
        (["task=language_modelling"], ["ppl", "bits_per_byte"]),
        (["task=masked_language_modelling", "model.heads=2"], ["ppl", "accuracy"]),
        (["task=mine"], ["ppl"]),
    ],
)
def test_a_study_that_declares_nothing_shows_what_the_task_of_its_baseline_is_measured_by(
    overrides: list[str], shown: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "experiments" / "tasked"
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(f"baseline: base\narms:\n  base: {overrides}\n  other: [model.heads=1]\n")
    monkeypatch.chdir(tmp_path)
    assert list(load_study("tasked").metrics) == shown
