"""The command line as a person meets it: verbs, exit statuses, and what is left on disk."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests import warm

from etude.cli.main import main
from etude.paths import shipped
from etude.store.records import read_rows
from etude.store.run_dir import RunDir
from etude.store.run_state import State
from etude.store.wandb_id import logged_as

SMALL = ["data=files", "data.tsv=pairs.tsv", "data.holdout=8", "tokenizer.vocab_size=40", "budget=smoke"]
TWO = ["trainer=ddp", "trainer.accelerator=cpu", "hydra.launcher.workers=2"]


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


def test_a_plan_imports_torch_but_not_lightning_which_takes_longer(place):
    imported, _ = imported_by("plan", *SMALL, cwd=place)
    assert "torch" in imported
    assert "lightning" not in imported


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
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert [one for one in told if one not in printed] == []
    assert "Configuration groups" not in printed  # Hydra's own help


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sweep", "smoke", "--dry"], "etude sweep takes no --dry"),
        (["sweep", "--path", "tests/table3.yaml"], f"étude is {shipped('sweeps') / 'table3.yaml'}"),
        (["plan", "tests/table3.yaml"], f"étude is {shipped('sweeps') / 'table3.yaml'}"),
        (["sweep", "--path", "modern"], "--path prints the path of one sweep file"),
        (["sweep", "--path"], "--path prints the path of one sweep file"),
        (["report", "sweeps/smoke.yaml", "--html", "x"], "--html is for a study"),
        (["report", "smoke", "budgt=smoke"], "budgt is not a key"),
        (["report", "smoke"], "no run of this search is finished; this makes them: etude sweep smoke"),
        (["evaluate", "."], "'.' is not an override; did you mean run=.?"),
    ],
)
def test_words_that_a_verb_does_not_take_are_told(words, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("name", ["table3", "table3.yaml", "sweeps/table3.yaml"])
def test_the_path_of_a_shipped_sweep_is_told_for_whoever_needs_it_elsewhere(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["sweep", "--path", name])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"{shipped('sweeps') / 'table3.yaml'}\n")


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


@pytest.mark.slow
def test_an_unreachable_server_sends_the_run_offline_and_does_not_stop_it(place):
    env = {"WANDB_BASE_URL": "http://127.0.0.1:9", "WANDB_API_KEY": "0" * 40}
    done = etude("train", *SMALL, "seed=12", "logger.wandb.mode=online", cwd=place, env=env)
    assert done.returncode == 0, done.stderr
    assert "logging offline, `wandb sync" in done.stderr
    assert list((place / done.stdout.splitlines()[0] / "wandb").glob("offline-run-*"))


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
def test_two_processes_do_not_train_one_run(place):
    environment = os.environ | {"ETUDE_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1"}
    words = [*SMALL, "seed=13", "logger=none", "budget.max_steps=5000"]
    first = subprocess.Popen(
        [sys.executable, "-m", "etude", "train", *words, "runs_dir=twice"], cwd=place, env=environment
    )
    try:
        deadline = time.monotonic() + 120
        while not list((place / "twice").rglob("progress.json")) and time.monotonic() < deadline:
            time.sleep(0.1)
        seconds = [etude("train", *words, *more, "runs_dir=twice", cwd=place) for more in ([], TWO)]
    finally:
        first.kill()
        first.wait()
    for second in seconds:
        assert second.returncode == 75
        assert "another process is training" in second.stderr


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
def test_evaluate_finds_what_the_run_found(trained, place):
    done = etude("evaluate", f"run={trained}", cwd=place)
    result = json.loads((trained / "result.json").read_text())
    assert f"test perplexity {result['test']['perplexity']:.2f}  BLEU {result['test']['bleu']:.2f}" in done.stdout


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
def test_translate_names_the_line_that_is_not_utf8(trained, place):
    done = etude("translate", f"run={trained}", cwd=place, text=b"a b\n\xff\xfe\n")
    assert done.returncode == 2
    assert "standard input, line 2: not UTF-8" in done.stderr


@pytest.mark.slow
def test_a_missing_or_torn_checkpoint_is_one_sentence(trained, place, tmp_path):
    done = etude("translate", "run=nowhere", cwd=place)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "nowhere is not the directory of a run" in done.stderr
    copy = tmp_path / "run"
    copy.mkdir()
    for name in ("config.yaml", "tokenizer.model"):
        (copy / name).write_bytes((trained / name).read_bytes())
    done = etude("evaluate", f"run={copy}", cwd=place)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "has no checkpoint yet" in done.stderr
    kept = copy / "training" / "checkpoints" / "last.ckpt"
    kept.parent.mkdir(parents=True)
    kept.write_bytes((trained / "training" / "checkpoints" / "last.ckpt").read_bytes()[:5000])
    done = etude("evaluate", f"run={copy}", cwd=place)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is not a whole checkpoint" in done.stderr


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_the_run_goes_on_later(place, tmp_path):
    """The file size limit stands in for a full disk: the first checkpoint does not fit."""
    command = f"ulimit -f 200; exec {sys.executable} -m etude train {' '.join(SMALL)} seed=9 logger=none"
    environment = os.environ | {"ETUDE_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1"}
    full = subprocess.run(["bash", "-c", command], cwd=place, capture_output=True, env=environment, check=False)
    assert full.returncode == 2, full.stderr.decode()
    assert "cannot write" in full.stderr.decode().splitlines()[-1]
    assert "Traceback" not in full.stderr.decode()
    done = etude("train", *SMALL, "seed=9", "logger=none", cwd=place)
    assert done.returncode == 0, done.stderr


def has_a_row(folder: Path) -> bool:
    """Whether a training has done its first steps: the header of its metrics is written before them."""
    return any(len(file.read_text().splitlines()) > 1 for file in folder.rglob("metrics.csv"))


@pytest.mark.slow
def test_ctrl_c_saves_the_step_and_says_how_to_go_on(place):
    words = [*SMALL, "seed=14", "logger=none", "budget.max_steps=100000", "budget.val_every=100000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "etude", "train", *words, "runs_dir=asked"],
        cwd=place,
        env=os.environ | {"ETUDE_CACHE": str(place / "cache"), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not has_a_row(place / "asked") and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    try:
        said = process.communicate(timeout=60)[1].decode()
    finally:
        process.kill()
    assert process.returncode == 130
    assert said.splitlines()[-1] == "etude: interrupted; the same command goes on from the last checkpoint"
    assert "Traceback" not in said
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
        (["train", "model.haeds=4"], "model.haeds is not a key of model; did you mean heads"),
        (["train", "model/position=lerned"], "no 'lerned' in the group model/position; did you mean learned"),
        (["train", "model.n_layers=six"], "model.n_layers must be a whole number, not 'six'"),
        (["train", "data=files"], "data"),
        (["train", "-m", "model.heads=7,8"], "model.heads=7 does not divide model.d_model=64"),
        (["sweep", "nothing.yaml"], "nothing.yaml"),
        (["report", "tabel3"], "there is no study 'tabel3'"),
        (["translate"], "run"),
        (["train", "logger.wandb.mode=of"], "logger.wandb.mode must be one of offline, online, disabled, not 'of'"),
        (["train", "budget.max_steps=-1"], "budget.max_steps must be at least 1, not -1"),
        (["train", "data=files", "data.tsv=pairs.tsv", "data.languages=[en]"], "data.languages=['en'] must name two"),
        (["evaluate", "run=x", "split=train"], "split must be one of valid, test"),
        (["train", "model.d_model=63", "model.heads=9", *SMALL], "d_model must be even, not 63: say model.d_model=64"),
        (["train", "model.heads=7"], "etude: model.heads=7 does not divide model.d_model=64"),
        (["evaluate", "--resolve"], "--resolve goes with --cfg, as in --cfg job --resolve: leave it out"),
        (["plan", "~model/position=1"], "a config group takes the name of one of its files"),
        (["plan", "model.headz=7"], "model.headz is not a key of model; did you mean heads"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(place, words, sentence):
    done = etude(*words, cwd=place)
    assert done.returncode == 2, done.stdout + done.stderr
    assert sentence in done.stderr
    assert done.stderr.startswith("etude: ") or "\netude: " in done.stderr
    assert "Traceback" not in done.stderr


def test_hydras_own_flags_keep_working(place):
    job = etude("train", "--cfg", "job", "experiment=table3/B1", cwd=place)
    assert "d_k: 4" in etude("train", "--cfg", "job", "--resolve", "experiment=table3/B1", cwd=place).stdout
    assert "arm: B1" in job.stdout
    assert "SlotsLauncher" in etude("train", "--info", "plugins", cwd=place).stdout
    assert "study://" in etude("train", "--info", "searchpath", cwd=place).stdout
    assert "study://" in etude("prepare", "--info", "data=multi30k_en_de", cwd=place).stdout


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["evaluate", "translate", "show", "analyze"])
def test_a_trained_run_whose_class_is_gone_is_one_sentence(verb, trained, place):
    copy = place / "elsewhere" / trained.name
    shutil.copytree(trained, copy, dirs_exist_ok=True)
    config = copy / "config.yaml"
    config.write_text(config.read_text().replace("etude.model.scale.SqrtDk", "gone.Scale"))
    done = etude(verb, f"run={copy}", cwd=place, text="a b\n")
    way_out = "write package.module.Name of what is installed or lies in this folder"
    told = f"etude: _target_: gone.Scale cannot be found: {way_out}\n"
    assert (done.returncode, done.stderr, done.stdout) == (2, told, "")


@pytest.mark.slow
def test_a_reader_who_has_seen_enough_ends_translate_quietly(trained, place):
    lines = "a b\n" * 3000
    command = f"{sys.executable} -m etude translate run={trained} decoding=greedy device=cpu | head -1"
    done = subprocess.run(command, shell=True, cwd=place, input=lines, capture_output=True, text=True, timeout=300)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""
