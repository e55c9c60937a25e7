"""`etude evaluate` says what the run itself found, unless it is asked for something else."""

import io
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.letters import ROWS, TEXT, TINY, write_pairs

from etude.cli.main import main
from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.errors import UserError
from etude.inspect.analyze.subject import Subject
from etude.model.encoder_decoder import EncoderDecoder
from etude.store.run_dir import RunDir
from etude.tasks import build
from etude.trained.load import load_trained
from etude.training.run import train

SHORT = ["budget=smoke", "budget.max_steps=2", "decoding=greedy", "decoding.max_len_offset=3"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A finished run that translates greedily."""
    return trained(tmp_path_factory.mktemp("place"))


def trained(place: Path, *asked: str) -> RunDir:
    (place / "test.tsv").write_text("".join(f"{row[::-1]} 9\t{row}\n" for row in ROWS[:8]))
    folders = [write_pairs(place), f"runs_dir={place / 'runs'}", f"cache_dir={place / 'cache'}"]
    made = freeze(compose([*TINY, *TEXT, *SHORT, *folders, *asked]))
    train(made)
    return made


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float, int]]:
    """The searches that have been used."""
    used = []
    before = build.translator

    def translator(*parts: Any) -> Any:
        search = parts[-1]
        used.append((search.beam, search.alpha, search.max_len_offset))
        return before(*parts)

    monkeypatch.setattr(build, "translator", translator)
    return used


@pytest.mark.parametrize(
    ("words", "search"),
    [
        ([], (1, 0.6, 3)),
        (["decoding.beam=2"], (2, 0.6, 3)),
        (["decoding.alpha=0", "decoding.max_len_offset=5"], (1, 0, 5)),
        (["decoding=greedy"], (1, 0.6, 50)),
        (["decoding=beam", "decoding.alpha=0"], (4, 0, 50)),
    ],
)
def test_what_is_not_typed_of_the_decoding_is_as_in_the_run(
    words: Sequence[str],
    search: tuple[int, float, int],
    run: RunDir,
    searches: list[tuple[int, float, int]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["evaluate", f"run={run.path}", "device=cpu", *words])
    assert end.value.code == 0, capsys.readouterr().err
    assert searches == [search]


def test_by_default_it_says_what_the_result_says(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["evaluate", f"run={run.path}", "device=cpu"])
    told, test = capsys.readouterr(), run.result()["test"]
    assert f"test perplexity {test['perplexity']:.2f}  BLEU {test['bleu']:.2f}  ({test['signature']}" in told.out
    assert "not finished" not in told.err


def test_the_weights_that_are_asked_for_are_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = {"_target_": "lightning.pytorch.callbacks.ModelCheckpoint", "monitor": "val_loss", "mode": "max"}
    keeping = ["budget.val_every=1", *(f"+callbacks.kept.{key}={value}" for key, value in kept.items())]
    best = trained(tmp_path, *keeping)
    last = trained(tmp_path, *keeping, "weights=last")
    assert best.result()["test"]["perplexity"] != last.result()["test"]["perplexity"]
    for words, expected in (([], best), (["weights=best"], best), (["weights=last"], last)):
        with pytest.raises(SystemExit):
            main(["evaluate", f"run={best.path}", "device=cpu", *words])
        assert f"test perplexity {expected.result()['test']['perplexity']:.2f} " in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["evaluate", f"run={best.path}", "device=cpu", "weights=average"])
    assert "weights=average: none are kept to be averaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("precision", "has_bf16"), [("32-true", True), ("bf16-mixed", True), ("bf16-mixed", False)], indirect=["has_bf16"]
)
def test_a_trained_model_computes_in_the_precision_it_was_trained_in(
    precision: str, has_bf16: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen, encode = [], EncoderDecoder.encode

    def watched(model: EncoderDecoder, *given: torch.Tensor) -> torch.Tensor:
        seen.append(torch.is_autocast_enabled("cpu"))
        return encode(model, *given)

    monkeypatch.setattr(EncoderDecoder, "encode", watched)
    done = trained(tmp_path, f"precision={precision}")
    for verb in ("evaluate", "translate"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b c\n")))
        with pytest.raises(SystemExit):
            main([verb, f"run={done.path}", "device=cpu"])
    test = done.result()["test"]
    assert f"test perplexity {test['perplexity']:.2f}  BLEU {test['bleu']:.2f}" in capsys.readouterr().out
    subject = Subject.of(done, "cpu")
    text = subject.text([("a b", "a b")])
    subject.likelihoods(text)
    subject.translations(text)
    assert set(seen) == {precision == "bf16-mixed" and has_bf16}
    assert not torch.is_autocast_enabled("cpu")


def test_a_run_that_diverged_before_its_first_checkpoint_is_said_to_have_no_weights(
    run: RunDir, tmp_path: Path
) -> None:
    diverged = RunDir(tmp_path / run.path.name)
    shutil.copytree(run.path, diverged.path)
    diverged.write_result(run.result() | {"diverged": "the loss is nan at step 2", "weights": None})
    diverged.checkpoint.unlink()
    with pytest.raises(UserError, match=r"diverged before its first checkpoint \(the loss is nan at step 2\)"):
        load_trained(diverged)


def test_weights_that_other_code_made_are_named(run: RunDir, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_trained(run)
    assert not caplog.messages
    other = RunDir(tmp_path / run.path.name)
    shutil.copytree(run.path, other.path)
    other.write_result(run.result() | {"results_version": 0})
    load_trained(other)
    assert f"{other.path}: †" in caplog.text


def test_of_an_unfinished_run_it_says_so(run: RunDir, capsys: pytest.CaptureFixture[str]) -> None:
    kept = run.result_file.read_text()
    run.result_file.unlink()
    try:
        with pytest.raises(SystemExit):
            main(["evaluate", f"run={run.path}", "device=cpu"])
    finally:
        run.result_file.write_text(kept)
    assert f"{run.path} is not finished: this is what it has learned by step 2 of 2" in capsys.readouterr().err


def test_scores_on_another_text_than_the_runs_are_told_to_be_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained(tmp_path, f"data.test.tsv={tmp_path / 'test.tsv'}")
    assert evaluated(run, capsys) == ""
    test = tmp_path / "test.tsv"
    test.write_text("".join(test.read_text().splitlines(keepends=True)[:3]))
    assert "its text has changed since it was trained: these are scores on the text of today" in evaluated(run, capsys)
    with (tmp_path / "pairs.tsv").open("a") as pairs:
        pairs.write("xyz xyz\txyz xyz\n" * 20)
    assert f"the text has changed since {run.path} was trained: its subwords are" in evaluated(run, capsys)
    test.unlink()
    told = evaluated(run, capsys)
    assert f"the text of {run.path}, whose relative paths start from this folder: there is no file {test}" in told


def evaluated(run: RunDir, capsys: pytest.CaptureFixture[str]) -> str:
    """What `etude evaluate` says of a run besides its scores."""
    with pytest.raises(SystemExit):
        main(["evaluate", f"run={run.path}", "device=cpu"])
    return capsys.readouterr().err
