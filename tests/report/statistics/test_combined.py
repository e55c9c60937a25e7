from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from etude.errors import UserError
from etude.report.statistics import (
    Comparison,
    Counts,
    combined_test,
    paired_bootstrap,
    resample,
    variances,
    welch,
)

Check = Callable[[int, int, float], bool]
Simulate = Callable[..., list[Counts]]
TRIALS = 500
TRAINING_ALONE = {"training": 0.5}
BOTH_KINDS_OF_LUCK = {"training": 0.1, "taste": 0.4}


@pytest.fixture
def alarms(simulate: Simulate) -> Callable[..., list[int]]:
    """How many of `TRIALS` studies without a difference each test calls different at 0.05."""

    def call(runs: int, truth: dict[str, float], *tests: Callable[..., Comparison]) -> list[int]:
        called = [0] * len(tests)
        for trial in range(TRIALS):
            arm, base = (resample(one, 300, trial) for one in simulate(np.random.default_rng(trial), runs, **truth))
            for place, test in enumerate(tests):
                p = test(arm, base).p
                assert p is not None
                called[place] += p < 0.05
        return called

    return call


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runs", "truth"),
    [(2, TRAINING_ALONE), (5, TRAINING_ALONE), *product((2, 3, 5), (BOTH_KINDS_OF_LUCK, {}))],
)
def test_the_combined_test_holds_its_level_with_few_seeds(
    runs: int, truth: dict[str, float], alarms: Callable[..., list[int]], at_most: Check
) -> None:
    [called] = alarms(runs, truth, combined_test)
    assert at_most(called, TRIALS, 0.05)


@pytest.mark.slow
def test_with_ten_seeds_it_is_no_more_careful_than_it_has_to_be(
    alarms: Callable[..., list[int]], nominal: Check
) -> None:
    [called] = alarms(10, TRAINING_ALONE, combined_test)
    assert nominal(called, TRIALS, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [2, 3, 5])
def test_two_decodings_of_the_same_trainings_hold_the_level_too(runs: int, simulate: Simulate, at_most: Check) -> None:
    """Both decodings have the luck of the training, and each is right or wrong in a sentence by itself."""
    called = 0
    for trial in range(TRIALS):
        arm, base = simulate(np.random.default_rng(trial), runs, shared=1.0, **BOTH_KINDS_OF_LUCK)
        p = combined_test(resample(arm, 300, trial), resample(base, 300, trial), shared=True).p
        called += p is not None and p < 0.05
    assert at_most(called, TRIALS, 0.05)


def test_a_small_gain_of_a_decoding_is_seen_though_the_trainings_differ_by_more(simulate: Simulate) -> None:
    arm, base = map(resample, simulate(np.random.default_rng(0), 5, 400, shared=1.0, better=0.4))
    paired, unpaired = combined_test(arm, base, shared=True), combined_test(arm, base)
    assert paired.difference == unpaired.difference
    assert paired.p is not None
    assert unpaired.p is not None
    assert paired.p < 0.001 < 0.2 < unpaired.p


@pytest.mark.slow
def test_sentences_alone_take_lucky_seeds_for_a_difference_and_the_combined_test_does_not(
    alarms: Callable[..., list[int]], at_most: Check
) -> None:
    by_sentences, combined = alarms(3, TRAINING_ALONE, paired_bootstrap, combined_test)
    assert not at_most(by_sentences, TRIALS, 0.5)
    assert at_most(combined, TRIALS, 0.05)


@pytest.mark.slow
def test_seeds_alone_take_lucky_sentences_for_a_difference(simulate: Simulate, at_most: Check) -> None:
    called = 0
    for trial in range(TRIALS):
        arm, base = simulate(np.random.default_rng(trial), 10, **BOTH_KINDS_OF_LUCK)
        p = welch(arm.scores, base.scores).p
        assert p is not None
        called += p < 0.05
    assert not at_most(called, TRIALS, 0.05)


@pytest.mark.slow
def test_the_combined_interval_holds_the_truth_as_often_as_it_says(simulate: Simulate, nominal: Check) -> None:
    setting = {**BOTH_KINDS_OF_LUCK, "better": 0.3}
    arm, base = simulate(np.random.default_rng(0), 150, 6000, **setting)
    truth, held = arm.bleu.mean() - base.bleu.mean(), 0
    for trial in range(TRIALS):
        arm, base = simulate(np.random.default_rng(trial + 1), 5, **setting)
        interval = combined_test(resample(arm, 300), resample(base, 300)).interval
        assert interval
        held += interval.low <= truth <= interval.high
    assert nominal(held, TRIALS, 0.95)


def test_a_large_difference_is_seen(simulate: Simulate) -> None:
    arm, base = simulate(np.random.default_rng(0), 5, better=1.5, **BOTH_KINDS_OF_LUCK)
    found = combined_test(resample(arm), resample(base))
    assert found.difference == pytest.approx(arm.bleu.mean() - base.bleu.mean())
    assert found.interval
    assert 0 < found.interval.low < found.difference < found.interval.high
    assert found.p is not None
    assert found.p < 0.005


def test_training_variance_is_what_an_endless_test_set_would_leave(simulate: Simulate) -> None:
    truth = simulate(np.random.default_rng(0), 200, 4000, training=0.3)[0].scores.variance
    found = [
        variances(resample(simulate(np.random.default_rng(trial), 8, training=0.3)[0], 200)).training
        for trial in range(200)
    ]
    error = np.hypot(np.std(found) / np.sqrt(200), truth * np.sqrt(2 / 199))
    assert abs(np.mean(found) - truth) < 3.3 * error


def test_where_runs_differ_by_sentences_alone_training_variance_is_far_below_that_of_seeds(simulate: Simulate) -> None:
    found = [variances(resample(simulate(np.random.default_rng(trial), 8)[0], 200)) for trial in range(100)]
    assert np.mean([parts.training for parts in found]) < 0.3 * np.mean([parts.seeds for parts in found])


def test_test_set_variance_is_that_of_an_arm_on_fresh_test_sets(simulate: Simulate) -> None:
    arms = [simulate(np.random.default_rng(trial), 3)[0] for trial in range(400)]
    truth = np.var([arm.bleu.mean() for arm in arms], ddof=1)
    found = np.mean([variances(resample(arm, 200)).test_set for arm in arms[:100]])
    assert found == pytest.approx(truth, rel=3.3 * np.sqrt(2 / 399))


def test_seed_variance_is_the_one_behind_the_plus_minus(simulate: Simulate) -> None:
    arm = simulate(np.random.default_rng(0), 4, training=0.3)[0]
    assert variances(resample(arm)).seeds == pytest.approx(arm.bleu.var(ddof=1))


def test_one_run_has_no_variance(simulate: Simulate) -> None:
    with pytest.raises(ValueError, match="arm has one run"):
        variances(resample(simulate(np.random.default_rng(0), 1)[0]))


def test_one_seed_is_not_tested_and_it_says_why(simulate: Simulate) -> None:
    arm, base = simulate(np.random.default_rng(0), (1, 3))
    found = combined_test(resample(arm), resample(base))
    assert (found.interval, found.p) == (None, None)
    assert found.difference == pytest.approx(arm.bleu.mean() - base.bleu.mean())
    assert "arm has one seed" in found.why_not


def test_equal_translations_are_not_tested_and_it_says_why(simulate: Simulate) -> None:
    arm = simulate(np.random.default_rng(0), 3)[0]
    found = combined_test(resample(arm), resample(Counts("base", arm.counts[[2, 0, 1]])))
    assert found.p is None
    assert "arm and base translate alike" in found.why_not


def test_what_cannot_be_paired_is_refused(simulate: Simulate) -> None:
    arm, base = simulate(np.random.default_rng(0))
    elsewhere = simulate(np.random.default_rng(1))[1]
    with pytest.raises(UserError, match=r"arm .* base .* different"):
        combined_test(resample(arm, 10), resample(elsewhere, 10))
    with pytest.raises(ValueError, match="resampled with other"):
        combined_test(resample(arm, 10), resample(base, 11))
