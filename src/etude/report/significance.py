"""An arm against another: every test that the data allows, corrected for how many arms were tested."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from etude.report.arm_scores import ArmScores
from etude.report.statistics import (
    Comparison,
    Prior,
    Resampled,
    Scores,
    approximate_randomisation,
    combined_test,
    equivalence,
    hedges_g,
    holm,
    moderated_test,
    paired_bootstrap,
    pooled_deviation,
    seeds_needed,
    sentence_deviation,
    welch,
)
from etude.studies.metrics import Metric

ALPHA = 0.05  # below it, after Holm, a difference gets its star, and a tie is shown
_PERMUTATIONS = 10_000


@dataclass(frozen=True)
class Difference:
    """What tells an arm from the one it is held against, by one metric.

    Attributes:
        test: with sentences over seeds and sentences (`combined_test`), else over seeds (`moderated_test`); of a metric
            on a logarithmic scale the difference of logarithms, of perplexity nats a token.
        holm: its p after Holm; None where there is no test.
        tie: p of the test that they differ by less than the study's margin (`equivalence`); None where nothing was
            asked or nothing is known.
        bootstrap: over sentences, these very runs given. Known with one seed too, and never worth a star.
        randomisation: p of the same question by exchanging translations; None with unequal numbers of runs.
        hedges_g: in standard deviations of a single run.
        spread: what the difference has to stand out from; None where it is not known.
    """

    test: Comparison
    holm: float | None = None
    tie: float | None = None
    bootstrap: Comparison | None = None
    randomisation: float | None = None
    hedges_g: float | None = None
    spread: "Spread | None" = None

    @property
    def star(self) -> bool:
        """Whether it would show for other seeds, and with sentences also on other sentences."""
        return self.holm is not None and self.holm < ALPHA

    @property
    def tied(self) -> bool:
        """Whether the arms are shown to differ by less than the study's margin."""
        return self.tie is not None and self.tie < ALPHA


@dataclass(frozen=True)
class Against:
    """What tells an arm from the one it is held against.

    Attributes:
        reference: that one's name.
        differences: by metric; not there is what `why_not` says is not to be compared.
        why_not: why metrics are not compared, or sentences not resampled; phrases.
    """

    reference: str
    differences: dict[str, Difference]
    why_not: tuple[str, ...] = ()


def compare_arms(
    reference: str,
    arm: ArmScores,
    base: ArmScores,
    metrics: Mapping[str, Metric],
    priors: Mapping[str, Prior | None],
    margins: Mapping[str, float],
) -> Against:
    """Test one arm against another, not yet corrected for how many are tested.

    Args:
        reference: the other's name.
        arm, base: what is known of both.
        metrics: of the study.
        priors: by metric, what the arms of the study vary by; None where no arm has two seeds.
        margins: by metric, within which scores count as alike, in nats; only of those of which somebody asks.
    """
    found = {}
    for name in metrics:
        if name in arm.of and name in base.of:
            ours, theirs, prior = arm.of[name], base.of[name], priors[name]
            if metrics[name].sentences:
                found[name] = _over_sentences(ours, theirs, arm.sentences, base.sentences)
                continue
            tie = equivalence(ours, theirs, prior, margins[name]) if prior and name in margins else None
            found[name] = Difference(moderated_test(ours, theirs, prior) if prior else welch(ours, theirs), tie=tie)
    return Against(reference, found, tuple(dict.fromkeys((*arm.why_not, *base.why_not))))


def _over_sentences(ours: Scores, theirs: Scores, arm: Resampled | None, base: Resampled | None) -> Difference:
    g = hedges_g(ours, theirs)
    if not (arm and base):
        why = "without the translations of both nobody knows what other sentences would show"
        return Difference(Comparison(ours.mean - theirs.mean, None, None, why), hedges_g=g)
    alike = arm.counts.runs == base.counts.runs
    return Difference(
        combined_test(arm, base),
        bootstrap=paired_bootstrap(arm, base),
        randomisation=approximate_randomisation(arm.counts, base.counts, _PERMUTATIONS) if alike else None,
        hedges_g=g,
        spread=spread_of(ours, theirs, arm, base),
    )


def correct_for_many(found: Mapping[str, Against]) -> dict[str, Against]:
    """The same after Holm over all arms that were tested, each metric for itself."""
    names = {name for against in found.values() for name in against.differences}
    tested = {
        name: {arm: one.differences[name].test.p for arm, one in found.items() if name in one.differences}
        for name in names
    }
    holms = {name: holm({arm: p for arm, p in ps.items() if p is not None}) for name, ps in tested.items()}
    return {
        arm: replace(
            one, differences={name: replace(it, holm=holms[name].get(arm)) for name, it in one.differences.items()}
        )
        for arm, one in found.items()
    }


def seeds_for(difference: float, spreads: Sequence["Spread"]) -> int | None:
    """How many seeds an arm would show a true difference of that size, with a chance of 80 % and among as many arms, if
    it varies as these do; None where no number of them would.

    Raises:
        ValueError: the spread of none is known, or the difference is 0.
    """
    if not spreads:
        raise ValueError("no spread is known")
    of_run = math.sqrt(fmean(spread.of_run**2 for spread in spreads))
    of_test_sets = median(spread.of_test_sets for spread in spreads)
    return seeds_needed(difference, of_run, alpha=ALPHA / len(spreads), test_set=of_test_sets)


@dataclass(frozen=True)
class Spread:
    """What hides a difference between two arms; standard deviations.

    Attributes:
        of_run: of a single run over seeds, as if both arms varied alike.
        of_test_sets: of the difference over test sets, with seeds without end.
    """

    of_run: float
    of_test_sets: float


def spread_of(ours: Scores, theirs: Scores, arm: Resampled, base: Resampled) -> Spread | None:
    """None where an arm has one seed, and where neither varies over seeds."""
    if min(ours.seeds, theirs.seeds) == 1:
        return None
    of_run = pooled_deviation(ours, theirs)
    return Spread(of_run, sentence_deviation(arm, base)) if of_run else None
