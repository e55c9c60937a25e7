"""The table of runs: one row per run, read from its directory or built from W&B's record of it.

`etude status`, `results`, `report` and searches are views of these rows. The live table of a sweep reads the progress
of its runs in the same way. Reading composes no config, writes no file and does not contact the training process.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from etude.errors import UserError
from etude.garbage import pause_garbage_collector
from etude.store.divergence import divergence
from etude.store.identity import BACKENDS, identify_training, run_identity
from etude.store.lock import is_held
from etude.store.overrides import ACTING, NOT_A_SETTING, typed_settings
from etude.store.provenance import Code, code_of
from etude.store.run_dir import RunDir
from etude.store.run_state import NO_PROGRESS, Progress, State, state_of_unfinished
from etude.study.axes import SAME_FUNCTION
from etude.study.study import number_at, value_at
from etude.terminal import format_value

_RUN = re.compile(r"seed(-?\d+)-[0-9a-f]+")


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        run_dir: its directory; for a run read from W&B, its path there, which does not exist on this disk.
        study: the name of its study.
        arm: the name of its arm.
        seed: its seed.
        config: the frozen config.
        result: the content of `result.json`; empty until the run is finished.
        state: its state.
        error: the last error of a failed run, or how a diverged run diverged.
        progress: the progress of an unfinished run.
        overrides: the overrides it was launched with.
        setting: the choices besides arm and seed, typed or by default, without those that make no difference.
        changed: when its result, or else its config, was written, in seconds since the epoch.
        code: for a finished run, how the code that computed it compares to today's.
        text: the fingerprint of the corpus at launch; empty if it was not recorded.
        trained_as: identifies its training whatever the seed, where the config does not tell it.
        as_written: the config with its interpolations unresolved, if it is not in the run's directory.
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
    trained_as: str = ""
    as_written: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """The path of the run below the folder of runs: `<study>/<arm>/<directory>`."""
        return "/".join(self.run_dir.path.parts[-3:])

    @property
    def failure(self) -> str:
        """How the run failed or diverged, and its log file; empty if it did neither."""
        return f"{self.name} {self.state}: {self.error} ({self.run_dir.log_file})" if self.error else ""

    @property
    def finished(self) -> bool:
        """Whether the run has a result."""
        return bool(self.result)

    @cached_property
    def divergence(self) -> str | None:
        """How the run diverged; None if it did not or is not finished."""
        return divergence(self.result)

    @property
    def choices(self) -> Mapping[str, Any]:
        """The chosen option of each config group."""
        choices: Mapping[str, Any] = self.config.get("choices", {})
        return choices

    @cached_property
    def typed(self) -> dict[str, str]:
        """The overrides besides arm and seed that may change a result, as config group or key -> value."""
        found = {key: value for key, value in typed_settings(self.overrides).items() if not self.is_immaterial(key)}
        if "callbacks" in found:  # of [early_stopping,gradient_norms] the second is no part of the run's identity
            kept = [n for n in re.findall(r"\w+", found["callbacks"]) if not self.is_immaterial(f"callbacks.{n}")]
            found["callbacks"] = kept[0] if len(kept) == 1 else f"[{','.join(kept)}]"
        return found

    def score(self, key: str) -> float | None:
        """Return the number under a dotted key of the result; None if there is none."""
        return number_at(self.result, key)

    def chosen(self, key: str) -> str:
        """Return the choice for a config group or the value of a config key, written as in an override."""
        return self.setting.get(key, format_value(self.choices.get(key, value_at(self.config, key))))

    @cached_property
    def written(self) -> dict[str, Any]:
        """The config with its interpolations unresolved; the resolved one if the run did not keep it."""
        return self.as_written or self.run_dir.written() or self.config

    @cached_property
    def training(self) -> str:
        """Identifies the training whatever the seed; arms that share it differ in their scoring alone."""
        return self.trained_as or identify_training({**self.config, "seed": 0}, str(self.result.get("store")))

    @cached_property
    def _identity(self) -> dict[str, Any]:
        return run_identity(self.config)

    def is_immaterial(self, key: str) -> bool:
        """Return whether a choice or override is no part of the run's identity, such as callbacks that only observe.

        The same command without it finds the run finished, so it must not keep the run out of a table.
        """
        if key in SAME_FUNCTION:
            return value_at(self._identity, f"{key.replace('/', '.')}._target_") in BACKENDS
        if key in ACTING or (key in self.choices and key != "callbacks"):
            return False
        return value_at(self.config, key) is not None and value_at(self._identity, key) is None

    @cached_property
    def recipe(self) -> dict[str, Any]:
        """The part of the config that can change the result, without the seed, together with the group choices."""
        ignored = NOT_A_SETTING | SAME_FUNCTION  # if such a part does change the result, its `_target_` differs
        choices = {
            group: choice
            for group, choice in self.choices.items()
            if group not in ignored and not self.is_immaterial(group)
        }
        return {key: value for key, value in self._identity.items() if key != "seed"} | {"choices": choices}

    def differs_only_in_seed(self, other: "Run") -> bool:
        """Return whether this run and another of its arm may be averaged: same text, same config except the seed."""
        stores = [run.result.get("store") for run in (self, other)]
        same_text = stores[0] == stores[1] if self.finished and other.finished else self.text == other.text
        return same_text and self.recipe | {"choices": {}} == other.recipe | {"choices": {}}


def read_run(run_dir: RunDir) -> Run:
    """Read the row of one run from its directory.

    Raises:
        UserError: one of its files is truncated.
        ValueError, TypeError, AttributeError: this is not the directory of a run, or one of its files is malformed.
        OSError: a file cannot be read.
    """
    study, arm, name = run_dir.path.absolute().parts[-3:]
    if not run_dir.config_file.is_file():
        raise NoRunError("no run: it has no config.yaml")
    named = _RUN.fullmatch(name)
    if named is None:
        raise NoRunError("not named as a run is")
    config = run_dir.config()
    seed = int(named[1])
    if config.get("seed", seed) != seed:
        raise NoRunError(f"the copy of a run with another seed: its config has seed {config['seed']}")
    held = not run_dir.finished and is_held(run_dir.lock_file)
    result = run_dir.result() if run_dir.finished else {}  # checked again, as the run may have finished meanwhile
    file = run_dir.result_file if result else run_dir.config_file
    row: dict[str, Any] = {"overrides": run_dir.overrides(), "changed": file.stat().st_mtime, "text": run_dir.text()}
    if not result:
        state, error, progress = state_of_unfinished(run_dir, held)
        return Run(run_dir, study, arm, seed, config, {}, state, error, progress, **row)
    if run_dir.is_replaced(result):
        result["replaced"] = True
    return finished_run(run_dir, study, arm, seed, config, result, **row)


def finished_run(
    run_dir: RunDir, study: str, arm: str, seed: int, config: dict[str, Any], result: dict[str, Any], **row: Any
) -> Run:
    """Build the row of a finished run; the arguments are the attributes of `Run`."""
    int(result.get("steps", 0)), float(result.get("seconds", 0))  # raise an error if they are not numbers
    why = divergence(result)
    state = State.DIVERGED if why else State.FINISHED
    return Run(run_dir, study, arm, seed, config, result, state, why, code=code_of(result), **row)


class NoRunError(ValueError):
    """The directory is not that of a run; the message says what it is instead."""


@pause_garbage_collector()
def read_rows(folder: Path, arms: Collection[str] | None = None) -> tuple[list[Run], list[str]]:
    """Read every run in the folder of a study; also return a sentence for each run that could not be read.

    Args:
        folder: the folder of the study, such as `runs/table3`.
        arms: the arms to read; None reads all.
    """
    runs, notes = [], []
    for arm in _folders(folder):
        if arms is not None and arm.name not in arms:
            notes.append(f"Left out: {arm}, for the study has no arm {arm.name}.")
            continue
        for path in _folders(arm):
            with leaving_out(path, notes):
                runs.append(read_run(RunDir(path)))
    return runs, notes


@contextmanager
def leaving_out(run: Path, notes: list[str]) -> Iterator[None]:
    """If a run cannot be read within the context, add a sentence that says why."""
    try:
        yield
    except UserError as error:
        notes.append(f"Left out: {error}.")
    except NoRunError as error:
        notes.append(f"Left out: {run}, which is {error}.")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        notes.append(f"Left out: {run}, which cannot be read ({error}).")


def studies_in(runs_dir: Path) -> tuple[list[str], list[str]]:
    """Return the folders of `runs_dir` that hold runs, and a sentence for each that holds none."""
    folders = {folder.name: any(folder.glob("*/seed*/")) for folder in _folders(runs_dir)}
    notes = [f"Left out: {runs_dir / name}, which holds no runs." for name, runs in folders.items() if not runs]
    return [name for name, runs in folders.items() if runs], notes


def _folders(folder: Path) -> list[Path]:
    """Return the visible folders in a folder, sorted by name; an empty list if the folder does not exist."""
    inside = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in inside if not path.name.startswith(".") and path.is_dir())
