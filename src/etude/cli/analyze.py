"""`etude analyze`: heads, order, lengths and decoding of a trained run."""

import json
import math
import sys
from typing import Any

from etude.cli.hydra_app import run_task_on_a_run
from etude.config.rules import WIDEST_BEAM
from etude.errors import UserError
from etude.files import write_text
from etude.logs import logging_to
from etude.store.find_run import find_run
from etude.terminal import console


def main(words: list[str]) -> None:
    """Analyse a trained run and print a summary; with --json, print the content of `analysis.json`."""

    def task(config: dict[str, Any], typed: list[str]) -> None:
        analyze(config, as_json="--json" in words)

    run_task_on_a_run("analyze", task, [word for word in words if word != "--json"])


def analyze(config: dict[str, Any], *, as_json: bool) -> None:
    """Write `analysis.json` into the run's directory, and print its summary or, `as_json`, all of it.

    Raises:
        UserError: a value is out of range; there is no such run, it is not finished, or it cannot be read.
    """
    logging_to(None)
    _check(config)
    from etude.inspect.analyze.analysis import analyze_run
    from etude.inspect.analyze.subject import Subject  # imports torch, so only after the config is checked
    from etude.inspect.analyze.summary import render_summary

    run = find_run(config["run"])
    found = _plain(analyze_run(Subject.of(run, config["device"]), config))
    text = json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if as_json:
        sys.stdout.write(f"{text}\n")
    else:
        console().print(render_summary(found))
    try:
        write_text(run.analysis_file, f"{text}\n")
    except UserError as error:  # the directory may be read-only; the summary has been printed
        why = f"{run.analysis_file}: {getattr(error.__cause__, 'strerror', None) or error}"
        sys.stderr.write(f"etude: {why}: the answers above are not kept, and no page shows them\n")
    else:
        sys.stdout.write("" if as_json else f"{run.analysis_file}\n")  # not with rich, which would wrap the path


def _check(config: dict[str, Any]) -> None:
    """Check the ranges of values, which the types of the schema do not cover."""
    for name, least in (("sentences", 1), ("maps", 0), ("seed", 0)):
        if config[name] < least:
            raise UserError(f"{name}={config[name]} must be at least {least}")
    for name, kind, least, most, words in (
        ("beams", int, 1, WIDEST_BEAM, f"whole numbers from 1 to {WIDEST_BEAM:,}, such as beams=[1,4]"),
        ("alphas", int | float, 0, math.inf, "numbers from 0 on, such as alphas=[0,0.6]"),
    ):
        if not all(
            isinstance(value, kind) and not isinstance(value, bool) and least <= value <= most for value in config[name]
        ):
            raise UserError(f"{name}={config[name]} must be a list of {words}")


def _plain(value: Any) -> Any:
    """Convert a value for JSON: round floats to four decimals, and replace those that are not finite by None."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return round(value, 4) if math.isfinite(value) else None
    return value
