import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from etude.cli.status import main as status
from etude.errors import UserError
from etude.files import write_json
from etude.store.log import last_error
from etude.store.results_version import RESULTS_VERSION
from etude.store.run_dir import RunDir
from etude.training.metrics_writers import ProgressFile

Make = Callable[..., RunDir]
Capture = pytest.CaptureFixture[str]
SCORES = {"perplexity": 3.214, "bleu": 45.61}
RESULT = {"steps": 2000, "seconds": 83.4, "test": SCORES, "results_version": RESULTS_VERSION, "finished": True}
PROGRESS = {"state": "training", "step": 1500, "max_steps": 2000, "loss": 2.5, "tokens_per_second": 4321.0}
STUDY = "title: Heads\nbaseline: base\narms: {base: [], one: [model.heads=1], two: [model.heads=2], ten: []}\n"
TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1\n{}\n'
_ELASTIC = "torch.distributed.elastic.multiprocessing"
TORCHRUN = (
    f"E1126 20:43:54.678000 7 {_ELASTIC.replace('.', '/')}/api.py:1002] failed (exitcode: {{}}) local_rank: 0\n"
    + TRACEBACK.format(f"{_ELASTIC}.errors.ChildFailedError: ")
    + "=====\netude.training.run FAILED\nFailures:\n  <NO_OTHER_FAILURES>\n=====\n"
)
ASKED_TO_STOP = TRACEBACK.format(f"{_ELASTIC}.api.SignalException: Process 7 got signal: 15")


@pytest.fixture
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Fabricates a run that has begun, of a study with the arms base, one, two and ten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    study = tmp_path / "experiments" / "heads" / "study.yaml"
    study.parent.mkdir(parents=True)
    study.write_text(STUDY)
    (tmp_path / "runs").mkdir()

    def make(arm: str, study: str = "heads", seed: int = 1, log: str = "12:00:00 a line\n", **files: Any) -> RunDir:
        run = RunDir(tmp_path / "runs" / study / arm / f"seed{seed}-0123abcdef")
        run.path.mkdir(parents=True)
        run.config_file.write_text("choices: {}\n")
        run.log_file.write_text(log)
        for name, content in files.items():
            write_json(run.path / f"{name}.json", content)
        return run

    return make


def lines(capsys: Capture, *words: str) -> list[str]:
    """What is printed, the blanks between columns made one."""
    status(words)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def as_json(capsys: Capture, *words: str) -> dict[str, Any]:
    status([*words, "--json"])
    return json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def state_of(capsys: Capture) -> str:
    return as_json(capsys)["runs"][0]["state"]


def test_every_state_is_told_with_its_figures_in_the_order_of_the_arms(make_run: Make, capsys: Capture) -> None:
    make_run("ten", log=TRACEBACK.format("ValueError: the loss is not a number"), progress=PROGRESS | {"step": 50})
    make_run("two").log_file.unlink()
    make_run("two", progress=PROGRESS | {"step": 100}, seed=10)
    running = make_run("base", progress=PROGRESS | {"seconds_left": 75.4}, seed=2)
    make_run("base", result=RESULT)
    with FileLock(running.path / ".lock"):
        told = lines(capsys, "heads")
    assert told == [
        "run state step loss tokens/s left trained PPL BLEU",
        "heads/base/seed1-0123abcdef finished 2,000 1:23 3.21 45.6",
        "heads/base/seed2-0123abcdef training 1,500/2,000 2.500 4,321 1:15",
        "heads/two/seed1-0123abcdef waiting",
        "heads/two/seed10-0123abcdef stopped 100/2,000",
        "heads/ten/seed1-0123abcdef failed 50/2,000",
        "heads/ten/seed1-0123abcdef failed: ValueError: the loss is not a number "
        f"({Path('runs/heads/ten/seed1-0123abcdef/log.txt')})",
        "Type the same command again, and what is stopped goes on from its last checkpoint if it has one.",
        "heads has no run yet of one.",
        "1 finished (1:23 of training), 1 running, 1 waiting, 1 stopped, 1 failed, 1 arm missing",
    ]


def test_a_run_is_running_exactly_while_somebody_holds_its_lock(make_run: Make, capsys: Capture) -> None:
    run = make_run("base", progress=PROGRESS)
    assert state_of(capsys) == "stopped"
    with FileLock(run.path / ".lock"):
        assert state_of(capsys) == "running"
    assert state_of(capsys) == "stopped"


def test_a_run_that_was_killed_before_it_said_anything_is_stopped(make_run: Make, capsys: Capture) -> None:
    run = make_run("base", log="")
    assert state_of(capsys) == "stopped"
    run.log_file.unlink()
    assert state_of(capsys) == "waiting"


def test_a_run_that_was_asked_to_stop_has_not_failed(make_run: Make, capsys: Capture) -> None:
    """The log ends as `etude.training.run` ends it then."""
    run = make_run("base", progress=PROGRESS)
    run.log_file.write_text("21:03:17 SIGTERM: stopping after this step\netude: stopped; the same command goes on\n")
    assert state_of(capsys) == "stopped"
    run.log_file.write_text("etude: stopped; the same command goes on\nRuntimeError: and then it failed\n")
    assert state_of(capsys) == "failed"


def test_looking_neither_keeps_the_lock_nor_leaves_anything_behind(make_run: Make, capsys: Capture) -> None:
    runs = [make_run("base"), make_run("one")]
    (runs[1].path / ".lock").touch()
    before = sorted(Path.cwd().rglob("*"))
    status([])
    assert sorted(Path.cwd().rglob("*")) == before
    with FileLock(runs[1].path / ".lock", timeout=0):
        pass


def test_progress_that_an_earlier_process_left_is_not_shown_as_this_ones(make_run: Make, capsys: Capture) -> None:
    run = make_run("base", progress=PROGRESS)
    ProgressFile(run.progress_file, 100).starting()
    with FileLock(run.path / ".lock"):
        told = as_json(capsys)["runs"][0]
    assert (told["state"], told["doing"], told["step"]) == ("running", "starting", None)


def test_a_run_that_ended_between_two_looks_is_finished(
    make_run: Make, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("base")

    def ends_meanwhile(lock: Path) -> bool:
        run.write_result(RESULT)
        return False

    monkeypatch.setattr("etude.store.records.is_held", ends_meanwhile)
    assert state_of(capsys) == "finished"


@pytest.mark.parametrize(
    ("log", "error"),
    [
        (TRACEBACK.format("ValueError: no"), "ValueError: no"),
        (TRACEBACK.format("torch.OutOfMemoryError: CUDA out of memory.\nTry less."), "torch.OutOfMemoryError"),
        (TRACEBACK.format("AssertionError"), "AssertionError"),
        ("12:00:00 step 5\nloss 3\retude: the disk is full\n\n", "etude: the disk is full"),
        ("x\n" * 20000 + "RuntimeError: at the end of a long log", "RuntimeError"),
        (TRACEBACK.format("ValueError: no") + "12:00:00 going on from step 5 of 9\n", None),
        (TRACEBACK.format("SystemExit: 1") + TRACEBACK.format("KeyboardInterrupt: the same command goes on"), None),
        (TRACEBACK.format("ValueError: 1") + TRACEBACK.format("KeyboardInterrupt"), None),
        ("12:00:00 ValueError: told in passing\n", None),
        (TRACEBACK.format("ValueError: 1") + "etude: stopped\n", None),
        ("some library speaks of an Error: none\n", None),
        # of a run on several devices: torchrun stops the other processes, and has the last word
        ("ValueError: no\netude: stopped\n" + TORCHRUN.format(1), "ValueError: no"),
        ("etude: a scalar cannot be drawn\n" + TORCHRUN.format(2), "etude: a scalar"),
        ("12:00:00 step 5\netude: stopped\n" + TORCHRUN.format(-9), "failed (exitcode: -9) local_rank: 0"),
        ("etude: another process is training it\n" + TORCHRUN.format(3), None),
        (TORCHRUN.format(1) + "12:00:00 going on from step 5 of 9\netude: stopped\n" + ASKED_TO_STOP, None),
    ],
)
def test_a_run_failed_if_its_log_ends_with_an_error(log: str, error: str | None, tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_text(log)
    told = last_error(file)
    assert told == error if error is None else (told or "").startswith(error)


def test_what_is_torn_or_foreign_is_told_and_hides_no_other_run(make_run: Make, capsys: Capture) -> None:
    make_run("base", result=RESULT)
    make_run("one").result_file.write_text('{"steps": 20')
    make_run("one", seed=2, result={"steps": "many"})
    make_run("two", progress={"step": "many"})
    make_run("removed", result=RESULT)
    make_run("ten").config_file.unlink()
    (Path.cwd() / "runs" / "heads" / "base" / "copy of seed1").mkdir()
    (Path.cwd() / "runs" / "notes" / "of" / "mine").mkdir(parents=True)
    (Path.cwd() / "runs" / ".multirun").mkdir()
    (Path.cwd() / "runs" / "a file").touch()
    told = as_json(capsys)
    assert [run["arm"] for run in told["runs"]] == ["base", "removed"]
    assert told["missing"] == {"heads": []}
    for part in ("one/seed1", "one/seed2", "two/seed1", "ten/seed1", "base/copy of seed1", "no arm removed", "notes"):
        assert [part in note for note in told["notes"]].count(True) == 1, part
    assert len(told["notes"]) == 7


def test_a_run_whose_config_was_cut_short_is_no_run_and_named(make_run: Make, capsys: Capture) -> None:
    torn = make_run("one", result=RESULT)
    torn.config_file.write_text("study: heads\narm: one\nseed: 1\n")
    told = as_json(capsys)
    assert told["runs"] == []
    assert f"{torn.config_file.relative_to(Path.cwd())} is incomplete" in told["notes"][0]


def test_every_study_that_has_runs_is_listed_unless_some_are_asked_for(make_run: Make, capsys: Capture) -> None:
    make_run("base", study="single")
    make_run("A1", study="table3")
    told = as_json(capsys)
    assert [run["study"] for run in told["runs"]] == ["single", "table3"]
    assert (told["totals"]["missing"], told["missing"]["single"]) == (19, [])
    assert as_json(capsys, "single", "single")["totals"]["stopped"] == 1
    assert as_json(capsys, "heads")["missing"] == {"heads": ["base", "one", "two", "ten"]}


def test_runs_typed_one_by_one_are_told_apart_by_what_was_typed(make_run: Make, capsys: Capture) -> None:
    make_run("base", study="single").overrides_file.write_text("model.heads=4\nscale=pocket\n")
    make_run("one").overrides_file.write_text("experiment=heads/one\n")
    assert lines(capsys, "single")[1] == "single/base/seed1-0123abcdef stopped model.heads=4 scale=pocket"
    assert as_json(capsys, "single")["runs"][0]["typed"] == "model.heads=4 scale=pocket"
    assert lines(capsys, "heads")[1] == "heads/one/seed1-0123abcdef stopped"


def test_settings_of_one_arm_are_told_apart_by_what_was_not_typed_for_all_runs(make_run: Make, capsys: Capture) -> None:
    for seed, typed in ((1, "model.dropout=0.1"), (2, "model.dropout=0.3")):
        words = ["experiment=heads/one", f"seed={seed}", "scale=pocket", typed]
        make_run("one", seed=seed).overrides_file.write_text("".join(f"{word}\n" for word in words))
    assert lines(capsys, "heads")[1:3] == [
        "heads/one/seed1-0123abcdef stopped model.dropout=0.1",
        "heads/one/seed2-0123abcdef stopped model.dropout=0.3",
    ]
    assert [run["typed"] for run in as_json(capsys, "heads")["runs"]] == ["model.dropout=0.1", "model.dropout=0.3"]


def test_what_says_nothing_of_a_run_is_left_out_and_nothing_is_cut_off_where_there_is_little_room(
    make_run: Make, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("base", study="single", result=RESULT)
    run.overrides_file.write_text("seed=1\nlogger.wandb.mode=online\nmodel/position=relative\n")
    assert lines(capsys, "single")[1].split()[-1] == "model/position=relative"
    assert as_json(capsys, "single")["runs"][0]["typed"] == "model/position=relative"
    monkeypatch.setenv("COLUMNS", "80")
    assert lines(capsys, "single")[2] == "model/position=relative"
    run.overrides_file.write_text(
        "\n".join(f"model.{key}=12345678" for key in ("d_model", "d_ff", "d_k", "d_v", "heads"))
    )
    status(["single"])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert out.split().count("model.heads=12345678") == 1


def test_a_run_that_diverged_is_told_apart_from_a_finished_one(make_run: Make, capsys: Capture) -> None:
    make_run("base", result=RESULT)
    make_run("one", result=RESULT | {"steps": 40, "diverged": "the loss is nan at step 40"})
    make_run("two", result=RESULT | {"test": {"perplexity": float("nan"), "bleu": 0.0}})
    told = lines(capsys, "heads")
    assert told[1:4] == [
        "heads/base/seed1-0123abcdef finished 2,000 1:23 3.21 45.6",
        "heads/one/seed1-0123abcdef diverged 40 1:23",
        "heads/two/seed1-0123abcdef diverged 2,000 1:23",
    ]
    log = Path("runs/heads/one/seed1-0123abcdef/log.txt")
    assert f"heads/one/seed1-0123abcdef diverged: the loss is nan at step 40 ({log})" in told
    assert told[-1] == "1 finished (1:23 of training), 2 diverged, 1 arm missing"


def test_json_has_every_figure_and_null_for_what_is_not_finite(make_run: Make, capsys: Capture) -> None:
    make_run("base", result=RESULT)
    diverged = make_run("one", progress=PROGRESS | {"loss": float("nan")})
    with FileLock(diverged.path / ".lock"):
        told = as_json(capsys, "runs_dir=runs")
    base, one = told["runs"]
    assert base["run_dir"] == str(Path("runs/heads/base/seed1-0123abcdef"))
    figures = {key: base[key] for key in ("state", "step", "seconds", "perplexity", "bleu")}
    assert figures == {"state": "finished", "step": 2000, "seconds": 83.4, "perplexity": 3.214, "bleu": 45.61}
    assert (one["doing"], one["step"], one["max_steps"], one["loss"]) == ("training", 1500, 2000, None)
    assert told["totals"] == dict.fromkeys(told["totals"], 0) | {"finished": 1, "running": 1, "missing": 2}


def test_a_score_is_that_of_the_runs_own_study_whatever_another_calls_by_this_name(
    make_run: Make, capsys: Capture
) -> None:
    make_run("base", result=RESULT | {"valid": {"perplexity": 2.5}})
    other = Path("experiments/other/study.yaml")
    other.parent.mkdir()
    metrics = "metrics: {perplexity: {key: valid.perplexity, label: PPL, digits: 2}}\n"
    other.write_text(f"title: Other\nbaseline: base\narms: {{base: []}}\n{metrics}")
    make_run("base", study="other", result=RESULT | {"valid": {"perplexity": 2.5}})
    told = lines(capsys)
    assert told[1].startswith("heads/base/seed1-0123abcdef finished 2,000 1:23 3.21")
    assert told[2] == "other/base/seed1-0123abcdef finished 2,000 1:23 2.50"
    assert [run["perplexity"] for run in as_json(capsys)["runs"]] == [3.214, 2.5]


def test_finished_runs_of_other_code_are_marked_and_the_mark_is_explained(make_run: Make, capsys: Capture) -> None:
    make_run("base", result=RESULT)
    make_run("one", result=RESULT | {"results_version": 0})
    make_run("two", result={key: value for key, value in RESULT.items() if key != "results_version"})
    told = as_json(capsys)
    assert [run["code"] for run in told["runs"]] == ["same", "other", "other"]
    printed = lines(capsys)
    assert [line.split()[1] for line in printed[1:4]] == ["finished", "finished†", "finished†"]
    assert printed[4] == "† made by other code than today's, and kept; stale=rerun computes it again."


def test_what_was_put_aside_is_not_listed(make_run: Make, capsys: Capture) -> None:
    run = make_run("base", result=RESULT)
    aside = run.path.parent / ".stale"
    aside.mkdir()
    run.path.rename(aside / f"{run.path.name}-other")
    told = as_json(capsys, "heads")
    assert (told["runs"], told["notes"]) == ([], [])


def test_a_pipe_gets_plain_text_of_120_columns_at_most(make_run: Make, capsys: Capture) -> None:
    make_run("base", log="etude: " + "word " * 60, result={})
    make_run("one", log="etude: " + "word " * 60 + "[/red]")
    status([])
    out = capsys.readouterr().out
    assert 100 < max(map(len, out.splitlines())) <= 120
    assert "\x1b" not in out
    assert "[/red]" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["../runs"], "there is no study"),
        (["--jsn"], "did you mean --json"),
        (["runs_dir=nowhere"], "there is no folder nowhere"),
    ],
)
def test_words_it_does_not_understand_are_told(words: list[str], told: str, make_run: Make) -> None:
    with pytest.raises(UserError, match=told):
        status(words)


def test_without_any_run_it_says_so(make_run: Make, capsys: Capture) -> None:
    assert lines(capsys) == ["no runs"]


def test_it_needs_neither_torch_nor_hydra(make_run: Make) -> None:
    make_run("base", study="table3", result=RESULT)
    program = (
        "import sys; from etude.cli.status import main; main([]);"
        "print({'torch', 'lightning', 'hydra', 'omegaconf'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def journal(study: Path, *lines: dict[str, Any]) -> None:
    """Writes the journal of a search `rate` with three trials: the first is finished, the second at its first rung."""
    begin: dict[str, Any] = {"op_code": 0, "study_name": "rate", "directions": [1]}
    recipe = {"op_code": 2, "study_id": 0, "user_attr": {"search": {"objectives": ["valid.loss"]}}}
    trial = {"op_code": 4, "study_id": 0, "state": 0, "user_attrs": {"overrides": ["x=1"], "rungs": [10], "to": 0}}
    value = {"op_code": 7, "trial_id": 1, "step": 10, "intermediate_value": 4.5}
    end = {"op_code": 6, "trial_id": 0, "state": 1, "values": [3.25]}
    written = [json.dumps(line) + "\n" for line in (begin, recipe, trial, trial, trial, value, end, *lines)]
    (study / "rate.journal").write_text("".join(written))


def test_a_line_tells_of_each_search(make_run: Make, capsys: Capture, tmp_path: Path) -> None:
    make_run("base")
    journal(tmp_path / "runs" / "heads")
    told = "heads, search rate: 3 trials: 1 finished, 1 paused, 1 begun; best valid.loss 3.25, trial 0."
    assert told in lines(capsys)
    status(["--json"])
    (search,) = json.loads(capsys.readouterr().out)["searches"]
    assert search["trials"] == {"finished": 1, "paused": 1, "running": 1}
    assert search["best"] == {"trial": 0, "values": [3.25], "overrides": ["x=1"]}


def test_a_damaged_journal_is_named_and_the_runs_are_shown(make_run: Make, capsys: Capture, tmp_path: Path) -> None:
    make_run("base")
    journal(tmp_path / "runs" / "heads", {"op_code": 7, "trial_id": 7})
    told = lines(capsys)
    assert any("rate.journal, line 8, is damaged" in line for line in told)
    assert told[1].startswith("heads/base")
