"""Make a search of a W&B sweep file with method bayes, `early_terminate` or a block `search`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.errors import UserError
from etude.search.distributions import Distribution, share
from etude.search.hyperband import Hyperband
from etude.search.options import Options
from etude.search.optuna_parts import Sampler, read_pruner, read_sampler
from etude.search.search import Objective, Search
from etude.search.sweep_file import check_run_options, require_run_cap
from etude.search.values import Values, take_apart
from etude.search.wandb_sweep import WandbSweep, read_sweep
from etude.study.arms import override_key

if TYPE_CHECKING:
    from optuna.pruners import BasePruner


def wandb_search(
    file: Path, overrides: Sequence[str], *, run_cap: int | None = None, search_seed: int = 1
) -> Search | None:
    """Return the search of a sweep file; None if its runs are a fixed list.

    With method grid or random, and no other sampler, trial n has the values of run n of that list.

    Args:
        file: the sweep file.
        overrides: of all trials, among them those that the file gives all. Their keys are not drawn. Of a key with
            several values each trial has one; but with a sampler, a trial is the mean over several seeds.
        run_cap: the largest number of runs.
        search_seed: the seed of the sampler.

    Raises:
        UserError: a part of the file or an override is not valid.
    """
    sweep = read_sweep(file)
    if not sweep.is_search:
        return None
    check_run_options(run_cap, search_seed)
    if sweep.method != "grid":
        require_run_cap(file, run_cap)
    options, where = sweep.search or Options(), f"{file}: search"
    typed = set(map(override_key, overrides))
    drawn = {key: one for key, one in sweep.distributions.items() if override_key(key) not in typed}
    is_listed = sweep.method != "bayes" and options.sampler is None
    seeds, values = _seeds(take_apart(overrides), drawn, options, where, is_listed=is_listed)
    sampler = _listed(values, drawn, search_seed) if is_listed else _asked(sweep, options, where)
    trials = None if run_cap is None else max(1, run_cap // max(1, len(seeds)))
    objectives, metric = _objectives(sweep, options), sweep.metric
    while_running = metric.get("impute_while_running")
    return Search(
        name=file.stem,
        source=str(file),
        fixed=values.fixed,
        space={key: one.dimension() for key, one in {**values.choices(), **drawn}.items()},
        objectives=objectives,
        n_trials=trials if trials and (drawn or not is_listed) else min(trials or values.count, values.count),
        sampler=sampler.make,
        seed=search_seed if sampler.seed is None else sampler.seed,
        one_sequence=sampler.one_sequence,
        stopping=stopping_rule(options, sweep.early_terminate, where),
        promotion=options.promotion,
        seeds=seeds,
        target=metric.get("target"),
        best_of_curve=sweep.method == "bayes" and options.sampler is None,
        impute=metric.get("impute", "latest"),
        impute_while_running=None if while_running in (None, False, "false") else while_running,
        constraints=options.constraints,
        n_jobs=options.n_jobs,
    )


def _seeds(
    values: Values, drawn: Mapping[str, Distribution], options: Options, where: str, *, is_listed: bool
) -> tuple[tuple[int, ...], Values]:
    """Return the seeds of each trial, and the values without them; a fixed list has a trial for each seed."""
    if options.seeds and "seed" in map(override_key, drawn):
        raise UserError(f"{where}.seeds and parameters.seed both list seeds: leave one of them out")
    return values.seeds(options.seeds, f"{where}.seeds") if options.seeds or not is_listed else ((), values)


def _listed(values: Values, drawn: Mapping[str, Distribution], seed: int) -> Sampler:
    """Return the sampler of the runs of a fixed list: every combination of the values, for each draw."""
    from etude.search.listed import DrawnSampler, ListedSampler  # late, as they import Optuna

    def of_trial(number: int) -> dict[str, Any]:
        draw, place = divmod(number, values.count)
        return {key: one.draw(share(seed, draw, key)) for key, one in drawn.items()} | values.combination(place)

    made = DrawnSampler if drawn and not values.several else ListedSampler
    return Sampler(lambda seed: made(of_trial), one_sequence=True)


def _asked(sweep: WandbSweep, options: Options, where: str) -> Sampler:
    sampler = read_sampler(options.sampler or "gp", f"{where}.sampler")
    if sampler.is_grid or sweep.method == "grid":
        raise UserError(f"{where}.sampler: method: grid lists its values, and a sampler asks for them: leave one out")
    return sampler


def _objectives(sweep: WandbSweep, options: Options) -> tuple[Objective, ...]:
    """Return the metric of the file and those of `directions`.

    Raises:
        UserError: a metric is in both, with two directions.
    """
    metric = sweep.metric
    own = (Objective(metric["name"], metric.get("goal") == "maximize"),) if metric else ()
    found = tuple(dict.fromkeys((*own, *options.objectives)))
    if len({one.name for one in found}) < len(found):
        raise UserError(f"{sweep.file}: search.directions and metric.goal differ on {metric['name']}")
    return found or (Objective(),)


def stopping_rule(options: Options, early_terminate: Hyperband | None, where: str) -> "Hyperband | BasePruner | None":
    """Return what stops trials; `manner: promote` takes the place of W&B's Hyperband.

    Raises:
        UserError: there are two rules, or there is none though there should be, or no such pruner.
    """
    if options.pruner and early_terminate:
        raise UserError(f"{where}.pruner and early_terminate both stop trials: leave one of them out")
    if options.manner == "stop" and not (options.pruner or early_terminate):
        raise UserError(f"{where}.manner: stop needs early_terminate, or a pruner such as  pruner: median")
    if options.manner == "promote":
        return None
    return read_pruner(options.pruner, f"{where}.pruner") if options.pruner else early_terminate
