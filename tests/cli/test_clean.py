"""`etude clean` frees room, and takes nothing that was found out or that somebody needs."""

import errno
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from filelock import FileLock

from etude.cli.clean import main as clean
from etude.errors import UserError
from etude.store.cleaning import Kind, find_removable, remove
from etude.store.lock import hold, is_held
from etude.store.run_dir import RunDir
from etude.trained.load import load_trained

Make = Callable[..., RunDir]
KEPT = ("config.yaml", "overrides.txt", "hypotheses.test.txt", "log.txt")


@pytest.fixture
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Fabricates a run and its training with two checkpoints of 500 kB; `result` is the text of its result, if any."""
    monkeypatch.chdir(tmp_path)

    def make(
        arm: str, result: str | None = '{"finished": true}', study: str = "table3", folder: str = "", training: str = ""
    ) -> RunDir:
        run = RunDir(Path("runs", study, arm, folder, "seed1-0123abcdef"))
        run.path.mkdir(parents=True)
        for name in KEPT:
            (run.path / name).write_text("choices: {}\n")
        run.link_training(training or f"{folder}/{study}-{arm}".strip("/"))
        run.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        for name in ("last.ckpt", "step-10.ckpt"):
            run.checkpoint.with_name(name).write_bytes(bytes(500_000))
        if result is not None:
            run.result_file.write_text(result)
        return run

    return make


def files() -> set[str]:
    """All there is, but for the files of locks, which are empty."""
    return {str(path) for path in Path("runs").rglob("*") if path.is_file() and path.stat().st_size}


def test_checkpoints_of_finished_runs_go_and_nothing_else_of_them(
    make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [make_run("base"), make_run("A1", study="modern")]
    before = files()
    clean(["--yes"])
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert printed[1:] == [
        "modern checkpoints of finished runs (evaluate needs them) 1 1.0 MB",
        "table3 checkpoints of finished runs (evaluate needs them) 1 1.0 MB",
        "2.0 MB in all",
        "2.0 MB freed",
    ]
    assert before - files() == {str(file) for run in runs for file in checkpoints_of(run)}
    assert files() <= before
    assert all((run.path / name).is_file() for run in runs for name in (*KEPT, "result.json"))


def checkpoints_of(run: RunDir) -> list[Path]:
    return [run.own_training.checkpoint.with_name(name) for name in ("last.ckpt", "step-10.ckpt")]


def test_checkpoints_that_runs_share_go_when_all_of_them_are_finished(make_run: Make) -> None:
    greedy, beam = make_run("base", training="one"), make_run("base", None, "mine", training="one")
    clean(["--yes"])
    assert greedy.checkpoint.exists()
    beam.result_file.write_text('{"finished": true}')
    clean(["mine", "--yes"])
    assert not greedy.checkpoint.exists()


def test_weights_with_which_a_run_is_to_begin_stay_until_it_has_its_own(make_run: Make) -> None:
    parent, child = make_run("parent"), make_run("child", None)
    child.config_file.write_text(f"choices: {{}}\ninit_from: {{run: x, parent: {{training: {parent.training}}}}}\n")
    for file in checkpoints_of(child):
        file.unlink()
    found = [*find_removable(Path("runs"))]
    assert not any(one.kind is Kind.CHECKPOINTS for one in found)
    child.stop_file.write_text('{"step": 3, "state": "pruned"}')
    assert any(one.kind is Kind.CHECKPOINTS for one in find_removable(Path("runs"))), "a search has given it up"
    child.stop_file.unlink()
    child.checkpoint.write_bytes(b"begun")
    clean(["--yes"])
    assert not parent.checkpoint.exists()


def test_a_run_that_is_launched_while_one_is_asked_keeps_the_checkpoints_of_its_training(make_run: Make) -> None:
    greedy = make_run("base", training="one")
    found = [*find_removable(Path("runs"))]
    make_run("base", None, "mine", training="one")
    assert [remove(one) for one in found] == [0]
    assert greedy.checkpoint.exists()


def test_a_training_is_named_however_the_folder_of_runs_is_typed(make_run: Make) -> None:
    unfinished = make_run("base", None)
    Path("beside").mkdir()
    for typed in ("./runs", "beside/../runs", str(Path("runs").absolute())):
        clean([f"runs_dir={typed}", "--yes"])
    assert unfinished.checkpoint.exists()


def test_a_training_goes_when_no_run_names_it(make_run: Make, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run("base")
    shutil.rmtree(run.path)
    clean(["--yes"])
    assert "- trainings that no run names 1 1.0 MB" in " ".join(capsys.readouterr().out.split())
    assert not [*Path("runs/.trainings").iterdir()]


def test_nothing_is_deleted_unless_it_is_asked_for(make_run: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make_run("base")
    before = files()
    clean(["table3"])
    assert files() == before
    assert capsys.readouterr().out.endswith("1.0 MB in all\nnothing is deleted; --yes deletes it\n")


@pytest.mark.parametrize(("answer", "deleted"), [("yes", True), ("no", False), ("", False)])
def test_a_terminal_is_asked(answer: str, deleted: bool, make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run("base")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda prompt: answer)
    clean([])
    assert run.checkpoint.exists() is not deleted


def test_ctrl_d_is_no_answer_and_deletes_nothing(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def end_of_file(prompt: str) -> str:
        raise EOFError

    run = make_run("base")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", end_of_file)
    clean([])
    assert run.checkpoint.exists()


@pytest.mark.parametrize("result", [None, "", '{"torn": '])
def test_a_run_without_a_readable_result_keeps_everything(result: str | None, make_run: Make) -> None:
    """A result that is incomplete is made again out of the checkpoint."""
    make_run("base", result)
    make_run("base", "{", folder=".stale")
    before = files()
    clean(["--yes"])
    assert files() == before


def test_a_run_or_training_that_a_process_holds_keeps_everything(make_run: Make) -> None:
    runs = [make_run("base").own_training, make_run("base", None, folder=".stale")]
    before = files()
    held = [FileLock(run.lock_file) for run in runs]
    for one in held:
        one.acquire()
    clean(["--yes"])
    assert files() == before


def test_a_run_that_is_taken_up_between_the_look_and_the_deed_keeps_everything(make_run: Make) -> None:
    run = make_run("base")
    [found] = find_removable(Path("runs"))
    with FileLock(run.own_training.lock_file):
        assert remove(found) == 0
    run.result_file.unlink()
    assert remove(found) == 0
    assert run.checkpoint.exists()


def test_a_folder_is_removed_when_its_locks_are_closed(make_run: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS keeps an open file that is deleted in its folder, which then cannot be removed."""
    run = make_run("base", None, folder=".stale")
    [found, _] = find_removable(Path("runs"))
    rmdir = Path.rmdir

    def rmdir_of_nfs(path: Path) -> None:
        if path == run.path and is_held(run.lock_file):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(path))
        rmdir(path)

    monkeypatch.setattr(Path, "rmdir", rmdir_of_nfs)
    assert remove(found) > 0
    assert not run.path.exists()


def test_what_is_somebody_else_s_stays_and_the_rest_goes(
    make_run: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs, ours = (make_run(arm, None, folder=".stale") for arm in ("base", "one"))

    def hold_ours(file: Path, busy: str) -> AbstractContextManager[None]:
        if theirs.path in file.parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        return hold(file, busy)

    monkeypatch.setattr("etude.store.cleaning.hold", hold_ours)
    clean(["--yes"])
    assert theirs.path.exists()
    assert not ours.path.exists()
    assert "somebody else's" in capsys.readouterr().out


def test_a_run_that_is_launched_again_while_its_folder_is_removed_keeps_its_config(
    make_run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, rmdir = failed(make_run("base", None)), Path.rmdir
    found, *_ = find_removable(Path("runs"))

    def launched_again(path: Path) -> None:
        run.config_file.write_text("seed: 1\n")
        rmdir(path)

    monkeypatch.setattr(Path, "rmdir", launched_again)
    remove(found)
    assert run.config_file.read_text() == "seed: 1\n"


def failed(run: RunDir) -> RunDir:
    """As it is when its config names a file that is not there."""
    for file in checkpoints_of(run):
        file.unlink()
    run.log_file.write_text("04:42:27 learning 30 subwords\netude: there is no file train.de\n")
    return run


def test_a_run_that_failed_before_its_first_step_goes(make_run: Make, capsys: pytest.CaptureFixture[str]) -> None:
    run, waiting = failed(make_run("base", None)), failed(make_run("A1", None))
    waiting.log_file.unlink()
    clean(["--yes"])
    assert "table3 runs that failed before their first step 1 " in " ".join(capsys.readouterr().out.split())
    assert not run.path.exists()
    assert waiting.config_file.exists()


def test_of_some_studies_no_training_is_promised_that_a_failed_run_of_another_names(
    make_run: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    one = failed(make_run("base", None, training="one"))
    other = failed(make_run("base", None, "mine", training="one"))
    clean(["mine", "--yes"])
    printed = capsys.readouterr().out
    assert "trainings that no run names" not in printed
    assert "left as they are" not in printed
    assert one.own_training.path.exists()
    assert not other.path.exists()
    clean(["table3", "--yes"])
    assert not one.own_training.path.exists()


@pytest.mark.parametrize("kept", ["training/metrics.csv", "training/checkpoints/last.ckpt", "log.txt"])
def test_a_failed_run_that_has_taken_a_step_or_is_begun_again_stays(kept: str, make_run: Make) -> None:
    run = failed(make_run("base", None))
    found, *_ = find_removable(Path("runs"))
    (run.path / kept).write_text("etude: stopped; the same command goes on from the last checkpoint\n")
    assert [*find_removable(Path("runs"))] == []
    assert remove(found) == 0
    assert run.config_file.exists()


def test_runs_put_aside_go_if_they_were_unfinished_and_else_keep_their_results(make_run: Make) -> None:
    unfinished, finished = make_run("base", None, folder=".stale"), make_run("A1", folder=".stale")
    now = make_run("base", None)
    clean(["--yes"])
    assert now.checkpoint.exists()
    assert not unfinished.path.exists()
    assert not unfinished.own_training.path.exists()
    assert finished.result() == {"finished": True}
    assert not finished.checkpoint.exists()


def test_what_a_killed_process_had_half_written_goes_where_the_run_is_finished(make_run: Make) -> None:
    half = [make_run("base").path / ".analysis.json.7.part", make_run("A1", None).path / ".log.7.part"]
    for file in half:
        file.write_text("half")
    clean(["--yes"])
    assert [file.exists() for file in half] == [False, True]


def test_what_a_link_points_at_stays(make_run: Make, tmp_path: Path) -> None:
    run = make_run("base")
    elsewhere = tmp_path / "elsewhere"
    run.own_training.checkpoint.parent.rename(elsewhere)
    run.own_training.checkpoint.parent.symlink_to(elsewhere)
    clean(["--yes"])
    assert {file.name for file in elsewhere.iterdir()} == {"last.ckpt", "step-10.ckpt"}


@pytest.mark.parametrize("result", ['{"finished": true}', '{"diverged": "the loss is nan", "weights": "0123"}'])
def test_a_cleaned_run_says_how_to_get_its_checkpoint_again(result: str, make_run: Make) -> None:
    run = make_run("base", result)
    run.config_file.write_text("averaging: {checkpoints: 0, every: 1}\nbudget: {max_steps: 9}\nchoices: {}\n")
    run.overrides_file.write_text("experiment=table3/base\nmodel.heads=2\nruns_dir=elsewhere\n")
    clean(["--yes"])
    told = r"the weights of .* were deleted: `etude train experiment=table3/base model.heads=2 runs_dir=again` trains"
    with pytest.raises(UserError, match=told):
        load_trained(run)
    run.overrides_file.write_text("init_from=073bf9b615\n")  # which is no name in another folder of runs
    with run.config_file.open("a") as config:
        config.write("init_from: {run: runs/a/b/seed1-073bf9b615, vocabulary: same, parent: {}}\n")
    again = r"`etude train 'init_from=\{run:runs/a/b/seed1-073bf9b615,vocabulary:same\}' runs_dir=again` trains"
    with pytest.raises(UserError, match=again):
        load_trained(run)
    run.config_file.write_text("averaging: {checkpoints: 0, every: 1}\nbudget: {max_steps: 9}\nchoices: {}\n")
    run.overrides_file.unlink()
    with pytest.raises(UserError, match="`etude train runs_dir=again` trains"):
        load_trained(run)


def test_a_run_that_has_kept_no_checkpoint_so_far_is_no_cleaned_one(make_run: Make) -> None:
    run = make_run("base", None)
    run.config_file.write_text("averaging: {checkpoints: 0, every: 1}\nbudget: {max_steps: 9}\nchoices: {}\n")
    for file in checkpoints_of(run):
        file.unlink()
    with pytest.raises(UserError, match="has no checkpoint yet: train the run first"):
        load_trained(run)


def test_where_there_is_nothing_to_clean_that_is_said(make_run: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make_run("base")
    for _ in range(2):
        clean(["--yes"])
    assert capsys.readouterr().out.endswith("runs: nothing to clean\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tabel3"], "runs holds no runs of a study 'tabel3': did you mean table3"),
        (["runs_dir=nowhere"], "there is no folder nowhere"),
        (["--yess"], "takes no --yess; did you mean --yes"),
        (["study=table3"], "etude clean takes no study=table3"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_deleted(words: list[str], told: str, make_run: Make) -> None:
    run = make_run("base")
    with pytest.raises(UserError, match=told):
        clean([*words, "--yes"])
    assert run.checkpoint.exists()
