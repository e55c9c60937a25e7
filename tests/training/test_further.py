"""A finished run that is trained further ends with the bits of one that was trained so long at once."""

import pytest
import torch

from etude.files import write_json
from etude.store.lock import hold
from etude.store.results_version import record_code
from etude.store.run_dir import RunDir
from etude.store.run_state import State, Stop, StoppedBySearch, write_stop
from etude.store.training_dir import TrainingDir
from etude.training.further import begin_where_a_shorter_one_ended
from etude.training.run import train

from .conftest import Freeze, found

SETTING = ["model.dropout=0.3", "budget.source_tokens=40", "budget.target_tokens=40", "budget.warmup_steps=2"]
AT_THE_END = "looks at the end"


def of_steps(runs: Freeze, place: str, steps: int, *overrides: str) -> RunDir:
    torch.set_num_threads(1)
    return runs(place, *SETTING, *overrides, f"budget.max_steps={steps}")


def come_to_step_8(training: TrainingDir, **code: int) -> None:
    write_json(training.environment_file, record_code({}) | code)
    training.checkpoint.parent.mkdir()
    torch.save({"state_dict": {}, "global_step": 8, "training": training.path.name}, training.checkpoint)


@pytest.mark.parametrize(
    "schedule",
    [
        ["schedule=constant"],
        ["callbacks=[best_checkpoint,early_stopping]"],
        ["callbacks=ema", "schedule=constant", "budget.val_every=5"],
    ],
    ids=["constant", "noam with callbacks", "an average"],
)
def test_it_ends_with_the_bits_of_one_trained_so_long_at_once(
    schedule: list[str], runs: Freeze, caplog: pytest.LogCaptureFixture
) -> None:
    place = "further-" + schedule[0].partition("=")[2].strip("[]").replace(",", "-")
    short = of_steps(runs, place, 8, *schedule)
    train(short)
    before = found(short)
    with caplog.at_level("INFO"):
        train(further := of_steps(runs, place, 12, *schedule))
    assert f"training {short.own_training.path} further, from its step 8 on" in caplog.text
    assert "lost rows" not in caplog.text
    train(at_once := of_steps(runs, f"{place}-at-once", 12, *schedule))
    assert found(further) == found(at_once)
    assert found(short) == before


@pytest.mark.slow
def test_it_goes_on_before_the_decay_of_a_warmup_stable_decay_schedule(
    runs: Freeze, caplog: pytest.LogCaptureFixture
) -> None:
    wsd = ["schedule=wsd", "schedule.cooldown=0.5"]
    write_stop(short := of_steps(runs, "wsd", 8, *wsd), Stop(3, State.PAUSED))
    with pytest.raises(StoppedBySearch):
        train(short)
    with caplog.at_level("INFO"):
        train(further := of_steps(runs, "wsd", 16, *wsd))
    assert "further, from its step 3 on" in caplog.text
    train(at_once := of_steps(runs, "wsd-at-once", 16, *wsd))
    assert found(further) == found(at_once)


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        (["schedule=constant"], ""),
        (["schedule=inverse_sqrt"], ""),
        (["schedule=wsd", "schedule.cooldown=0.2"], ""),  # its decay begins behind step 8 of 11
        (["schedule=cosine"], AT_THE_END),
        (["schedule=linear"], AT_THE_END),
        (["schedule=wsd"], AT_THE_END),
        (["budget.cooldown=0.5"], AT_THE_END),
        (["schedule=constant", "results_version=0"], "other code than today's trained it"),
    ],
    ids=str,
)
def test_the_schedule_and_the_code_decide_and_it_is_said_why_not(
    overrides: list[str], why: str, runs: Freeze, caplog: pytest.LogCaptureFixture
) -> None:
    words, place = [word for word in overrides if "version" not in word], f"why-{'-'.join(overrides)}".replace("=", "-")
    short, further = (of_steps(runs, place, steps, *words).own_training for steps in (11, 16))
    come_to_step_8(short, **({"results_version": 0} if words != overrides else {}))
    with caplog.at_level("INFO"):
        begin_where_a_shorter_one_ended(further)
    assert further.checkpoint.exists() == (not why)
    if why:
        [sentence] = caplog.messages
        assert sentence.startswith(f"{short.path} has come to step 8, and is not trained further: ")
        assert why in sentence


def test_a_training_that_is_being_trained_is_left_alone(runs: Freeze, caplog: pytest.LogCaptureFixture) -> None:
    shorter, own = (of_steps(runs, "held", steps, "schedule=constant").own_training for steps in (8, 12))
    come_to_step_8(shorter)
    with hold(shorter.lock_file, shorter.busy), caplog.at_level("INFO"):
        begin_where_a_shorter_one_ended(own)
    assert not own.checkpoint.exists()
    assert caplog.messages == [f"{shorter.path} is being trained now, and is not trained further"]


def test_a_run_of_another_seed_is_not_gone_on_from(runs: Freeze) -> None:
    other, own = of_steps(runs, "others", 8, "seed=2").own_training, of_steps(runs, "others", 12).own_training
    come_to_step_8(other)
    begin_where_a_shorter_one_ended(own)
    assert not own.checkpoint.exists()
