"""The runs of one arm as the statistics take them, and why some of them cannot be had."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from etude.errors import UserError
from etude.report.statistics import Counts, Resampled, Scores, count, resample
from etude.report.test_set import TestSet, other_pieces, other_signature, other_text, translations
from etude.runs.records import Run
from etude.studies.metrics import Metric
from etude.studies.study import value_at

_AGREEMENT = 0.01  # points of BLEU; what is scored twice gives the same, but for versions


@dataclass(frozen=True)
class ArmScores:
    """What of an arm may be held against the baseline.

    Attributes:
        of: the scores of its runs by metric, on the scale on which they are compared: the logarithm of a perplexity,
            in nats a token. Not there is what was measured on something else, or otherwise.
        sentences: their translations on resampled test sets; None where they cannot be had, or no metric asks for them.
        why_not: why something is missing; phrases.
    """

    of: dict[str, Scores]
    sentences: Resampled | None
    why_not: tuple[str, ...] = ()


def measure_arm(metrics: Collection[Metric], arm: str, runs: Sequence[Run], base: TestSet) -> ArmScores:
    """The runs of an arm, all with finite metrics, as far as they can be compared with what was tested on `base`."""
    try:
        text = _reason({run.seed: other_text(run, base) for run in runs})
    except UserError as error:
        text = str(error)
    pieces = _reason({run.seed: other_pieces(run, base) for run in runs})
    found, reasons = {}, []
    for metric in metrics:
        values = scores(runs, metric)
        if values is None:
            why = _reason({run.seed: _not_measured(run, metric) for run in runs})
        elif metric.over == "tokens":
            why = pieces
        else:
            why = _reason({run.seed: other_signature(run, base, metric) for run in runs}) or text
        if why:
            reasons.append(why)
        elif values:
            found[metric.name] = Scores(arm, [math.log(value) for value in values] if metric.is_log else values)
    sentences = None
    if scored := next((one for one in metrics if one.sentences and one.name in found), None):
        try:
            sentences = resample(_counts(arm, runs, base, scored))
        except UserError as error:
            reasons.append(str(error))
    return ArmScores(found, sentences, tuple(dict.fromkeys(reasons)))


def scores(runs: Sequence[Run], metric: Metric) -> list[float] | None:
    """One metric of each run, on its own scale; None where a run was not measured."""
    found = [score for run in runs if (score := run.score(metric.key)) is not None]
    return found if len(found) == len(runs) else None


def _not_measured(run: Run, metric: Metric) -> str:
    return "" if run.score(metric.key) is not None else f"{metric.label} was not measured"


def _reason(by_seed: Mapping[int, str]) -> str:
    """The first there is, with the seeds that have one where others have none."""
    found = {seed: why for seed, why in by_seed.items() if why}
    seeds = "" if len(found) == len(by_seed) else f" (seed {', '.join(map(str, found))})"
    return next(iter(found.values())) + seeds if found else ""


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
