"""Reading the runs of a study back from W&B, as if they lay here.

What W&B has of a run is written to a temporary directory in the form that the run has on disk, and read from there by
what reads all runs. So the same runs are chosen and the same are left out, wherever they come from.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from os import utime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import yaml

from etude.errors import UserError
from etude.files import write_json, write_text
from etude.report import Results
from etude.report.render.wandb.connection import connected, project_of
from etude.report.render.wandb.restored import config_of, overrides_of, result_of
from etude.report.selection import select
from etude.runs.records import read_runs
from etude.runs.run_dir import RunDir
from etude.studies.study import Study, load_study, value_at
from etude.terminal import told

if TYPE_CHECKING:
    from wandb.apis.public import Run as WandbRun


@dataclass(frozen=True)
class Fetched:
    """The runs of a study as W&B has them.

    Attributes:
        results: the finished ones. The directory of a run is its path at W&B, ENTITY/PROJECT/ID; nothing lies there.
        standing: what W&B says of an unfinished one: running, failed, crashed.
    """

    results: Results
    standing: Callable[[RunDir], str]


def fetch(study: str, project: str, where: Mapping[str, str] | None = None) -> Fetched:
    """The runs of a study that W&B has, selected as `etude.runs.records` selects.

    A run that did not tell W&B all that was typed is of the setting that its config groups and its sweep make; what
    else was typed tells settings apart only where `where` names it.

    Args:
        study: its name, such as "table3".
        project: of W&B: [ENTITY/]PROJECT.
        where: which runs, where there are several settings.

    Raises:
        UserError: W&B cannot be asked, or has no finished run of the study that is as `where` asks.
    """
    known, asked = load_study(study), where or {}
    with connected() as api:
        entity, name = project_of(api, project)
        try:
            theirs = list(api.runs(f"{entity}/{name}", filters={"group": study}, lazy=False))
        except ValueError as error:
            raise UserError(f"W&B has no project {entity}/{name}, or does not show it to this key") from error
    places = {_place(run): run for run in theirs}
    with TemporaryDirectory() as folder:
        paths, strangers = _written(known, places, Path(folder) / study, asked)
        found, unreadable = read_runs(known, Path(folder))
    runs = [replace(run, run_dir=RunDir(paths[run.run_dir.path])) for run in found]
    for path, place in paths.items():
        unreadable = [note.replace(str(path), str(place)) for note in unreadable]
    if not any(run.finished for run in runs):
        raise UserError(
            " ".join([f"W&B has no finished run of {study} in {entity}/{name}.", *strangers, *unreadable]).rstrip(".")
        )
    selection = select(known, runs, asked)
    notes = [*selection.notes, *strangers, *unreadable]
    return Fetched(
        Results(known, selection, notes),
        standing=lambda run_dir: f"{places[run_dir.path].state} at W&B",
    )


def _place(run: "WandbRun") -> Path:
    """ENTITY/PROJECT/ID."""
    return Path(*run.path)


def _written(
    study: Study, runs: Mapping[Path, "WandbRun"], folder: Path, asked: Iterable[str]
) -> tuple[dict[Path, Path], list[str]]:
    """A directory for each run, with its place at W&B; and a sentence for each that is none of the study."""
    paths, strangers = {}, []
    for number, (place, run) in enumerate(runs.items()):
        arm = str(run.config.get("arm"))
        if arm not in study.arms:  # a name from outside, which becomes that of a directory
            strangers.append(f"Left out: {place}, for the study has no arm {arm}.")
            continue
        there = RunDir(folder / arm / f"seed-{number:06}")
        paths[there.path] = place
        config = config_of(run.config)
        typed = overrides_of(run.config)
        chosen = {
            key: config.get("choices", {}).get(key, value_at(config, key)) for key in asked if key not in study.changed
        }
        typed += [f"{key}={told(value)}" for key, value in chosen.items()]
        write_text(there.config_file, yaml.safe_dump(config))
        write_text(there.overrides_file, "".join(f"{override}\n" for override in typed))
        if run.state == "finished":
            write_json(there.result_file, result_of(run.summary_metrics))
        seconds = datetime.fromisoformat(run.created_at).timestamp()
        for file in filter(Path.exists, (there.config_file, there.result_file)):
            utime(file, (seconds, seconds))
    return paths, strangers
