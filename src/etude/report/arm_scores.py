"""The runs of one arm as the statistics take them, and why some of them cannot be had."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from etude.errors import UserError
from etude.report.statistics import Counts, Resampled, Scores, count, resample
from etude.report.test_set import TestSet, other_pieces, other_test_set, translations
from etude.runs.records import Run
from etude.studies.study import value_at

_AGREEMENT = 0.01  # points of BLEU; what is scored twice gives the same, but for versions


@dataclass(frozen=True)
class Measured:
    """What of an arm may be held against the baseline.

    Attributes:
        loss: the logarithm of the perplexity of its runs, in nats a token, in which perplexities are compared; None
            where they met other text or other word pieces.
        bleu: of its runs; None where they were tested on something else, or otherwise.
        sentences: their translations on resampled test sets; None where they cannot be had.
        why_not: why something is None; phrases.
    """

    loss: Scores | None
    bleu: Scores | None
    sentences: Resampled | None
    why_not: tuple[str, ...] = ()


def measure(arm: str, runs: Sequence[Run], base: TestSet) -> Measured:
    """The runs of an arm, all with finite metrics, as far as they can be compared with what was tested on `base`."""
    pieces = _reason({run.seed: other_pieces(run, base) for run in runs})
    try:
        other = _reason({run.seed: other_test_set(run, base) for run in runs})
    except UserError as error:
        other = str(error)
    loss = None if pieces else Scores(arm, [math.log(value) for value in scores(runs, "test.perplexity")])
    if other:
        return Measured(loss, None, None, (other,))
    why_not = (pieces,) if pieces else ()
    bleu = Scores(arm, scores(runs, "test.bleu"))
    try:
        return Measured(loss, bleu, resample(_counts(arm, runs, base)), why_not)
    except UserError as error:
        return Measured(loss, bleu, None, (*why_not, str(error)))


def scores(runs: Sequence[Run], key: str) -> list[float]:
    """One metric of each run."""
    return [float(value_at(run.result, key)) for run in runs]


def comparable(measured: Measured | None) -> frozenset[str]:
    """Which of "ppl" and "bleu" may be set beside the baseline's."""
    held = {"ppl": measured.loss, "bleu": measured.bleu} if measured else {}
    return frozenset(metric for metric, its in held.items() if its)


def _reason(by_seed: Mapping[int, str]) -> str:
    """The first there is, with the seeds that have one where others have none."""
    found = {seed: why for seed, why in by_seed.items() if why}
    seeds = "" if len(found) == len(by_seed) else f" (seed {', '.join(map(str, found))})"
    return next(iter(found.values())) + seeds if found else ""


def _counts(arm: str, runs: Sequence[Run], base: TestSet) -> Counts:
    """What each sentence brings to the BLEU of each run.

    Raises:
        UserError: the text was not kept, or is not what the results were computed from.
    """
    if not base.references:
        raise UserError("no references lie beside the runs, so that nothing can be said of other sentences")
    counts = count(arm, [translations(run, base) for run in runs], base.references)
    for run, scored in zip(runs, counts.bleu, strict=True):
        told = value_at(run.result, "test.bleu")
        if not math.isclose(scored, told, abs_tol=_AGREEMENT):
            path = run.run_dir.path
            raise UserError(f"the translations in {path} score {scored:.2f} BLEU, where its result says {told:.2f}")
    return counts
