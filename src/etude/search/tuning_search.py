"""The searches that tune the arms of a study whose values are drawn: one for each arm, and all have the same draws."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from etude.errors import UserError
from etude.search.hyperband import read_hyperband
from etude.search.search import Objective, Search
from etude.search.tuning import Values, arm_of, arms_of, distributions, draw_of, options_of, tune_of
from etude.search.wandb_search import stopping_rule
from etude.study.study import Study

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


def tuning_searches(study: Study, runs: Sequence[Sequence[str]]) -> list[Search]:
    """Return the search of each arm among the runs of a study.

    Trial n of every arm has the same values. With several pilot seeds a trial is the mean over them.

    Raises:
        UserError: `tune` of the study is not valid, or does not go with several pilot seeds.
    """
    from etude.search.listed import DrawnSampler  # late, as it imports Optuna

    where, drawn, at = tune_of(study), distributions(study), draw_of(study)
    options = options_of(study)
    given = study.draws.get("early_terminate")
    stopping = stopping_rule(options, read_hyperband(given, f"{where}.early_terminate") if given else None, where)
    if len(study.pilots) > 1 and (stopping or options.promotion):
        raise UserError(
            f"{where}: trials are stopped or promoted by their validations, and the mean over several pilot seeds has "
            "none: name one in pilots"
        )
    sampler = DrawnSampler(lambda number: {key: one.draw(at(number, key)) for key, one in drawn.items()})
    found = []
    for arm in arms_of(study, runs):
        name = arm_of(arm)
        same = [
            arm,
            study.pilots,
            {key: one.text for key, one in drawn.items()},
            study.draws | {"trials": None, "hours": None},
        ]
        digest = sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:6]  # other settings: another search
        found.append(
            Search(
                name=f"tune-{name}-{digest}",
                source=f"{where}, arm {name}",
                fixed=(*arm, *([f"seed={seed}" for seed in study.pilots] if len(study.pilots) == 1 else [])),
                space={key: one.dimension() for key, one in drawn.items()},
                objectives=(Objective(),),
                n_trials=study.draws["trials"],
                hours=study.draws.get("hours"),
                sampler=lambda seed: sampler,
                one_sequence=True,
                stopping=stopping,
                promotion=options.promotion,
                seeds=tuple(study.pilots) if len(study.pilots) > 1 else (),
                n_jobs=options.n_jobs,
            )
        )
    return found


def runs_of_trials(study: Study, arm: Sequence[str], trials: Iterable["FrozenTrial"]) -> dict[Values, str]:
    """Return the runs of an arm's trials: overrides -> the path below the folder of runs; refused trials have none."""
    return {
        (*arm, *trial.user_attrs["overrides"], f"seed={seed}"): run
        for trial in trials
        for seed, run in zip(study.pilots, trial.user_attrs.get("runs", []), strict=False)
    }
