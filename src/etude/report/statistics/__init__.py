"""Statistical tests for comparing arms. The functions take numbers and return numbers; they need no torch and no runs.

The question that each function answers, about arms trained with several seeds and tested on one test set:

- How good is an arm? `mean_interval`: Student's t over its seeds.
- Is it better than the baseline, for other seeds and other sentences? `combined_test`. **This test decides the stars of
  BLEU**, after `holm` over the arms of a study: of the tests here, only this one keeps its level against the variance
  of seeds and of sentences together, from two seeds on.
- Is it better, for other seeds on the same sentences? `moderated_test`, in nats for perplexity, which has no
  sentences to resample. With three seeds it has more power than `welch`. After `holm` it decides the stars.
- Is it better than another decoding of the same trainings? `paired_test`; for BLEU `combined_test` with `shared`.
- What do two changes do together, in a grid of several? `fit_effects`.
- Are two arms equal within a margin? `equivalence`.
- And if one looks after each seed, and stops when it is decided? `nominal_levels`.
- By how many standard deviations of a run do they differ? `hedges_g`.
- Is it better, for the same runs on other sentences? `paired_bootstrap`, `approximate_randomisation`.
- Which variance is larger, over seeds or over test sets? `variances`.
- How many seeds are needed? `seeds_needed`, with `pooled_deviation`; `power` for a given number of seeds.
- What is the best of n trials of a search? `expected_best`. How much of it is luck? `best_of`. What would twice as many
  change? `best_of_twice`, `other_order_in_half`.
- Will it hold when the model grows? `fit_laws` and `fit_curve` of a ladder of sizes; `judge` says how often such
  predictions came true.
- Do our arms have the paper's order? `spearman`, `kendall`. Do they differ by as much? `fit_line`.

Scores of one metric are given as `Scores`; translations as `Counts` (made by `count`), resampled once per arm by
`resample`. A result that is unknown, for example with one seed, is None and comes with a reason. Invalid input raises
an error.
"""

from etude.report.statistics.combined import Variances, combined_test, sentence_deviation, variances
from etude.report.statistics.correlation import Line, RankCorrelation, fit_line, kendall, spearman
from etude.report.statistics.difference import (
    Comparison,
    hedges_g,
    holm,
    paired_test,
    pooled,
    pooled_deviation,
    t_test,
    welch,
)
from etude.report.statistics.factorial import Effect, Value, fit_effects
from etude.report.statistics.ladder import (
    Curve,
    Decisions,
    Differences,
    Judged,
    Law,
    Prediction,
    carry,
    decide,
    find_decay,
    find_noise,
    fit_curve,
    fit_laws,
    interval_score,
    judge,
)
from etude.report.statistics.moderated import Prior, equivalence, moderate, moderated_test
from etude.report.statistics.more_trials import best_of_twice, other_order_in_half
from etude.report.statistics.optimism import BestOf, best_of
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
from etude.report.statistics.sequential import nominal_levels
