"""Tune each arm of a study (`tuned=true`): try combinations of values, then run the best one on the other seeds.

`tune` of a study maps config keys to values, and `pilots` lists the seeds of the trials. All combinations are tried; or
so many as it says, in trials or in hours, which are drawn from these values or from distributions, the same for all
arms. The best combination of an arm has the lowest validation loss, averaged over the pilot seeds. The test set is
not used.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from etude.config.quoting import quote
from etude.errors import UserError
from etude.paths import find_file
from etude.search.distributions import Distribution, read_distribution, share
from etude.search.options import Options, read_options
from etude.search.wandb_sweep import check_parameter
from etude.store.divergence import divergence
from etude.store.run_dir import RunDir
from etude.study.arms import override_key, split_override, without_seed
from etude.study.criteria import OTHER_TEXTS, best_value
from etude.study.study import Study, find_study, load_study, value_at
from etude.yaml_file import read_yaml

Overrides = list[str]
Values = tuple[str, ...]  # overrides of the tuned keys, such as ("budget.lr_factor=0.5",)

_NO_OPTIONS = ("trials", "hours", "sampler", "early_terminate")  # of `tune`, which are read by themselves
_SEED = 1  # of the draws: a longer search begins with the trials of a shorter one


def tuned_study(runs: Sequence[Sequence[str]]) -> Study:
    """Load the study that all runs belong to, and which says what to tune.

    Raises:
        UserError: the runs belong to no study or to several, or the study has no `tune`.
    """
    names = {_value_of(run, "experiment").partition("/")[0] for run in runs}
    if len(names) != 1 or not (name := names.pop()):
        raise UserError("tuned=true is for the arms of one study, such as: etude sweep table3 tuned=true seed=11,12,13")
    study = load_study(name)
    if not study.tune:
        raise UserError(
            f"tuned=true: study {name} does not say what to tune; add to its study.yaml, for instance,  "
            "tune: {budget.lr_factor: [0.5, 1, 2]}  and  pilots: [101]"
        )
    combinations(study)  # a distribution that is not valid is told now
    return study


def trials(study: Study, runs: Sequence[Sequence[str]]) -> list[Overrides]:
    """Return the overrides of every trial that runs of a study need: each arm, combination of values and pilot seed.

    Raises:
        UserError: a run has a pilot seed, or overrides a tuned key.
    """
    return [
        [*arm, *values, f"seed={seed}"]
        for arm in arms_of(study, runs)
        for values in values_to_try(study)
        for seed in study.pilots
    ]


def values_to_try(study: Study) -> list[Values]:
    """Return the combinations of values that are tried of each arm, as overrides."""
    return [
        tuple(f"{key}={quote(value)}" for key, value in zip(study.tune, values, strict=True))
        for values in combinations(study)
    ]


def combinations(study: Study) -> list[tuple[Any, ...]]:
    """Return the combinations of values that are tried of each arm, in the order of the keys of `tune`.

    Raises:
        UserError: a distribution or the sampler is not valid.
    """
    if not study.draws:
        return [*product(*study.tune.values())]
    drawn, at = distributions(study), draw_of(study)
    draws = (
        tuple(one.quantile(at(number, key)) for key, one in drawn.items()) for number in range(study.draws["trials"])
    )
    return [*dict.fromkeys(draws)]


def distributions(study: Study) -> dict[str, Distribution]:
    """Return what the values of each tuned key are drawn from; each of a list is as likely.

    Raises:
        UserError: a distribution is not valid.
    """
    found = {}
    for key, given in study.tune.items():
        node = {"values": given} if isinstance(given, list) else given
        check_parameter(where := f"{tune_of(study)}.{key}", key, node)
        if "value" in node or any(isinstance(value, list) for value in node.get("values", [])):
            raise UserError(f"{where}: what is tuned has several plain values, such as [0.5, 1, 2]")
        found[key] = read_distribution(node, where)
    return found


def draw_of(study: Study) -> Callable[[int, str], float]:
    """Return the function that gives the probability at which the value of a key is drawn in a trial of any arm.

    Raises:
        UserError: there is no such sampler.
    """
    sampler = study.draws.get("sampler", "random")
    if sampler == "qmc":
        from scipy.stats import qmc  # late, as it takes a third of a second to import

        keys = sorted(study.tune)
        trials = study.draws["trials"]
        points = qmc.Sobol(len(keys), scramble=True, seed=_SEED).random_base2((trials - 1).bit_length())
        return lambda number, key: min(max(float(points[number, keys.index(key)]), 2.0**-53), 1 - 2.0**-53)
    if sampler != "random":
        raise UserError(
            f"{tune_of(study)}.sampler is {sampler!r}: write random or qmc, with which all arms share their draws"
        )
    return lambda number, key: share(_SEED, number, key)


def options_of(study: Study) -> Options:
    """Return how the trials of each arm are stopped or promoted.

    Raises:
        UserError: an option is not valid.
    """
    return read_options({key: value for key, value in study.draws.items() if key not in _NO_OPTIONS}, tune_of(study))


def tune_of(study: Study) -> str:
    """Return the place of `tune` in error messages."""
    return f"{find_study(study.name) / 'study.yaml'}: tune"


def at_their_best(
    study: Study, runs: Sequence[Sequence[str]], places: Mapping[Values, RunDir]
) -> tuple[list[Overrides], list[str]]:
    """Return the overrides of the runs, each with the best values of its arm, and why an arm has no best values.

    Args:
        study: the study of the runs.
        runs: their overrides.
        places: overrides of each trial -> its run directory; a trial that was refused has none.

    Returns:
        The runs of the arms that have best values, and a phrase on the others for each reason.
    """
    best: dict[Values, Values] = {}
    without: dict[str, list[str]] = {}  # why -> arms
    for arm in arms_of(study, runs):
        try:
            best[tuple(arm)] = _best_values(study, arm, places)
        except UserError as error:
            without.setdefault(str(error), []).append(_value_of(arm, "experiment"))
    arms = [(run, tuple(without_seed(run))) for run in runs]
    phrases = [f"{', '.join(names)}: {why}" for why, names in without.items()]
    return [[*run, *best[arm]] for run, arm in arms if arm in best], phrases


def _best_values(study: Study, arm: Sequence[str], places: Mapping[Values, RunDir]) -> Values:
    """Find the best values of an arm.

    Raises:
        UserError: no combination of values has a finite result on every pilot seed, several are the same run, or their
            texts differ.
    """
    tried: dict[Values, list[RunDir]] = {}
    for values in values_to_try(study):
        runs = [places[trial] for seed in study.pilots if (trial := (*arm, *values, f"seed={seed}")) in places]
        if len(runs) == len(study.pilots):
            tried[values] = runs
    if len(tried) > len({runs[0].path for runs in tried.values()}):
        raise UserError(
            f"values of {', '.join(study.tune)} make the same run, so that there is nothing to choose: does the arm "
            "make use of it?"
        )
    results = {
        values: {seed: _result(run) for seed, run in zip(study.pilots, runs, strict=True)}
        for values, runs in tried.items()
    }
    finished = [(seed, result) for of_seeds in results.values() for seed, result in of_seeds.items() if result]
    texts = {(seed, result.get("store")) for seed, result in finished}
    if len(texts) > len(study.pilots):
        raise UserError(OTHER_TEXTS.format(", ".join(study.tune)))
    perplexities = {
        values: {seed: _perplexity(result) for seed, result in of_seeds.items()} for values, of_seeds in results.items()
    }
    best = best_value(perplexities, study.pilots)
    if best is None:
        raise UserError(
            f"none of the {len(perplexities)} values that were tried came to a finite end on every pilot seed, so that "
            "no best of them can be run"
        )
    return best


def _result(run: RunDir) -> Mapping[str, Any]:
    return run.result() if run.finished else {}


def _perplexity(result: Mapping[str, Any]) -> Any:
    return None if divergence(result) else value_at(result, "valid.perplexity")


def arms_of(study: Study, runs: Sequence[Sequence[str]]) -> list[Overrides]:
    """Return the overrides of the runs without their seeds, each once.

    Raises:
        UserError: a run has a pilot seed, or overrides a tuned key.
    """
    seeds = {_value_of(run, "seed") or str(read_yaml(find_file("conf", "train.yaml"))["seed"]) for run in runs}
    if pilots := seeds & set(map(str, study.pilots)):
        raise UserError(
            f"seed={min(pilots)} is a pilot seed of study {study.name}: judge on other seeds, such as seed=1,2,3"
        )
    typed = {override_key(word) for run in runs for word in run} & set(study.tune)
    if typed:
        raise UserError(f"tuned=true tries values of {', '.join(sorted(typed))}: leave it out here")
    return [list(arm) for arm in dict.fromkeys(tuple(without_seed(run)) for run in runs)]


def arm_of(run: Sequence[str]) -> str:
    """Return the arm of a run of a study."""
    return dict(map(split_override, run))["experiment"].partition("/")[2]


def _value_of(run: Sequence[str], key: str) -> str:
    """Return the value that a run has for a key; of several, as in Hydra, the last."""
    return dict(map(split_override, run)).get(key, "")
