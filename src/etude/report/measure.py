"""What runs were tested on, and which of their scores may thus stand beside each other's; why the others may not."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from etude.data.lines import read_lines
from etude.errors import UserError
from etude.report.statistics import Counts, Resampled, Scores, count, resample
from etude.runs.records import Run
from etude.studies.metrics import Metric
from etude.studies.study import value_at

_AGREEMENT = 0.01  # points of BLEU; what is scored twice gives the same, but for versions


@dataclass(frozen=True)
class TestSet:
    """What `run` was tested on, and with it all that is compared.

    `sources` and `references` are a line a sentence; empty where no run has kept them.
    """

    __test__ = False  # no test of pytest's

    run: Run
    sources: list[str]
    references: list[str]

    @property
    def sentences(self) -> int:
        """How many."""
        return int(self.run.score("test.sentences") or 0)


def test_set(run: Run, runs: Iterable[Run]) -> TestSet:
    """What `run` was tested on; where it has not kept the text itself, one of `runs` with the same store may have."""
    same = [run, *(other for other in runs if _store(run) and _store(other) == _store(run))]
    sentences = TestSet(run, [], []).sentences
    sources = _read_first((other.run_dir.sources_file("test") for other in same), sentences)
    references = _read_first((other.run_dir.references_file("test") for other in same), sentences)
    return TestSet(run, sources, references)


def _read_first(files: Iterable[Path], sentences: int) -> list[str]:
    """What the first file holds that holds so many lines; one that is damaged does not spoil the others."""
    for file in files:
        with suppress(UserError):
            if len(found := _lines(file)) == sentences:
                return found
    return []


def _lines(file: Path) -> list[str]:
    """The lines of a file, none where there is no such file; UserError where it is empty or not UTF-8."""
    return list(read_lines(file)) if file.is_file() else []


def _store(run: Run) -> str:
    """The address of the text as numbers; runs with the same one count the same subwords."""
    return str(run.result.get("store", ""))


def measure_arm(
    metrics: Collection[Metric], arm: str, runs: Sequence[Run], base: TestSet
) -> tuple[dict[str, Scores], Resampled | None, list[str]]:
    """The scores and sentences of an arm that can be compared with what was tested on `base`, and why others cannot.

    All its runs have finite metrics; see `ArmResult` for what they give.
    """
    found, reasons, sentences = {}, [], None
    for metric in metrics if runs else ():
        if why := _reason({run.seed: _why_not(run, base, metric) for run in runs}):
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
    """One metric of each run, on its own scale; None where a run was not measured."""
    found = [score for run in runs if (score := run.score(metric.key)) is not None]
    return found if len(found) == len(runs) else None


def _reason(by_seed: Mapping[int, str]) -> str:
    """The first there is, with the seeds that have one where others have none."""
    found = {seed: why for seed, why in by_seed.items() if why}
    seeds = "" if len(found) == len(by_seed) else f" (seed {', '.join(map(str, found))})"
    return next(iter(found.values())) + seeds if found else ""


def _why_not(run: Run, base: TestSet, metric: Metric) -> str:
    """Why the score of a run cannot be compared with the baseline's; nothing where it can."""
    if run.score(metric.key) is None:
        return f"{metric.label} was not measured"
    same_store = _store(run) == _store(base.run)
    if metric.over == "tokens":
        return "" if same_store else "its perplexity is over other text or other subwords"
    ours, theirs = (value_at(one.result, metric.signature) for one in (run, base.run))
    if ours != theirs:
        return f"its {metric.scorer} signature is {ours}, the baseline's {theirs}"
    sentences = value_at(run.result, "test.sentences")
    if sentences != base.sentences:
        return f"it was tested on {sentences:,} sentences, the baseline on {base.sentences:,}"
    try:
        own = _lines(run.run_dir.references_file("test"))
    except UserError as error:
        return str(error)
    if own and base.references:
        return "" if own == base.references else "its references are not the baseline's"
    return (
        "" if _store(run) == _store(base.run) else "it met another text than the baseline, and one kept no references"
    )


def _counts(arm: str, runs: Sequence[Run], base: TestSet, metric: Metric) -> Counts:
    """What each sentence brings to the BLEU of each run.

    Raises:
        UserError: the text was not kept, or is not what the results were computed from.
    """
    if not base.references:
        raise UserError("no references lie beside the runs, so that nothing can be said of other sentences")
    counts = count(arm, [translations(run, base) for run in runs], base.references)
    for run, scored in zip(runs, counts.bleu, strict=True):
        kept = value_at(run.result, metric.key)
        if not math.isclose(scored, kept, abs_tol=_AGREEMENT):
            path = run.run_dir.path
            raise UserError(f"the translations in {path} score {scored:.2f} BLEU, where its result says {kept:.2f}")
    return counts


def translations(run: Run, base: TestSet) -> list[str]:
    """The hypotheses of a run, a line a sentence of the test set.

    Raises:
        UserError: they are missing, or are not what the result of the run was computed from.
    """
    file = run.run_dir.hypotheses_file("test")
    found = _lines(file)
    if len(found) != base.sentences:
        raise UserError(f"{file} has {len(found):,} lines for {base.sentences:,} references")
    return found
