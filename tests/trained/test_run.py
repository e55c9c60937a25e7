"""`etude.load`: what a run says and does in Python is what its files say and its verbs do."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.letters import TEXT, write_pairs

import etude
from etude.cli.main import main
from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.config.parts import make
from etude.data.tokenizer import EOS
from etude.errors import UserError
from etude.store.run_dir import RunDir
from etude.trained.run import TrainedRun
from etude.training.run import train

TINY = ["model.d_model=16", "model.d_ff=16", "model.heads=2", "model.n_layers=2", "model.dropout=0", "trainer=cpu"]
TINY += ["budget=smoke", "budget.max_steps=6", "budget.val_every=3", "logger=none"]
LINES = ["a b c", "", "h g f e d c", "b"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., RunDir]:
    """Trains runs of six steps."""
    place = tmp_path_factory.mktemp("place")
    text = [*TEXT, write_pairs(place)]
    folders = [f"runs_dir={place / 'runs'}", f"cache_dir={place / 'cache'}"]

    def make(*overrides: str) -> RunDir:
        made = freeze(compose([*TINY, *text, *folders, *overrides]))
        train(made)
        return made

    return make


@pytest.fixture(scope="module")
def done(trained: Callable[..., RunDir]) -> RunDir:
    return trained("decoding.max_len_offset=2", "decoding.alpha=3")  # so that it writes words, little as it knows


@pytest.fixture(scope="module")
def run(done: RunDir) -> TrainedRun:
    return etude.load(done.path)


@pytest.fixture(scope="module")
def language_model(trained: Callable[..., RunDir]) -> TrainedRun:
    return etude.load(trained("task=language_modelling").path)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a verb prints for some lines."""

    def verb(*words: str, lines: list[str] = LINES) -> str:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("".join(f"{one}\n" for one in lines).encode())))
        with pytest.raises(SystemExit) as end:
            main(list(words))
        told = capsys.readouterr()
        assert end.value.code == 0, told.err
        return told.out

    return verb


IMPORTS = """
import sys
from pathlib import Path

def imported(*names):
    return {*names} & {*sys.modules}

import etude
assert not imported("numpy", "pandas", "torch", "omegaconf")
folder = Path(sys.argv[1])
run = etude.load(folder)
run.config, run.metrics, run.result
assert not imported("torch", "lightning", "hydra")
from etude.store.machine import look_around
[*look_around(folder, folder, 1)]
assert not imported("torch")
from etude.launch.resources import Slots
from etude.launch.slots import run_side_by_side
from etude.store.run_dir import RunDir
run_side_by_side([RunDir(folder)], Slots(), command=None)
assert not imported("torch")
"""


def test_files_are_read_a_machine_is_looked_at_and_finished_runs_are_skipped_without_torch(done: RunDir) -> None:
    """And the door opens quickly."""
    subprocess.run([sys.executable, "-c", IMPORTS, str(done.path)], check=True)


def test_a_run_says_what_its_files_say(run: TrainedRun, done: RunDir) -> None:
    assert run.config == done.config()
    assert run.result == done.result()
    curves = run.metrics
    assert curves["step"].tolist() == sorted(curves["step"])
    assert curves["valid_perplexity"].dropna().iloc[-1] == pytest.approx(done.result()["valid"]["perplexity"])
    assert not run.model.training
    assert {*run.state_dict()} == {*run.model.state_dict()}
    assert eval(repr(run), {"etude": etude}).path == done.path


@pytest.mark.parametrize("search", [{}, {"beam": 1}, {"beam": 3, "alpha": 0.0}])
def test_a_run_translates_what_its_verb_prints(run: TrainedRun, printed: Callable[..., str], search: dict) -> None:
    typed = [f"decoding.{key}={value}" for key, value in search.items()]
    told = run.translate(LINES, **search)
    assert printed("translate", f"run={run.path}", "device=cpu", *typed) == "".join(f"{one}\n" for one in told)
    assert any(told)
    assert told[1] == ""
    assert run.translate(LINES[2], **search) == told[2]


def test_the_verb_writes_every_translation_with_its_scores_and_alignment(
    run: TrainedRun, printed: Callable[..., str]
) -> None:
    asked = ["translate", f"run={run.path}", "device=cpu", "n_best=3", "scores=true", "alignments=true"]
    found = run.translate(LINES, n_best=3, alignments=True)
    assert [len(one) for one in found] == [3, 0, 3, 3]
    header, *rows = printed(*asked).removesuffix("\n").split("\n")
    assert header == "line\trank\ttranslation\tscore\tlog_probability\talignment"
    table = [dict(zip(header.split("\t"), row.split("\t"), strict=True)) for row in rows]
    told = [[row for row in table if row["line"] == str(n)] for n in range(1, 5)]
    for line, translations in zip(told, found, strict=True):
        assert [row["translation"] for row in line] == [one.text for one in translations] or not translations
        assert [row["alignment"] for row in line] == [one.pharaoh for one in translations] or not translations
        for row, one in zip(line, translations, strict=False):
            assert float(row["score"]) == pytest.approx(one.score, abs=1e-4)
            assert len(one.alignment or []) == len(one.text.split())
    assert [row["translation"] for row in told[1]] == [""]
    objects = [json.loads(line) for line in printed(*asked, "format=jsonl").splitlines()]
    assert [one["source"] for one in objects] == LINES
    assert [[row["alignment"] for row in line] for line in told if line[0]["score"]] == [
        [one["alignment"] for one in told["translations"]] for told in objects if told["translations"]
    ]


def test_a_translation_s_log_probability_is_the_score_of_its_text(run: TrainedRun) -> None:
    """The search, step by step, against all tokens at once; wherever the text is cut into the same subwords."""
    found = run.translate(LINES, n_best=4)
    pairs = [(line, one) for line, of_line in zip(LINES, found, strict=True) for one in of_line if one.text]
    scores = run.score([line for line, _ in pairs], [one.text for _, one in pairs])
    assert scores == pytest.approx([run.score(line, one.text) for line, one in pairs], abs=1e-4)
    assert run.score("a b", "") == pytest.approx(run.score(["a b"], [""])[0], abs=1e-4)
    columns = np.array(["a b", "c"]), np.array(["b a", "c"])
    assert run.score(*columns) == pytest.approx(run.score(*map(list, columns)), abs=1e-4)
    agreeing = [abs(one.log_probability - score) < 1e-3 for (_, one), score in zip(pairs, scores, strict=True)]
    assert sum(agreeing) > len(pairs) / 2


def test_a_language_model_writes_what_its_verb_prints_and_scores_texts(
    language_model: TrainedRun, printed: Callable[..., str]
) -> None:
    sampling = {"max_length": 8, "seed": 3}
    told = language_model.generate(LINES, **sampling)
    typed = [f"sampling.{key}={value}" for key, value in sampling.items()]
    assert printed("generate", f"run={language_model.path}", "device=cpu", *typed) == "".join(f"{t}\n" for t in told)
    assert language_model.generate("a b", **sampling) == language_model.generate(["a b"], **sampling)[0]
    assert language_model.generate(LINES[2:], first=2, **sampling) == told[2:]
    ends = [-score for score in language_model.score(["", "a", "a b"])]
    assert all(nats > 0 for nats in ends)
    assert language_model.score("a b") == pytest.approx(-ends[2], abs=1e-4)


def test_where_a_model_looks_is_a_distribution_over_what_it_reads(run: TrainedRun, language_model: TrainedRun) -> None:
    found = run.attention("a b c", "c b a")
    assert (found.source[-1], found.target[0]) == ("</s>", "<s>")
    sizes = {"encoder": (found.source,) * 2, "decoder": (found.target,) * 2, "cross": (found.target, found.source)}
    assert found.weights.keys() == sizes.keys()
    for kind, (rows, columns) in sizes.items():
        assert [layer.shape for layer in found.weights[kind]] == [(2, len(rows), len(columns))] * 2
        assert all(layer.sum(axis=-1) == pytest.approx(1) for layer in found.weights[kind])
        [drawn] = found.plot(kind, layer=1, head=2).data
        assert (drawn.z == found.weights[kind][0][1]).all()
    assert {*language_model.attention("a b").weights} == {"decoder"}
    with pytest.raises(UserError, match=r"layer=1\.5: there are the layers 1 to 2"):
        found.plot(layer=1.5)
    with pytest.raises(UserError, match="layer=3: there are the layers 1 to 2"):
        found.plot(layer=3)
    with pytest.raises(UserError, match="no attention 'crosss'; did you mean cross"):
        found.plot("crosss")


def test_where_a_model_looks_at_its_own_translation_is_read_from_the_subwords_that_it_wrote(
    run: TrainedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, search = run.tokenizer, make(run.config["decoding"])
    source = [*read.encode("a b c"), EOS]
    [[best, *_]] = search(run.model, torch.tensor([source]), torch.ones(1, len(source), dtype=torch.bool))
    monkeypatch.setattr(run, "translate", lambda text: "h h h")  # a text may be cut in several ways
    found = run.attention("a b c")
    assert found.target == ["<s>", *read.subwords(best.tokens)]
    assert found.source == read.subwords(source)


def test_prompts_are_continued_some_at_a_time_and_each_as_it_would_be(
    language_model: TrainedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, step = [], language_model.model.step

    def count(tokens: torch.Tensor, state: Any) -> torch.Tensor:
        rows.append(len(tokens))
        return step(tokens, state)

    monkeypatch.setattr(language_model.model, "step", count)
    texts = language_model.generate(["a b"] * 70, max_length=6, seed=3)
    assert max(rows) == 64
    assert texts[66:] == language_model.generate(["a b"] * 4, first=66, max_length=6, seed=3)


def test_what_numpy_calls_a_number_is_one(run: TrainedRun, language_model: TrainedRun) -> None:
    texts = [language_model.generate("a b", seed=seed, max_length=9) for seed in (np.int64(5), 5)]
    assert texts[0] == texts[1]
    assert len(run.translate("a b c", n_best=np.int64(2))) == 2


def test_loading_draws_nothing_from_the_callers_generator_and_knows_the_home_folder(
    done: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = torch.get_rng_state()
    loaded = etude.load(done.path)
    assert loaded.model
    assert torch.equal(torch.get_rng_state(), before)
    monkeypatch.setenv("HOME", str(tmp_path))
    loaded.export("~/weights.safetensors")
    assert (tmp_path / "weights.safetensors").is_file()


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda run, _: run.translate("a", n_best=5), "the search keeps 4 hypotheses: raise its beam to 5"),
        (lambda run, _: run.translate("a", n_best=2, beam=1), "n_best=2, and the search keeps one hypothesis"),
        (lambda run, _: run.translate("a", n_best=0), "n_best=0 must be at least 1"),
        (lambda run, _: run.translate("a", beam=np.array([1, 2])), "search.beam must be a whole number"),
        (lambda run, _: run.translate("a", n_best=1, alignments=True, layer=1.5), "layer=1.5 must be a whole number"),
        (lambda run, _: run.attention(["a", "b"]), "is no line: attention reads one"),
        (lambda run, _: run.translate("a", n_best="3"), "n_best='3' must be a whole number"),
        (lambda run, _: run.translate("a", beam="4"), "search.beam must be a whole number, not '4'"),
        (lambda run, _: run.translate("a", beam=2.5), "search.beam must be a whole number, not 2.5"),
        (lambda run, _: run.translate("a", alpha=None, beam=2), "search.alpha must be a number, not None"),
        (lambda run, _: run.translate(["a", 1]), "1 is no text: give a line, or a list of lines"),
        (lambda run, _: run.translate(None), "None is no text"),
        (lambda run, _: run.score(["a"], "b"), "give two lines, or two lists"),
        (lambda run, _: etude.load(run.path, weights="bset").model, "weights=bset: say last, best or average"),
        (lambda _, lm: lm.generate("a", top_k=2.5), "sampling.top_k must be a whole number"),
        (lambda run, _: run.translate("a", beem=2), "the search has no option 'beem'; did you mean beam"),
        (lambda run, _: run.translate("a", alignments=True), "alignments come with n_best"),
        (lambda run, _: run.translate("a", n_best=1, head=1), "say alignments=true, too"),
        (lambda run, _: run.translate("a", n_best=1, alignments=True, layer=3), "has the layers 1 to 2"),
        (lambda run, _: run.translate("a", n_best=1, alignments=True, head=3), "layer 1 of this model has the heads"),
        (lambda run, _: run.generate("a"), "`etude generate` has no use for a run whose task is Translation"),
        (lambda run, _: run.score(["a"], ["a", "b"]), "1 sources and 2 targets"),
        (lambda run, _: run.score("a"), r"its task needs score\(sources, targets\)"),
        (lambda run, _: run.export(run.path), "is there already"),
        (lambda run, _: etude.load(run.path, device="cuda:99").model, "device=cuda:99 is not available"),
        (lambda run, _: etude.load(run.path, device=torch.device("cuda:99")).model, "device=cuda:99 is not available"),
        (lambda _, lm: lm.translate("a"), "`etude translate` has no use for a run whose task is LanguageModelling"),
        (lambda _, lm: lm.score("a", "b"), r"its task needs score\(texts\), without targets"),
        (lambda _, lm: lm.generate("a", top=3), "the sampling has no option 'top'; did you mean top_"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_one_sentence(
    ask: Callable[[TrainedRun, TrainedRun], object], told: str, run: TrainedRun, language_model: TrainedRun
) -> None:
    with pytest.raises(UserError, match=told) as error:
        ask(run, language_model)
    assert "\n" not in str(error.value)


def test_a_run_that_is_not_finished_has_curves_and_the_model_of_its_last_checkpoint(
    done: RunDir, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copy = tmp_path / "runs" / "single" / "base" / done.path.name
    copy.parent.mkdir(parents=True)
    (tmp_path / "runs" / ".trainings").symlink_to(done.runs_dir / ".trainings")
    subprocess.run(["cp", "-r", done.path, copy], check=True)
    (copy / "result.json").unlink()
    unfinished = etude.load(copy)
    with pytest.raises(UserError, match=r"is not finished by step 6 of 6, so it has no result"):
        unfinished.result  # noqa: B018
    assert len(unfinished.metrics)
    with caplog.at_level(logging.WARNING):
        assert unfinished.translate("a b c") == etude.load(done.path).translate("a b c")
    assert "is not finished: this is what it has learned by step 6 of 6" in caplog.text
