"""Select the runs of a study that may be averaged in one table: runs of one setting."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from etude.errors import UserError, did_you_mean
from etude.report.grouping import by_setting, newest_configs, with_settings
from etude.report.tuned import Readings, separate_trials, tuned_values
from etude.report.wording import format_count
from etude.store.records import Run
from etude.store.run_state import State
from etude.study.study import Study
from etude.terminal import format_value


@dataclass(frozen=True)
class Selection:
    """The runs of one table, all of one setting, and what was left out."""

    runs: list[Run]  # finished, the baseline's first; runs of one arm differ only in their seeds
    unfinished: list[Run]  # runs of the same setting that have begun
    notes: list[str]  # sentences on what was left out
    best: list[Run] = field(default_factory=list)  # runs with each arm at its own best value, if anything was tuned
    readings: Readings = field(default_factory=Readings)


def select(study: Study, runs: Sequence[Run], where: Mapping[str, str], unreadable: Sequence[str] = ()) -> Selection:
    """Select the runs of one setting.

    Of several settings that match `where`, one with other seeds than pilots wins, then the one with the most arms, then
    the one with the fewest overrides, then the one with the newest run.

    Args:
        study: the study of the runs.
        runs: all runs of the study, at least one of them finished.
        where: what the setting must be, such as {"scale": "pocket"}. A key that the arms change must have this value
            in the baseline. {"seed": "11,12,13"} leaves out all other seeds, such as pilot runs; {"text": "0123abcd"}
            runs on other texts, by the first digits of the fingerprint in their text.txt.
        unreadable: sentences on runs that could not be read; they are added to the notes.

    Raises:
        UserError: no finished run matches `where`.
    """
    if key := next((key for key in ("arm", "arms") if key in where), ""):
        raise UserError(f"{key}={where[key]}: a table holds every arm that there is; leave it out")
    seeds: set[int] = set()
    seeds_left_out: list[str] = []
    if "seed" in where:
        seeds = _read_seeds(where["seed"])
        runs, seeds_left_out = _filter_seeds(study, runs, seeds)
    if "text" in where:
        runs = [run for run in runs if run.text.startswith(where["text"] or "-")]
        if not any(run.finished for run in runs):
            raise UserError(f"no finished run has text={where['text']}: text.txt of a run holds its fingerprint")
    runs = with_settings(study, runs)
    where = {key: value for key, value in where.items() if key not in ("seed", "text")}
    asked = {key: value for key, value in where.items() if key not in study.tune}
    groups = by_setting(run for run in sorted(runs, key=lambda run: run.arm != study.baseline) if run.finished)
    fitting = [group for group in groups if all(group[0].chosen(key) == value for key, value in asked.items())]
    if not fitting:
        raise UserError(_explain_no_fit([group[0] for group in groups], asked))
    if seeds:
        fitting = [group for group in fitting if any(run.seed in seeds for run in group)]
        if not fitting:
            those = " ".join(f"{key}={value}" for key, value in asked.items())
            raise UserError(f"no finished run has seed={_join(seeds)} and {those} at once")

    def preference(group: Sequence[Run]) -> tuple[bool, int, int, float]:
        is_judged = any(run.seed not in study.pilots for run in group)
        arms = {run.arm for run in group}
        overrides = group[0].setting.keys() & group[0].typed.keys()
        return is_judged, len(arms), -len(overrides), max(run.changed for run in group)

    best = max(fitting, key=preference)
    setting = best[0].setting
    shown = {run.run_dir for run in best}  # a run may be of several settings
    others = ([run for run in group if run.run_dir not in shown] for group in groups)
    notes = [_explain_left_out(group, setting) for group in others if group]
    begun = [run for run in runs if not run.finished and run.setting == setting]
    stopped = [run for run in begun if run.state in (State.PAUSED, State.PRUNED)]
    readings = separate_trials(study, best, {key: where[key] for key in study.tune if key in where}, stopped)
    if not readings.shared:
        raise UserError(_explain_no_fit(best, where))
    chosen, left = newest_configs(study, readings.shared)
    suited, tuned_left = newest_configs(study, readings.best)
    notes += [*dict.fromkeys([*left, *tuned_left]), *readings.notes, *seeds_left_out, *unreadable]
    judged = [run for run in begun if run.seed not in readings.pilots]
    unfinished = _choose_unfinished(study, judged, [*chosen, *suited])
    return Selection(chosen, unfinished, notes, suited, readings)


def _choose_unfinished(study: Study, begun: Sequence[Run], shown: Sequence[Run]) -> list[Run]:
    """Choose the unfinished runs that belong to the table: those with the config of the runs that it shows.

    So runs from before or after an edit of a YAML file are left out. If an arm has no run to show, the config of its
    newest unfinished run counts.
    """
    by_age = sorted([*begun, *shown], key=lambda run: (run.finished, run.changed))
    newest = {(run.arm, tuned_values(study, run)): run for run in by_age}
    return [run for run in begun if run.differs_only_in_seed(newest[run.arm, tuned_values(study, run)])]


def _read_seeds(asked: str) -> set[int]:
    """Read seeds as the user types them: "11,12,13"."""
    words = asked.split(",")
    if not all(word.isdecimal() for word in words):
        raise UserError(f"seed={asked}: name the seeds that the table shall hold, such as seed=11,12,13")
    return {int(word) for word in words}


def _join(seeds: Iterable[int]) -> str:
    return ",".join(map(str, sorted(seeds)))


def _filter_seeds(study: Study, runs: Sequence[Run], seeds: Set[int]) -> tuple[list[Run], list[str]]:
    """Return the runs of the `seeds` that were asked for, and a sentence on the others.

    Runs on pilot seeds are kept unless one of these is asked for.
    """
    trials = set() if seeds & set(study.pilots) else set(study.pilots)  # needed to find each arm's best value
    kept = [run for run in runs if run.seed in seeds | trials]
    if not any(run.finished and run.seed in seeds for run in kept):
        there = ", ".join(str(seed) for seed in sorted({run.seed for run in runs if run.finished}))
        raise UserError(f"no finished run has seed={_join(seeds)}; there are {there}")
    others = sum(run.finished for run in runs) - sum(run.finished for run in kept)
    return kept, [f"Left out, as asked: {format_count(others)} of other seeds than {_join(seeds)}."] if others else []


def _explain_no_fit(runs: Sequence[Run], where: Mapping[str, str]) -> str:
    for key, value in where.items():
        there = {run.chosen(key) for run in runs}
        if key == "tuned":
            return f"{key}={value} is for `etude sweep`; a report shows each arm at its best by itself: leave it out"
        if there == {format_value(None)}:
            known = {name for run in runs for name in (*run.setting, *run.config.get("choices", {}))}
            return f"{key}={value}: the runs know no {key}; {did_you_mean(key, known)}"
        if value not in there:
            return f"no finished run has {key}={value}; {did_you_mean(value, there)}"
    return f"no finished run has {' and '.join(f'{key}={value}' for key, value in where.items())} at once"


def _explain_left_out(group: Sequence[Run], setting: Mapping[str, str]) -> str:
    theirs = group[0].setting
    other = [f"{key}={theirs[key]}" for key in sorted(theirs) if theirs[key] != setting.get(key)]
    if other:
        return f"Left out: {format_count(len(group))} of another setting: say {' '.join(other)} to see them."
    missing = [f"{key}={setting[key]}" for key in sorted(setting) if key not in theirs]
    return f"Left out: {format_count(len(group))} without {' '.join(missing)}."
