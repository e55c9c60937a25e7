"""Where the rows of a run go."""

import io
import json
import logging

import pytest
from rich.console import Console

from etude.errors import UserError
from etude.store.metrics_file import read_metrics
from etude.training.metrics_writers import COLUMNS, Bar, LogSink, MetricsFile, ProgressFile, missing_steps


def test_rows_are_appended_with_blanks_where_there_is_no_value(tmp_path):
    metrics = MetricsFile(tmp_path / "metrics.csv", 0)
    metrics.write({"step": 10, "loss": 2.5, "seconds_left": 3.0})
    metrics.write({"step": 10, "valid_loss": 2.0})
    header, first, second = (tmp_path / "metrics.csv").read_text().splitlines()
    assert header == ",".join(COLUMNS)
    assert first.split(",") == ["10", "", "", "2.5", "", "", "", ""]
    assert second.split(",") == ["10", "", "", "", "", "", "2.0", ""]


def test_going_on_from_a_step_forgets_the_rows_after_it(tmp_path):
    path = tmp_path / "metrics.csv"
    metrics = MetricsFile(path, 0)
    for step in (10, 20, 30):
        metrics.write({"step": step, "loss": 1.0})
    MetricsFile(path, 20).write({"step": 30, "loss": 9.0})
    assert [(row["step"], row["loss"]) for row in read_metrics(path)] == [("10", "1.0"), ("20", "1.0"), ("30", "9.0")]


@pytest.mark.parametrize("lost", [[], [20], [10, 30]])
@pytest.mark.parametrize("validated", [{10, 20}, {5, 10, 12, 16}])  # every ten steps; every five, then every four
def test_rows_of_training_are_missed_whenever_it_was_validated(tmp_path, validated, lost):
    metrics = MetricsFile(tmp_path / "metrics.csv", 0)
    for step in range(1, 31):
        if step % 10 == 0 and step not in lost:
            metrics.write({"step": step, "loss": 1.0})
        if step in validated:
            metrics.write({"step": step, "valid_loss": 2.0})
    assert missing_steps(metrics.path, 30, every=10) == lost


def test_a_full_disk_is_told_in_one_sentence(tmp_path):
    metrics = MetricsFile(tmp_path / "metrics.csv", 0)
    metrics.path = tmp_path / "gone" / "metrics.csv"
    with pytest.raises(UserError, match="start the same command again"):
        metrics.write({"step": 1})


def test_progress_says_where_the_run_stands(tmp_path):
    progress = ProgressFile(tmp_path / "progress.json", 100)
    progress.write({"step": 10, "loss": 2.0, "tokens_per_second": 5.0, "seconds_left": 9.0, "tokens": 7})
    assert json.loads(progress.path.read_text()) == {
        "state": "training",
        "max_steps": 100,
        "step": 10,
        "loss": 2.0,
        "tokens_per_second": 5.0,
        "seconds_left": 9.0,
    }
    progress.put("evaluating", step=40)
    assert json.loads(progress.path.read_text()) == {"state": "evaluating", "step": 40, "max_steps": 100}


def test_the_bar_says_of_no_number_that_is_not_known_yet_that_it_is_nan():
    shown = io.StringIO()
    bar = Bar(Console(file=shown, force_terminal=True, width=120), 100)
    with bar.shown():
        pass
    assert "loss –  valid ppl –" in shown.getvalue()
    with bar.shown():
        bar.write({"step": 10, "loss": 2.0, "tokens_per_second": 1234.5})
    assert "loss 2.000  valid ppl –  1,234 tokens/s" in shown.getvalue()


def test_a_terminal_that_has_gone_loses_nothing_that_was_trained():
    class Window(io.StringIO):
        def write(self, text):
            raise OSError(5, "Input/output error")

    bar = Bar(Console(file=io.StringIO(), force_terminal=True), 100)
    with bar.shown():
        bar.write({"step": 10, "loss": 2.0})
        bar.progress.console.file = Window()


def test_a_run_that_is_not_validated_for_long_says_once_a_minute_how_far_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = LogSink(400)
    rates = {"loss": 2.0, "tokens_per_second": 1000.0}
    with caplog.at_level(logging.INFO):
        for step in range(10, 201, 10):
            sink.write({"step": step, "seconds": float(step), **rates})
            if step == 100:
                sink.write({"step": step, "seconds": 100.0, "valid_perplexity": 7.0})
    assert caplog.messages == [
        "step 60/400  loss 2.000  1000 tokens/s  60 s",
        "step 100/400  loss 2.000  validation perplexity 7.00  1000 tokens/s  100 s",
        "step 160/400  loss 2.000  1000 tokens/s  160 s",
    ]
