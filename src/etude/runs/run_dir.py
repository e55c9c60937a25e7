"""The directory of one run: what lies in it and under which name.

runs/<study>/<arm>/seed<k>-<hash>/
    config.yaml          the resolved config, frozen when the run was launched
    overrides.txt        what was typed, one override a line
    text.txt             the fingerprint that the corpus had when the run was launched
    training.txt         what identifies its training, which runs that differ in decoding or study share
    result.json          written last: its presence means that the run is finished
    checkpoints/         last.ckpt, step-*.ckpt where they are averaged, previous.ckpt until the run is finished;
                         cleaned.txt where `etude clean` has taken them away
    metrics.csv          one row a logged step
    progress.json        where a live run stands, rewritten every few seconds
    hypotheses.test.txt  the translations, one line a source line
    sources.test.txt     what was translated, and
    references.test.txt  what it was compared with
    tokenizer.model      the subwords the model was trained with
    environment.json     versions, git state, hardware
    log.txt              what the run printed
    analysis.json        what `etude analyze` found, where it was asked
    job.json             the SLURM job that the run was last given to, if any
    .lock                whoever works on the run holds it
    .claim               whoever starts a process for the run holds it, from before that until it has ended
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
from etude.studies.renames import with_new_names

_NAME = re.compile(r"seed-?\d+-[0-9a-f]+")
_SEED = re.compile(r"^seed: (0|-?[1-9]\d*)$", re.MULTILINE)


class _Inside:
    """A path inside the directory."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, run: "RunDir", owner: type["RunDir"]) -> Path:
        return run.path / self.name


@dataclass(frozen=True)
class RunDir:
    """Paths and records of one run."""

    path: Path

    config_file = _Inside("config.yaml")
    overrides_file = _Inside("overrides.txt")
    text_file = _Inside("text.txt")
    training_file = _Inside("training.txt")
    result_file = _Inside("result.json")
    checkpoint = _Inside("checkpoints/last.ckpt")
    cleaned_file = _Inside("checkpoints/cleaned.txt")
    metrics_file = _Inside("metrics.csv")
    progress_file = _Inside("progress.json")
    tokenizer_file = _Inside("tokenizer.model")
    environment_file = _Inside("environment.json")
    log_file = _Inside("log.txt")
    analysis_file = _Inside("analysis.json")
    lock_file = _Inside(".lock")
    claim_file = _Inside(".claim")

    @classmethod
    def at(cls, path: str) -> "RunDir":
        """The run in the directory `path`, or the one that a checkpoint at `path` belongs to."""
        given = Path(path)
        return cls(given.parent.parent if given.suffix == ".ckpt" else given)

    @property
    def id(self) -> str:
        """`seed<k>-<hash>`, also of a run that was put aside; empty where the directory is named otherwise."""
        found = _NAME.match(self.path.name)
        return found[0] if found else ""

    @property
    def training(self) -> str:
        """What identifies the training; empty where nobody has recorded it, and of a run that was put aside."""
        with suppress(OSError):
            if not self.path.parent.name.startswith("."):
                return self.training_file.read_text(encoding="utf-8").strip()
        return ""

    @property
    def runs_dir(self) -> Path:
        """The folder in which it lies by study and arm."""
        return Path(os.path.normpath(self.path / "../../.."))

    def hypotheses_file(self, split: str) -> Path:
        """The translations of `split`, one line a source line."""
        return self.path / f"hypotheses.{split}.txt"

    def sources_file(self, split: str) -> Path:
        """The source lines of `split`."""
        return self.path / f"sources.{split}.txt"

    def references_file(self, split: str) -> Path:
        """The references of `split`."""
        return self.path / f"references.{split}.txt"

    @property
    def not_a_run(self) -> UserError:
        """What to say where there is no run in the directory: those below it may be meant."""
        below = sorted([*self.path.glob("seed*/config.yaml"), *self.path.glob("*/seed*/config.yaml")])
        way_out = f"did you mean {below[0].parent}?" if below else "name one under runs/"
        return UserError(f"{self.path} is not the directory of a run: it has no config.yaml; {way_out}")

    @property
    def finished(self) -> bool:
        """A finished `result.json` is success; an exit code is not."""
        return self.result_file.is_file()

    def config(self) -> dict[str, Any]:
        """The frozen config as plain data.

        Raises:
            UserError: the file is torn, or there is none.
        """
        try:
            text = self.config_file.read_text(encoding="utf-8")
            content = _parse(text)
        except (FileNotFoundError, IsADirectoryError) as error:
            raise UserError(f"{self.path} has no config.yaml: delete the directory and train again") from error
        except (ValueError, yaml.YAMLError):
            text, content = "", None
        # What was cut short may still be YAML, but lacks the choices, which are written last, or the end of a line.
        if not (isinstance(content, dict) and isinstance(content.get("choices"), dict) and text.endswith("\n")):
            raise UserError(f"{self.config_file} is torn: delete the directory and train again")
        return with_new_names(content)

    def overrides(self) -> list[str]:
        """What was typed; nothing where that was not kept."""
        return self.overrides_file.read_text(encoding="utf-8").splitlines() if self.overrides_file.is_file() else []

    def result(self) -> dict[str, Any]:
        """What the finished run found.

        Raises:
            UserError: the file is torn.
        """
        try:
            content = json.loads(self.result_file.read_text(encoding="utf-8"))
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise UserError(f"{self.result_file} is torn: delete it, and the same command evaluates the run again")
        return content

    def progress(self) -> dict[str, Any] | None:
        """Where the run stands, or None before its first step.

        Keys: state ("training" | "evaluating"), step, max_steps, loss, tokens_per_second, seconds_left.
        """
        content: dict[str, Any] | None = read_json(self.progress_file)
        return content

    def write_result(self, result: dict[str, Any]) -> None:
        """Say that the run is finished."""
        write_json(self.result_file, result)


def _parse(text: str) -> Any:
    """What a config says. Thousands of them differ in their seeds alone, and YAML takes a millisecond for each."""
    seed = _SEED.search(text)
    if seed is None:
        return pickle.loads(_parse_once(text))
    content = pickle.loads(_parse_once(f"{text[: seed.start()]}seed: 0{text[seed.end() :]}"))
    return content | {"seed": int(seed[1])} if isinstance(content, dict) else content


@lru_cache(1024)
def _parse_once(text: str) -> bytes:
    """Pickled, so that everyone gets a value of their own."""
    return pickle.dumps(yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))  # ten times as fast
