"""What a search can be said beforehand not to do: rules that stop nothing, and a metric that goes the wrong way."""

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from optuna.pruners import BasePruner

from etude.errors import UserError
from etude.search.hyperband import Hyperband
from etude.search.score import is_in_curves
from etude.search.search import Search
from etude.study.arms import override_key
from etude.study.metrics import rises

if TYPE_CHECKING:
    from omegaconf import DictConfig

_OF_THE_BUDGET = ("budget", "scale", "debug", "budget.steps", "budget.max_steps", "budget.val_every")


def cautions(search: Search, config: "DictConfig") -> Iterator[str]:
    """Yield a sentence on each thing that may not be what was meant.

    Args:
        search: the search.
        config: what all trials have, composed.

    Raises:
        UserError: trials are to be stopped at validations, and there are none.
    """
    validated = config.budget.get("val_metrics") or ()
    for one in search.objectives:
        if rises(one.name) and not one.maximize:
            yield f"{one.name} is minimised, and it is better the higher: say maximize"
        if (search.stopping or search.promotion) and not is_in_curves(one.name, validated):
            yield f"{one.name} is known only when a run has ended, so that no trial is stopped or promoted by it"
    if search.seeds or any(override_key(key) in _OF_THE_BUDGET for key in search.space):
        return
    steps, every = config.budget.max_steps, config.budget.val_every
    if isinstance(search.stopping, BasePruner) and every > steps:
        raise UserError(
            f"{search.source}: no validation comes at which a trial could be stopped, as budget.val_every={every} is "
            f"beyond budget.max_steps={steps}: lower it"
        )
    if isinstance(search.stopping, Hyperband):
        yield from _bands_beyond(search.stopping, steps // every)


def _bands_beyond(rule: Hyperband, validations: int) -> Iterator[str]:
    reached = [*takewhile(lambda band: band <= validations, rule.bands())]
    beyond = next((band for band in rule.bands() if band > validations), None) if not reached or rule.max_iter else None
    if beyond is not None:
        yield (
            f"early_terminate stops no trial at validation {beyond}, as budget.max_steps and budget.val_every make "
            f"{validations} of them"
        )
