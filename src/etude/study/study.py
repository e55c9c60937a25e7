"""Read a study: `experiments/<name>/study.yaml`, and `paper.yaml` beside it if it reproduces a paper.

An arm is a list of Hydra overrides: only the ones that the arm is meant to test.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import count, islice
from math import isfinite
from pathlib import Path
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.paths import folders_of, note_on_missing, refuse_study_file
from etude.study.arms import override_key, read_arms, read_grid, split_override
from etude.study.criteria import Criteria, UntilDecided, read_against, read_criteria, read_seeds, read_tuning
from etude.study.ladder import StudyLadder, read_ladder
from etude.study.metrics import DEFAULT, Metric, default_metrics, read_metrics
from etude.yaml_file import read_yaml

_ARMS = {"arms", "each", "grid", "fraction", "leave_one_out"}
_KEYS = _ARMS | {"title", "baseline", "columns", "against", "seeds", "agreement", "tune", "pilots", "metrics", "ladder"}


@dataclass(frozen=True)
class Paper:
    """The numbers that the paper prints."""

    source: str = ""  # which paper, and where in it
    test_set: str = ""  # the paper's test set
    arms: dict[str, dict[str, float | None]] = field(default_factory=dict)  # arm -> ppl, ppl_sd (nats), bleu, params_M
    proportions: dict[str, float] = field(default_factory=dict)  # of the baseline's training, see `PROPORTIONS`


@dataclass(frozen=True)
class Study:
    """A study: a baseline and arms that are compared with it."""

    name: str  # of its folder
    title: str  # above its table
    baseline: str  # the arm that the others are compared with
    arms: dict[str, list[str]]  # arm -> overrides
    columns: dict[str, str]  # the config values that the table shows: header -> dotted key
    paper: Paper  # what it reproduces, if anything
    against: dict[str, str] = field(default_factory=dict)  # arm -> its reference, if that is not the baseline
    seeds: int | UntilDecided | None = None  # the number of seeds per arm, fixed before the runs are looked at
    criteria: Criteria | None = None  # what counts as agreement with the paper, also fixed before
    tune: dict[str, Any] = field(default_factory=dict)  # keys to tune for each arm -> values to try, or a distribution
    draws: dict[str, Any] = field(default_factory=dict)  # how many trials are drawn from these, and how; else all
    pilots: list[int] = field(default_factory=list)  # the seeds used for tuning only
    metrics: dict[str, Metric] = field(default_factory=lambda: DEFAULT)  # in the order of the table
    grid: dict[str, dict[str, str]] = field(default_factory=dict)  # arm of its grid -> factor -> value
    ladder: StudyLadder | None = None  # the sizes at which its arms are trained with ladder=true

    @property
    def printed(self) -> list[str]:
        """The metrics for which the paper prints numbers."""
        return [name for name in self.metrics if any(name in numbers for numbers in self.paper.arms.values())]

    @property
    def headline(self) -> Metric:
        """The metric that decides, with which plots and overviews begin: the first of the table."""
        return next(iter(self.metrics.values()))

    @property
    def lead(self) -> Metric:
        """The metric for agreement with the paper: the first on a logarithmic scale, or the first."""
        return next((metric for metric in self.metrics.values() if metric.is_log), next(iter(self.metrics.values())))

    @property
    def until_decided(self) -> UntilDecided | None:
        """How many seeds an arm has, if that depends on how soon it is decided."""
        return self.seeds if isinstance(self.seeds, UntilDecided) else None

    def judged_seeds(self, number: int) -> list[int]:
        """Return the first seeds, from 1, that are no pilots."""
        return list(islice((seed for seed in count(1) if seed not in self.pilots), number))

    def reference(self, arm: str) -> str:
        """Return the arm that `arm` is compared with."""
        return self.against.get(arm, self.baseline)

    @property
    def changed(self) -> set[str]:
        """The config groups and dotted keys that some arm changes."""
        return {override_key(override) for overrides in self.arms.values() for override in overrides}


def study_names() -> list[str]:
    """List every study, the user's own and the shipped ones."""
    return sorted({file.parent.name for file in _study_files()})


def _study_files() -> list[Path]:
    files = (file for folder in folders_of("experiments") for file in sorted(folder.glob("*/study.yaml")))
    return [file for file in files if file.is_file()]


def no_such_study(name: str, known: Iterable[str]) -> UserError:
    """Make the error for an unknown name of a study; it may be the name of a sweep."""
    refuse_study_file(name)
    sweep = f"{name.removesuffix('.yaml')}.yaml"
    is_here = Path(sweep).is_file()  # a file that is in no folder `sweeps` is named with its ending
    if is_here or any((folder / sweep).is_file() for folder in folders_of("sweeps")):
        return UserError(
            f"{name} is a sweep, not a study: `etude report {sweep if is_here else name}` shows its runs; here, name "
            "their study"
        )
    missing = note_on_missing("experiments", f"{name}/study.yaml")
    return UserError(f"there is no study {name!r}: {did_you_mean(name, known)}{missing}")


def find_study(name: str) -> Path:
    """Find the folder of the study called `name`; the user's own has precedence over the shipped one.

    Raises:
        UserError: there is no such study.
    """
    if name == "single":
        raise UserError(
            "single is not a study, its runs were typed one by one: `etude diff RUN RUN` compares two configs, and "
            "experiments/NAME/study.yaml makes arms of them"
        )
    folder = next((f / name for f in folders_of("experiments") if (f / name / "study.yaml").is_file()), None)
    if name not in study_names() or folder is None:
        raise no_such_study(name, study_names())
    return folder


def load_study(name: str) -> Study:
    """Load the study called `name`.

    Raises:
        UserError: there is no such study, or one of its files is not valid.
    """
    folder = find_study(name)
    files = (*_study_files(), folder / "paper.yaml")  # of all studies, as it may take arms from others
    return _read(folder, tuple(file.stat().st_mtime_ns for file in files if file.is_file()), tuple(folders_of("conf")))


def load_if_known(name: str) -> Study | None:
    """Load the study called `name`; None if there is none, as for runs that were typed one by one."""
    return load_study(name) if name in study_names() else None


def arm_in(overrides: Iterable[str]) -> tuple[Study | None, str]:
    """Return the study and the arm that overrides name; None if they name no study, or several arms at once."""
    name = dict(map(split_override, overrides)).get("experiment", "")
    study, _, arm = name.partition("/")
    return (None, "") if "+" in name else (load_if_known(study), arm)


def with_baseline(overrides: Iterable[str]) -> list[str]:
    """Return overrides with the arm that they name, if any, replaced by the baseline of its study."""
    overrides = [*overrides]
    study, _ = arm_in(overrides)
    base = f"experiment={study.name}/{study.baseline}" if study else ""
    return [base if base and override_key(word) == "experiment" else word for word in overrides]


def metrics_of(study: str, task: str | None = None) -> dict[str, Metric]:
    """Return the metrics of a study; for runs outside a study, such as `single`, the default metrics of their task."""
    return known.metrics if (known := load_if_known(study)) else default_metrics(task)


_being_read: list[Path] = []  # the folders of studies, each of which takes an arm from the next


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Refuse a study that takes an arm from another one which takes an arm from it.

    Raises:
        UserError: it does.
    """
    if folder in _being_read:
        raise UserError(f"the studies {' and '.join(one.name for one in _being_read)} take arms from each other")
    _being_read.append(folder)
    try:
        yield
    finally:
        _being_read.pop()


def _arm_of(name: str) -> list[str]:
    study, _, arm = name.partition("/")
    arms = load_study(study).arms
    if arm not in arms:
        raise UserError(f"{study} has no arm {arm!r}; {did_you_mean(arm, arms)}")
    return arms[arm]


@cache
def _read(folder: Path, changed: tuple[int, ...], _parts: tuple[Path, ...]) -> Study:
    """Read the study in `folder`, cached while modification times and the folders of parts, for `each`, are these."""
    file = folder / "study.yaml"
    content = read_yaml(file)
    check_keys(file, content, allowed=_KEYS)
    if "grid" not in content:
        need(file, content, "baseline", "arms")
    with _reading(folder):
        arms, full = read_arms(file, content, _arm_of)
    baseline = str(content["baseline"] if "baseline" in content else next(iter(read_grid(file, content))))
    if baseline not in arms:
        raise UserError(f"{file}: baseline: the study has no arm {baseline!r}: {did_you_mean(baseline, arms)}")
    columns = content.get("columns") or {}
    if not isinstance(columns, dict) or not all(isinstance(text, str) for item in columns.items() for text in item):
        raise UserError(f"{file}: columns must map each printed header to a config key, such as h: model.heads")
    task = dict(map(split_override, arms[baseline])).get("task", "translation")
    metrics = read_metrics(file, content.get("metrics"), task)
    tune, draws, pilots = read_tuning(file, content)
    for key in tune:
        if its := next((arm for arm, words in arms.items() if key in map(override_key, words)), None):
            raise UserError(
                f"{file}: tune: the arm {its} sets {key} itself, so that trying values would undo what it tests: take "
                "the key out of tune, or out of the arm"
            )
    against = {arm: other for arm, other in full.items() if other != baseline}
    numbers = {*metrics, *default_metrics(None)}
    study = Study(
        name=folder.name,
        title=str(content.get("title") or folder.name),
        baseline=baseline,
        arms=arms,
        columns=columns,
        paper=_paper(
            folder / "paper.yaml",
            arms,
            numbers | {f"{name}_sd" for name in numbers} | {"params_M"},
            {name for name, metric in (default_metrics(None) | metrics).items() if metric.is_log},
        ),
        against=against | read_against(file, content.get("against"), arms, baseline),
        seeds=read_seeds(file, content.get("seeds")),
        criteria=read_criteria(file, content.get("agreement")),
        tune=tune,
        draws=draws,
        pilots=pilots,
        metrics=metrics,
        grid={arm: dict(map(split_override, words)) for arm, words in read_grid(file, content).items()},
        ladder=read_ladder(file, content.get("ladder")),
    )
    _check_deviations(file, study)
    return study


def value_at(config: Mapping[str, Any], key: str) -> Any:
    """Return the value of a dotted key in `config`, or None.

    Example:
        >>> value_at({"choices": {"model/position": "learned"}}, "choices.model/position")
        'learned'
    """
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def leaves(config: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of a nested config that is no section, with its dotted key.

    Example:
        >>> [*leaves({"seed": 1, "model": {"heads": 8}})]
        [('seed', 1), ('model.heads', 8)]
    """
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def number_at(result: Mapping[str, Any], key: str) -> float | None:
    """Return the number under a dotted key of `result`; None if there is none.

    Of `key/key`, it is one number divided by the other.
    """
    if "/" in key:
        first, second = (number_at(result, part) for part in key.split("/", 1))
        return None if first is None or not second else first / second
    value = value_at(result, key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _check_deviations(file: Path, study: Study) -> None:
    if study.criteria is None or study.criteria.deviations is None:
        return
    name = study.lead.name
    for arm, row in study.paper.arms.items():
        if row.get(name) is not None and row.get(f"{name}_sd") is None:
            raise UserError(
                f"{file}: agreement.deviations: paper.yaml lacks {name}_sd of {arm}, the standard deviation that the "
                "paper prints, in nats; without deviations say large, in nats"
            )


def _paper(file: Path, arms: dict[str, list[str]], numbers_of: set[str], logarithmic: set[str]) -> Paper:
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
        if not isinstance(row, dict) or not all(
            v is None or (type(v) in (int, float) and isfinite(v)) for v in row.values()
        ):
            raise UserError(f"{file}: arms.{arm} must hold numbers (ppl, bleu, params_M), null where none is printed")
        if unknown := next((key for key in row if key not in numbers_of), None):
            raise UserError(
                f"{file}: arms.{arm}: the study has no metric {unknown!r}: {did_you_mean(str(unknown), numbers_of)}"
            )
        if wrong := next((key for key, v in row.items() if key in logarithmic and v is not None and v <= 0), None):
            raise UserError(
                f"{file}: arms.{arm}.{wrong}: {row[wrong]:g} has no logarithm: give the number that the paper prints, "
                "or null"
            )
        numbers[arm] = row
    proportions = content.get("proportions") or {}
    if not isinstance(proportions, dict) or not all(type(value) in (int, float) for value in proportions.values()):
        raise UserError(f"{file}: proportions must map names to numbers, such as epochs: 20")
    return Paper(str(content.get("source", "")), str(content.get("test_set", "")), numbers, proportions)


def check_keys(file: Path, content: Any, allowed: set[str]) -> None:
    """Check that `content` is a mapping with allowed keys only.

    Raises:
        UserError: it is not.
    """
    if not isinstance(content, dict):
        raise UserError(f"{file}: it must hold keys with their values; there are {', '.join(sorted(allowed))}")
    for key in content:
        if key not in allowed:
            raise UserError(f"{file}: unknown key {key!r}: {did_you_mean(str(key), allowed)}")


def need(file: Path, content: dict[str, Any], *keys: str) -> None:
    """Check that `content` has all of `keys`.

    Raises:
        UserError: one is missing.
    """
    for key in keys:
        if key not in content:
            raise UserError(f"{file}: the key {key!r} is missing")
