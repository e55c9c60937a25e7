"""Tuned as well as shared: every arm tried at each value that its study says, the best of them on the judged seeds.

`tune` of a study maps config keys to values, `pilots` names the seeds on which they are tried. An arm's best is the
combination with the lowest validation loss, the mean over the pilot seeds; of the test set nothing is looked at.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from etude.config.quoting import quote
from etude.errors import UserError
from etude.runs.divergence import divergence
from etude.runs.run_dir import RunDir
from etude.studies.arms import override_key
from etude.studies.criteria import best_value
from etude.studies.study import Study, load_study, value_at

Overrides = list[str]
Values = tuple[str, ...]  # of the keys that are tuned, as they are typed: ("budget.lr_factor=0.5",)


def tuned_study(runs: Sequence[Sequence[str]]) -> Study:
    """The study of some runs, all of one that says what to tune.

    Raises:
        UserError: they are of no study or of several, or theirs says nothing.
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
    return study


def trials(study: Study, runs: Sequence[Sequence[str]]) -> list[Overrides]:
    """The overrides of every trial that the runs of a study need: each arm, each combination of values, each pilot.

    Raises:
        UserError: what is to be tuned was typed.
    """
    return [
        [*arm, *values, f"seed={seed}"] for arm in _arms(study, runs) for values in grid(study) for seed in study.pilots
    ]


def grid(study: Study) -> list[Values]:
    """Every combination of the values that a study tunes, as they are typed."""
    columns = [[f"{key}={quote(value)}" for value in values] for key, values in study.tune.items()]
    return [*product(*columns)]


def at_their_best(study: Study, runs: Sequence[Sequence[str]], places: Mapping[Values, RunDir]) -> list[Overrides]:
    """The overrides of the runs again, each with the values that suit its arm best; `places` are those of the trials.

    Raises:
        UserError: no trial of an arm has come to a finite end.
    """
    best = {tuple(arm): _best(study, arm, places) for arm in _arms(study, runs)}
    return [[*run, *best[tuple(_without_seed(run))]] for run in runs]


def _best(study: Study, arm: Sequence[str], places: Mapping[Values, RunDir]) -> Values:
    tried = {
        values: {seed: _perplexity(places[(*arm, *values, f"seed={seed}")]) for seed in study.pilots}
        for values in grid(study)
    }
    best = best_value(tried, study.pilots)
    if best is None:
        raise UserError(
            f"{_value_of(arm, 'experiment')}: none of the {len(tried)} values that were tried came to a finite end on "
            "every pilot seed, so that no best of them can be run"
        )
    return best


def _perplexity(run: RunDir) -> Any:
    result = run.result() if run.finished else {}
    return None if divergence(result) else value_at(result, "valid.perplexity")


def _arms(study: Study, runs: Sequence[Sequence[str]]) -> list[Overrides]:
    """The runs less their seeds, each once."""
    judged = {word.removeprefix("seed=") for run in runs for word in run if word.startswith("seed=")}
    if pilots := judged & set(map(str, study.pilots)):
        raise UserError(
            f"seed={min(pilots)} is a pilot seed of study {study.name}: judge on others, such as seed=1,2,3"
        )
    typed = {override_key(word) for run in runs for word in run} & set(study.tune)
    if typed:
        raise UserError(f"tuned=true tries values of {', '.join(sorted(typed))}: leave it out here")
    return [list(arm) for arm in dict.fromkeys(tuple(_without_seed(run)) for run in runs)]


def _without_seed(run: Sequence[str]) -> Overrides:
    return [word for word in run if not word.startswith("seed=")]


def _value_of(run: Sequence[str], key: str) -> str:
    return next((word.partition("=")[2] for word in run if word.startswith(f"{key}=")), "")
