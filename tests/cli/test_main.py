"""The command line as a person meets it: verbs, exit statuses, and what is left on disk."""

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests import warm

from etude.cli.main import main
from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.paths import shipped
from etude.store.records import read_rows
from etude.store.run_dir import RunDir
from etude.store.run_state import State
from etude.store.wandb_id import logged_as

from .conftest import status

SMALL = ["data=files", "data.tsv=pairs.tsv", "data.holdout=8", "tokenizer.vocab_size=40", "budget=smoke"]
TWO = ["trainer=ddp", "trainer.accelerator=cpu", "hydra.launcher.workers=2"]
DYING = Path(__file__).parents[1] / "training" / "dying.py"


def etude(
    *words: str, cwd: Path, text: str | bytes = b"", env: dict[str, str] | None = None
) -> subprocess.CompletedProcess:
    """Run `etude WORDS`; output as text."""
    environment = {"ETUDE_CACHE": str(cwd / "cache")} | (env or {})
    text = text.encode() if isinstance(text, str) else text
    return warm.run(warm.ETUDE, *words, cwd=cwd, text=text, env=environment, timeout=300)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """An empty folder with a small parallel text: letters to themselves."""
    folder = tmp_path_factory.mktemp("place")
    rows = ["".join(f" {'abcdefgh'[(k * j) % 8]}" for j in range(1, 3 + k % 7)).strip() for k in range(1, 400)]
    rows = [f"{row} {'abcdefgh'[k % 8]}{'abcdefgh'[k // 8 % 8]}" for k, row in enumerate(rows)]
    (folder / "pairs.tsv").write_text("".join(f"{row}\t{row}\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def trained(place) -> Path:
    """The directory of a finished smoke run."""
    done = etude("train", *SMALL, "logger=wandb", cwd=place)
    assert done.returncode == 0, done.stderr
    return place / done.stdout.splitlines()[0]


HEAVY = ("torch", "lightning", "scipy", "sacrebleu", "sentencepiece", "wandb", "plotly", "pandas")


def imported_by(*words: str, cwd: Path, text: str = "") -> tuple[set[str], str]:
    """The packages that a command imports, in a process of its own, and what it prints."""
    command = [sys.executable, "-X", "importtime", "-m", "etude", *words]
    environment = os.environ | {"ETUDE_CACHE": str(cwd / "cache")}
    done = subprocess.run(command, cwd=cwd, input=text, capture_output=True, text=True, env=environment, check=True)
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}, done.stdout


def test_a_terminal_without_our_letters_gets_their_numbers(place):
    done = subprocess.run(
        [sys.executable, "-m", "etude", "--help"],
        cwd=place,
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert done.stdout.startswith(rb"\xe9tude: study the Transformer")


def test_closed_standard_streams_are_no_traceback(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)  # as after `>&-`
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    with pytest.raises(SystemExit, match="2"):
        main(["nonsense"])


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["sweep", "--help"]], ids=" ".join)
def test_help_imports_nothing_that_takes_long(words, place):
    """Seconds would depend on what else the machine does."""
    imported, printed = imported_by(*words, cwd=place)
    assert "etude" in printed
    assert "etude" in imported
    assert not imported.intersection(HEAVY)


@pytest.mark.slow
def test_translating_imports_torch_but_not_lightning_which_takes_longer(trained, place):
    imported, _ = imported_by("translate", f"run={trained}", cwd=place, text="a b\n")
    assert "torch" in imported
    assert "lightning" not in imported


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["evaluate", "--help"], ["etude evaluate run=", "decoding.beam", "split: test", "# the directory of the run"]),
        (["translate", "-h"], ["< in.en > out.de", "device: auto"]),
        (["analyze", "--help"], ["sentences: 200", "removal_bleu: false"]),
        (["sweep", "smoke", "--help"], ["usage: etude sweep", f"\n{shipped('sweeps')};", "etude sweep --path"]),
        (["report", "table3", "--help"], ["usage: etude report"]),
        (["report", "sweeps/smoke.yaml", "--help"], ["usage: etude report"]),
        (["results", "table3", "--help"], ["usage: etude results"]),
        (["help", "results"], ["usage: etude results"]),
        (["-h", "train"], ["usage: etude train", "model/position          alibi, learned", "table3/ARM"]),
        (["train", "data=grammar", "--help"], ["usage: etude train"]),
        (["prepare", "--help"], ["usage: etude prepare", "--verify   compare"]),
    ],
)
def test_help_says_what_a_verb_takes_wherever_it_is_asked_for(words, told, capsys):
    assert status(*words) == 0
    printed = capsys.readouterr().out
    assert [one for one in told if one not in printed] == []
    assert "Configuration groups" not in printed  # Hydra's own help


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sweep", "--path", "tests/table3.yaml"], f"étude is {shipped('sweeps') / 'table3.yaml'}"),
        (["sweep", "--path", "modern"], "--path prints the path of one sweep file"),
        (["sweep", "--path"], "--path prints the path of one sweep file"),
        (["evaluate", "."], "'.' is not an override; did you mean run=.?"),
    ],
)
def test_words_that_a_verb_does_not_take_are_told(words, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert status(*words) == 2
    assert told in capsys.readouterr().err


def test_the_path_of_a_shipped_sweep_is_told_for_whoever_needs_it_elsewhere(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert status("sweep", "--path", "table3") == 0
    assert capsys.readouterr().out == f"{shipped('sweeps') / 'table3.yaml'}\n"


@pytest.mark.slow
def test_a_run_leaves_the_records_that_the_design_promises(trained):
    names = {path.name for path in trained.iterdir()}
    promised = "config.yaml overrides.txt result.json training metrics.csv hypotheses.test.txt environment.json log.txt"
    assert set(promised.split()) <= names
    result = json.loads((trained / "result.json").read_text())
    assert result["finished"]
    assert result["steps"] == 10
    assert result["test"]["sentences"] == 8
    assert "tok:13a" in result["test"]["signature"]
    assert len((trained / "hypotheses.test.txt").read_text().splitlines()) == 8
    assert json.loads((trained / "environment.json").read_text())["packages"]["torch"]


@pytest.mark.slow
def test_weights_and_biases_is_offline_by_default_under_the_runs_own_id(trained):
    [offline] = (trained / "wandb").glob("offline-run-*")
    assert offline.name.endswith(logged_as(RunDir(trained)))


def test_why_a_run_failed_can_be_asked_later(place):
    (place / "short.txt").write_text("a\n")
    (place / "long.txt").write_text("a\nb\n")
    words = ["data=files", "data.source=short.txt", "data.target=long.txt", "budget=smoke", "logger=none"]
    failed = etude("train", *words, "runs_dir=failed", cwd=place)
    assert failed.returncode == 2
    assert failed.stderr.splitlines()[-1].startswith("etude: short.txt has 1 lines but long.txt has 2")
    [run], _ = read_rows(place / "failed" / "single")
    assert (run.state, run.error) == (State.FAILED, failed.stderr.splitlines()[-1])


@pytest.mark.slow
def test_two_processes_do_not_train_one_run(place, monkeypatch):
    from etude.training.module import TrainingModule
    from etude.training.run import train

    words = [*SMALL, "seed=13", "logger=none", "runs_dir=twice"]
    step, others = TrainingModule.training_step, []

    def step_beside_others(*batch):
        if not others:
            others[:] = [etude("train", *words, *more, cwd=place) for more in ([], TWO)]
        return step(*batch)

    monkeypatch.setattr(TrainingModule, "training_step", step_beside_others)
    monkeypatch.chdir(place)
    monkeypatch.setenv("ETUDE_CACHE", str(place / "cache"))
    train(freeze(compose(words)))
    assert [other.returncode for other in others] == [75, 75]
    assert all("another process is training" in other.stderr for other in others)


@pytest.mark.slow
def test_a_finished_run_is_not_computed_again(trained, place):
    before = (trained / "result.json").stat().st_mtime_ns
    done = etude("train", *SMALL, "logger=none", cwd=place)
    assert "already finished" in done.stderr
    assert done.stdout.splitlines()[0] == str(trained.relative_to(place))
    assert (trained / "result.json").stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_finished_run_that_is_asked_for_another_metric_is_only_scored(trained, place):
    runs_dir = trained.parents[2]
    shutil.copytree(runs_dir, place / "scored")
    asked = ("train", *SMALL, "logger=none", "metrics=[bleu,chrf]", "runs_dir=scored")
    first, second = (etude(*asked, cwd=place) for _ in range(2))
    assert "already finished, only scored, by the metrics that it lacked" in first.stderr
    assert "already finished, nothing to do" in second.stderr
    assert first.stdout == second.stdout
    assert "test chrf " in first.stdout


@pytest.mark.slow
def test_a_finished_run_that_wandb_lacks_is_told_with_the_line_that_sends_it(trained, place):
    done = etude("train", *SMALL, "logger.wandb.mode=online", cwd=place)
    assert f"wandb sync {trained.relative_to(place)}/wandb" in done.stderr
    assert "wandb sync" not in etude("train", *SMALL, cwd=place).stderr


@pytest.mark.slow
def test_a_cleaned_run_stands_as_before_and_only_its_weights_are_gone(trained, place):
    copy = place / "cleaned" / Path(*trained.parts[-3:])
    shutil.copytree(trained.parents[2], place / "cleaned", symlinks=True)
    before = etude("status", "runs_dir=cleaned", cwd=place).stdout
    assert "freed" in etude("clean", "runs_dir=cleaned", "--yes", cwd=place).stdout
    assert etude("status", "runs_dir=cleaned", cwd=place).stdout == before
    done = etude("evaluate", f"run={copy}", cwd=place)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "were deleted: `etude train data=files" in done.stderr
    assert (copy / "hypotheses.test.txt").read_bytes() == (trained / "hypotheses.test.txt").read_bytes()


@pytest.mark.slow
def test_translate_answers_line_for_line_and_blank_for_blank(trained, place):
    done = etude("translate", f"run={trained}", "decoding.max_len_offset=5", cwd=place, text="a b c\n\n   \nh g\n")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert len(lines) == 5
    assert lines[1] == lines[2] == lines[4] == ""


@pytest.mark.slow
def test_translate_names_the_line_that_is_not_utf8(trained, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a b\n\xff\xfe\n")))
    assert status("translate", f"run={trained}") == 2
    told = capsys.readouterr()
    assert "standard input, line 2: not UTF-8" in told.err
    assert told.out.count("\n") == 1


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_the_run_goes_on_later(place, tmp_path):
    """The file size limit stands in for a full disk: the first checkpoint does not fit."""
    program = tmp_path / "full.py"
    program.write_text(
        "import resource, etude.cli.main\nresource.setrlimit(resource.RLIMIT_FSIZE, (200 << 10, 200 << 10))\n"
        "etude.cli.main.main()\n"
    )
    words = ["train", *SMALL, "seed=9", "logger=none"]
    full = warm.run(str(program), *words, cwd=place, env={"ETUDE_CACHE": str(place / "cache")})
    assert full.returncode == 2, full.stderr
    assert "cannot write" in full.stderr.splitlines()[-1]
    assert "Traceback" not in full.stderr
    done = etude(*words, cwd=place)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_ctrl_c_saves_the_step_and_says_how_to_go_on(place):
    words = [*SMALL, "seed=14", "logger=none", "budget.val_every=100000", "runs_dir=asked"]
    environment = {"ETUDE_CACHE": str(place / "cache")}
    done = warm.run(str(DYING), "SIGINT in a step", "train", *words, cwd=place, env=environment)
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == "etude: interrupted; the same command goes on from the last checkpoint"
    assert "Traceback" not in done.stderr
    assert list((place / "asked").rglob("last.ckpt")), "no validation was due: the checkpoint is the signal's"


@pytest.mark.slow
def test_a_run_on_two_devices_is_trained_by_two_processes_and_files_one_result(place):
    done = etude("train", *SMALL, "seed=15", "logger=none", *TWO, cwd=place)
    assert done.returncode == 0, done.stderr
    run = place / done.stdout.splitlines()[0]
    assert json.loads((run / "result.json").read_text())["steps"] == 10
    assert "step 10/10" in (run / "log.txt").read_text()
    alone = etude("train", *SMALL, "seed=15", "logger=none", cwd=place)
    assert "already finished" in alone.stderr, "how many devices a run had does not tell it from another"


@pytest.mark.slow
def test_a_mistake_that_only_the_run_can_find_is_one_sentence_on_two_devices_too(place):
    words = [*TWO, "tokenizer.vocab_size=5000", "logger=none"]
    done = etude("train", *SMALL[:3], "budget=smoke", *words, cwd=place)
    assert done.returncode == 2
    assert "is more than this text can fill" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["trian"], "'trian' is not a verb of etude; did you mean train"),
        (["TRAIN"], "'TRAIN' is not a verb of etude; did you mean train?"),
        ([""], "'' is not a verb of etude; choose one of "),
        (["compare", "table3"], "'compare' is not a verb of etude; did you mean diff or report?"),
        (["train", "data=files", "data.tsv=pairs.tsv", "data.languages=[en]"], "data.languages=['en'] must name two"),
        (["evaluate", "run=x", "split=train"], "split must be one of valid, test"),
        (["train", "model.d_model=63", "model.heads=9", *SMALL], "d_model must be even, not 63: say model.d_model=64"),
        (["evaluate", "--resolve"], "--resolve goes with --cfg, as in --cfg job --resolve: leave it out"),
        (["plan", "~model/position=1"], "a config group takes the name of one of its files"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(place, words, sentence, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert status(*words) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.startswith("etude: ") or "\netude: " in told
    assert "Traceback" not in told


def test_hydras_own_flags_keep_working(place):
    job = etude("train", "--cfg", "job", "experiment=table3/B1", cwd=place)
    assert "d_k: 4" in etude("train", "--cfg", "job", "--resolve", "experiment=table3/B1", cwd=place).stdout
    assert "arm: B1" in job.stdout
    assert "SlotsLauncher" in etude("train", "--info", "plugins", cwd=place).stdout
    assert "study://" in etude("train", "--info", "searchpath", cwd=place).stdout
    assert "study://" in etude("prepare", "--info", "data=multi30k_en_de", cwd=place).stdout


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["evaluate", "translate", "show", "analyze"])
def test_a_trained_run_whose_class_is_gone_is_one_sentence(verb, trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    copy = tmp_path / trained.name
    shutil.copytree(trained, copy)
    config = copy / "config.yaml"
    config.write_text(config.read_text().replace("etude.model.scale.SqrtDk", "gone.Scale"))
    assert status(verb, f"run={copy}") == 2
    way_out = "write package.module.Name of what is installed or lies in this folder"
    assert capsys.readouterr() == ("", f"etude: _target_: gone.Scale cannot be found: {way_out}\n")


@pytest.mark.slow
def test_a_reader_who_has_seen_enough_ends_translate_quietly(trained, place):
    lines = "a b\n" * 3000
    command = f"{warm.python()} -m etude translate run={trained} decoding=greedy device=cpu | head -1"
    done = subprocess.run(command, shell=True, cwd=place, input=lines, capture_output=True, text=True, timeout=300)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""
