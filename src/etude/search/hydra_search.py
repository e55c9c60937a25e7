"""Make a search of what is typed for `hydra/sweeper=optuna`: overrides with intervals, and the keys of the sweeper."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from hydra.core.override_parser.types import IntervalSweep, RangeSweep
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from etude.config.compose_cache import parse_override
from etude.config.explain import explained
from etude.config.quoting import make_readable, quote, quote_for
from etude.config.sweep_params import with_params
from etude.errors import UserError, did_you_mean
from etude.files import write_text
from etude.search.options import read_options
from etude.search.optuna_parts import Sampler, read_pruner, read_sampler
from etude.search.search import Dimension, Objective, Search
from etude.search.values import Values, take_apart
from etude.study.arms import override_key

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.distributions import BaseDistribution

logger = logging.getLogger(__name__)

Settings = Mapping[str, Any]
Solution = tuple[Sequence[str], Sequence[float]]
"""What a trial was given by key, and its values."""

_SOURCE = "hydra.sweeper"
_OPTIONS = ("sampler", "pruner", "manner", "rungs", "eta", "seeds", "constraints", "n_jobs")
_KEYS = (
    *_OPTIONS,
    *(
        "params",
        "search_space",
        "custom_search_space",
        "direction",
        "n_trials",
        "max_failure_rate",
        "study_name",
        "storage",
    ),
)
_NOT_THE_SEARCH = ("n_trials", "n_jobs", "max_failure_rate", "storage", "study_name")  # the same search has others


def hydra_search(overrides: Sequence[str], settings: Settings, config: DictConfig) -> Search:
    """Return the search that was typed.

    Args:
        overrides: of all trials, some with what to search: `tag(log,interval(0.25,4))`, `range(1,5)`, `1,2`.
        settings: the keys of `conf/hydra/sweeper/optuna.yaml`.
        config: composed without what is searched.

    Raises:
        UserError: an override or a key is not valid.
    """
    for key in settings:
        if key not in _KEYS:
            raise UserError(f"{_SOURCE}.{key} is not a key of hydra/sweeper=optuna; {did_you_mean(key, _KEYS)}")
    options = read_options({key: settings[key] for key in _OPTIONS}, _SOURCE)
    sampler = read_sampler(options.sampler, f"{_SOURCE}.sampler")
    words = [*make_readable(with_params(overrides, settings["params"] or {}))]
    words = [*_words_of_old_space(settings, words), *words]
    spaces, values = _read_space(words, is_grid=sampler.is_grid)
    seeds: tuple[int, ...] = ()
    if options.seeds or not sampler.is_grid:
        seeds, values = values.seeds(options.seeds, f"{_SOURCE}.seeds")
    space = {**spaces, **{key: one.dimension() for key, one in values.choices().items()}}
    space = {key: space[key] for word in words if (key := word.partition("=")[0]) in space}  # in the order of the words
    custom = settings["custom_search_space"]
    if not (space or custom):
        raise UserError(
            "hydra/sweeper=optuna searches nothing yet: type 'budget.lr_factor=tag(log,interval(0.25,4))', say"
        )
    n_trials = _whole(settings, "n_trials", least=1)
    if sampler.is_grid:
        if custom:
            raise UserError(f"{_SOURCE}.custom_search_space asks for values that no grid lists: choose another sampler")
        sampler, n_trials = _grid(values, sampler), min(n_trials, values.count)
    if options.manner == "stop" and not options.pruner:
        raise UserError(f"{_SOURCE}.manner=stop needs a pruner, such as {_SOURCE}.pruner=median")
    objectives = _read_objectives(settings["direction"], config)
    return Search(
        name=_name(settings, [*words, *map(str, objectives)]),
        source=_SOURCE,
        fixed=values.fixed,
        space=space,
        objectives=objectives,
        n_trials=n_trials,
        further=settings["study_name"] is not None,
        sampler=sampler.make,
        seed=1 if sampler.seed is None else sampler.seed,
        one_sequence=sampler.one_sequence,
        custom_space=_read_custom(custom, config, set(map(override_key, words))) if custom else None,
        stopping=read_pruner(options.pruner, f"{_SOURCE}.pruner") if options.pruner else None,
        promotion=options.promotion,
        seeds=seeds,
        constraints=options.constraints,
        n_jobs=options.n_jobs,
        max_failure_rate=_share(settings, "max_failure_rate"),
    )


def write_results(folder: Path, best: Sequence[Solution]) -> None:
    """Write `optimization_results.yaml`, as hydra-optuna-sweeper does.

    Args:
        folder: where it is written.
        best: the overrides and the values of the best trial; with several objectives of the best trials, none of which
            is better in all.
    """
    if len(best) == 1 and len(best[0][1]) == 1:
        [(words, [value])] = best
        found: dict[str, Any] = {"best_params": _read_values(words), "best_value": value}
    else:
        found = {"solutions": [{"params": _read_values(words), "values": [*values]} for words, values in best]}
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "optimization_results.yaml", yaml.safe_dump({"name": "optuna", **found}, sort_keys=False))


def _read_values(words: Sequence[str]) -> dict[str, Any]:
    return {one.key_or_group: one.value() for one in map(parse_override, words)}


def _read_space(words: Sequence[str], *, is_grid: bool) -> tuple[dict[str, Dimension], Values]:
    """Return the dimensions of intervals and ranges, and the other overrides; a grid lists a range.

    Raises:
        UserError: an override cannot be parsed, or two say what to search under one key.
    """
    spaces: dict[str, Dimension] = {}
    searched: dict[str, bool] = {}
    others = []
    for word in words:
        with explained(HydraException):
            parsed = parse_override(word)
        key = override_key(word)
        if key in searched and (searched[key] or parsed.is_sweep_override()):
            raise UserError(f"{_SOURCE}: {key} is searched twice: leave one out, such as {word}")
        searched[key] = parsed.is_sweep_override()
        value = parsed.value()
        if is_grid and isinstance(value, IntervalSweep):
            raise UserError(f"{word}: a grid lists values: write {key}=choice(1,2), or a range")
        if isinstance(value, IntervalSweep) or (isinstance(value, RangeSweep) and not (value.shuffle or is_grid)):
            spaces[word.partition("=")[0]] = _dimension(value, word)
        else:
            others.append(word)
    return spaces, take_apart(others)


def _dimension(value: IntervalSweep | RangeSweep, word: str) -> Dimension:
    """Return the dimension of an interval, or of a range with its stop."""
    from optuna.distributions import FloatDistribution, IntDistribution

    text = "".join(word.partition("=")[2].split())
    step = value.step if isinstance(value, RangeSweep) else None
    low, high = value.start, value.stop if isinstance(value, RangeSweep) else value.end
    is_log = "log" in value.tags
    if low is None or high is None or low > high:
        raise UserError(f"{word}: the lower bound comes first, and {low} is above {high}")
    if is_log and low <= 0:
        raise UserError(f"{word}: a logarithm needs a lower bound above 0, not {low}")
    if step is not None and (step <= 0 or is_log):
        raise UserError(f"{word}: a range ascends by a step above 0, and has no logarithm")
    made: BaseDistribution
    if all(isinstance(one, int) for one in (low, high, step or 1)):
        made = IntDistribution(int(low), int(high), log=is_log, step=int(step or 1))
        return Dimension(made, text)
    made = FloatDistribution(float(low), float(high), log=is_log, step=None if step is None else float(step))
    return Dimension(made, text, (lambda drawn: float(f"{drawn:.12g}")) if step else (lambda drawn: drawn))


def _words_of_old_space(settings: Settings, words: Sequence[str]) -> Iterator[str]:
    """Yield the overrides that say what `search_space` of an old file does, but for keys that are there.

    Raises:
        UserError: an entry is not valid.
    """
    given = settings["search_space"]
    if given and settings["params"]:
        logger.warning("%s.search_space is left out, as params says what to search", _SOURCE)
    elif given:
        there = set(map(override_key, words))
        yield from (f"{key}={_old_words(key, node)}" for key, node in given.items() if override_key(key) not in there)


def _old_words(key: str, node: Any) -> str:
    where, known = f"{_SOURCE}.search_space.{key}", ("type", "choices", "low", "high", "step", "log")
    if not isinstance(node, Mapping) or node.get("type") not in ("float", "int", "categorical"):
        raise UserError(f"{where} must be {{type: float, low: 0.1, high: 1.0}}, of type float, int or categorical")
    if other := [name for name in node if name not in known]:
        raise UserError(f"{where}.{other[0]} is not a key of it; {did_you_mean(str(other[0]), known)}")
    if node["type"] == "categorical":
        if not isinstance(node.get("choices"), list) or not node["choices"]:
            raise UserError(f"{where} needs choices: [...]")
        return f"choice({','.join(map(quote, node['choices']))})"
    kind: Callable[[Any], Any] = float if node["type"] == "float" else int
    try:
        low, high, step = (kind(node[name]) if name != "step" or node.get(name) else None for name in known[2:5])
    except (KeyError, TypeError, ValueError):
        raise UserError(f"{where} needs numbers: low and high, and perhaps a step") from None
    if step:
        return f"range({low},{high},step={step})"
    interval = f"{node['type']}(interval({low},{high}))"
    return f"tag(log,{interval})" if node.get("log") else interval


def _grid(values: Values, sampler: Sampler) -> Sampler:
    """Return the sampler of every combination."""
    from etude.search.listed import ListedSampler  # late, as it imports Optuna

    return Sampler(lambda seed: ListedSampler(values.combination), sampler.seed, one_sequence=True)


def _read_objectives(direction: Any, config: DictConfig) -> tuple[Objective, ...]:
    """Return what `optimized_metric`, or else `objective`, names, with the directions.

    Raises:
        UserError: a direction is none, or there are not as many as metrics.
    """
    named = OmegaConf.select(config, "optimized_metric")
    key = "objective" if named is None else "optimized_metric"
    named = config.objective if named is None else named
    names = [named] if isinstance(named, str) else list(named)
    ways = [direction] if isinstance(direction, str) else direction
    if not isinstance(ways, list) or any(way not in ("minimize", "maximize") for way in ways):
        raise UserError(f"{_SOURCE}.direction={direction}: write minimize or maximize, or a list of them")
    if len(ways) != len(names):
        raise UserError(
            f"{_SOURCE}.direction has {len(ways)} directions, and {key} names {len(names)}: {', '.join(names)}"
        )
    return tuple(Objective(name, way == "maximize") for name, way in zip(names, ways, strict=True))


def _read_custom(path: Any, config: DictConfig, taken: set[str]) -> "Callable[[Trial], list[str]]":
    """Return a function that has the user's ask a trial for values, and returns their overrides.

    Raises:
        UserError: there is no such function.
    """
    from hydra.utils import get_method

    from etude.config.signature import signature

    signature(path)  # tells what is wrong with it
    ask = get_method(path)

    def asked(trial: "Trial") -> list[str]:
        before = set(trial.params)
        ask(config, trial)
        new = {key: value for key, value in trial.params.items() if key not in before}
        if twice := taken & set(map(override_key, new)):
            raise UserError(f"{_SOURCE}.custom_search_space: {path} asks for {min(twice)}, which is given already")
        return [f"{key}={quote_for(key, value)}" for key, value in new.items()]

    return asked


def _name(settings: Settings, searched: Sequence[str]) -> str:
    """Return the name of the study: that which was given, or one that the same search has again."""
    if settings["study_name"]:
        return str(settings["study_name"])
    same = {key: value for key, value in settings.items() if key not in _NOT_THE_SEARCH}
    return f"optuna-{sha256(json.dumps([same, *searched], default=str).encode()).hexdigest()[:6]}"


def _whole(settings: Settings, key: str, *, least: int) -> int:
    value: int = settings[key]
    if type(value) is not int or value < least:
        raise UserError(f"{_SOURCE}.{key} must be a whole number, {least} or more, not {value!r}")
    return value


def _share(settings: Settings, key: str) -> float:
    value = settings[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UserError(f"{_SOURCE}.{key} must be a number from 0 to 1, not {value!r}")
    return value
