"""Translate a W&B sweep file to a Hydra multirun, so that the same file runs with W&B's agents and without W&B.

The name of a study means the sweep over all its arms.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

from etude.config.quoting import quote, quote_for, quote_text
from etude.config.sweep_params import with_written_params
from etude.errors import UserError, did_you_mean
from etude.paths import folders_of, note_on_missing, refuse_study_file, shipped
from etude.search.distributions import Distribution, share
from etude.search.options import Options
from etude.search.promotion import expected_share
from etude.search.search import Objective
from etude.search.tuning import options_of, trials, tuned_study, values_to_try
from etude.search.wandb_sweep import WandbSweep, read_sweep
from etude.store.run_dir import RunDir
from etude.study.arm_names import find_arm, is_arm
from etude.study.arms import override_key, split_override
from etude.study.study import Study, find_study, load_study, study_names

logger = logging.getLogger(__name__)

_SWEEP_KEYS = (
    "run_cap",
    "search_seed",
    "tuned",
    "confirm",
    "ladder",
    "until",
)  # options of the sweep, not overrides of its runs


def sweep_overrides(name: str, extra: Sequence[str] = ()) -> list[str]:
    """Return the Hydra overrides of the multirun for the sweep `name`, with the user's `extra` overrides.

    Args:
        name: a path; the name of a file in a `sweeps` folder, with or without `.yaml`; or the name of a study. The
            user's own file or study comes before those of étude.
        extra: overrides typed after the name, which win over those of the file. `run_cap=N` ends the sweep after N
            runs, `search_seed=S` draws other values in a random search, and `tuned=true` also runs each arm of a study
            with its own best values (`tuning.py`), `ladder=true` runs them on the rungs of its ladder,
            `until=decided` adds seeds until each is decided.

    Returns:
        For example ["experiment=table3/base,table3/A1", "seed=1", "scale=pocket"].

    Raises:
        UserError: there is no such file, it is not a sweep file, or it needs W&B's agents.
    """
    options, overrides = _read_sweep(name, extra)
    keys = set(map(override_key, overrides))
    environment: list[str] = []
    if file := find_file(name):
        sweep = read_sweep(file)
        for note in _notes(sweep, overrides):
            logger.warning("%s: %s", file, note)
        settings = {f"hydra.job.env_set.{key}": value for key, value in sweep.command.environment.items()}
        environment = [f"++{key}={quote_text(value)}" for key, value in settings.items() if key not in keys]
    sweeper = ["hydra/sweeper=sweepfile", *(f"hydra.sweeper.{key}={quote(value)}" for key, value in options.items())]
    return [*(sweeper if options else []), *environment, *overrides]


def _notes(sweep: WandbSweep, overrides: Sequence[str]) -> Iterator[str]:
    """Yield a sentence on each key that may not do what was meant, or does something else with W&B's agents."""
    yield from sweep.cautions
    swept = set(map(override_key, sweep.parameters))
    for word in sweep.command.fixed:
        if word in overrides and (key := override_key(word)) in swept:
            yield f"{word} stands after ${{args...}} in command and wins over parameters.{key}"
    if not sweep.command.passes_parameters:
        yield 'command has no "${args_no_hyphens}", without which W&B\'s agents pass a run no parameter'


def planned_runs(name: str, extra: Sequence[str] = ()) -> list[list[str]]:
    """Return the overrides of every run of the sweep `name`; arguments as in `sweep_overrides`.

    With `tuned=true` the best values are not known yet: the first to be tried stand in for them, as the cost of a run
    is assumed not to depend on them. So do random draws for the values that a sampler will be asked for.

    Raises:
        UserError: as in `sweep_overrides`.
    """
    options, overrides = _read_sweep(name, extra)
    tuned, _ = options.pop("tuned", False), options.pop("confirm", None)
    ladder, until = options.pop("ladder", False), options.pop("until", None)
    file = find_file(name)
    seeds = (read_sweep(file).search or Options()).seeds if file else 0
    if seeds and type(cap := options.get("run_cap")) is int:
        options["run_cap"] = max(1, cap // seeds)
    runs = sweep_runs(with_written_params(overrides), **options)
    if seeds:
        return [one for run in runs for one in _of_seeds(run, seeds, f"{file}: search.seeds")]
    if ladder:
        return [run for rung in on_rungs(runs).values() for run in rung]
    if until:
        return [run for seed in seeds_of(runs)[1] for run in with_seed(runs, seed)]
    if not tuned:
        return runs
    study = tuned_study(runs)
    return [*trials(study, runs), *runs, *([*run, *values_to_try(study)[0]] for run in runs)]


def _of_seeds(run: Sequence[str], number: int, where: str) -> list[list[str]]:
    """Return the runs of a trial that is the mean over so many seeds, from its own on."""
    from etude.search.values import take_apart  # late, as it imports Hydra

    seeds, values = take_apart(run).seeds(number, where)
    return [[*values.fixed, f"seed={seed}"] for seed in seeds]


def on_rungs(runs: Sequence[Sequence[str]]) -> dict[str, list[list[str]]]:
    """Return the runs on each rung of their study's ladder, with the overrides and the seeds of the rung.

    Args:
        runs: overrides of the arms, without seeds.

    Raises:
        UserError: they have seeds, they belong to no study or to several, or the study has no ladder.
    """
    study = _study_of(runs, "ladder=true")
    if study.ladder is None:
        raise UserError(
            f"ladder=true: study {study.name} has no ladder; add to its study.yaml  "
            "ladder: {rungs: {NAME: [override, ...], ...}, seeds: [3, 3, 1, 1]}"
        )
    set_there = {"seed", *(override_key(word) for words in study.ladder.rungs.values() for word in words)}
    if typed := set_there & {override_key(word) for run in runs for word in run}:
        raise UserError(f"ladder=true: the rungs of {study.name} set {', '.join(sorted(typed))}: leave it out here")
    base = study.arms[study.baseline]
    for run in runs:
        arm = dict(map(split_override, run))["experiment"]
        words = find_arm(arm)[2] if is_arm(arm) else []  # else composing it says what is meant
        if own := [key for word in words if word not in base and (key := override_key(word)) in set_there]:
            raise UserError(
                f"ladder=true: the rungs of {study.name} set {own[0]}, and so does {arm}, which they would undo: say "
                f"their sizes by other keys, or sweep the other arms: experiment={study.name}/A,{study.name}/B"
            )
    return {
        rung: [[*run, *words, f"seed={seed}"] for run in runs for seed in study.judged_seeds(seeds)]
        for (rung, words), seeds in zip(study.ladder.rungs.items(), study.ladder.seeds, strict=True)
    }


def _study_of(runs: Sequence[Sequence[str]], option: str) -> Study:
    """Return the study of some runs.

    Raises:
        UserError: they belong to no study or to several.
    """
    named = {dict(map(split_override, run)).get("experiment", "").partition("/")[0] for run in runs}
    if len(named) != 1 or not all(named):
        raise UserError(f"{option} is for the arms of one study, such as: etude sweep NAME {option}")
    return load_study(named.pop())


def seeds_of(runs: Sequence[Sequence[str]]) -> tuple[Study, list[int]]:
    """Return the study of some runs, and the seeds that its arms have at most, until each is decided.

    Args:
        runs: overrides of the arms, without seeds.

    Raises:
        UserError: they have seeds, they belong to no study or to several, or its seeds are a fixed number.
    """
    study = _study_of(runs, "until=decided")
    plan = study.until_decided
    if plan is None:
        raise UserError(
            f"until=decided: study {study.name} does not say from how many seeds to how many; in its study.yaml say  "
            "seeds: {least: 2, most: 8, until: decided}"
        )
    if any(override_key(word) == "seed" for run in runs for word in run):
        raise UserError(f"until=decided: the seeds are those that study {study.name} says: leave seed out here")
    return study, study.judged_seeds(plan.most)


def with_seed(runs: Sequence[Sequence[str]], seed: int) -> list[list[str]]:
    """Return the runs with a seed."""
    return [[*run, f"seed={seed}"] for run in runs]


def ladder_runs_of(name: str, extra: Sequence[str] = ()) -> tuple[list[str], list[RunDir]]:
    """Return the rung and the directory of every run of a study's ladder; errors as in `runs_of` and `on_rungs`."""
    _, overrides = _read_sweep(name, ["ladder=true", *extra])
    by_rung = on_rungs(sweep_runs(with_written_params(overrides)))
    jobs = [run for runs in by_rung.values() for run in runs]
    return [rung for rung, runs in by_rung.items() for _ in runs], [place for _, place in _placed(jobs)]


@dataclass(frozen=True)
class Saving:
    """What a sweep may spend less than its runs cost in full, as it ends trials early.

    Attributes:
        share: of the steps of the trials that promotion is expected to train; None: what stops trials leaves it open.
        pilots: the seeds of the trials, if other runs are beside them.
        hours: after so many no further trial of an arm begins; None: all begin.
    """

    share: float | None
    pilots: Collection[int] = ()
    hours: float | None = None


def saving_of(name: str, extra: Sequence[str], runs: Sequence[Sequence[str]]) -> Saving | None:
    """Return what the sweep `name` may save by ending trials early; None if it trains every run to its end.

    Args:
        name, extra: as in `sweep_overrides`.
        runs: those that `planned_runs` gives.

    Raises:
        UserError: as in `planned_runs`.
    """
    options, _ = _read_sweep(name, extra)
    if options.get("until"):
        return Saving(None)
    if options.get("tuned"):
        study = tuned_study(runs)
        promotion, count, pilots = options_of(study).promotion, study.draws.get("trials", 0), study.pilots
        hours, stops = study.draws.get("hours"), bool({"early_terminate", "pruner", "hours"} & study.draws.keys())
    elif file := find_file(name):
        sweep = read_sweep(file)
        block = sweep.search or Options()
        promotion, count, pilots, hours = block.promotion, len(runs), [], None
        stops = sweep.early_terminate is not None or block.pruner is not None
    else:
        return None
    if promotion:
        return Saving(expected_share(promotion.rungs, promotion.eta, count), pilots, hours)
    return Saving(None, pilots, hours) if stops else None


def runs_of(name: str, extra: Sequence[str] = ()) -> list[tuple[list[str], RunDir]]:
    """Return the overrides of every run of the sweep `name` with its directory, which need not exist yet.

    Raises:
        UserError: as in `sweep_overrides`; or a run's config is invalid, or its text is not available.
    """
    return _placed(planned_runs(name, extra))


def _placed(jobs: Sequence[list[str]]) -> list[tuple[list[str], RunDir]]:
    from etude.config.compose_cache import ConfigCache
    from etude.config.freeze import places

    return [*zip(jobs, places(jobs, ConfigCache()), strict=True)]


def objective_of(name: str) -> Objective | None:
    """Read the metric of the sweep `name`, None if it names none; as at W&B it is minimized if nothing else is said.

    Raises:
        UserError: there is no such sweep, or its file is not valid.
    """
    file = find_file(name)
    metric = read_sweep(file).metric if file else {}
    return Objective(metric["name"], metric.get("goal") == "maximize") if metric else None


def names_file(name: str) -> bool:
    """Return whether `name` means a sweep file and not a study."""
    return Path(name).suffix in (".yaml", ".yml") or (
        name not in study_names() and any((folder / f"{name}.yaml").is_file() for folder in folders_of("sweeps"))
    )


def drawn_keys(name: str, extra: Sequence[str] = ()) -> set[str]:
    """Return the keys whose values the sweep `name` draws at random; those of typed overrides are not drawn.

    Raises:
        UserError: as in `sweep_overrides`.
    """
    options, overrides = _read_sweep(name, extra)
    if "file" not in options:
        return set()
    return set(map(override_key, _random_parameters(Path(options["file"]), set(map(override_key, overrides)))))


def sweep_runs(
    overrides: Sequence[str], *, file: str | None = None, run_cap: int | None = None, search_seed: int = 1
) -> list[list[str]]:
    """Return the overrides of every run: all combinations of a multirun, with the values that are drawn for each.

    Args:
        overrides: of a multirun, such as ["experiment=table3/base", "seed=1,2"]; their keys are not drawn.
        file: the sweep file of a random search; None: nothing is drawn.
        run_cap: the largest number of runs; a random search needs it.
        search_seed: the same seed draws the same runs, and a higher `run_cap` adds to them.

    Raises:
        UserError: a word is not an override, or a parameter of the file cannot be drawn.
    """
    check_run_options(run_cap, search_seed)
    from etude.config.compose_cache import expand  # late, as it imports Hydra, which `etude status` does not need

    combinations = expand(overrides)
    random = _random_parameters(Path(file), {override_key(word) for word in overrides}) if file else {}
    if not random:
        return combinations[:run_cap]
    require_run_cap(file, run_cap)
    logger.info("%s: %s runs drawn with search_seed=%d", file, run_cap, search_seed)

    def draw_values(number: int) -> list[str]:
        return [f"{k}={quote_for(k, drawn.quantile(share(search_seed, number, k)))}" for k, drawn in random.items()]

    runs = ([*combination, *values] for values in map(draw_values, count()) for combination in combinations)
    return list(islice(runs, run_cap))


def check_run_options(run_cap: Any, search_seed: Any) -> None:
    """Check the number of runs and the seed.

    Raises:
        UserError: one is not a whole number, or too low.
    """
    for key, value, least in (("run_cap", run_cap, 1), ("search_seed", search_seed, 0)):
        if value is not None and (type(value) is not int or value < least):
            raise UserError(f"{key}={value}: it must be a whole number, {least} or more")


def _read_sweep(name: str, extra: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the options of the sweep itself, from its file or typed, and the overrides of its runs.

    They hold the file if its runs do not follow from the overrides: values are drawn, or trials are asked for.
    """
    file = find_file(name)
    keyed = [(override_key(word), word) for word in extra]
    options = {key: _parse_option(key, word.partition("=")[2]) for key, word in keyed if key in _SWEEP_KEYS}
    typed = [word for key, word in keyed if key not in _SWEEP_KEYS]
    if file is None:
        written = [f"experiment={','.join(f'{name}/{arm}' for arm in load_study(name).arms)}"]
    else:
        sweep = read_sweep(file)
        options = sweep.run_options | options
        written = _written_overrides(sweep)
        if sweep.method != "grid":
            require_run_cap(file, options.get("run_cap"))
        if sweep.method != "grid" or sweep.is_search:
            options = {"file": str(file), **options}
    keys = {override_key(word) for word in typed}
    for key, what in (
        ("ladder=true", "runs all arms on all rungs"),
        ("until=decided", "chooses the seeds of the arms"),
    ):
        own = key.partition("=")[0]
        if options.get(own) and (other := next((one for one in options if one != own), "")):
            raise UserError(f"{key} {what} of a study: leave out {other}")
    if "experiment" in map(override_key, written) and (key := next(iter(keys & {"arm", "study"}), "")):
        raise UserError(f"{key}=... would give all arms one name: `etude train experiment=STUDY/ARM` runs one arm")
    keys |= {"seed"} if options.get("ladder") else set()  # each rung has its own
    return options, [override for override in written if override_key(override) not in keys] + typed


def _parse_option(key: str, text: str) -> Any:
    """Parse the value of an option of the sweep; `check_run_options` checks `run_cap` and `search_seed`."""
    if key == "until" and text != "decided":
        raise UserError(f"until={text}: say until=decided, or leave it out")
    if key not in ("tuned", "ladder"):
        return int(text) if text.isdecimal() else text
    if text not in ("true", "false"):
        raise UserError(f"{key}={text}: say {key}=true, or leave it out")
    return text == "true"


def require_run_cap(file: object, run_cap: Any) -> None:
    """Refuse a search without a number of runs.

    Raises:
        UserError: `run_cap` is None.
    """
    if run_cap is None:
        raise UserError(f"{file}: a search needs a number of runs: say run_cap=20, in the file or here")


def _written_overrides(sweep: WandbSweep) -> list[str]:
    """Return the overrides that a sweep file gives every run, without what is drawn: one for each key, which wins."""
    swept = set(map(override_key, sweep.parameters))
    parameters = {override_key(key): _override(key, node) for key, node in sweep.fixed.items()}
    defaults = {key: word for word in sweep.command.defaults if (key := override_key(word)) not in swept}
    fixed = {override_key(word): word for word in sweep.command.fixed}
    return [*(parameters | defaults | fixed).values()]


def _random_parameters(file: Path, typed: set[str]) -> dict[str, Distribution]:
    """Return the parameters that are drawn, without those whose value was typed."""
    return {key: node for key, node in read_sweep(file).distributions.items() if override_key(key) not in typed}


def find_file(name: str) -> Path | None:
    """Find the sweep file called `name`; None if `name` is a study.

    Raises:
        UserError: it is neither.
    """
    refuse_study_file(name)
    named = Path(name)
    folders = folders_of("sweeps") if named.parent in (Path(), Path("sweeps")) else []
    if name in study_names() and find_study(name).parent != shipped("experiments"):
        folders = folders[:-1]  # the user's own study comes before a sweep file of étude's
    in_folders = (folder / (named.name if named.suffix else f"{named.name}.yaml") for folder in folders)
    if file := next((path for path in (named, *in_folders) if path.is_file()), None):
        return file
    if name in study_names():
        return None
    if is_arm(name):
        raise UserError(
            f"{name} is one arm of a study: `etude train experiment={name}` runs it, `etude plan experiment={name}` "
            "tells its cost"
        )
    if named.suffix and (ours := shipped("sweeps") / named.name).is_file():
        raise UserError(f"there is no {name}; the file of that name that comes with étude is {ours}")
    known = {file.name if named.suffix else file.stem for dir in folders_of("sweeps") for file in dir.glob("*.yaml")}
    missing = note_on_missing("experiments", f"{name}/study.yaml")
    near = did_you_mean(named.name, {*known, *study_names()})
    raise UserError(f"{name} is neither a sweep file nor a study: {near}{missing}")


def _override(key: str, parameter: dict[str, Any]) -> str:
    values = parameter["values"] if "values" in parameter else [parameter["value"]]
    return f"{key}={','.join(quote_for(key, value) for value in values)}"
