"""Reading what the runs of a study left in `runs/`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from etude.errors import UserError
from etude.runs.divergence import divergence
from etude.runs.material import material
from etude.runs.provenance import Code, code_of
from etude.runs.run_dir import RunDir
from etude.runs.typed import NOT_A_SETTING, distinguishing_overrides
from etude.studies.study import Study, value_at
from etude.terminal import told


@dataclass(frozen=True)
class Run:
    """One run. `result` is empty while it is not finished."""

    run_dir: RunDir
    arm: str
    seed: int
    config: dict[str, Any]
    result: dict[str, Any]
    typed: dict[str, str]  # what was typed besides arm and seed: group or key -> choice
    setting: dict[str, str]  # all that was chosen besides arm and seed, typed or not, less what is so anyway
    changed: float  # when it last wrote, in seconds since the epoch
    code: Code | None  # of a finished one: was it made by the code of today?
    text: str = ""  # the fingerprint of what it was launched with; empty where nobody has recorded it

    @property
    def finished(self) -> bool:
        """Whether there is a result."""
        return bool(self.result)

    @property
    def divergence(self) -> str | None:
        """How it diverged, if it is finished and did."""
        return divergence(self.result)

    def chosen(self, key: str) -> str:
        """What was chosen for a group or a config key, as it is typed."""
        choice = self.config.get("choices", {}).get(key, value_at(self.config, key))
        return self.setting.get(key, told(choice))

    def has(self, key: str, value: str) -> bool:
        """Whether that was chosen; a text goes by the first digits of its fingerprint too."""
        return self.chosen(key) == value or (key == "text" and self.text.startswith(value or "-"))

    @property
    def material(self) -> dict[str, Any]:
        """What of its config may change what it finds, besides the seed, and what was chosen for it."""
        chosen = self.config.get("choices", {}).items()
        choices = {group: choice for group, choice in chosen if group not in NOT_A_SETTING}
        return {key: value for key, value in material(self.config).items() if key != "seed"} | {"choices": choices}

    def differs_only_in_seed(self, other: "Run") -> bool:
        """Whether this run and another of its arm may be averaged: the same config but for the seed, the same text."""
        stores = [run.result.get("store") for run in (self, other)]
        same_text = stores[0] == stores[1] if self.finished and other.finished else self.text == other.text
        return same_text and self.material | {"choices": {}} == other.material | {"choices": {}}


def read_runs(study: Study, runs_dir: Path) -> tuple[list[Run], list[str]]:
    """Every run of the study, and a sentence for each that could not be read."""
    runs, notes = [], []
    for path in sorted((runs_dir / study.name).glob("*/seed*/")):
        run_dir = RunDir(path)
        if path.parent.name not in study.arms:
            notes.append(f"Left out: {path}, for the study has no arm {path.parent.name}.")
            continue
        if not run_dir.config_file.is_file():
            notes.append(f"Left out: {path}, which is no run: it has no config.yaml.")
            continue
        try:
            run = _read(run_dir, study.changed, study.tune)
            if run.config.get("arm", run.arm) == run.arm:
                runs.append(run)
            else:
                notes.append(f"Left out: {path}, which is a run of the arm {run.config['arm']}.")
        except UserError as error:
            notes.append(f"Left out: {error}.")
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            notes.append(f"Left out: {run_dir.path}, which cannot be read ({type(error).__name__}).")
    return _without_needless(runs, study.changed), notes


def _without_needless(runs: Sequence[Run], touched: Collection[str]) -> list[Run]:
    """The runs, whose settings leave out what was typed in vain: the value is the same where it was not typed."""
    return [
        replace(run, setting={key: v for key, v in run.setting.items() if not _needless(key, run, runs, touched)})
        for run in runs
    ]


def _needless(key: str, run: Run, runs: Sequence[Run], touched: Collection[str]) -> bool:
    """Whether those who did not type `key` have the value that this run typed.

    Those of its arm are asked, or where there are none and no arm touches it, all.
    """
    value = value_at(run.config, key)
    if key not in run.typed or key in run.config.get("choices", {}) or (value is None and run.typed[key] != "null"):
        return False
    others = [other for other in runs if key not in other.typed and _chosen(other) == _chosen(run)]
    own = [other for other in others if other.arm == run.arm]
    others = own if own or _touches(touched, key) else others
    return bool(others) and all(value_at(other.config, key) == value for other in others)


def _chosen(run: Run) -> dict[str, str]:
    """The choices of groups in the setting."""
    return {key: value for key, value in run.setting.items() if key in run.config.get("choices", {})}


def _read(run_dir: RunDir, touched: Collection[str], tuned: Collection[str]) -> Run:
    """A run; which values of what is `tuned` it has, is no setting by which tables are parted (`tuning.py`)."""
    config, result = run_dir.config(), run_dir.result() if run_dir.finished else {}
    file = run_dir.result_file if run_dir.finished else run_dir.config_file
    typed = _typed(run_dir.overrides_file.read_text(encoding="utf-8").splitlines())
    setting = {k: value for k, value in typed.items() if k not in tuned} | _free(config.get("choices", {}), touched)
    if result:
        for key in ("test.perplexity", "test.bleu", "test.sentences", "parameters", "steps"):
            float(value_at(result, key))  # the table cannot do without
    changed = file.stat().st_mtime
    code = code_of(run_dir, result) if result else None
    text = run_dir.text_file.read_text(encoding="utf-8").strip() if run_dir.text_file.is_file() else ""
    arm, seed = run_dir.path.parent.name, int(config["seed"])
    return Run(run_dir, arm, seed, config, result, typed, setting, changed, code, text)


def _touches(touched: Collection[str], name: str) -> bool:
    """Whether an arm changes a group or a key, or one around it."""
    return any(f"{name.replace('.', '/')}/".startswith(f"{one.replace('.', '/')}/") for one in touched)


def _free(choices: Mapping[str, Any], touched: Collection[str]) -> dict[str, str]:
    """The choices in groups that no arm touches."""
    return {
        group: told(choice)
        for group, choice in choices.items()
        if group not in NOT_A_SETTING and not any(f"{group}/".startswith(f"{key}/") for key in touched)
    }


def _typed(overrides: Iterable[str]) -> dict[str, str]:
    """What was typed, less what is no setting."""
    pairs = (override.lstrip("+~").partition("=") for override in distinguishing_overrides(overrides))
    return {key: value for key, _, value in pairs if not key.startswith("data.")}
