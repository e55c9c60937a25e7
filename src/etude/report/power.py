"""How many seeds a study needs to find a difference, from the spread of runs that are finished."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf, sqrt
from pathlib import Path
from statistics import fmean, median

from etude.errors import UserError
from etude.paths import find_file
from etude.report import Results, results, results_of_csv
from etude.report import statistics as st
from etude.report.comparison import ALPHA
from etude.report.significance_notes import differences_of
from etude.store.metrics_file import to_number
from etude.store.records import studies_in
from etude.study.metrics import Metric
from etude.study.study import Study, study_names

POWER = 0.8


@dataclass(frozen=True)
class Noise:
    """How much the metric that decides varies, as standard deviations, and from which runs that is known."""

    of_run: float
    of_test_sets: float  # of the difference of two arms; 0 for a metric without sentences
    runs: int
    study: str


def find_noise(study: Study, runs_dir: Path, where: Mapping[str, str]) -> Noise | None:
    """Find the spread over seeds in a setting: of the study's runs, of another study's, or of those that are recorded.

    Returns:
        None if no arm anywhere has two seeds that differ.
    """
    others = [name for name in studies_in(runs_dir)[0] if name != study.name] if runs_dir.is_dir() else []
    setting = dict(where)
    for name in (study.name, *others):
        with suppress(UserError):
            found = results(name, runs_dir, setting)
            if noise := _noise(study.headline, found):
                return noise
    for name in dict.fromkeys([study.name, *study_names()]):
        record = find_file("experiments", f"{name}/record.csv")
        with suppress(UserError):
            if record.is_file() and (noise := _noise(study.headline, results_of_csv(record, name, setting))):
                return noise
    return None


def _noise(metric: Metric, found: Results) -> Noise | None:
    compared = found.compare()
    arms = [arm for arm in compared.arms if metric.name in arm.scores]
    prior = st.moderate([arm.scores[metric.name] for arm in arms])
    if prior is None or compared.study.metrics.get(metric.name) != metric:
        return None
    spreads = [one.spread for one in differences_of(compared, metric).values() if one.spread]
    of_run = sqrt(fmean(one.of_run**2 for one in spreads)) if spreads else sqrt(prior.variance)
    of_test_sets = median(one.of_test_sets for one in spreads) if spreads else 0.0
    return Noise(of_run, of_test_sets, sum(len(arm.runs) for arm in arms), compared.study.name)


def seeds_for(study: Study, noise: Noise, difference: float) -> int | None:
    """Compute how many seeds an arm find a true difference with a power of 80 %, two-sided, after Holm for all arms.

    Returns:
        None if the test set is so small that no number does.
    """
    comparisons = max(1, len(study.arms) - 1)
    return st.seeds_needed(difference, noise.of_run, POWER, ALPHA / comparisons, noise.of_test_sets)


def read_difference(text: str) -> float:
    """Read the difference that is to be found, as it is typed.

    Raises:
        UserError: it is not a number above 0.
    """
    if not 0 < (value := to_number(text)) < inf:
        raise UserError(f"detect={text}: say how large a difference shall be found, such as detect=0.02")
    return value


def on_detection(study: Study, noise: Noise | None, difference: float, hours: str, seeds: int | None) -> str:
    """Say how many seeds find a difference, what they cost, and how that is known."""
    metric = study.headline
    unit = f"nats{' a token' * (metric.over == 'tokens')}" if metric.is_log else metric.label
    what = f"a difference of {difference:g} {unit}" + f" in {metric.compared_label}" * metric.is_log
    if noise is None:
        return (
            f"How many seeds find {what} is not known: no runs of this setting tell how far a seed falls from another; "
            f"`etude sweep {study.name} seed=1,2,3` makes some."
        )
    digits = 4 if metric.is_log else metric.digits + 1
    known = f"a seed varies by {noise.of_run:.{digits}f} ({noise.runs} runs of {noise.study})"
    if seeds is None and not noise.of_test_sets:
        return f"To find {what} takes more than a billion seeds an arm; {known}."
    if seeds is None:
        alone = f"{noise.of_test_sets:.{digits}f}"
        return f"No number of seeds finds {what}: the test set alone lets it vary by {alone}; {known}."
    many = len(study.arms) - 1
    correction = f", corrected for {many} arms" * (many > 1)
    return (
        f"To find {what} with a power of {POWER:.0%} (two-sided, {ALPHA:.0%}{correction}): {seeds:,} seeds an arm, "
        f"{seeds * len(study.arms):,} runs, about {hours} hours; {known}."
    )
