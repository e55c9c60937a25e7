"""What arrives at the server: everything of a run, each row once, whatever happens to the run or to the server."""

import json
import logging
import math
from typing import Any

import pytest
import yaml

import wandb as client
from etude.store.run_dir import RunDir
from etude.store.wandb_id import logged_as
from etude.training.loggers import finish, publish, record, wandb
from etude.training.metrics_writers import LoggerSink

RESULT = {
    "arm": "A1",
    "parameters": 350_464,
    "steps": 20,
    "valid": {"perplexity": 7.5},
    "test": {"perplexity": 8.25, "bleu": 31.5, "signature": "nrefs:1"},
}


@pytest.fixture
def finished(server: Any, run: RunDir) -> dict[str, Any]:
    """What the server has of a run that has succeeded."""
    loggers = wandb(run, run.config(), mode="online", project="etude", entity=None)
    sink = LoggerSink(loggers[0])
    sink.write({"step": 10, "tokens": 990, "seconds": 1.5, "loss": 2.5})
    sink.write({"step": 10, "tokens": 990, "seconds": 1.75, "valid_loss": 2.25, "valid_perplexity": 9.5})
    sink.write({"step": 20, "tokens": 1980, "seconds": 2.5, "valid_loss": 2.5, "valid_perplexity": 12.25})
    run.sources_file.write_text("a dog\na cat\n")
    run.references_file.write_text("ein Hund\ndie Katze\n")
    run.hypotheses_file.write_text("ein Hund\neine Katze\n")
    record(loggers, run, RESULT)
    finish(loggers, exit_code=0)
    return server.run()


def test_a_finished_run_is_all_there_and_its_sentences_are_a_table(finished: dict[str, Any], run: RunDir) -> None:
    first, last = finished["upserts"][0], finished["upserts"][-1]
    assert (first["groupName"], first["jobType"], first["displayName"]) == ("table3", "A1", "A1-seed2")
    assert first["tags"] == ["scale=pocket", "budget=smoke", "model=base", "data=grammar", "study=table3"]
    config = {name: part["value"] for name, part in json.loads(last["config"]).items()}
    assert run.config().items() <= config.items()
    assert config["results_version"] == 1
    assert config["environment"]["packages"] == {"torch": "2.6.0"}
    assert [(row["_step"], row["step"], row["seconds"]) for row in finished["history"] if "seconds" in row] == [
        (0, 10, 1.5),
        (1, 10, 1.75),
        (2, 20, 2.5),
    ]
    summary = finished["summary"]
    assert (summary["parameters"], summary["test/bleu"], summary["test/signature"]) == (350_464, 31.5, "nrefs:1")
    assert summary["valid_perplexity"] == {"min": 9.5}
    assert (finished["complete"], finished["exitcode"]) == (True, 0)
    [name] = [name for name in finished["files"] if name.startswith("media/table/hypotheses")]
    [file] = run.path.glob(f"wandb/run-*/files/{name}")
    assert json.loads(file.read_text()) == {
        "columns": ["source", "reference", "hypothesis"],
        "data": [["a dog", "ein Hund", "ein Hund"], ["a cat", "die Katze", "eine Katze"]],
    }


@pytest.mark.slow
@pytest.mark.parametrize("server", ["remembers"], indirect=True)
def test_a_killed_run_goes_on_with_its_curve_and_no_step_comes_twice(
    server: Any, run: RunDir, killed_after: Any, go_on: Any
) -> None:
    killed_after(run, "online", 12, once=lambda: len(server.steps()) == 12)
    go_on(run, "online", 9, 20)  # steps 9 to 12 are trained again
    assert server.runs() == [logged_as(run)]
    assert server.steps() == list(range(1, 21))
    assert [row["_step"] for row in server.run()["history"]] == list(range(22))  # two are of validations
    assert server.run()["exitcode"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("server", ["remembers"], indirect=True)
def test_a_run_that_is_killed_twice_over_the_same_steps_logs_each_once(
    server: Any, run: RunDir, killed_after: Any, go_on: Any
) -> None:
    """The second process cuts the curves back to its checkpoint, so that the third finds no more steps 11 and 12."""
    killed_after(run, "online", 12, once=lambda: len(server.steps()) == 12)
    killed_after(run, "online", 10, first=9)
    go_on(run, "online", 9, 20)
    assert server.steps() == list(range(1, 21))


def test_an_outage_in_mid_run_loses_no_row(server: Any, run: RunDir, go_on: Any) -> None:
    def trouble(step: int) -> None:
        if step == 10:
            server.until(server.steps)
            server.outage(2)

    go_on(run, "online", 1, 20, meanwhile=trouble)
    assert server.steps() == list(range(1, 21))


@pytest.mark.parametrize("server", ["remembers"], indirect=True)
def test_a_run_that_began_without_wandb_has_its_whole_curve(server: Any, run: RunDir, go_on: Any) -> None:
    run.metrics_file.write_text("step,seconds,loss,valid_loss\n1,0.5,1.0,\n2,1.0,0.5,\n2,1.25,,0.75\n")
    go_on(run, "online", 3, 4)
    rows = [(row["step"], row.get("loss"), row.get("valid_loss")) for row in server.run()["history"]]
    assert rows == [(1, 1.0, None), (2, 0.5, None), (2, None, 0.75), (3, 1 / 3, None), (4, 0.25, None)]


@pytest.mark.parametrize("server", ["remembers"], indirect=True)
def test_the_best_perplexity_is_the_best_of_all_processes_of_a_run(server: Any, run: RunDir) -> None:
    for before, step, perplexity in (("", 10, 9.5), ("step,valid_loss,valid_perplexity\n10,2.25,9.5\n", 20, 12.25)):
        run.metrics_file.write_text(before)
        loggers = wandb(run, run.config(), mode="online", project="etude", entity=None)
        LoggerSink(loggers[0]).write({"step": step, "valid_loss": math.log(perplexity), "valid_perplexity": perplexity})
        finish(loggers, exit_code=0)
    assert server.run()["summary"]["valid_perplexity"] == {"min": 9.5}


@pytest.mark.parametrize("server", ["remembers"], indirect=True)
def test_the_rows_that_a_killed_process_did_not_send_are_sent_by_the_next(server: Any, run: RunDir, go_on: Any) -> None:
    go_on(run, "online", 1, 3)
    run.metrics_file.write_text("step,loss\n" + "".join(f"{step},{1 / step}\n" for step in range(1, 6)))
    go_on(run, "online", 5, 6)
    assert server.steps() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("server", ["remembers"], indirect=True)
def test_a_changed_setting_of_a_run_that_goes_on_replaces_the_old_one(server: Any, run: RunDir, go_on: Any) -> None:
    go_on(run, "online", 1, 1)
    config = run.config() | {"trainer": {"devices": 2}}
    finish(wandb(run, config, mode="online", project="etude", entity=None), exit_code=0)
    assert json.loads(server.run()["upserts"][-1]["config"])["trainer"]["value"] == {"devices": 2}


def test_a_finished_run_that_an_agent_asks_for_is_shown_under_the_agents_id(
    server: Any, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in (run.sources_file, run.references_file, run.hypotheses_file):
        file.write_text("ein Hund\n")
    run.write_result(RESULT)
    run.metrics_file.write_text("step,loss\n10,2.5\n20,1.5\n")  # its own copy, once it is finished
    monkeypatch.setenv("WANDB_SWEEP_ID", "abcd1234")
    monkeypatch.setenv("WANDB_RUN_ID", "run001")
    publish(run)
    assert server.runs() == ["run001"]
    assert server.steps("run001") == [10, 20]
    assert server.run("run001")["summary"]["test/bleu"] == 31.5
    assert server.run("run001")["exitcode"] == 0


def in_another_study(run: RunDir) -> RunDir:
    """The same run, which the study `modern` has too."""
    other = RunDir(run.path.parents[2] / "modern" / "old" / run.path.name)
    other.path.mkdir(parents=True)
    other.config_file.write_text(yaml.safe_dump(run.config() | {"study": "modern", "arm": "old"}))
    return other


def test_the_same_run_in_two_studies_has_a_curve_in_each(server: Any, run: RunDir, go_on: Any) -> None:
    other = in_another_study(run)
    go_on(run, "online", 1, 3)
    go_on(other, "online", 1, 4)
    ids = [logged_as(run), logged_as(other)]
    assert server.runs() == ids
    assert [server.steps(id) for id in ids] == [[1, 2, 3], [1, 2, 3, 4]]
    assert [server.run(id)["upserts"][0]["groupName"] for id in ids] == ["table3", "modern"]


def test_a_run_is_named_by_what_was_typed_has_the_configs_tags_and_notes_and_says_once_where_it_is_shown(
    server: Any, run: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    """Its name tells it from others of its arm and seed; the tags stand beside our own."""
    caplog.set_level(logging.INFO, logger="etude")
    run.overrides_file.write_text("seed=2\nmodel/position=rope\nlogger.wandb.mode=online\ndata.holdout=8\n")
    told = {"tags": ["pilot"], "notes": "what we wanted to know"}
    finish(wandb(run, run.config(), mode="online", project="etude", entity=None, **told), exit_code=0)
    first = server.run()["upserts"][0]
    assert first["displayName"] == "A1-seed2 model/position=rope data.holdout=8"
    assert first["tags"] == ["scale=pocket", "budget=smoke", "model=base", "data=grammar", "study=table3", "pilot"]
    assert first["notes"] == "what we wanted to know"
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("etude.")]
    assert ours == [f"W&B shows this run at {server.url}/me/etude/runs/{logged_as(run)}"]


def test_a_run_that_diverged_is_tagged_and_says_how_in_its_summary(server: Any, run: RunDir) -> None:
    loggers = wandb(run, run.config(), mode="online", project="etude", entity=None)
    nothing = {"steps": 40, "test": {"perplexity": math.nan, "bleu": math.nan}}
    record(loggers, run, nothing | {"diverged": "the loss is nan at step 40"})
    finish(loggers, exit_code=0)
    assert server.run()["summary"]["diverged"] == "the loss is nan at step 40"
    assert server.run()["upserts"][-1]["tags"][-1] == "diverged"
    assert server.run()["exitcode"] == 0


def test_artifacts_that_were_asked_for_are_kept_with_the_run(
    server: Any, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in knows none: what the client is given to send is looked at, behind the table of the sentences."""
    sent: list[tuple[str, str, list[str]]] = []
    waited: list[float] = []
    run.checkpoint.parent.mkdir(parents=True)
    run.checkpoint.write_bytes(b"weights")
    run.hypotheses_file.write_text("ein Hund\n")
    [logger] = wandb(
        run, run.config(), mode="online", project="etude", entity=None, artifacts=["checkpoint", "hypotheses"]
    )

    class Sent:
        def wait(self, seconds: float) -> None:
            waited.append(seconds)

    def send(artifact: Any) -> Sent:
        sent.append((artifact.name, artifact.type, sorted(artifact.manifest.entries)))
        return Sent()

    monkeypatch.setattr(logger.experiment, "log_artifact", send)
    record([logger], run, RESULT, [run.checkpoint])
    finish([logger], exit_code=0)
    id = logged_as(run)
    files = [f"hypotheses-{id}", f"checkpoint-{id}"]
    assert sent[1:] == [(files[1], "model", ["last.ckpt"]), (files[0], "hypotheses", ["hypotheses.test.txt"])]
    assert len(waited) == 2, "what has not arrived when the run ends, `wandb sync` does not send"


def log_with_a_callback(run: RunDir, first: int, last: int) -> None:
    """Log two rows of callbacks every step, and one of training every other, as a process that begins at `first`."""
    [logger] = wandb(run, run.config(), mode="online", project="etude", entity=None)
    for step in range(first, last + 1):
        logger.log_metrics({"gradient": 0.5 * step}, step)
        logger.log_metrics({"rate": 0.1}, step)
        if step % 2 == 0:
            LoggerSink(logger).write({"step": step, "loss": 1 / step})
    finish([logger], exit_code=0)


@pytest.mark.parametrize("server", ["remembers"], indirect=True)
def test_each_row_that_a_callback_logs_arrives_once_and_so_does_one_after_the_last_of_training(
    server: Any, run: RunDir
) -> None:
    log_with_a_callback(run, 1, 5)
    log_with_a_callback(run, 4, 7)  # goes on from a checkpoint before step 4
    rows = server.run()["history"]
    assert [(row["step"], row["gradient"]) for row in rows if "gradient" in row] == [(s, s / 2) for s in range(1, 8)]
    assert [row["step"] for row in rows if "rate" in row] == [*range(1, 8)]
    assert server.steps() == [2, 4, 6]
    assert [row["_step"] for row in rows] == [*range(17)]


@pytest.mark.parametrize("server", ["slow"], indirect=True)
def test_a_slow_server_holds_no_row_up_and_the_end_waits_for_a_while_only(
    server: Any, run: RunDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each row is taken before the server has answered for the first; what is not sent in the end can be sent later."""
    settings = client.Settings
    monkeypatch.setattr(client, "Settings", lambda **told: settings(**told | {"finish_timeout": 1}))
    loggers = wandb(run, run.config(), mode="online", project="etude", entity=None)
    server.slow(60)
    sink = LoggerSink(loggers[0])
    for step in range(1, 201):
        sink.write({"step": step, "loss": 1 / step})
    assert server.steps() == []
    finish(loggers, exit_code=0)
    assert "W&B has not taken everything; `wandb sync --include-online " in caplog.text


@pytest.mark.parametrize("server", ["slow"], indirect=True)
def test_a_server_that_is_slow_from_the_beginning_sends_the_run_offline(
    server: Any, run: RunDir, caplog: pytest.LogCaptureFixture
) -> None:
    server.slow(60)
    loggers = wandb(run, run.config(), mode="online", project="etude", entity=None)
    LoggerSink(loggers[0]).write({"step": 1, "loss": 1.0})
    finish(loggers, exit_code=0)
    assert "logging offline, `wandb sync" in caplog.text
    assert [*run.path.glob("wandb/offline-run-*")]
