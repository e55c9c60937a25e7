"""Errors for Hydra's sweepers: for a package that is not installed, and for a key of a sweeper that was not chosen."""

import re

from etude.errors import UserError

_PACKAGES = {"ax": "hydra-ax-sweeper", "nevergrad": "hydra-nevergrad-sweeper"}
_OF_OPTUNA = re.compile(
    r"hydra\.sweeper\.(sampler|direction|storage|study_name|n_trials|n_jobs|max_failure_rate|(custom_)?search_space"
    r"|pruner|manner|rungs|eta|seeds|constraints)\b"
)


def other_sweeper(wanted: str) -> UserError | None:
    """Make the error for a sweeper that is not installed, or not chosen; None if `wanted` is of neither.

    Args:
        wanted: its option, hydra/sweeper/ax; its class; or a key that it has, hydra.sweeper.storage.
    """
    if _OF_OPTUNA.match(wanted):
        return without_its_file(wanted)
    written = ("hydra/sweeper/{}", "hydra_{}_sweeper")
    name = next((name for name in _PACKAGES if any(form.format(name) in wanted for form in written)), "")
    if not name:
        return None
    return UserError(
        f"hydra/sweeper={name} needs pip install {_PACKAGES[name]}; without it, hydra/sweeper=optuna searches, too"
    )


def without_its_file(wanted: str) -> UserError:
    """Make the error for a key of hydra/sweeper=optuna where that was not chosen."""
    return UserError(
        f"{wanted} goes with hydra/sweeper=optuna: choose that too, in a file by  "
        "defaults: [override /hydra/sweeper: optuna]"
    )


def no_plugin(target: str) -> UserError:
    """Make the error for a sweeper or launcher that Hydra does not know."""
    return other_sweeper(target) or UserError(f"_target_: {target} is not a plugin of Hydra's that is installed")
