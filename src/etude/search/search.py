"""What to search for, and how: read from a W&B sweep file or from `hydra.sweeper`, carried out by `engine.py`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from etude.config.quoting import quote_for
from etude.errors import UserError

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.distributions import BaseDistribution
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

    from etude.search.hyperband import Hyperband


@dataclass(frozen=True)
class Objective:
    """A metric, and which way it is better.

    Attributes:
        name: its key in `result.json`, or its name at W&B.
        maximize: whether the best run has the highest value.
    """

    name: str = "valid.perplexity"
    maximize: bool = False


@dataclass(frozen=True)
class Dimension:
    """What a key is set to.

    Attributes:
        distribution: what Optuna draws from.
        text: how the file describes it; a search goes on only with the same.
        convert: from what Optuna has drawn to the value of the key. A distribution that Optuna lacks is drawn as a
            probability in [0, 1], of which this is the quantile.
        values: those of a list that Optuna does not draw from itself.
    """

    distribution: "BaseDistribution"
    text: str
    convert: Callable[[Any], Any] = lambda drawn: drawn
    values: Sequence[Any] = ()

    def largest(self) -> float:
        """Return the largest number that the key may be set to."""
        drawn: Any = self.distribution
        ends = self.values or [self.convert(end) for end in getattr(drawn, "choices", ()) or (drawn.low, drawn.high)]
        return max(map(float, ends))


@dataclass(frozen=True)
class Promotion:
    """Asynchronous successive halving (Li et al. 2020): trials pause at rungs, and the best of each go on.

    Attributes:
        rungs: ascending shares of the budget; the last is 1.
        eta: at each rung, one in so many goes on.
    """

    rungs: tuple[float, ...] = (1 / 9, 1 / 3, 1.0)
    eta: int = 3


@dataclass(frozen=True)
class Search:
    """A search.

    Attributes:
        name: of the study in the journal.
        source: the file it was read from, or hydra.sweeper; error messages begin with it.
        fixed: the overrides that all trials have.
        space: key -> its dimension.
        objectives: the numbers that decide, each with its direction.
        n_trials: how many trials in all; or, if `further`, besides those that the journal holds already.
        hours: of training, after which no further trial begins; None: n_trials alone counts.
        seed: of the sampler.
        further: see `n_trials`.
        sampler: makes a sampler from a seed.
        one_sequence: whether the sampler, such as QMC, draws one sequence for the whole search, and keeps its seed.
            What it draws then follows from the number of the trial.
        custom_space: asks a trial for further values, as Optuna's users write it; it returns their overrides.
        stopping: which trials are stopped; None: none.
        promotion: by which rungs trials are promoted; None: all are trained to their end unless they are stopped.
        seeds: a trial is the mean over these; none: the seed of the config.
        target: a value of the objective that ends the search.
        best_of_curve: whether the value of a trial is the best of its validations; else that of its result.
        impute: what a trial without a value counts as for samplers that need one: its latest validation, if it has
            any, or the best or the worst of all values.
        impute_while_running: the same of a trial that is running; None: it is running.
        constraints: key of a result -> what it may be at most.
        n_jobs: trials at once; None: as many as the launcher has room for.
        max_failure_rate: the share of failed trials, among the last n_jobs, that ends the search.
    """

    name: str
    source: str
    fixed: tuple[str, ...]
    space: Mapping[str, Dimension]
    objectives: tuple[Objective, ...]
    n_trials: int
    sampler: "Callable[[int], BaseSampler]"
    hours: float | None = None
    seed: int = 1
    further: bool = False
    one_sequence: bool = False
    custom_space: "Callable[[Trial], list[str]] | None" = None
    stopping: "Hyperband | BasePruner | None" = None
    promotion: Promotion | None = None
    seeds: tuple[int, ...] = ()
    target: float | None = None
    best_of_curve: bool = False
    impute: str = "latest"
    impute_while_running: str | None = None
    constraints: Mapping[str, float] = field(default_factory=dict)
    n_jobs: int | None = None
    max_failure_rate: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what goes with one objective only, and what with one seed."""
        if len(self.objectives) > 1 and (self.stopping or self.promotion or self.target is not None):
            names = ", ".join(one.name for one in self.objectives)
            raise UserError(
                f"{self.source}: with several objectives ({names}) no trial is the best: leave out what stops or "
                "promotes trials, and a target"
            )
        if len(self.objectives) > 1 and self.seeds:
            raise UserError(
                f"{self.source}: a trial that is the mean of the seeds {', '.join(map(str, self.seeds))} has one "
                f"objective, not {', '.join(one.name for one in self.objectives)}: name one, or leave out seeds"
            )
        if self.seeds and self.promotion:
            raise UserError(
                f"{self.source}: trials pause at validations, and one that is the mean of the seeds "
                f"{', '.join(map(str, self.seeds))} has none: name one seed, or leave out manner: promote"
            )

    def override(self, key: str, drawn: Any) -> str:
        """Return the override that gives a key what was drawn for it."""
        return f"{key}={quote_for(key, self.space[key].convert(drawn))}"
