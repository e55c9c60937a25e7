"""An arm against another: every test that the data allows, corrected for how many arms were tested."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, median

from etude.report.arm_scores import Measured
from etude.report.statistics import (
    Comparison,
    Prior,
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

ALPHA = 0.05  # below it, after Holm, a difference gets its star, and a tie is shown
_PERMUTATIONS = 10_000


@dataclass(frozen=True)
class Against:
    """What tells an arm from the one it is held against.

    Attributes:
        reference: that one's name.
        bleu: over seeds and sentences (`combined_test`); None where `why_not` says why it is not to be compared.
        bleu_holm: its p after Holm; None where there is no test.
        ppl: of the logarithm of perplexity, in nats a token, over seeds (`moderated_test`); None as well.
        ppl_holm: its p after Holm.
        tie: p of the test that perplexities differ by less than the study's margin (`equivalence`); None where nothing
            was asked or nothing is known.
        bootstrap: of BLEU over sentences, these very runs given. Known with one seed too, and never worth a star.
        randomisation: p of the same question by exchanging translations; None with unequal numbers of runs.
        hedges_g: of BLEU, in standard deviations of a single run.
        spread: what the difference of BLEU has to stand out from; None where it is not known.
        why_not: why BLEU or perplexity are not compared, or sentences not resampled; phrases.
    """

    reference: str
    bleu: Comparison | None
    ppl: Comparison | None
    tie: float | None = None
    bootstrap: Comparison | None = None
    randomisation: float | None = None
    hedges_g: float | None = None
    spread: "Spread | None" = None
    why_not: tuple[str, ...] = ()
    bleu_holm: float | None = None
    ppl_holm: float | None = None

    @property
    def bleu_star(self) -> bool:
        """Whether the difference of BLEU would show for other seeds on other sentences."""
        return self.bleu_holm is not None and self.bleu_holm < ALPHA

    @property
    def ppl_star(self) -> bool:
        """Whether the difference of perplexity would show for other seeds."""
        return self.ppl_holm is not None and self.ppl_holm < ALPHA

    @property
    def tied(self) -> bool:
        """Whether the arms are shown to differ by less than the study's margin."""
        return self.tie is not None and self.tie < ALPHA


def against(reference: str, arm: Measured, base: Measured, prior: Prior | None, margin: float | None) -> Against:
    """The tests of one arm against another, not yet corrected.

    Args:
        reference: the other's name.
        arm, base: what is known of both.
        prior: what the arms of the study vary by; None where no arm has two seeds.
        margin: within which perplexities count as alike, in nats; None where nobody asks.
    """
    why_not = tuple(dict.fromkeys((*arm.why_not, *base.why_not)))
    ppl, tie = None, None
    if arm.loss and base.loss:
        ppl = moderated_test(arm.loss, base.loss, prior) if prior else welch(arm.loss, base.loss)
        tie = equivalence(arm.loss, base.loss, prior, margin) if prior and margin else None
    bleu = welch(arm.bleu, base.bleu) if arm.bleu and base.bleu else None
    found = Against(reference, bleu, ppl, tie, why_not=why_not)
    if not (arm.bleu and base.bleu):
        return found
    found = replace(found, hedges_g=hedges_g(arm.bleu, base.bleu), spread=spread_of(arm, base))
    if not (arm.sentences and base.sentences):
        why = "without the translations of both nobody knows what other sentences would show"
        return replace(found, bleu=Comparison(arm.bleu.mean - base.bleu.mean, None, None, why))
    ours, theirs = arm.sentences, base.sentences
    alike = ours.counts.runs == theirs.counts.runs
    return replace(
        found,
        bleu=combined_test(ours, theirs),
        bootstrap=paired_bootstrap(ours, theirs),
        randomisation=approximate_randomisation(ours.counts, theirs.counts, _PERMUTATIONS) if alike else None,
    )


def corrected(found: Mapping[str, Against]) -> dict[str, Against]:
    """The same after Holm over all arms that were tested, each metric for itself."""
    bleu = holm({arm: one.bleu.p for arm, one in found.items() if one.bleu and one.bleu.p is not None})
    ppl = holm({arm: one.ppl.p for arm, one in found.items() if one.ppl and one.ppl.p is not None})
    return {arm: replace(one, bleu_holm=bleu.get(arm), ppl_holm=ppl.get(arm)) for arm, one in found.items()}


def seeds_for(difference: float, found: Collection[Against]) -> int | None:
    """How many seeds an arm would show a true difference of BLEU of that size, with a chance of 80 % and among as many
    arms, if it varies as these do; None where no number of them would.

    Raises:
        ValueError: the spread of none is known, or the difference is 0.
    """
    spreads = [one.spread for one in found if one.spread]
    if not spreads:
        raise ValueError("no spread is known")
    of_run = math.sqrt(fmean(spread.of_run**2 for spread in spreads))
    of_test_sets = median(spread.of_test_sets for spread in spreads)
    return seeds_needed(difference, of_run, alpha=ALPHA / len(spreads), test_set=of_test_sets)


@dataclass(frozen=True)
class Spread:
    """What hides a difference of BLEU between two arms; standard deviations.

    Attributes:
        of_run: of a single run over seeds, as if both arms varied alike.
        of_test_sets: of the difference over test sets, with seeds without end.
    """

    of_run: float
    of_test_sets: float


def spread_of(arm: Measured, base: Measured) -> Spread | None:
    """None where an arm has one seed, where neither varies over seeds, and where there are no translations."""
    if not (arm.bleu and base.bleu and arm.sentences and base.sentences and min(arm.bleu.seeds, base.bleu.seeds) > 1):
        return None
    of_run = pooled_deviation(arm.bleu, base.bleu)
    if of_run == 0:
        return None
    return Spread(of_run, sentence_deviation(arm.sentences, base.sentences))
