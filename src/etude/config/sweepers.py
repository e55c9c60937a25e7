"""Errors for Hydra's sweepers that are packages of their own: what installs them, and what does without."""

import re

from etude.errors import UserError

_PACKAGES = {  # of pip; optuna 2, which the sweeper needs, does not open a storage with SQLAlchemy 2
    "optuna": "hydra-optuna-sweeper 'sqlalchemy<2'",
    "ax": "hydra-ax-sweeper",
    "nevergrad": "hydra-nevergrad-sweeper",
}
_OF_OPTUNA = re.compile(
    r"hydra\.sweeper\.(sampler|direction|storage|study_name|n_trials|n_jobs|max_failure_rate|(custom_)?search_space)\b"
)


def missing_sweeper(wanted: str) -> UserError | None:
    """Make the error for a sweeper that is not installed; None if `wanted` is none of Hydra's.

    Args:
        wanted: its option, hydra/sweeper/optuna; its class; or a key that it has, hydra.sweeper.storage.
    """
    of_optuna = _OF_OPTUNA.match(wanted)
    written = ("hydra/sweeper/{}", "hydra_{}_sweeper")
    names = (name for name in _PACKAGES if any(form.format(name) in wanted for form in written))
    if not (name := "optuna" if of_optuna else next(names, "")):
        return None
    needs = f"{wanted} is a key of hydra/sweeper={name}, which needs" if of_optuna else f"hydra/sweeper={name} needs"
    return UserError(
        f"{needs} pip install {_PACKAGES[name]}; without it, `etude sweep FILE` searches at random (method: random)"
    )


def no_plugin(target: str) -> UserError:
    """Make the error for a sweeper or launcher that Hydra does not know."""
    return missing_sweeper(target) or UserError(f"_target_: {target} is not a plugin of Hydra's that is installed")
