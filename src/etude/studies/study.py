"""Reading a study: `experiments/<name>/study.yaml`, and `paper.yaml` beside it where there is something to reproduce.

An arm is the list of Hydra overrides that a person would type: the intervention, and nothing else.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.paths import folders_of, note_on_missing
from etude.studies.arms import combine, override_key, read_arms
from etude.studies.criteria import Criteria, read_against, read_criteria, read_seeds, read_tuning
from etude.studies.metrics import DEFAULT, Metric, default_metrics, read_metrics
from etude.studies.renames import refuse_old_name
from etude.yaml_file import read_yaml

_ARMS = {"arms", "each", "grid", "leave_one_out"}
_KEYS = _ARMS | {"title", "baseline", "columns", "against", "seeds", "agreement", "tune", "pilots", "metrics"}


@dataclass(frozen=True)
class Paper:
    """What the paper printed."""

    source: str = ""  # which paper, and where in it
    test_set: str = ""  # what it was tested on
    arms: dict[str, dict[str, float | None]] = field(default_factory=dict)  # by name: ppl, bleu, params_M
    proportions: dict[str, float] = field(default_factory=dict)  # its baseline's training, see `PROPORTIONS`


@dataclass(frozen=True)
class Study:
    """One study."""

    name: str  # of its folder
    title: str  # above its table
    baseline: str  # the arm that the others are held against
    arms: dict[str, list[str]]  # the overrides of each
    columns: dict[str, str]  # what the table shows of a run's config: printed header -> dotted key
    paper: Paper  # what it reproduces, if anything
    against: dict[str, str] = field(default_factory=dict)  # the arms held against another one than the baseline
    seeds: int | None = None  # how many an arm shall have, fixed before the runs are looked at
    criteria: Criteria | None = None  # what counts as agreement with the paper, fixed like them
    tune: dict[str, list[Any]] = field(default_factory=dict)  # the keys that suit each arm differently, values to try
    pilots: list[int] = field(default_factory=list)  # the seeds on which they are tried, and no run is judged
    metrics: dict[str, Metric] = field(default_factory=lambda: DEFAULT)  # in the order of the table

    @property
    def printed(self) -> list[str]:
        """The metrics of which the paper prints something."""
        return [name for name in self.metrics if any(name in numbers for numbers in self.paper.arms.values())]

    @property
    def headline(self) -> Metric:
        """The metric by which arms are told apart at a glance: that with sentences, or the first."""
        return next((metric for metric in self.metrics.values() if metric.sentences), next(iter(self.metrics.values())))

    @property
    def lead(self) -> Metric:
        """The metric in which arms are held against a paper: the first on a logarithmic scale, or the first."""
        return next((metric for metric in self.metrics.values() if metric.is_log), next(iter(self.metrics.values())))

    def reference(self, arm: str) -> str:
        """The arm that `arm` is held against."""
        return self.against.get(arm, self.baseline)

    @property
    def changed(self) -> set[str]:
        """The config groups and dotted keys that some arm changes."""
        return {override_key(override) for overrides in self.arms.values() for override in overrides}


def study_names() -> list[str]:
    """Every study there is, the user's own and the shipped ones."""
    files = (file for folder in folders_of("experiments") for file in folder.glob("*/study.yaml"))
    return sorted({file.parent.name for file in files if file.is_file()})


def no_such_study(name: str, known: Iterable[str]) -> UserError:
    """What to say of a name that is none of the known ones; a sweep may be meant."""
    sweep = f"{name.removesuffix('.yaml')}.yaml"
    if Path(sweep).is_file() or any((folder / sweep).is_file() for folder in folders_of("sweeps")):
        return UserError(
            f"{name} is a sweep, not a study: `etude report {name}` shows its runs; here, name their study"
        )
    missing = note_on_missing("experiments", f"{name}/study.yaml")
    return UserError(f"there is no study {name!r}: {did_you_mean(name, known)}{missing}")


def find_study(name: str) -> Path:
    """The folder of the study called `name`; the user's own comes before the shipped one.

    Raises:
        UserError: there is no such study.
    """
    if name == "single":
        raise UserError(
            "single is no study, for its runs were typed one by one: `etude diff RUN RUN` compares two configs, and "
            "experiments/NAME/study.yaml makes arms of them"
        )
    folder = next((f / name for f in folders_of("experiments") if (f / name / "study.yaml").is_file()), None)
    if name not in study_names() or folder is None:
        raise no_such_study(name, study_names())
    return folder


def load_study(name: str) -> Study:
    """The study called `name`.

    Raises:
        UserError: there is no such study, it has no arms but is measured, or one of its files is not as it should be.
    """
    folder = find_study(name)
    files = (folder / "study.yaml", folder / "paper.yaml")
    return _read(folder, tuple(file.stat().st_mtime_ns for file in files if file.is_file()))


def metrics_of(study: str, task: str | None = None) -> dict[str, Metric]:
    """The metrics of a study; of a folder of runs that is no study's, such as `single`, those of a run's task."""
    return load_study(study).metrics if study in study_names() else default_metrics(task)


def arm_names() -> frozenset[str]:
    """`<study>/<arm>` for every arm of every study that can be read: one that cannot is in nobody else's way."""
    return _arm_names(tuple(folders_of("experiments")))


@cache
def _arm_names(folders: tuple[Path, ...]) -> frozenset[str]:
    """The names of all arms, remembered by the `folders` that count where one stands."""
    names: set[str] = set()
    for study in study_names():
        with suppress(UserError):
            names.update(f"{study}/{arm}" for arm in load_study(study).arms)
    return frozenset(names)


@cache
def _read(folder: Path, changed: tuple[int, ...]) -> Study:
    """The study in `folder`, read again when one of its files was `changed`."""
    file = folder / "study.yaml"
    content = read_yaml(file)
    if isinstance(content, dict) and "layers" in content:
        name = folder.name
        raise UserError(
            f"{name} is measured, not trained, and has no arms: `etude sweep {name}` measures it, and "
            f"`etude report {name}` shows what was found"
        )
    check_keys(file, content, allowed=_KEYS)
    if "grid" not in content:
        need(file, content, "baseline", "arms")
    arms, full = read_arms(file, content)
    baseline = str(content["baseline"] if "baseline" in content else next(iter(combine(file, content["grid"]))))
    if baseline not in arms:
        raise UserError(f"{file}: baseline: the study has no arm {baseline!r}: {did_you_mean(baseline, arms)}")
    columns = content.get("columns") or {}
    if not isinstance(columns, dict) or not all(isinstance(text, str) for item in columns.items() for text in item):
        raise UserError(f"{file}: columns must map each printed header to a config key, such as h: model.heads")
    tune, pilots = read_tuning(file, content)
    for header, key in columns.items():
        refuse_old_name(file, f"columns.{header}", key.removeprefix("choices."))
    for key in tune:
        refuse_old_name(file, "tune", key)
    against = {arm: other for arm, other in full.items() if other != baseline}
    return Study(
        name=folder.name,
        title=str(content.get("title", folder.name)),
        baseline=baseline,
        arms=arms,
        columns=columns,
        paper=_paper(folder / "paper.yaml", arms),
        against=against | read_against(file, content.get("against"), arms, baseline),
        seeds=read_seeds(file, content.get("seeds")),
        criteria=read_criteria(file, content.get("agreement")),
        tune=tune,
        pilots=pilots,
        metrics=read_metrics(file, content.get("metrics"), _task_of(arms[baseline])),
    )


def _task_of(overrides: list[str]) -> str:
    """The task that an arm says."""
    return next((one.partition("=")[2] for one in overrides if override_key(one) == "task"), "translation")


def value_at(config: Mapping[str, Any], key: str) -> Any:
    """What `config` holds under a dotted key, or None.

    Example:
        >>> value_at({"choices": {"model/position": "learned"}}, "choices.model/position")
        'learned'
    """
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _paper(file: Path, arms: dict[str, list[str]]) -> Paper:
    if not file.is_file():
        return Paper()
    content = read_yaml(file)
    check_keys(file, content, allowed={"source", "test_set", "arms", "proportions"})
    need(file, content, "arms")
    numbers: dict[str, dict[str, float | None]] = {}
    printed = content["arms"] or {}
    if not isinstance(printed, dict):
        raise UserError(f"{file}: arms must map the name of each arm to what the paper prints of it")
    for arm, row in printed.items():
        if arm not in arms:
            raise UserError(f"{file}: arms: the study has no arm {arm!r}: {did_you_mean(str(arm), arms)}")
        if not isinstance(row, dict) or not all(v is None or type(v) in (int, float) for v in row.values()):
            raise UserError(f"{file}: arms.{arm} must hold numbers (ppl, bleu, params_M), null where none is printed")
        numbers[arm] = row
    proportions = content.get("proportions") or {}
    if not isinstance(proportions, dict) or not all(type(value) in (int, float) for value in proportions.values()):
        raise UserError(f"{file}: proportions must map names to numbers, such as epochs: 20")
    return Paper(str(content.get("source", "")), str(content.get("test_set", "")), numbers, proportions)


def check_keys(file: Path, content: Any, allowed: set[str]) -> None:
    """Refuse, with a UserError, what is no mapping or has a key that is not allowed."""
    if not isinstance(content, dict):
        raise UserError(f"{file}: there must be the keys {', '.join(sorted(allowed))}")
    for key in content:
        if key not in allowed:
            raise UserError(f"{file}: unknown key {key!r}: {did_you_mean(str(key), allowed)}")


def need(file: Path, content: dict[str, Any], *keys: str) -> None:
    """Refuse, with a UserError, what lacks one of the keys."""
    for key in keys:
        if key not in content:
            raise UserError(f"{file}: the key {key!r} is missing")
