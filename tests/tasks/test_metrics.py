"""Metrics as parts: sacreBLEU's, a user's own, and those that fail."""

import logging
import math
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import yaml

from etude.data.corpus import digest
from etude.errors import UserError
from etude.files import write_json
from etude.store.run_dir import RunDir
from etude.tasks.chrf_ter import chrf, ter
from etude.tasks.metrics import add_missing_metrics, check_tokenizers, format_scores, score_translations

HYPOTHESES = ["Der Hund läuft schnell.", "Eine Katze schläft."]
REFERENCES = ["Der Hund läuft.", "Die Katze schläft hier."]
CHRF = {"_target_": "etude.tasks.chrf_ter.chrf", "char_order": 6, "word_order": 0}
TER = {"_target_": "etude.tasks.chrf_ter.ter", "normalized": False, "case_sensitive": False}
BLEU = {"_target_": "etude.tasks.bleu.bleu"}


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of a user's with metrics."""
    (tmp_path / "my_metrics.py").write_text(
        "def exact(hypotheses, references):\n"
        "    return sum(map(str.__eq__, hypotheses, references)) / len(references)\n"
        "def kept(sources, references, hypotheses):\n"
        "    return sum(h == s for h, s in zip(hypotheses, sources)) / len(references)\n"
        "def no_number(hypotheses, references):\n    return float('nan')\n"
        "def nameless(hypotheses, references):\n    return {'f1': 3.0}\n"
        "def broken(hypotheses, references):\n    raise RuntimeError('\\nno such luck')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


def test_chrf_and_ter_are_sacrebleus_with_its_signatures() -> None:
    found = score_translations({"chrf": CHRF, "ter": TER}, {}, HYPOTHESES, REFERENCES)
    assert found["chrf"] == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert found["ter"] == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    assert "nc:6|nw:0" in found["chrf_signature"]
    assert "tok:tercom" in found["ter_signature"]


def test_what_cannot_be_compared_is_refused_by_the_name_of_the_metric() -> None:
    with pytest.raises(UserError, match=r"^chrF of no lines is not defined"):
        chrf([], [], 6, 0)
    with pytest.raises(UserError, match="TER needs one reference line for each"):
        ter(HYPOTHESES[:1], REFERENCES, False, False)


def test_bleu_keeps_the_names_that_results_have_had() -> None:
    found = score_translations({"bleu": BLEU}, {}, HYPOTHESES, REFERENCES)
    assert set(found) == {"bleu", "signature"}
    assert found["bleu"] == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score


@pytest.mark.usefixtures("mine")
def test_a_metric_of_the_users_is_a_function_of_hypotheses_and_references() -> None:
    metrics = {"exact": {"_target_": "my_metrics.exact"}}
    assert score_translations(metrics, {}, ["a", "b"], ["a", "c"]) == {"exact": 0.5}


@pytest.mark.usefixtures("mine")
def test_it_may_take_the_sources_too_in_any_order() -> None:
    metrics = {"kept": {"_target_": "my_metrics.kept"}}
    assert score_translations(metrics, {}, ["a", "b"], ["a", "c"], ["a", "c"]) == {"kept": 0.5}


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no_number", "metrics.mine gave nan, which is not a score: the run is kept without it"),
        (
            "nameless",
            "metrics.mine failed, so that the run has no such score: ValueError: it returns {'f1': 3.0}, without "
            "`score`: return a number, or {'score': ...}",
        ),
        ("broken", "metrics.mine failed, so that the run has no such score: RuntimeError: no such luck"),
    ],
)
def test_a_metric_without_a_score_is_named_and_loses_nothing(
    name: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    metrics = {"mine": {"_target_": f"my_metrics.{name}"}, "bleu": BLEU}
    assert "bleu" in score_translations(metrics, {}, HYPOTHESES, REFERENCES)
    assert [record.getMessage() for record in caplog.records] == [told]


def finished(folder: Path, **test: Any) -> RunDir:
    """A finished run with its translations."""
    run = RunDir(folder / "seed1-0123456789")
    run.path.mkdir()
    run.config_file.write_text("data: {}\nchoices: {}\n")
    for file, lines in ((run.hypotheses_file, HYPOTHESES), (run.references_file, REFERENCES)):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    write_json(run.result_file, {"test": {"perplexity": 3.0, "bleu": 12.5} | test, "finished": True})
    return run


def test_a_finished_run_is_scored_by_what_it_lacks_from_its_translations(tmp_path: Path) -> None:
    run = finished(tmp_path)
    add_missing_metrics(run, {"metrics": {"ter": TER, "bleu": BLEU, "chrf": CHRF}})
    kept = run.result()["test"]
    assert [name for name in kept if "signature" not in name] == ["perplexity", "bleu", "ter", "chrf"]
    assert kept["bleu"] == 12.5, "what is there stays"
    assert kept["chrf"] == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score


def test_a_metric_with_other_options_is_computed_anew(tmp_path: Path) -> None:
    run, words = finished(tmp_path), CHRF | {"word_order": 2}
    for asked in (CHRF, words, words):
        add_missing_metrics(run, {"metrics": {"chrf": asked}})
    kept = run.result()["test"]
    assert kept["chrf"] == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2).score
    assert "nw:2" in kept["chrf_signature"]
    assert kept["bleu"] == 12.5, "nobody asked for it"


def test_a_run_that_diverged_or_kept_no_translations_stays_as_it_is(tmp_path: Path) -> None:
    run = finished(tmp_path, perplexity=math.inf)
    before = run.result_file.read_bytes()
    add_missing_metrics(run, {"metrics": {"chrf": CHRF}})
    run.hypotheses_file.unlink()
    add_missing_metrics(run, {"metrics": {"chrf": CHRF}})
    assert run.result_file.read_bytes() == before


def test_the_terminal_shows_each_metric_with_its_signature() -> None:
    scores = {"perplexity": 3.0, "tokens": 7, "bleu": 31.5, "signature": "nrefs:1", "exact": 0.25, "sentences": 2}
    assert format_scores("test", scores) == "test perplexity 3.00  BLEU 31.50  (nrefs:1)\ntest exact 0.25\n"
    assert format_scores("valid", scores, sentences=1000).startswith(
        "valid perplexity 3.00  BLEU 31.50  (nrefs:1, 1,000 sentences)\n"
    )


CHINESE = ["我们昨天去了北京。", "他喜欢猫。"], ["我们昨天去了上海。", "她喜欢猫。"]


def text_in(language: str) -> dict[str, Any]:
    """The `data` of a config."""
    none = {"source": None, "target": None, "tsv": None}
    options = none | {"valid": none, "test": none, "holdout": 1, "languages": ["en", language]}
    return {"_target_": "etude.data.text_files.FilesCorpus", "columns": None, "vocab_size": 9} | options


@pytest.mark.parametrize(
    ("language", "given", "tokenize"),
    [("zh", {}, "zh"), ("th", {}, "char"), ("de", {}, "13a"), ("zh", {"tokenize": "13a"}, "13a")],
)
def test_bleu_splits_lines_as_the_target_language_asks_for_unless_told_otherwise(
    language: str, given: dict[str, str], tokenize: str
) -> None:
    found = score_translations({"bleu": BLEU | given}, text_in(language), *CHINESE)
    assert found["bleu"] == sacrebleu.corpus_bleu(CHINESE[0], [CHINESE[1]], tokenize=tokenize).score
    assert f"|tok:{tokenize}|" in found["signature"]


@pytest.mark.parametrize("language", ["zh", "de"])
def test_a_finished_run_is_scored_again_where_its_language_asks_for_another_bleu(language: str, tmp_path: Path) -> None:
    run = finished(tmp_path)
    run.config_file.write_text(yaml.safe_dump({"data": text_in(language), "choices": {}}))
    for file, lines in zip((run.hypotheses_file, run.references_file), CHINESE, strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    before = {"bleu": digest(BLEU)}  # whatever the language
    write_json(run.result_file, run.result() | {"scored_by": before})
    add_missing_metrics(run, {"metrics": {"bleu": BLEU}, "data": text_in(language)})
    chinese = sacrebleu.corpus_bleu(CHINESE[0], [CHINESE[1]], tokenize="zh").score
    assert run.result()["test"]["bleu"] == (chinese if language == "zh" else 12.5)
    assert (run.result()["scored_by"] == before) == (language == "de")


@pytest.mark.parametrize("options", [{}, {"tokenize": "ja-mecab"}])
def test_a_package_that_bleu_lacks_is_named_before_training(
    options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(UserError, match=r"metrics\.mine: .*sacrebleu\[ja\]; or say \+metrics\.mine\.tokenize=char"):
        check_tokenizers({"metrics": {"mine": BLEU | options}, "data": text_in("ja")})
    check_tokenizers({"metrics": {"mine": BLEU | {"tokenize": "char"}}, "data": text_in("ja")})
