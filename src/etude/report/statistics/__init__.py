"""The statistics of comparison: numbers in, numbers out; no run directories, no torch.

Which question each answers, of arms that were trained with some seeds and tested on some sentences:

- How good is this arm? `mean_interval`: Student's t over its seeds.
- Is it better than base, for other seeds on other sentences? `combined_test`. **Stars hang on this one**, after `holm`
  over the arms of a study, for it is the only one here that holds its level against both kinds of luck, from two seeds
  on.
- Is it, for other seeds on these sentences? Perplexity, which has no sentences to resample, is compared in nats by
  `moderated_test`, which sees with three seeds what `welch` cannot; stars hang on it after `holm`. Are two arms alike,
  as far as anyone would care? `equivalence`. By how many standard deviations of a run do they differ? `hedges_g`.
- Is it, for these very runs on other sentences? `paired_bootstrap`, `approximate_randomisation`.
- Which luck is larger, the seed's or the test set's? `variances`.
- How many seeds would it take? `seeds_needed`, with `pooled_deviation`; `power` the other way round.
- What does a search find in n trials? `expected_best`.
- Do our arms stand in the paper's order? `spearman`, `kendall`. Do they differ by as much? `fit_line`.

Scores of one metric enter as `Scores`; translations as `Counts`, which `count` makes, and resampled once an arm by
`resample`. What cannot be known, as with one seed, is None and comes with its reason; what should not be asked is
refused by name.
"""

from etude.report.statistics.combined import Variances, combined_test, sentence_deviation, variances
from etude.report.statistics.correlation import Line, RankCorrelation, fit_line, kendall, spearman
from etude.report.statistics.difference import Comparison, hedges_g, holm, pooled_deviation, welch
from etude.report.statistics.moderated import Prior, equivalence, moderate, moderated_test
from etude.report.statistics.planning import ExpectedBest, expected_best, power, seeds_needed
from etude.report.statistics.scores import Interval, Mean, Scores, mean_interval
from etude.report.statistics.sentences import (
    Counts,
    Resampled,
    approximate_randomisation,
    count,
    paired_bootstrap,
    resample,
)
