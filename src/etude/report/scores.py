"""Find which scores of runs are comparable, given what the runs were tested on, and why the others are not."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from etude.data.lines import read_lines
from etude.errors import UserError
from etude.report.statistics import Counts, Resampled, Scores, count, resample
from etude.store.records import Run
from etude.study.metrics import Metric
from etude.study.study import value_at
from etude.tasks.bleu import options_of

_LARGEST = 1e150  # whose square is a float
_AGREEMENT = 0.01  # BLEU points; scoring the same translations again gives the same, unless the versions differ


@dataclass(frozen=True)
class TestSet:
    """The test set of `run`, which all compared runs must share.

    `sources` and `references` have one line per sentence; they are empty if no run has kept them.
    """

    __test__ = False  # so that pytest does not collect this class

    run: Run
    sources: list[str]
    references: list[str]

    @property
    def sentences(self) -> int:
        """The number of sentences."""
        return int(self.run.score("test.sentences") or 0)


def test_set(run: Run, runs: Iterable[Run]) -> TestSet:
    """Read the test set of `run`; if it has not kept the text, from one of `runs` with the same token store."""
    same = [run, *(other for other in runs if _store(run) and _store(other) == _store(run))]
    sentences = TestSet(run, [], []).sentences
    sources = _read_first((other.run_dir.sources_file for other in same), sentences)
    references = _read_first((other.run_dir.references_file for other in same), sentences)
    return TestSet(run, sources, references)


def _read_first(files: Iterable[Path], sentences: int) -> list[str]:
    """Read the first file that has so many lines; damaged files are skipped."""
    for file in files:
        with suppress(UserError):
            if len(found := _lines(file)) == sentences:
                return found
    return []


def _lines(file: Path) -> list[str]:
    """Read the lines of a file; none if there is no such file; UserError if it is empty or not UTF-8."""
    return list(read_lines(file)) if file.is_file() else []


def _store(run: Run) -> str:
    """Return the name of the token store of a run; runs with the same store count the same subwords."""
    return str(run.result.get("store", ""))


def measure_arm(
    metrics: Collection[Metric], arm: str, runs: Sequence[Run], base: TestSet
) -> tuple[dict[str, Scores], Resampled | None, list[str]]:
    """Collect the scores and sentences of an arm that are comparable on the test set `base`.

    All `runs` must have finite metrics.

    Returns:
        `scores`, `sentences` and `why_not` of an `ArmResult`.
    """
    found, reasons, sentences = {}, [], None
    for metric in metrics if runs else ():
        if why := _first_reason({run.seed: _why_not(run, base, metric) for run in runs}):
            reasons.append(why)
        elif values := scores(runs, metric):
            found[metric.name] = Scores(arm, [math.log(value) for value in values] if metric.is_log else values)
    if scored := next((one for one in metrics if one.sentences and one.name in found), None):
        try:
            sentences = resample(_counts(arm, runs, base, scored))
        except UserError as error:
            reasons.append(str(error))
    return found, sentences, list(dict.fromkeys(reasons))


def scores(runs: Sequence[Run], metric: Metric) -> list[float] | None:
    """Return one metric of each run, on its own scale; None if a run lacks it, or has a value that is not finite."""
    found = [score for run in runs if (score := run.score(metric.key)) is not None and math.isfinite(score)]
    return found if len(found) == len(runs) else None


def _first_reason(by_seed: Mapping[int, str]) -> str:
    """Return the first reason that is not empty; if only some seeds have one, with these seeds."""
    found = {seed: why for seed, why in by_seed.items() if why}
    seeds = "" if len(found) == len(by_seed) else f" (seed {', '.join(map(str, found))})"
    return next(iter(found.values())) + seeds if found else ""


def _why_not(run: Run, base: TestSet, metric: Metric) -> str:
    """Say why the score of a run is not comparable with those on the test set `base`; an empty string if it is."""
    score = run.score(metric.key)
    if score is None:
        return f"{metric.label} was not measured"
    if not math.isfinite(score) or (abs(score) > _LARGEST and not metric.is_log):
        return f"its {metric.label} is {score:g}"
    if metric.is_log and score <= 0:
        return f"its {metric.label} is {score:g}, which has no logarithm"
    same_store = _store(run) == _store(base.run)
    if metric.over == "tokens":
        return "" if same_store else "its perplexity is over other text or other subwords"
    ours, theirs = (value_at(one.result, metric.signature) for one in (run, base.run))
    if ours != theirs:
        return f"its {metric.scorer} signature is {ours}, {base.run.arm}'s {theirs}"
    sentences = int(run.score("test.sentences") or 0)
    if sentences != base.sentences:
        return f"it was tested on {sentences:,} sentences, {base.run.arm} on {base.sentences:,}"
    try:
        own = _lines(run.run_dir.references_file)
    except UserError as error:
        return str(error)
    if own and base.references:
        return "" if own == base.references else f"its references are not {base.run.arm}'s"
    # A task that generates no text keeps none: its bits per byte compare tokenizers all the same.
    return (
        ""
        if same_store or (run.text and run.text == base.run.text)
        else f"tested on another text than {base.run.arm}, and one kept no references"
    )


def _counts(arm: str, runs: Sequence[Run], base: TestSet, metric: Metric) -> Counts:
    """Compute the BLEU statistics of each sentence and run.

    Raises:
        UserError: translations or references were not kept, or they do not give the BLEU of the result.
    """
    if not base.references:
        raise UserError("the runs have no references.test.txt, so that nothing can be said of other sentences")
    options = options_of(value_at(base.run.result, metric.signature))
    counts = count(arm, [translations(run, base) for run in runs], base.references, **options)
    for run, scored in zip(runs, counts.bleu, strict=True):
        kept = value_at(run.result, metric.key)
        if not math.isclose(scored, kept, abs_tol=_AGREEMENT):
            path = run.run_dir.path
            raise UserError(f"the translations in {path} score {scored:.2f} BLEU, where its result says {kept:.2f}")
    return counts


def translations(run: Run, base: TestSet) -> list[str]:
    """Read the hypotheses of a run, one line per sentence of the test set.

    Raises:
        UserError: they are missing, or their number differs from the test set's.
    """
    file = run.run_dir.hypotheses_file
    found = _lines(file)
    if len(found) != base.sentences:
        raise UserError(f"{file} has {len(found):,} lines for {base.sentences:,} references")
    return found
