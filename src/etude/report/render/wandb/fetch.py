"""Read the runs of a study back from W&B: the same `Run` objects as from disk, selected in the same way."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.errors import UserError
from etude.report import Results
from etude.report.render.wandb.connection import connect, project_of
from etude.report.selection import select
from etude.store.records import Run, finished_run, leaving_out
from etude.store.run_dir import RunDir, read_written
from etude.store.run_state import State
from etude.store.wandb_id import make_tag
from etude.study.study import Study, load_study

if TYPE_CHECKING:
    from wandb.apis.public import Run as WandbRun

_NOT_CONFIG = (
    "environment",
    "results_version",
    "code",
    "overrides",
    "written",
    "studies",
)  # logged with the config, but not part of it
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")  # W&B stores them as strings
_STATES = {"running": State.RUNNING, "failed": State.FAILED, "crashed": State.FAILED, "killed": State.STOPPED}


def fetch(study: str, project: str, where: Mapping[str, str] | None = None) -> Results:
    """Read the runs of a study in the W&B project `project`, [ENTITY/]PROJECT, selected as `results` does.

    The directory of a run is its path at W&B, ENTITY/PROJECT/ID, where there are no files.

    Raises:
        UserError: W&B cannot be reached, or has no finished run of the study that matches `where`.
    """
    known, asked = load_study(study), where or {}
    with connect() as api:
        entity, name = project_of(api, project)
        try:
            asks = {"$or": [{"group": study}, {"tags": {"$in": [make_tag("study", study)]}}]}
            theirs = list(api.runs(f"{entity}/{name}", filters=asks, lazy=False))
        except ValueError as error:
            raise UserError(f"W&B has no project {entity}/{name}, or does not show it to this key") from error
    rows, strangers = [], []
    for run in theirs:
        place, arm = Path(*run.path), str(run.config.get("studies", {}).get(study) or run.config.get("arm"))
        if arm not in known.arms:
            strangers.append(f"Left out: {place}, for the study has no arm {arm}.")
            continue
        with leaving_out(place, strangers):
            rows.append(_row(known, run, RunDir(place), arm))
    if not any(run.finished for run in rows):
        raise UserError(" ".join([f"W&B has no finished run of {study} in {entity}/{name}.", *strangers]).rstrip("."))
    return Results(known, select(known, rows, asked, strangers))


def _row(study: Study, run: "WandbRun", there: RunDir, arm: str) -> Run:
    """Convert a W&B run to the `Run` that its directory would give."""
    config = config_of(run.config) | {"study": study.name, "arm": arm}
    row: dict[str, Any] = {
        "overrides": [str(override) for override in run.config.get("overrides", [])],
        "as_written": read_written(str(run.config.get("written", ""))),
        "changed": datetime.fromisoformat(run.created_at).timestamp(),
    }
    seed = int(config["seed"])
    if run.state == "finished":
        return finished_run(there, study.name, arm, seed, config, result_of(run.summary_metrics), **row)
    state = _STATES.get(run.state, State.WAITING)
    why = "as W&B says" if state is State.FAILED else None
    return Run(there, study.name, arm, seed, config, {}, state, why, **row)


def config_of(logged: Mapping[str, Any]) -> dict[str, Any]:
    """Extract the frozen config of a run from its config at W&B, which has further keys.

    These include the parameters of a W&B sweep. If one has the name of a whole section, such as `budget: smoke`, the
    section's own keys were logged with dots: `budget.max_steps`.
    """
    config = {key: value for key, value in logged.items() if key not in _NOT_CONFIG and not {".", "/"} & set(key)}
    for section in _named_sections(logged):
        start = f"{section}."
        config[section] = {key.removeprefix(start): value for key, value in logged.items() if key.startswith(start)}
    return config


def result_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the summary of a W&B run to a result, where `test/bleu` becomes a nested key."""
    result: dict[str, Any] = {}
    for key, value in summary.items():
        *section, name = key.split("/", 1)
        place = result.setdefault(section[0], {}) if section else result
        place[name] = float(value) if value in _NOT_FINITE else value
    return result


def _named_sections(logged: Mapping[str, Any]) -> set[str]:
    heads = {key.partition(".")[0] for key in logged if "." in key}
    return {head for head in heads if isinstance(logged.get(head), str)}
