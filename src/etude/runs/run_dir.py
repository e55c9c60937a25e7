"""The directory of one run and the names of its files.

runs/<study>/<arm>/seed<k>-<hash>/
    config.yaml          the resolved config, frozen when the run was launched
    overrides.txt        the overrides it was launched with, one per line
    text.txt             the fingerprint of the corpus when the run was launched
    training.txt         identifies its training, which runs that differ only in decoding or study share
    result.json          written last: its presence means that the run is finished
    checkpoints/         last.ckpt, step-*.ckpt where they are averaged, previous.ckpt until the run is finished;
                         cleaned.txt if `etude clean` has deleted them
    metrics.csv          one row per logged step
    progress.json        the progress of a running process, rewritten every few seconds
    hypotheses.test.txt  the translations, one line per source line
    sources.test.txt     the source sentences
    references.test.txt  the reference translations
    tokenizer.model      the subword model
    environment.json     versions, git state, hardware
    log.txt              the output of the run
    analysis.json        the findings of `etude analyze`, if it was run
    job.json             the SLURM job that the run was last submitted as, if any
    .lock                held by the process that works on the run
    .claim               held by the launcher of that process, from before its start until it has ended
"""

import json
import os
import pickle
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from etude.errors import UserError
from etude.files import read_json, write_json

_NAME = re.compile(r"seed-?\d+-[0-9a-f]+")
_SEED = re.compile(r"^seed: (0|-?[1-9]\d*)$", re.MULTILINE)


class _RunFile:
    """Descriptor: the path of a file in the directory of the run."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, run: "RunDir", owner: type["RunDir"]) -> Path:
        return run.path / self.name


@dataclass(frozen=True)
class RunDir:
    """The directory of one run: paths of its files, and methods that read them."""

    path: Path

    config_file = _RunFile("config.yaml")
    overrides_file = _RunFile("overrides.txt")
    text_file = _RunFile("text.txt")
    training_file = _RunFile("training.txt")
    result_file = _RunFile("result.json")
    checkpoint = _RunFile("checkpoints/last.ckpt")
    cleaned_file = _RunFile("checkpoints/cleaned.txt")
    metrics_file = _RunFile("metrics.csv")
    progress_file = _RunFile("progress.json")
    hypotheses_file = _RunFile("hypotheses.test.txt")
    sources_file = _RunFile("sources.test.txt")
    references_file = _RunFile("references.test.txt")
    tokenizer_file = _RunFile("tokenizer.model")
    environment_file = _RunFile("environment.json")
    log_file = _RunFile("log.txt")
    analysis_file = _RunFile("analysis.json")
    lock_file = _RunFile(".lock")
    claim_file = _RunFile(".claim")

    @classmethod
    def at(cls, path: str) -> "RunDir":
        """Return the run in the directory `path`, or the run that the checkpoint at `path` belongs to."""
        given = Path(path)
        return cls(given.parent.parent if given.suffix == ".ckpt" else given)

    @property
    def id(self) -> str:
        """`seed<k>-<hash>`, also for a run that was put aside; empty if the directory has another kind of name."""
        found = _NAME.match(self.path.name)
        return found[0] if found else ""

    @property
    def training(self) -> str:
        """The identifier of the training; empty if it was not recorded, and for a run that was put aside."""
        with suppress(OSError):
            if not self.path.parent.name.startswith("."):
                return self.training_file.read_text(encoding="utf-8").strip()
        return ""

    @property
    def runs_dir(self) -> Path:
        """The folder of runs, three levels above: `runs_dir/<study>/<arm>/<run>`."""
        return Path(os.path.normpath(self.path / "../../.."))

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

    def overrides(self) -> list[str]:
        """Return the overrides the run was launched with; an empty list if they were not recorded."""
        return self.overrides_file.read_text(encoding="utf-8").splitlines() if self.overrides_file.is_file() else []

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

    def progress(self) -> dict[str, Any] | None:
        """Load the recorded progress; None before the first step.

        Keys: state ("training" | "evaluating"), step, max_steps, loss, tokens_per_second, seconds_left.
        """
        content: dict[str, Any] | None = read_json(self.progress_file)
        return content

    def write_result(self, result: dict[str, Any]) -> None:
        """Write `result.json`, which marks the run as finished."""
        write_json(self.result_file, result)


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
