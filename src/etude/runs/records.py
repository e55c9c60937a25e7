"""The table of runs: one row a run, read from its directory or made of what W&B has of it.

`etude status`, `results`, `report` and searches are views of these rows; the live table of a sweep reads how far its
runs have come in the same way. Nothing is composed, nothing is written, and no trainer is asked.
"""

import gc
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from etude.errors import UserError
from etude.runs.divergence import divergence
from etude.runs.lock import is_locked
from etude.runs.material import material
from etude.runs.measurements import MEASURED
from etude.runs.provenance import Code, code_of
from etude.runs.run_dir import RunDir
from etude.runs.run_state import NO_PROGRESS, Progress, State, state_of_unfinished
from etude.runs.typed import NOT_A_SETTING, typed_settings
from etude.studies.axes import SAME_FUNCTION
from etude.studies.renames import with_groups_of_today
from etude.studies.study import value_at
from etude.terminal import format_value

_RUN = re.compile(r"seed(-?\d+)-[0-9a-f]+")


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        run_dir: where it lies; of one that was read from W&B its path there, where nothing lies.
        study: its name.
        arm: its name.
        seed: of the run.
        config: as frozen, under the names and with the groups of today.
        result: empty while it is not finished.
        state: where it stands.
        error: what a failed one said last, and how a diverged one did.
        progress: of one that is not finished.
        overrides: what was typed.
        setting: all that was chosen besides arm and seed, typed or not, less what is so anyway.
        changed: when it last wrote, in seconds since the epoch.
        code: of a finished one: was it made by the code of today?
        text: the fingerprint of what it was launched with; empty where nobody has recorded it.
    """

    run_dir: RunDir
    study: str
    arm: str
    seed: int
    config: dict[str, Any]
    result: dict[str, Any]
    state: State = State.FINISHED
    error: str | None = None
    progress: Progress = NO_PROGRESS
    overrides: Sequence[str] = ()
    setting: dict[str, str] = field(default_factory=dict)
    changed: float = 0.0
    code: Code | None = None
    text: str = ""

    @property
    def name(self) -> str:
        """Study, arm and directory, as one would type them behind the folder of runs."""
        return "/".join(self.run_dir.path.parts[-3:])

    @property
    def failure(self) -> str:
        """How it failed or diverged, and where to read on; empty where it did not."""
        return f"{self.name} {self.state}: {self.error} ({self.run_dir.log_file})" if self.error else ""

    @property
    def finished(self) -> bool:
        """Whether there is a result."""
        return bool(self.result)

    @cached_property
    def divergence(self) -> str | None:
        """How it diverged, if it is finished and did."""
        return divergence(self.result)

    @property
    def choices(self) -> Mapping[str, Any]:
        """Config group -> the file that was chosen."""
        choices: Mapping[str, Any] = self.config.get("choices", {})
        return choices

    @cached_property
    def typed(self) -> dict[str, str]:
        """What was typed besides arm and seed: group or key -> choice."""
        return typed_settings(self.overrides)

    def score(self, key: str) -> float | None:
        """The number that the result holds under a dotted key; None where it holds none."""
        value = value_at(self.result, key)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def chosen(self, key: str) -> str:
        """What was chosen for a group or a config key, as it is typed."""
        return self.setting.get(key, format_value(self.choices.get(key, value_at(self.config, key))))

    def has(self, key: str, value: str) -> bool:
        """Whether that was chosen; a text goes by the first digits of its fingerprint too."""
        return self.chosen(key) == value or (key == "text" and self.text.startswith(value or "-"))

    @property
    def material(self) -> dict[str, Any]:
        """What of its config may change what it finds, besides the seed, and what was chosen for it."""
        ignored = NOT_A_SETTING | SAME_FUNCTION  # one of those that computes something else is told by its class
        choices = {group: choice for group, choice in self.choices.items() if group not in ignored}
        return {key: value for key, value in material(self.config).items() if key != "seed"} | {"choices": choices}

    def differs_only_in_seed(self, other: "Run") -> bool:
        """Whether this run and another of its arm may be averaged: the same config but for the seed, the same text."""
        stores = [run.result.get("store") for run in (self, other)]
        same_text = stores[0] == stores[1] if self.finished and other.finished else self.text == other.text
        return same_text and self.material | {"choices": {}} == other.material | {"choices": {}}


def read_run(run_dir: RunDir) -> Run:
    """Read one run.

    Raises:
        UserError: one of its files is torn.
        ValueError, TypeError, AttributeError: the directory is no run's, or one of its files is not as it should be.
        OSError: it cannot be read.
    """
    study, arm, name = run_dir.path.parts[-3:]
    if not run_dir.config_file.is_file():
        raise NoRunError("no run: it has no config.yaml")
    named = _RUN.fullmatch(name)
    if named is None:
        raise NoRunError("named otherwise than a run")
    config = run_dir.config()
    held = not run_dir.finished and is_locked(run_dir)
    result = run_dir.result() if run_dir.finished else {}  # asked again: it may have become so meanwhile
    text = run_dir.text_file.read_text(encoding="utf-8").strip() if run_dir.text_file.is_file() else ""
    file = run_dir.result_file if result else run_dir.config_file
    row: dict[str, Any] = {"overrides": run_dir.overrides(), "changed": file.stat().st_mtime, "text": text}
    if not result:
        state, error, progress = state_of_unfinished(run_dir, held)
        today = with_groups_of_today(config)
        return Run(run_dir, study, arm, int(named[1]), today, {}, state, error, progress, **row)
    return finished_run(run_dir, study, arm, int(named[1]), config, result, **row)


def finished_run(
    run_dir: RunDir, study: str, arm: str, seed: int, config: dict[str, Any], result: dict[str, Any], **row: Any
) -> Run:
    """Make the row of a finished run; arguments as the attributes of `Run`, `config` as frozen."""
    int(result.get("steps", 0)), float(result.get("seconds", 0))  # raise where they are none
    why = divergence(result)
    state = State.DIVERGED if why else State.FINISHED
    today, code = with_groups_of_today(config), code_of(result, config)
    return Run(run_dir, study, arm, seed, today, result, state, why, code=code, **row)


class NoRunError(ValueError):
    """What a directory is, where it is no run's."""


@contextmanager
def _pause_garbage_collector() -> Iterator[None]:
    """Keep the garbage collector from looking through thousands of rows again and again, which all stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_pause_garbage_collector()
def read_rows(folder: Path, arms: Collection[str] | None = None) -> tuple[list[Run], list[str]]:
    """Read every run in the folder of a study, and say in a sentence which could not be read.

    Args:
        folder: such as `runs/table3`.
        arms: read no others; None reads all.
    """
    runs, notes = [], []
    for arm in _folders(folder):
        if arms is not None and arm.name not in arms:
            notes.append(f"Left out: {arm}, for the study has no arm {arm.name}.")
            continue
        for path in _folders(arm):
            try:
                runs.append(read_run(RunDir(path)))
            except UserError as error:
                notes.append(f"Left out: {error}.")
            except NoRunError as error:
                notes.append(f"Left out: {path}, which is {error}.")
            except (OSError, ValueError, TypeError, AttributeError) as error:
                notes.append(f"Left out: {path}, which cannot be read ({error}).")
    return runs, notes


def studies_in(runs_dir: Path) -> tuple[list[str], list[str]]:
    """The folders of `runs_dir` that hold runs or measurements, and a sentence for each that holds none."""
    kinds = ("*/seed*/", MEASURED)
    folders = {folder.name: any(any(folder.glob(kind)) for kind in kinds) for folder in _folders(runs_dir)}
    notes = [f"Left out: {runs_dir / name}, which holds no runs." for name, runs in folders.items() if not runs]
    return [name for name, runs in folders.items() if runs], notes


def _folders(folder: Path) -> list[Path]:
    """The folders in a folder, by name, hidden ones left out; none where there is no such folder."""
    inside = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in inside if not path.name.startswith(".") and path.is_dir())
