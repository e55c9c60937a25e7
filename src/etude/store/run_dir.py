"""The directory of one run and the names of its files.

runs/<study>/<arm>/seed<k>-<hash>/
    config.yaml          the resolved config, frozen when the run was launched
    written.yaml         the same config with its interpolations unresolved
    overrides.txt        the overrides it was launched with, one per line
    text.txt             the fingerprint of the corpus when the run was launched
    training.txt         the name of its training in `.trainings`, see `training_dir.py`
    training             a link to it, for people
    result.json          written last: its presence means that the run is finished
    progress.json        the progress of a running process, rewritten every few seconds
    stop.json            where a search wants the run to stop before its end, see `run_state.py`
    hypotheses.test.txt  the translations, one line per source line
    sources.test.txt     the source sentences
    references.test.txt  the reference translations
    log.txt              the output of the run
    analysis.json        the findings of `etude analyze`, if it was run
    job.json             the SLURM job that the run was last submitted as, if any
    .lock                held by the process that works on the run

When the run is finished, it also has copies of the training's `metrics.csv`, `tokenizer.model`, `environment.json` and,
if there is one, `init_from.json`.
"""

import json
import os
import pickle
import re
import shutil
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from etude.errors import UserError
from etude.files import read_json, replacing, typed_path, write_json, write_text
from etude.store.training_dir import FOLDER, NamedFile, TrainingDir

_NAME = re.compile(r"seed-?\d+-[0-9a-f]+")
_SEED = re.compile(r"^seed: (0|-?[1-9]\d*)$", re.MULTILINE)


class _TrainingFile(NamedFile):
    """Descriptor: the path of a file of the training, which a finished run has a copy of."""

    def __get__(self, run: "RunDir", owner: type["RunDir"]) -> Path:
        return (run.path if run.finished else run.training_dir.path) / self.name


@dataclass(frozen=True)
class RunDir:
    """The directory of one run: paths of its files, and methods that read them."""

    path: Path

    config_file = NamedFile("config.yaml")
    written_file = NamedFile("written.yaml")
    overrides_file = NamedFile("overrides.txt")
    text_file = NamedFile("text.txt")
    training_file = NamedFile("training.txt")
    result_file = NamedFile("result.json")
    training_link = NamedFile("training")
    progress_file = NamedFile("progress.json")
    stop_file = NamedFile("stop.json")
    hypotheses_file = NamedFile("hypotheses.test.txt")
    sources_file = NamedFile("sources.test.txt")
    references_file = NamedFile("references.test.txt")
    metrics_file = _TrainingFile("metrics.csv")
    tokenizer_file = _TrainingFile("tokenizer.model")
    environment_file = _TrainingFile("environment.json")
    init_from_file = _TrainingFile("init_from.json")
    log_file = NamedFile("log.txt")
    analysis_file = NamedFile("analysis.json")
    lock_file = NamedFile(".lock")

    @classmethod
    def at(cls, path: str) -> "RunDir":
        """Return the run in the directory `path`; `<run>/training/checkpoints/last.ckpt` names it, too."""
        given = typed_path(path)
        if given.suffix != ".ckpt":
            return cls(given)
        if len(given.parents) > 2:
            return cls(given.parents[2])
        above = [*given.absolute().parents][2:3]  # it may have been typed from within the run
        return next((run for run in map(cls, above) if run.config_file.is_file()), cls(given))

    @property
    def id(self) -> str:
        """`seed<k>-<hash>`, also for a run that was put aside; empty if the directory has another kind of name."""
        found = _NAME.match(self.path.name)
        return found[0] if found else ""

    @property
    def training(self) -> str:
        """The name of the training's directory in `.trainings`; empty if it was not recorded."""
        with suppress(OSError, UnicodeDecodeError):
            return self.training_file.read_text(encoding="utf-8").strip()
        return ""

    @property
    def training_dir(self) -> TrainingDir:
        """The training, to be read: in `.trainings`, or in a copy of the run the folder that the link has become."""
        own, link = self.own_training, self.training_link
        return TrainingDir(link) if link.is_dir() and not own.path.is_dir() else own

    @property
    def own_training(self) -> TrainingDir:
        """The training, to be written: in `.trainings`."""
        return TrainingDir(self.runs_dir / FOLDER / (self.training or self.path.name))

    @property
    def checkpoint(self) -> Path:
        """The newest checkpoint of its training."""
        return self.training_dir.checkpoint

    @property
    def runs_dir(self) -> Path:
        """The folder of runs, three levels above: `runs_dir/<study>/<arm>/<run>`, or four for a run put aside."""
        up = "../../../.." if self.path.parent.name == ".stale" else "../../.."
        return Path(os.path.normpath(self.path / up))

    @property
    def busy(self) -> str:
        """The message if another process holds the run's lock."""
        return f"another process is training {self.path}: wait for it, or stop it first"

    @property
    def not_a_run(self) -> UserError:
        """The error for a directory without a run; it suggests the folder of a run below it, if there is one."""
        below = sorted([*self.path.glob("seed*/config.yaml"), *self.path.glob("*/seed*/config.yaml")])
        way_out = f"did you mean {below[0].parent}?" if below else "name one under runs/"
        return UserError(f"{self.path} is not the directory of a run: it has no config.yaml; {way_out}")

    @property
    def finished(self) -> bool:
        """Whether the run has a `result.json`. Only this means success, whatever the exit code of the process was."""
        return self.result_file.is_file()

    def config(self) -> dict[str, Any]:
        """Load the frozen config as plain data.

        Raises:
            UserError: the file is truncated or missing.
        """
        try:
            text = self.config_file.read_text(encoding="utf-8")
            content = _parse(text)
        except (FileNotFoundError, IsADirectoryError) as error:
            raise UserError(f"{self.path} has no config.yaml: delete the directory and train again") from error
        except (ValueError, yaml.YAMLError):
            text, content = "", None
        # A truncated file may still be valid YAML, but it lacks `choices`, which is written last, or the final newline.
        if not (isinstance(content, dict) and isinstance(content.get("choices"), dict) and text.endswith("\n")):
            raise UserError(f"{self.config_file} is incomplete: delete the directory and train again")
        return content

    def written(self) -> dict[str, Any]:
        """Load the frozen config with its interpolations unresolved; empty if it is damaged or was not recorded."""
        with suppress(OSError, ValueError):
            return read_written(self.written_file.read_text(encoding="utf-8"))
        return {}

    def overrides(self) -> list[str]:
        """Return the overrides the run was launched with; an empty list if they were not recorded.

        Each is a line; one with a line break is a string of JSON there.
        """
        text = self.overrides_file.read_text(encoding="utf-8") if self.overrides_file.is_file() else ""
        lines = text.removesuffix("\n").split("\n") if text else []
        return [json.loads(line) if line.startswith('"') else line for line in lines]

    def text(self) -> str:
        """Return the fingerprint of the text the run was launched with; empty if it was not recorded."""
        return self.text_file.read_text(encoding="utf-8").strip() if self.text_file.is_file() else ""

    def result(self) -> dict[str, Any]:
        """Load the result of the finished run.

        Raises:
            UserError: the file is truncated.
        """
        try:
            content = json.loads(self.result_file.read_text(encoding="utf-8"))
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise UserError(
                f"{self.result_file} is incomplete: delete it, and the same command evaluates the run again"
            )
        return content

    def is_replaced(self, result: Mapping[str, Any]) -> bool:
        """Return whether the training has other weights by now than those that this result of the run was made of."""
        file = f"{self.runs_dir}/{FOLDER}/{result.get('training')}/trained.json"
        with suppress(OSError), open(file, encoding="utf-8") as opened:  # noqa: PTH123 (`status` opens thousands)
            return str(result["weights"] or "") not in opened.read()
        return False  # it was deleted, or not recorded

    def progress(self) -> dict[str, Any] | None:
        """Load the recorded progress; None before the first step.

        Keys: state ("training" | "evaluating"), step, max_steps, loss, tokens_per_second, seconds_left.
        """
        content: dict[str, Any] | None = read_json(self.progress_file)
        return content

    def link_training(self, name: str) -> None:
        """Record the name of the training's directory, and link to it where the file system has links."""
        write_text(self.training_file, f"{name}\n")
        if self.training_link.is_symlink():
            self.training_link.unlink()
        with suppress(OSError):  # a folder, in a copy of the run
            self.training_link.symlink_to(os.path.relpath(self.own_training.path.absolute(), self.path.resolve()))

    def copy_training(self) -> None:
        """Copy curves, subwords and environment of the training, so that the finished run is complete without it."""
        training = self.own_training
        copied = (training.metrics_file, training.tokenizer_file, training.environment_file, training.init_from_file)
        for file in copied:
            if file.is_file():
                with replacing(self.path / file.name) as temporary:
                    shutil.copyfile(file, temporary)

    def write_result(self, result: dict[str, Any]) -> None:
        """Write `result.json`, which marks the run as finished."""
        write_json(self.result_file, result)


def runs_by_training(runs_dir: Path) -> dict[Path, list[RunDir]]:
    """Return the runs of all studies that name each training, those put aside included, by the training's directory.

    Raises:
        OSError: a run cannot be read, so that nobody knows what it names.
    """
    found: defaultdict[Path, list[RunDir]] = defaultdict(list)
    for pattern in ("*/*/seed*/training.txt", "*/*/.stale/seed*/training.txt"):
        for file in sorted(runs_dir.glob(pattern)):
            name, run = file.read_text(encoding="utf-8").strip(), RunDir(file.parent)
            found[run.runs_dir / FOLDER / name].append(run)
    return found


def read_written(text: str) -> dict[str, Any]:
    """Parse a config with its interpolations unresolved; empty if it is no such config."""
    with suppress(yaml.YAMLError):
        content = _parse(text)
        return content if isinstance(content, dict) else {}
    return {}


def _parse(text: str) -> Any:
    """Parse the text of a config; configs that differ only in the seed are parsed once, as YAML takes 1 ms for each."""
    seed = _SEED.search(text)
    if seed is None:
        return pickle.loads(_parse_once(text))
    content = pickle.loads(_parse_once(f"{text[: seed.start()]}seed: 0{text[seed.end() :]}"))
    return content | {"seed": int(seed[1])} if isinstance(content, dict) else content


@lru_cache(1024)
def _parse_once(text: str) -> bytes:
    """Parse YAML and pickle the value, so that each caller unpickles a copy of its own."""
    # The C loader, if PyYAML has it, is ten times as fast.
    return pickle.dumps(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
