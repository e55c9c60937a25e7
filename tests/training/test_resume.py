"""A run that is killed at any moment, and started again, ends as if nothing had happened."""

import json
import runpy
import shutil
from pathlib import Path

import pytest
import torch
from tests import warm

from etude.errors import UserError
from etude.files import write_json
from etude.store.provenance import Code, code_of
from etude.store.records import read_run
from etude.store.run_dir import RunDir
from etude.store.run_state import State, Stop, StoppedBySearch, read_stop, write_stop
from etude.trained.checkpoint import previous, read_checkpoint
from etude.training.metrics_writers import MetricsFile
from etude.training.run import train

from .conftest import Freeze, found, killed_at

DYING = Path(__file__).with_name("dying.py")
MOMENTS = list(runpy.run_path(str(DYING))["MOMENTS"])
ASKED = {"SIGTERM in a step": 5, "SIGINT in a step": 8, "SIGHUP in a step": 4}  # to stop, and in which step
# Batches of six tokens: an epoch has more of them than the run has steps, and a validation more than one.
SETTING = ["model.dropout=0.3", "budget.max_steps=10", "budget.source_tokens=40", "budget.target_tokens=40"]


@pytest.fixture(scope="module")
def undisturbed(runs: Freeze) -> RunDir:
    run = runs("undisturbed", *SETTING)
    torch.set_num_threads(1)
    train(run)
    return run


def die(moment: str, run: RunDir) -> tuple[int, str]:
    """Train a run until it meets its moment; its exit status, and what it said."""
    done = warm.run(str(DYING), moment, run.path)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_killed_at_any_moment_ends_bit_for_bit_as_one_that_was_not(
    moment: str, runs: Freeze, undisturbed: RunDir
) -> None:
    cache = ["cache_dir=${runs_dir}/cache"] if "preparing" in moment else []
    run = runs(moment.replace(" ", "-"), *SETTING, *cache)
    status, said = die(moment, run)
    if moment.startswith("SIG"):
        assert status == 130, said
        assert "the same command goes on from the last checkpoint" in said
    else:
        assert status == -9, said
    assert not run.finished
    if moment in ASKED:
        assert read_checkpoint(run.checkpoint)["global_step"] == ASKED[moment], "a step was lost"
    train(run)
    assert found(run) == found(undisturbed)
    assert [file.name for file in run.checkpoint.parent.iterdir()] == ["last.ckpt"]


def test_a_run_that_its_search_pauses_ends_bit_for_bit_as_one_that_was_never_paused(
    runs: Freeze, undisturbed: RunDir
) -> None:
    run = runs("paused", *SETTING)
    for step in (3, 3, 6):  # the second time there is nothing to do
        write_stop(run, Stop(step, State.PAUSED))
        with pytest.raises(StoppedBySearch, match=f"paused at step {step}"):
            train(run)
        assert read_checkpoint(run.checkpoint)["global_step"] == step
        assert read_run(run).state is State.PAUSED
        assert not run.finished
    write_stop(run, None)
    train(run)
    assert found(run) == found(undisturbed)


def test_a_search_that_draws_a_paused_run_again_leaves_it_paused(runs: Freeze) -> None:
    write_stop(run := runs("drawn", *SETTING), Stop(3, State.PAUSED))
    assert runs("drawn", *SETTING) == run
    assert read_stop(run) == Stop(3, State.PAUSED)


def test_a_run_that_is_pruned_while_it_trains_does_not_wait_for_a_validation(
    runs: Freeze, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs("pruned", *SETTING, "budget.max_steps=1000")
    write = MetricsFile.write

    def write_and_prune(self: MetricsFile, row: dict[str, float]) -> None:
        write(self, row)
        if "loss" in row:
            write_stop(run, Stop(3, State.PRUNED))

    monkeypatch.setattr(MetricsFile, "write", write_and_prune)
    monkeypatch.setattr("etude.training.stopping._LOOK_AFTER", 0.0)
    with pytest.raises(StoppedBySearch, match="pruned at step 20"):  # of the first row of training
        train(run)
    assert read_run(run).state is State.PRUNED


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_a_gpu_with_deterministic_kernels_goes_on_to_the_same_bits(
    precision: str, runs: Freeze, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda: torch.use_deterministic_algorithms(mode=False))  # Lightning asks for them for good
    on_gpu = [*SETTING, f"precision={precision}", "trainer=gpu", "trainer.deterministic=true"]
    in_peace, killed = runs(f"gpu-{precision}", *on_gpu), runs(f"gpu-killed-{precision}", *on_gpu)
    train(in_peace)
    killed_at(8, killed, monkeypatch)
    train(killed)
    assert found(killed) == found(in_peace)


@pytest.mark.parametrize("torn", ["last", "both", "damaged"])
def test_a_torn_or_damaged_checkpoint_is_told_and_the_one_before_it_used(
    torn: str, runs: Freeze, undisturbed: RunDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = runs(f"torn-{torn}", *SETTING)
    torch.set_num_threads(1)

    killed_at(8, run, monkeypatch)
    for file in [run.checkpoint, previous(run.checkpoint)][: 1 + (torn == "both")]:
        content = file.read_bytes()
        middle = len(content) // 2  # among the weights, where it is read without complaint
        flipped = bytes(byte ^ 255 for byte in content[middle : middle + 200])
        damaged = content[:middle] + flipped + content[middle + 200 :]
        file.write_bytes(damaged if torn == "damaged" else content[:-1000])
    with caplog.at_level("INFO"):
        train(run)
    assert found(run) == found(undisturbed)
    assert f"{run.checkpoint} is incomplete or damaged" in caplog.text
    assert ("going on from step 3 of 10" in caplog.text) == (torn != "both")


@pytest.mark.parametrize("kept", [0, 2, 7])
def test_rows_that_were_lost_while_a_run_was_stopped_are_told(
    kept: int, runs: Freeze, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its last checkpoint is of step 6; a row of step 7 is made again."""
    run = runs(f"lost-{kept}", *SETTING)
    killed_at(8, run, monkeypatch)
    rows = run.metrics_file.read_text().splitlines(keepends=True)
    run.metrics_file.write_text(
        "".join(row for row in rows if not row[0].isdigit() or int(row[0]) <= kept)[: kept * 999]
    )
    with caplog.at_level("WARNING"):
        train(run)
    curves = run.own_training.metrics_file
    told = f"{curves} has lost rows of {6 - kept} steps, from {kept + 1} to 6, which its curves will lack"
    assert (told in caplog.text) == (kept < 6)
    assert ("has lost" in caplog.text) == (kept < 6)


def test_another_runs_checkpoint_is_not_gone_on_from(runs: Freeze, monkeypatch: pytest.MonkeyPatch) -> None:
    run, other = runs("own", *SETTING), runs("other", *SETTING, "seed=2")
    for each in (run, other):
        killed_at(8, each, monkeypatch)
    shutil.copyfile(other.checkpoint, run.checkpoint)
    with pytest.raises(UserError, match=rf"{run.checkpoint} is of another training, {other.training}: "):
        train(run)
    assert not run.finished


@pytest.mark.parametrize("torn", [False, True])
def test_a_run_that_other_code_began_says_so_and_is_no_codes_afterwards(
    torn: bool, runs: Freeze, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where nothing but the checkpoint before the newest is left of it."""
    run = runs(f"begun-{torn}", *SETTING)
    killed_at(8, run, monkeypatch)
    if torn:
        run.checkpoint.unlink()
    made = json.loads(run.environment_file.read_text())
    write_json(run.environment_file, made | {"results_version": 0})
    with caplog.at_level("WARNING"):
        result = train(run)
    assert "this run was begun by other code than today's; stale=rerun starts it from the beginning" in caplog.text
    assert code_of(result) is Code.OTHER


def test_a_run_may_go_on_in_more_or_fewer_micro_batches_at_the_same_step(
    runs: Freeze, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The counts of batches differ then, the steps of the validations must not."""
    run = runs("micro", *SETTING, "trainer.micro_batches=3")

    killed_at(5, run, monkeypatch)
    again = runs("micro", *SETTING)
    assert again.path == run.path
    train(again)
    validated = [row["step"] for row in found(again)["metrics"] if row["valid_loss"]]
    assert validated == ["3", "6", "9"]
