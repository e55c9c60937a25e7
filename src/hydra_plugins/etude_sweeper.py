"""`hydra/sweeper=sweepfile`, the default: a multirun, or what a W&B sweep file says; and `hydra/sweeper=optuna`.

Hydra's basic sweeper would compose every job to validate it, and a launcher composes it again.

Hydra imports this file at every start, so heavy modules are imported only when a sweep is launched.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

if TYPE_CHECKING:
    from optuna import Study

    from etude.search.search import Search
    from etude.store.run_dir import RunDir
    from etude.study.study import Study as Tuned

    Places = dict[tuple[str, ...], RunDir]  # overrides of a trial -> its directory

logger = logging.getLogger(__name__)


class _LaunchingSweeper(Sweeper):
    """Base class of the sweepers: has a launcher, which also carries out searches."""

    config: DictConfig
    launcher: Launcher

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Create the launcher; called by Hydra."""
        self.config = config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def _search(self, *searches: "Search") -> "list[Study]":
        """Have the launcher carry out searches, and say beforehand what they may not do; return Optuna's study of each.

        Raises:
            UserError: the launcher is none of étude's.
        """
        from etude.errors import UserError
        from etude.search.cautions import cautions
        from etude.search.hyperband import Hyperband

        carry_out = getattr(self.launcher, "search", None)
        if carry_out is None:
            raise UserError("a search needs a launcher of étude's: hydra/launcher=slots, submitit_slurm or ray")
        first = searches[0]  # several are those of the arms of a study, with the same rules
        if isinstance(first.stopping, Hyperband):
            logger.info("%s: %s", first.source, first.stopping)
        for sentence in cautions(first, self.config):
            logger.warning("%s: %s", first.source, sentence)
        studies: list[Study] = carry_out(*searches)
        return studies


class SweepFileSweeper(_LaunchingSweeper):
    """Passes all runs to the launcher at once, or a search.

    Args:
        file: a sweep file from which values are drawn, or trials are asked for; None: there is none.
        run_cap: the maximum number of runs.
        search_seed: the seed for sampling; the same seed gives the same runs.
        tuned: whether to run each arm of a study with its own best hyperparameters as well.
        confirm: how many of the best trials of a search are trained on fresh seeds, beside the baseline; None: none.
        ladder: whether to run each arm of a study on the rungs of its ladder.
        until: "decided" adds seeds to the arms of a study until each is decided; None: no.
        params: key -> values, as Hydra's basic sweeper has them; what is typed wins.
        others: keys that it does not have.

    Raises:
        UserError: there are others.
    """

    def __init__(
        self,
        *,
        file: str | None,
        run_cap: int | None,
        search_seed: int,
        tuned: bool,
        confirm: int | None,
        ladder: bool,
        until: str | None,
        params: Mapping[str, Any] | None,
        **others: Any,
    ) -> None:
        if others:
            from etude.config.explain import no_such_key
            from etude.config.sweepers import other_sweeper

            key, known = (
                f"hydra.sweeper.{next(iter(others))}",
                ("file", "run_cap", "search_seed", "tuned", "confirm", "ladder", "until", "params"),
            )
            raise other_sweeper(key) or no_such_key(key, "hydra.sweeper", known)
        self.file, self.run_cap, self.search_seed, self.tuned = file, run_cap, search_seed, tuned
        self.confirm, self.ladder, self.until = confirm, ladder, until
        self.params = params or {}

    def sweep(self, arguments: list[str]) -> list[Sequence[JobReturn]]:
        """Launch every run, or the search of the file; with `tuned`, the trials of each arm first.

        Raises:
            UserError: the sweep file cannot be sampled, or the study does not declare what to tune; or an arm has no
                best value, and all other runs are finished.
            SweepFailed: some runs failed; the others are finished.
        """
        from etude.config.sweep_params import with_params
        from etude.errors import UserError
        from etude.search.sweep_file import on_rungs, sweep_runs

        arguments = with_params(arguments, self.params)
        if self.confirm is not None and (type(self.confirm) is not int or self.confirm < 1):
            raise UserError(f"confirm={self.confirm}: it must be a whole number, 1 or more")
        if self.file and (search := self._read_search(Path(self.file), arguments)):
            [searched] = self._search(search)
            return [] if self.confirm is None else [self._confirm(search, searched)]
        if self.confirm is not None:
            raise UserError(f"confirm={self.confirm} is for a search, such as one with method: bayes: leave it out")
        runs = sweep_runs(arguments, file=self.file, run_cap=self.run_cap, search_seed=self.search_seed)
        if self.ladder:
            runs = [run for rung in on_rungs(runs).values() for run in rung]
        if self.until:
            return self._until_decided(runs)
        if not self.tuned:
            return [self._launch(runs, 0)]
        from etude.search.tuning import at_their_best, tuned_study

        study = tuned_study(runs)
        first, found = self._try_draws(study, runs) if study.draws else self._try_all(study, runs)
        tried = len(first)
        if not (study.draws or all(run.finished for run in found.values())):  # a launcher may submit and not wait
            logger.warning("the trials are not finished: typed again when they are, this runs each arm at its best")
            return [first, self._launch(runs, tried)]
        best, without = at_their_best(study, runs, found)
        judged = self._launch([*runs, *best], tried)
        if without:  # told after the runs that can be made
            raise UserError("; ".join(without))
        return [first, judged]

    def _until_decided(self, runs: Sequence[Sequence[str]]) -> list[Sequence[JobReturn]]:
        """Launch the arms of a study with the least seeds, then with one more and one more, those that are not decided.

        Raises:
            UserError: the study does not say how many seeds.
            SweepFailed: some runs failed; the others are finished.
        """
        from etude.report import undecided
        from etude.search.sweep_file import seeds_of, with_seed
        from etude.search.tuning import arm_of
        from etude.store.run_dir import RunDir

        study, seeds = seeds_of(runs)
        plan = study.until_decided
        assert plan is not None
        done = [self._launch([run for s in seeds[: plan.least] for run in with_seed(runs, s)], 0)]
        for seed in seeds[plan.least :]:
            places = [RunDir(Path(str(job.working_dir))) for jobs in done for job in jobs]
            if not all(place.finished for place in places):  # a launcher may submit and not wait
                logger.warning("the runs are not finished: typed again when they are, this adds seeds where needed")
                break
            left = undecided(study, places)
            others = {study.baseline, *map(study.reference, left)}
            if not left:
                break
            logger.info("a further seed, %d, for what is not decided: %s", seed, ", ".join(left))
            going = [run for run in runs if arm_of(run) in {*left, *others}]
            done.append(self._launch(with_seed(going, seed), sum(map(len, done))))
        return done

    def _try_all(self, study: "Tuned", runs: Sequence[Sequence[str]]) -> "tuple[Sequence[JobReturn], Places]":
        """Launch the trials of all values of a study; return what came of them, and their directories."""
        from etude.search.tuning import trials
        from etude.store.run_dir import RunDir

        tried = trials(study, runs)
        first = self._launch(tried, 0)
        return first, {tuple(run): RunDir(Path(str(done.working_dir))) for run, done in zip(tried, first, strict=True)}

    def _try_draws(self, study: "Tuned", runs: Sequence[Sequence[str]]) -> "tuple[Sequence[JobReturn], Places]":
        """Carry out a search for each arm of a study; return no job, and the directories of the trials.

        Raises:
            UserError: `tune` of the study is not valid, or a search cannot go on.
        """
        from etude.files import typed_path
        from etude.search.tuning import arms_of
        from etude.search.tuning_search import runs_of_trials, tuning_searches
        from etude.store.run_dir import RunDir

        searched = self._search(*tuning_searches(study, runs))
        runs_dir = typed_path(self.config.runs_dir).absolute()
        return [], {
            overrides: RunDir(runs_dir / path)
            for arm, of_arm in zip(arms_of(study, runs), searched, strict=True)
            for overrides, path in runs_of_trials(study, arm, of_arm.trials).items()
        }

    def _read_search(self, file: Path, arguments: Sequence[str]) -> "Search | None":
        from etude.errors import UserError
        from etude.search.wandb_search import wandb_search

        search = wandb_search(file, arguments, run_cap=self.run_cap, search_seed=self.search_seed)
        if search and self.tuned:
            raise UserError(f"{file}: tuned=true is for the arms of one study, and this is a search: leave it out")
        return search

    def _confirm(self, search: "Search", study: "Study") -> Sequence[JobReturn]:
        """Train the best trials of a search, and its baseline, on fresh seeds.

        Raises:
            UserError: no trial is finished.
        """
        from etude.files import typed_path
        from etude.search.confirm import best_trials, confirming_runs, note_confirmation

        assert self.confirm is not None
        best = best_trials(search, study.trials, self.confirm)
        done = self._launch(confirming_runs(search, best, study.trials, int(self.config.seed)), 0)
        runs_dir = typed_path(self.config.runs_dir).absolute()
        places = [Path(str(job.working_dir)).absolute().relative_to(runs_dir) for job in done]
        note_confirmation(study, best, places)
        return done

    def _launch(self, runs: Sequence[Sequence[str]], first: int) -> Sequence[JobReturn]:
        """Launch some runs, numbered from `first`, and raise the error of the first that failed."""
        done = self.launcher.launch(runs, initial_job_idx=first)
        for job in done:
            if job.status is JobStatus.FAILED:
                raise job._return_value
        return done


class OptunaSweeper(_LaunchingSweeper):
    """Searches with a sampler of Optuna's; `StudySearchPath` gives it the name of hydra-optuna-sweeper's class, too.

    Args:
        settings: the keys of `conf/hydra/sweeper/optuna.yaml`.
    """

    def __init__(self, **settings: Any) -> None:
        if "n_trials" not in settings or "file" in settings:  # the class was chosen without the file with its keys
            from etude.config.sweepers import without_its_file

            raise without_its_file("hydra.sweeper._target_")
        self.settings = settings

    def sweep(self, arguments: list[str]) -> list[Sequence[JobReturn]]:
        """Carry out the search.

        Raises:
            UserError: an override or a key is not valid.
        """
        from etude.files import typed_path
        from etude.search.hydra_search import hydra_search, write_results

        search, storage = hydra_search(arguments, self.settings, self.config), self.settings["storage"]
        kept = None
        if storage is not None:
            from etude.search.storage import add_trials, open_study

            kept = open_study(storage, search.name, [one.maximize for one in search.objectives])
        [study] = self._search(search)
        if kept:
            add_trials(kept, study, typed_path(self.config.runs_dir) / f".{search.name}.storage.lock")
        best = [(one.user_attrs["overrides"], one.values) for one in study.best_trials]
        write_results(Path(self.config.hydra.sweep.dir), best if len(study.directions) > 1 else best[:1])
        return []
