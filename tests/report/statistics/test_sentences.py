import random
from collections.abc import Callable

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from etude.errors import UserError
from etude.report.statistics import Counts, approximate_randomisation, count, paired_bootstrap, resample
from etude.report.statistics.sentences import paired_differences, refuse_unpaired

REFERENCES = ["Der Hund sieht die alte Frau.", "Zwei Männer warten vor dem Haus, es regnet.", "Guten Morgen!"]


def test_every_run_has_its_own_score() -> None:
    runs = [REFERENCES, [line.lower() for line in REFERENCES], ["", "", ""]]
    counts = count("A1", runs, REFERENCES)
    assert counts.counts.shape == (3, 3, 10)
    assert counts.scores.values == pytest.approx([sacrebleu.corpus_bleu(run, [REFERENCES]).score for run in runs])
    assert counts.scores.arm == "A1"


def test_lines_that_do_not_match_the_references_are_refused_and_the_arm_is_named() -> None:
    with pytest.raises(UserError, match=r"A1: 2 translations .* 3 references"):
        count("A1", [REFERENCES, REFERENCES[:2]], REFERENCES)


@pytest.mark.parametrize(("runs", "references"), [([], REFERENCES), ([[]], [])])
def test_nothing_to_count_is_refused_and_the_arm_is_named(runs: list[list[str]], references: list[str]) -> None:
    with pytest.raises(UserError, match="A1"):
        count("A1", runs, references)


@pytest.mark.parametrize("other", [REFERENCES[:2], [*REFERENCES[:2], "Guten Morgen allerseits!"]])
def test_arms_tested_on_different_sentences_are_refused_and_named(other: list[str]) -> None:
    def perfect(arm: str, lines: list[str]) -> Counts:
        return count(arm, [lines], lines)

    with pytest.raises(UserError, match=r"A1 .* base .* different"):
        refuse_unpaired(perfect("A1", other), perfect("base", REFERENCES))


Check = Callable[[int, int, float], bool]
Simulate = Callable[..., list[Counts]]
WORDS = ["der", "die", "das", "Hund", "Frau", "Kind", "sieht", "hört", "alte", "kleine", "gern", "oft"]


@pytest.fixture(scope="module")
def texts() -> dict[str, list[str]]:
    """References, and two systems that get some of their words wrong."""
    draw = random.Random(4)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(4, 14))) + "." for _ in range(120)]

    def spoiled(rate: float) -> list[str]:
        return [" ".join(draw.choice(WORDS) if draw.random() < rate else w for w in r.split()) for r in references]

    return {"references": references, "base": spoiled(0.25), "arm": spoiled(0.22)}


def test_of_several_references_arms_are_paired_whose_closest_lengths_differ() -> None:
    joined = [f"{line}\t{line} {line}" for line in REFERENCES]
    doubled = [f"{line} {line}" for line in REFERENCES]
    one, other = count("one", [REFERENCES], joined), count("other", [doubled], joined)
    refuse_unpaired(one, other)
    assert one.bleu == other.bleu == pytest.approx(100)
    with pytest.raises(UserError, match=r"one .* third .* different"):
        refuse_unpaired(one, count("third", [REFERENCES], [f"{line}\tJa." for line in REFERENCES]))


def sacrebleus(texts: dict[str, list[str]], kind: str, samples: int) -> sacrebleu.significance.Result:
    systems = [(name, texts[name]) for name in ("base", "arm")]
    test = PairedTest(systems, {"BLEU": sacrebleu.BLEU()}, [texts["references"]], kind, n_samples=samples)
    return test()[1]["BLEU"][1]


def folded_p(differences: np.ndarray, seen: float) -> float:
    """sacreBLEU's p of resampled differences: absolute first, centred afterwards."""
    folded = abs(differences)
    return (1 + (folded - folded.mean() > abs(seen)).sum()) / (1 + len(folded))


def test_the_bootstrap_draws_and_scores_what_sacrebleu_does(texts: dict[str, list[str]]) -> None:
    expected = sacrebleus(texts, "bs", 1000)
    arm, base = (resample(count(name, [texts[name]], texts["references"])) for name in ("arm", "base"))
    assert arm.bleu.mean() == pytest.approx(expected.mean)
    difference = paired_bootstrap(arm, base).difference
    assert folded_p(paired_differences(arm, base), difference) == pytest.approx(expected.p_value)


def test_with_several_references_too(texts: dict[str, list[str]]) -> None:
    second = [" ".join(line.split()[1:]) for line in texts["references"]]
    systems = [(name, texts[name]) for name in ("base", "arm")]
    metric = sacrebleu.BLEU()
    expected = PairedTest(systems, {"BLEU": metric}, [texts["references"], second], "bs", n_samples=200)()[1]["BLEU"][1]
    joined = ["\t".join(both) for both in zip(texts["references"], second, strict=True)]
    arm, base = (resample(count(name, [texts[name]], joined), 200) for name in ("arm", "base"))
    assert arm.bleu.mean() == pytest.approx(expected.mean)
    difference = paired_bootstrap(arm, base).difference
    assert folded_p(paired_differences(arm, base), difference) == pytest.approx(expected.p_value)


def test_its_two_sided_p_of_a_clear_difference_is_twice_sacrebleus(texts: dict[str, list[str]]) -> None:
    arm, base = (resample(count(name, [texts[name]], texts["references"]), 20_000) for name in ("arm", "base"))
    p = paired_bootstrap(arm, base).p
    assert p is not None
    assert 0.01 < p < 0.5
    assert p == pytest.approx(
        2 * folded_p(paired_differences(arm, base), paired_bootstrap(arm, base).difference), rel=0.1
    )


def test_randomisation_finds_the_p_that_sacrebleu_finds(texts: dict[str, list[str]]) -> None:
    arm, base = (count(name, [texts[name]], texts["references"]) for name in ("arm", "base"))
    expected = sacrebleus(texts, "ar", 2000).p_value
    assert 0.01 < expected < 0.5
    assert approximate_randomisation(arm, base, samples=2000) == pytest.approx(expected)


def test_blocks_of_samples_do_not_change_the_p(texts: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    arm, base = (count(name, [texts[name]], texts["references"]) for name in ("arm", "base"))
    whole = approximate_randomisation(arm, base, samples=1000)
    monkeypatch.setattr("etude.report.statistics.sentences._BLOCK", 77)
    assert approximate_randomisation(arm, base, samples=1000) == whole


def test_both_hold_their_level_and_folding_does_not(simulate: Simulate, nominal: Check, at_most: Check) -> None:
    trials, alarms = 800, np.zeros(3, dtype=int)
    for trial in range(trials):
        arm, base = simulate(np.random.default_rng(trial), 1, taste=0.4)
        ours, theirs = resample(arm, 400, trial), resample(base, 400, trial)
        found = paired_bootstrap(ours, theirs)
        p = (found.p, approximate_randomisation(arm, base, 400, trial))
        alarms += [*(value < 0.05 for value in p), folded_p(paired_differences(ours, theirs), found.difference) < 0.05]
    bootstrap, randomisation, folded = alarms.tolist()
    assert nominal(bootstrap, trials, 0.05)
    assert nominal(randomisation, trials, 0.05)
    assert nominal(folded, trials, 0.10)
    assert not at_most(folded, trials, 0.05)


def test_the_bootstrap_interval_holds_the_truth_as_often_as_it_says(simulate: Simulate, nominal: Check) -> None:
    arm, base = simulate(np.random.default_rng(0), 2, 200_000, taste=0.4, better=0.2)
    truth, trials, held = arm.bleu.mean() - base.bleu.mean(), 800, 0
    for trial in range(trials):
        arm, base = simulate(np.random.default_rng(trial + 1), 2, taste=0.4, better=0.2)
        interval = paired_bootstrap(resample(arm, 400), resample(base, 400)).interval
        assert interval
        held += interval.low <= truth <= interval.high
    assert nominal(held, trials, 0.95)


def test_equal_translations_are_not_significant_in_whatever_order_their_runs_come(simulate: Simulate) -> None:
    arm = simulate(np.random.default_rng(0), 3)[0]
    same = Counts("base", arm.counts[[1, 2, 0]])
    assert paired_bootstrap(resample(arm), resample(same)).p == 1
    assert approximate_randomisation(arm, same, 500) == 1


def test_the_same_seed_gives_the_same_answer_and_another_gives_another(simulate: Simulate) -> None:
    arm, base = simulate(np.random.default_rng(0), 1)
    first, again, other = (paired_bootstrap(resample(arm, 99, seed), resample(base, 99, seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_arms_of_different_test_sets_are_refused_and_named(simulate: Simulate) -> None:
    arm, _ = simulate(np.random.default_rng(0), 1)
    _, base = simulate(np.random.default_rng(1), 1)
    with pytest.raises(UserError, match=r"arm .* base .* different"):
        paired_bootstrap(resample(arm, 10), resample(base, 10))
    with pytest.raises(UserError, match=r"arm .* base .* different"):
        approximate_randomisation(arm, base)


@pytest.mark.parametrize("how", [{"samples": 10, "seed": 2}, {"samples": 11, "seed": 1}])
def test_resamples_of_different_draws_are_refused(simulate: Simulate, how: dict[str, int]) -> None:
    arm, base = simulate(np.random.default_rng(0), 1)
    with pytest.raises(ValueError, match="resampled with other"):
        paired_bootstrap(resample(arm, samples=10, seed=1), resample(base, **how))


def test_randomisation_needs_as_many_runs_of_both(simulate: Simulate) -> None:
    with pytest.raises(ValueError, match="arm has 3 runs and base 2"):
        approximate_randomisation(*simulate(np.random.default_rng(0), (3, 2)))
