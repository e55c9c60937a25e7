import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.pruners import BasePruner
from optuna.samplers import RandomSampler
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState
from tests.search.world import EVERY, SECONDS, SPACE, STEPS, Above, World, carry_out, loss, search, table, tpe

from etude.errors import UserError
from etude.search.ask import seed_of_trial
from etude.search.distributions import read_distribution
from etude.search.engine import Engine
from etude.search.search import Dimension, Objective, Promotion, Search
from etude.store.run_dir import RunDir
from etude.store.run_state import State, read_stop

SAMPLERS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "tpe": tpe,
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed, n_startup_trials=4),
    "cmaes": lambda seed: optuna.samplers.CmaEsSampler(seed=seed, n_startup_trials=2),
    "qmc": lambda seed: optuna.samplers.QMCSampler(seed=seed, scramble=True),
}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.filterwarnings("ignore")
def test_the_trials_are_those_that_optuna_gives_when_it_is_asked_by_hand(name: str, tmp_path: Path) -> None:
    space = {"x": SPACE["x"], "y": Dimension(FloatDistribution(-1, 1), "-1 to 1")}
    what = search(sampler=SAMPLERS[name], one_sequence=name == "qmc", space=space, n_trials=9)
    engine = carry_out(what, World(tmp_path))
    by_hand = optuna.create_study()
    for number in range(9):
        by_hand.sampler = SAMPLERS[name](7 if name == "qmc" else seed_of_trial(7, number))
        trial = by_hand.ask({key: one.distribution for key, one in space.items()})
        by_hand.tell(trial, loss({"x": str(trial.params["x"])}))
    assert [t.params for t in engine.journal.trials()] == [t.params for t in by_hand.trials]


@pytest.mark.parametrize("promotion", [None, Promotion((1 / 9, 1 / 3, 1.0), 3)], ids=["all", "promote"])
def test_a_search_that_is_struck_after_every_run_makes_the_same_trials(
    promotion: Promotion | None, tmp_path: Path
) -> None:
    what = search(promotion=promotion, n_trials=15)
    left_in_peace, struck = World(tmp_path / "peace"), World(tmp_path / "struck")
    expected = table(carry_out(what, left_in_peace))
    before = -1
    while struck.trained > before:
        before = struck.trained
        engine = carry_out(what, struck, blows=1)
    assert table(engine) == expected
    assert struck.trained == left_in_peace.trained


class Died(BaseException):
    """A process is no more."""


def dying_at(record: int) -> Callable[..., None]:
    """Writes records to a journal until there are so many in all; then the process dies."""
    write, count = JournalFileBackend.append_logs, 0

    def append(self: JournalFileBackend, logs: list[dict[str, Any]]) -> None:
        nonlocal count
        whole = logs[: record - count]
        count += len(whole)
        if whole:
            write(self, whole)
        if whole != logs:
            raise Died

    return append


FEW = {"k": Dimension(IntDistribution(1, 3), "1 to 3")}
MEDIAN = optuna.pruners.MedianPruner(n_startup_trials=2)
SEARCHES = {
    "trials that are drawn twice": search(space=FEW, n_trials=6),
    "drawn twice, and promoted": search(space=FEW, n_trials=6, promotion=Promotion((1 / 3, 1.0))),
    "pruned trials": search(stopping=MEDIAN, n_trials=5),
    "trials of several seeds": search(seeds=(1, 2), stopping=MEDIAN, n_trials=6),
}


@pytest.mark.parametrize("what", SEARCHES.values(), ids=SEARCHES)
def test_a_search_that_dies_at_any_record_of_its_journal_makes_the_same_trials(
    what: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(words: dict[str, str]) -> float:
        return loss(words) + 0.1 * int(words.get("seed", 1))

    engine = carry_out(what, World(tmp_path / "peace", score, every=30))
    expected, records = table(engine), len(engine.journal.path.read_bytes().splitlines())
    for record in range(2, records):
        world = World(tmp_path / str(record), score, every=30)
        with monkeypatch.context() as patch:
            patch.setattr(JournalFileBackend, "append_logs", dying_at(record))
            with pytest.raises(Died):
                carry_out(what, world)
        assert table(carry_out(what, world)) == expected, f"after {record} records"


def test_promotion_finds_the_best_trial_of_all_in_far_fewer_steps(tmp_path: Path) -> None:
    everything, some = World(tmp_path / "all"), World(tmp_path / "some")
    random = {"sampler": lambda seed: optuna.samplers.RandomSampler(seed=seed), "n_trials": 27}
    all_of_them = carry_out(search(**random), everything).journal.study
    promoted = carry_out(search(**random, promotion=Promotion((1 / 9, 1 / 3, 1.0), 3)), some).journal.study
    assert promoted.best_value == all_of_them.best_value  # the curves never cross
    assert some.trained < 0.45 * everything.trained
    assert sum(t.state is TrialState.COMPLETE for t in promoted.trials) >= 1


def test_a_trial_that_is_promoted_goes_on_where_it_paused(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = carry_out(search(promotion=Promotion((1 / 9, 1 / 3, 1.0), 3)), world)
    steps = sum(max(t.intermediate_values) for t in engine.journal.trials())
    assert world.trained == steps


@pytest.mark.parametrize("n_trials", [1, 2, 3, 4])
def test_of_ever_so_few_trials_one_comes_to_the_end(n_trials: int, tmp_path: Path) -> None:
    engine = carry_out(search(promotion=Promotion((1 / 9, 1 / 3, 1.0), 3), n_trials=n_trials), World(tmp_path))
    states = [t.state for t in engine.journal.trials()]
    assert states.count(TrialState.COMPLETE) == 1
    assert len(states) == n_trials


def test_a_trial_is_not_promoted_before_its_process_has_ended(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = Engine(search(promotion=Promotion((1 / 9, 1.0), 2)), world.runs_dir, "single", world.freeze)
    (first, _), (second, _) = engine.more(2)
    for run in (first, second):
        world.train(run)
    engine.watch()  # both have come to the rung
    assert {run for run, _ in engine.more(2)}.isdisjoint({first, second})
    better = min((first, second), key=lambda run: world.score(run.config()["words"]))
    engine.ended(better, State.PAUSED)
    assert [run for run, _ in engine.more(1)] == [better]


def test_the_live_table_knows_the_rung_and_the_best_value_of_each_run(tmp_path: Path) -> None:
    engine = carry_out(search(promotion=Promotion((1 / 9, 1 / 3, 1.0), 3), n_trials=9), World(tmp_path), blows=10)
    figures = engine.figures()
    for trial in engine.journal.trials():
        [run] = [run for run in figures if trial.user_attrs["runs"] == [str(run.path.relative_to(engine.runs_dir))]]
        assert figures[run] == {
            "rung": f"{trial.user_attrs['to'] + 1}/3",
            "best": f"{min(trial.intermediate_values.values()):.5g}",
        }
    assert {shown["rung"] for shown in figures.values()} >= {"1/3", "2/3"}


def test_a_second_process_goes_on_with_the_trials_of_the_first(tmp_path: Path) -> None:
    world = World(tmp_path)
    engines = [Engine(search(), world.runs_dir, "single", world.freeze) for _ in range(2)]
    turn = 0
    while runs := engines[turn].more(1):
        world.train(runs[0][0])
        for engine in engines:
            engine.watch()
            engine.ended(runs[0][0], State.FINISHED)
        turn = 1 - turn
    assert table(engines[0]) == table(engines[1]) == table(carry_out(search(), World(tmp_path / "alone")))


def test_a_search_of_a_name_makes_so_many_further_trials_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for trials in (4, 8):
        engine = carry_out(search(n_trials=4, further=True), World(tmp_path))
        assert len(engine.journal.trials()) == trials
    assert "first.journal holds 4 trials, and now come 4 further ones" in caplog.text


def test_a_trial_is_pruned_at_the_first_validation_that_is_not_good_enough(tmp_path: Path) -> None:
    engine = carry_out(search(stopping=Above(11.0)), World(tmp_path))
    trials = engine.journal.trials()
    first = [next(iter(t.intermediate_values.values())) for t in trials]
    assert [t.state is TrialState.PRUNED for t in trials] == [value > 11 for value in first]
    assert {t.state for t in trials} == {TrialState.PRUNED, TrialState.COMPLETE}
    assert all(len(t.intermediate_values) == 1 for t in trials if t.state is TrialState.PRUNED)


PRUNERS = {
    "median": optuna.pruners.MedianPruner(n_startup_trials=3),
    "percentile": optuna.pruners.PercentilePruner(30.0, n_startup_trials=2),
    "halving": optuna.pruners.SuccessiveHalvingPruner(min_resource=10, reduction_factor=3),
    "threshold": optuna.pruners.ThresholdPruner(upper=11.0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pruner", PRUNERS.values(), ids=PRUNERS)
def test_an_optuna_pruner_prunes_as_it_does_for_optuna(pruner: BasePruner, tmp_path: Path) -> None:
    engine = carry_out(search(stopping=pruner), World(tmp_path))
    study = optuna.create_study(pruner=pruner)
    for trial in engine.journal.trials():
        mine = optuna.Trial(study, study._storage.create_new_trial(study._study_id))
        value = loss({key: str(value) for key, value in trial.params.items()})
        pruned = False
        for step in range(EVERY, STEPS + 1, EVERY):
            mine.report(value + (STEPS - step) / 10, step)
            if pruned := mine.should_prune():
                break
        study.tell(mine, None if pruned else value, TrialState.PRUNED if pruned else TrialState.COMPLETE)
    assert [t.state for t in engine.journal.trials()] == [t.state for t in study.trials]
    assert {t.state for t in study.trials} == {TrialState.COMPLETE, TrialState.PRUNED}


@pytest.mark.filterwarnings("ignore")
def test_seed_by_seed_a_wilcoxon_pruner_leaves_the_worse_trials_at_fewer_seeds(tmp_path: Path) -> None:
    world = World(tmp_path, lambda words: loss(words) + 0.1 * int(words["seed"]))
    what = search(seeds=tuple(range(1, 11)), n_trials=8, stopping=optuna.pruners.WilcoxonPruner(p_threshold=0.1))
    trials = carry_out(what, world).journal.trials()
    whole = [t for t in trials if t.state is TrialState.COMPLETE]
    assert all(len(t.intermediate_values) == 10 for t in whole)
    worse = [t for t in trials if t.state is TrialState.PRUNED]
    assert worse
    assert min(max(t.intermediate_values.values()) for t in worse) > min(t.value for t in whole)
    assert world.trained < 0.7 * 8 * 10 * STEPS


def test_a_trial_of_several_seeds_is_their_mean(tmp_path: Path) -> None:
    world = World(tmp_path, lambda words: int(words["seed"]) + float(words["x"]))
    engine = carry_out(search(seeds=(1, 2, 6), n_trials=4), world)
    for trial in engine.journal.trials():
        assert trial.value == pytest.approx(3 + trial.params["x"])
        assert [*trial.intermediate_values] == [0, 1, 2]


def test_two_processes_train_each_seed_of_a_trial_once(tmp_path: Path) -> None:
    world = World(tmp_path, lambda words: int(words["seed"]))
    one, other = (Engine(search(seeds=(1, 2, 6), n_trials=1), world.runs_dir, "single", world.freeze) for _ in range(2))
    trained = []
    while [run for run, _ in one.more(1)]:
        [(run, _)] = other.more(1)  # the same run, which the other process finds taken
        trained.append(world.train(run) and run)
        for engine in (one, other):
            engine.ended(run, State.FINISHED)
    [trial] = one.journal.trials()
    assert (trial.value, trial.intermediate_values) == (3, {0: 1, 1: 2, 2: 6})
    assert len({*trained}) == len(trained) == 3


def test_a_search_that_was_killed_before_it_noted_the_mean_of_the_seeds_notes_it(tmp_path: Path) -> None:
    world, what = World(tmp_path, lambda words: int(words["seed"])), search(seeds=(1, 2, 6), n_trials=1)
    path = carry_out(what, world).journal.path
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))  # without the end of the trial
    [trial] = carry_out(what, world).journal.trials()
    assert (trial.state, trial.value) == (TrialState.COMPLETE, 3)


def test_a_trial_that_diverged_keeps_to_no_constraint(tmp_path: Path) -> None:
    class Diverging(World):
        def train(self, run: RunDir) -> State:
            super().train(run)
            run.write_result({"valid": {"loss": nan}, "test": {"loss": nan}, "diverged": "its loss is nan"})
            return State.DIVERGED

    engine = carry_out(search(constraints={"test.loss": 20}, n_trials=1), Diverging(tmp_path))
    [trial] = engine.journal.trials()
    assert (trial.state, trial.values) == (TrialState.COMPLETE, [inf])
    assert [value for key, value in trial.system_attrs.items() if key.startswith("constraints:")] == [inf]


def test_a_constraint_on_a_number_that_no_run_has_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no run has the number test\.los, .*did you mean test\.loss"):
        carry_out(search(constraints={"test.los": 20}, n_trials=1), World(tmp_path))


def test_a_run_that_was_finished_before_keeps_its_checkpoint_when_its_trial_is_pruned(tmp_path: Path) -> None:
    world = World(tmp_path)
    what = search(n_trials=1, stopping=Above(-1e9))
    first = Engine(what, world.runs_dir, "single", world.freeze)
    [(run, _)] = first.more(1)
    first.journal.path.unlink()
    checkpoint = run.own_training.checkpoint
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    assert world.train(run) is State.FINISHED
    engine = carry_out(what, world)
    assert [trial.state for trial in engine.journal.trials()] == [TrialState.PRUNED]
    assert checkpoint.exists()


def test_of_each_objective_the_best_validation_counts_by_its_own_direction(tmp_path: Path) -> None:
    both = (Objective("valid.loss"), Objective("valid_loss", maximize=True))
    random = {"sampler": lambda seed: optuna.samplers.RandomSampler(seed=seed), "n_trials": 1}
    [trial] = carry_out(search(objectives=both, best_of_curve=True, **random), World(tmp_path)).journal.trials()
    last = trial.values[0]
    assert trial.values[1] == pytest.approx(last + (STEPS - EVERY) / 10)


def test_a_refused_config_is_a_failed_trial_with_its_sentence(tmp_path: Path) -> None:
    space = {"x": Dimension(FloatDistribution(9.5, 10.2), "9.5 to 10.2")}
    engine = carry_out(
        search(space=space, sampler=lambda seed: optuna.samplers.RandomSampler(seed=seed)), World(tmp_path)
    )
    refused = [t for t in engine.journal.trials() if t.params["x"] > 9.9]
    assert refused
    assert all((t.state, t.user_attrs["error"]) == (TrialState.FAIL, "x is too large") for t in refused)
    assert len(engine.journal.trials()) == 12


def test_ten_refused_configs_in_a_row_end_the_search(tmp_path: Path) -> None:
    drawn = iter([1.0, *[9.95] * 20])
    space = {"x": Dimension(FloatDistribution(0, 1), "", convert=lambda u: next(drawn))}
    with pytest.raises(UserError, match="too many of the last trials failed, trial 10: x is too large"):
        carry_out(search(space=space, n_trials=20), World(tmp_path))


def test_the_target_ends_the_search(tmp_path: Path) -> None:
    values = [t.value for t in carry_out(search(), World(tmp_path / "all")).journal.trials()]
    target = sorted(values)[6]
    trials = carry_out(search(target=target), World(tmp_path / "some")).journal.trials()
    assert [t.value for t in trials] == values[: next(n for n, value in enumerate(values) if value <= target) + 1]


def test_those_that_are_trained_when_the_target_is_reached_come_to_their_end(tmp_path: Path) -> None:
    values = [t.value for t in carry_out(search(), World(tmp_path / "all"), at_once=3).journal.trials()]
    trials = carry_out(search(target=values[0]), World(tmp_path / "some"), at_once=3).journal.trials()
    assert [t.value for t in trials] == values[:3]


@pytest.mark.parametrize("promotion", [None, Promotion((0.5, 1.0), 2)])
def test_no_trial_begins_when_all_have_trained_for_so_many_hours(promotion: Promotion | None, tmp_path: Path) -> None:
    of_one = STEPS * SECONDS / 3600
    what, world = search(hours=2.9 * of_one, promotion=promotion), World(tmp_path)
    trials = carry_out(what, world).journal.trials()
    before = 2.9 if promotion is None else 3.5  # with the half that is promoted
    assert world.trained * SECONDS / 3600 <= (before + 1) * of_one
    assert 3 <= len(trials) <= 6
    assert len(carry_out(what, world).journal.trials()) == len(trials), "typed again"
    assert len(carry_out(replace(what, hours=100.0), world).journal.trials()) == 12, "with more hours it goes on"


@pytest.mark.parametrize("rate", [0.25, 0.5])
def test_a_larger_share_of_failed_trials_among_the_last_ends_the_search(rate: float, tmp_path: Path) -> None:
    class Picky(World):
        def _freeze(self, words: dict[str, str]) -> RunDir:
            if int(words["k"]) > 2 and self.trained:
                raise UserError("k is too large")
            return super()._freeze(words)

    what = search(n_jobs=4, max_failure_rate=rate, n_trials=60, sampler=lambda seed: RandomSampler(seed=seed))
    with pytest.raises(UserError, match=r"too many of the last trials failed, trial \d+: k is too large"):
        carry_out(what, Picky(tmp_path))
    trials = Engine(what, tmp_path / "runs", "single", lambda jobs: []).journal.trials()
    failed = [t.state is TrialState.FAIL for t in trials]
    too_many = [sum(failed[max(0, end - 4) : end]) > 4 * rate for end in range(1, len(failed) + 1)]
    assert too_many == [False] * (len(failed) - 1) + [True]


def test_checkpoints_of_trials_that_are_out_of_reach_are_freed(tmp_path: Path) -> None:
    class Keeping(World):
        def train(self, run: RunDir) -> State:
            run.own_training.checkpoint.parent.mkdir(exist_ok=True)
            run.own_training.checkpoint.write_text("weights")
            return super().train(run)

    world = Keeping(tmp_path)
    trials = carry_out(search(promotion=Promotion(), n_trials=15), world).journal.trials()
    runs = {t.number: RunDir(world.runs_dir / t.user_attrs["runs"][0]) for t in trials}
    kept = {number for number, run in runs.items() if run.own_training.checkpoint.exists()}
    assert kept == {t.number for t in trials if t.state is not TrialState.PRUNED}
    assert 0 < len(kept) < 15


def test_a_trial_whose_budget_has_no_such_rungs_is_refused_and_the_search_goes_on(tmp_path: Path) -> None:
    class Coarse(World):
        def freeze(self, jobs: Sequence[Sequence[str]]) -> list[RunDir]:
            [run] = super().freeze(jobs)
            if "k=3" in jobs[0]:
                run.config_file.write_text(run.config_file.read_text().replace("val_every: 10", "val_every: 45"))
            return [run]

    engine = carry_out(search(promotion=Promotion()), Coarse(tmp_path))
    trials = engine.journal.trials()
    refused = {t.number for t in trials if t.params["k"] == 3}
    assert refused
    assert {t.number for t in trials if t.state is TrialState.FAIL} == refused
    assert len(engine.figures()) == len(trials) - len(refused)


def test_a_training_that_another_run_began_with_other_validations_is_judged_by_the_first_behind_a_rung(
    tmp_path: Path,
) -> None:
    class Begun(World):
        def freeze(self, jobs: Sequence[Sequence[str]]) -> list[RunDir]:
            for run in (runs := super().freeze(jobs)):
                if not (file := run.own_training.metrics_file).exists():
                    final = self.score(run.config()["words"])
                    rows = [f"{step},{final + (STEPS - step) / 10},1" for step in (15, 25, 35)]
                    file.write_text("\n".join(["step,valid_loss,seconds", *rows, ""]))
            return runs

        def train(self, run: RunDir) -> State:
            stop = read_stop(run)
            return stop.state if stop and stop.step < 35 else super().train(run)

    what, world = search(promotion=Promotion((1 / 9, 1 / 3, 1.0), 3), n_trials=9), Begun(tmp_path)
    trials = carry_out(what, world).journal.trials()
    assert Engine(what, world.runs_dir, "single", world.freeze).more(1) == []  # no process is taken to have failed
    rungs = [sum(t.user_attrs["to"] >= rung for t in trials) for rung in range(3)]
    assert rungs == [9, 3, 1]
    assert sum(t.state is TrialState.COMPLETE for t in trials) == 1


def test_the_same_config_twice_is_trained_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    engine = carry_out(search(space={"k": Dimension(IntDistribution(1, 2), "1 to 2")}), world, at_once=3)
    trials = engine.journal.trials()
    assert len(trials) == 12
    assert all(t.value == t.params["k"] for t in trials)
    assert world.trained == 2 * STEPS


@pytest.mark.parametrize("name", ["test.loss", "perplexity", "valid."])
def test_promotion_by_a_number_that_no_validation_has_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"{re.escape(name)} is known only when a run has ended: promote by valid.loss"):
        carry_out(search(objectives=(Objective(name),), promotion=Promotion()), World(tmp_path))


def test_a_damaged_journal_is_one_sentence(tmp_path: Path) -> None:
    world = World(tmp_path)
    path = carry_out(search(), world).journal.path
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:9], lines[9][:15] + b"\n", *lines[10:]]))
    with pytest.raises(UserError, match="line 10, is damaged"):
        carry_out(search(), world)
    operation = json.dumps(json.loads(lines[0]) | {"op_code": 99}).encode() + b"\n"
    path.write_bytes(operation)
    with pytest.raises(UserError, match="another version of Optuna"):
        carry_out(search(), world)


def test_another_space_under_the_same_name_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    carry_out(search(), world)
    space = SPACE | {"k": Dimension(IntDistribution(1, 50), "1 to 50")}
    with pytest.raises(UserError, match="its search began with k=1 to 5, not 1 to 50"):
        carry_out(search(space=space), world)


def test_a_number_that_no_run_has_is_named_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no run has the number test\.blue, .* test\.loss"):
        carry_out(search(objectives=(Objective("test.blue"),)), World(tmp_path))


@pytest.mark.parametrize("key", ["budget.warmup_steps", "++budget.warmup_steps"])
@pytest.mark.parametrize(
    "drawn", [{"min": 1, "max": 20}, {"values": [20, 1]}, {"values": [20, 1], "probabilities": [0.5, 0.5]}], ids=str
)
def test_no_rung_comes_before_the_end_of_the_longest_warm_up(key: str, drawn: dict[str, Any], tmp_path: Path) -> None:
    space = SPACE | {key: read_distribution(drawn, key).dimension()}
    with pytest.raises(UserError, match="before the end of a warm-up of 20 steps"):
        carry_out(search(space=space, promotion=Promotion()), World(tmp_path))
