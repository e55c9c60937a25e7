"""An arm against the baseline: every test that the data allows, corrected for how many arms were tested."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, median

from etude.report.measured import Measured
from etude.report.statistics import (
    Comparison,
    approximate_randomisation,
    combined_test,
    hedges_g,
    holm,
    paired_bootstrap,
    pooled_deviation,
    seeds_needed,
    sentence_deviation,
    welch,
)

ALPHA = 0.05  # below it, after Holm, a difference gets its star
_PERMUTATIONS = 10_000


@dataclass(frozen=True)
class Against:
    """What tells an arm from the baseline.

    Attributes:
        bleu: over seeds and sentences (`combined_test`); None where `why_not` says why it is not to be compared.
        bleu_holm: its p after Holm; None where there is no test.
        ppl: over seeds (`welch`); None as well.
        ppl_holm: its p after Holm.
        bootstrap: of BLEU over sentences, these very runs given. Known with one seed too, and never worth a star.
        randomisation: p of the same question by exchanging translations; None with unequal numbers of runs.
        hedges_g: of BLEU, in standard deviations of a single run.
        more_seeds: how many more of both would show the difference of BLEU that was seen, if it is the true one, with a
            chance of 80 % and among this many arms; None where it is seen already, and where nothing is known.
        hidden: whether no number of seeds would, for the test set is too small.
        spread: what the difference of BLEU has to stand out from; None where it is not known.
        why_not: why BLEU or perplexity are not compared, or sentences not resampled; phrases.
    """

    bleu: Comparison | None
    ppl: Comparison | None
    bootstrap: Comparison | None = None
    randomisation: float | None = None
    hedges_g: float | None = None
    why_not: tuple[str, ...] = ()
    bleu_holm: float | None = None
    ppl_holm: float | None = None
    more_seeds: int | None = None
    hidden: bool = False
    spread: "Spread | None" = None

    @property
    def bleu_star(self) -> bool:
        """Whether the difference of BLEU would show for other seeds on other sentences."""
        return self.bleu_holm is not None and self.bleu_holm < ALPHA

    @property
    def ppl_star(self) -> bool:
        """Whether the difference of perplexity would show for other seeds."""
        return self.ppl_holm is not None and self.ppl_holm < ALPHA


def against(arm: Measured, base: Measured) -> Against:
    """The tests of one arm, not yet corrected."""
    why_not = tuple(dict.fromkeys((*arm.why_not, *base.why_not)))
    bleu = welch(arm.bleu, base.bleu) if arm.bleu and base.bleu else None
    ppl = welch(arm.ppl, base.ppl) if arm.ppl and base.ppl else None
    effect = hedges_g(arm.bleu, base.bleu) if arm.bleu and base.bleu else None
    if bleu and not (arm.sentences and base.sentences):
        why = "without the translations of both nobody knows what other sentences would show"
        bleu = Comparison(bleu.difference, None, None, why)
    if not (bleu and arm.sentences and base.sentences):
        return Against(bleu, ppl, hedges_g=effect, why_not=why_not)
    ours, theirs = arm.sentences, base.sentences
    alike = ours.counts.runs == theirs.counts.runs
    return Against(
        combined_test(ours, theirs),
        ppl,
        bootstrap=paired_bootstrap(ours, theirs),
        randomisation=approximate_randomisation(ours.counts, theirs.counts, _PERMUTATIONS) if alike else None,
        hedges_g=effect,
        why_not=why_not,
    )


def corrected(found: Mapping[str, Against], arms: Mapping[str, Measured], base: Measured) -> dict[str, Against]:
    """The same after Holm over all arms that were tested, each metric for itself; and how many seeds are missing."""
    bleu = holm({arm: one.bleu.p for arm, one in found.items() if one.bleu and one.bleu.p is not None})
    ppl = holm({arm: one.ppl.p for arm, one in found.items() if one.ppl and one.ppl.p is not None})
    done = {arm: replace(one, bleu_holm=bleu.get(arm), ppl_holm=ppl.get(arm)) for arm, one in found.items()}
    return {arm: _with_more_seeds(one, arms[arm], base, len(bleu)) for arm, one in done.items()}


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


def _with_more_seeds(found: Against, arm: Measured, base: Measured, tested: int) -> Against:
    """At α over the number of arms, which is what Holm asks of the clearest of them."""
    spread = spread_of(arm, base)
    found = replace(found, spread=spread)
    if found.bleu is None or found.bleu_holm is None or found.bleu_star or spread is None:
        return found
    if math.isclose(found.bleu.difference, 0, abs_tol=1e-9):
        return found
    needed = seeds_needed(found.bleu.difference, spread.of_run, alpha=ALPHA / tested, test_set=spread.of_test_sets)
    if needed is None:
        return replace(found, hidden=True)
    return replace(found, more_seeds=max(1, needed - min(spread.seeds)))


@dataclass(frozen=True)
class Spread:
    """What hides a difference of BLEU between two arms; standard deviations.

    Attributes:
        of_run: of a single run over seeds, as if both arms varied alike.
        of_test_sets: of the difference over test sets, with seeds without end.
        seeds: how many each arm has.
    """

    of_run: float
    of_test_sets: float
    seeds: tuple[int, int]


def spread_of(arm: Measured, base: Measured) -> Spread | None:
    """None where an arm has one seed, where neither varies over seeds, and where there are no translations."""
    if not (arm.bleu and base.bleu and arm.sentences and base.sentences and min(arm.bleu.seeds, base.bleu.seeds) > 1):
        return None
    of_run = pooled_deviation(arm.bleu, base.bleu)
    if of_run == 0:
        return None
    return Spread(of_run, sentence_deviation(arm.sentences, base.sentences), (arm.bleu.seeds, base.bleu.seeds))
