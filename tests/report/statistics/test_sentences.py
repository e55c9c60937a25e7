import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.errors import UserError
from etude.report.statistics import Counts, count
from etude.report.statistics.sentences import corpus_bleu, refuse_unpaired

REFERENCES = ["Der Hund sieht die alte Frau.", "Zwei Männer warten vor dem Haus, es regnet.", "Guten Morgen!"]
WORDS = st.sampled_from(["der", "die", "Hund", "Frau", "sieht", "alte", ",", ".", "3.5", "EU-Vertrag"])
LINES = st.lists(WORDS, max_size=9).map(" ".join)


@settings(max_examples=200)
@given(st.lists(st.tuples(LINES, LINES), min_size=1, max_size=6))
def test_bleu_put_together_from_sentences_is_sacrebleus(pairs: list[tuple[str, str]]) -> None:
    hypotheses, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    expected = sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert count("A1", [hypotheses], references).bleu == pytest.approx([expected], rel=1e-13)


@given(
    st.lists(st.integers(0, 40), min_size=4, max_size=4),
    st.lists(st.integers(0, 9), min_size=4, max_size=4),
    st.integers(0, 60),
)
def test_bleu_of_any_sums_is_sacrebleus(matches: list[int], more: list[int], referenced: int) -> None:
    totals = [m + t for m, t in zip(matches, more, strict=True)]
    expected = sacrebleu.BLEU.compute_bleu(matches[:], totals[:], totals[0], referenced, smooth_method="exp").score
    found = corpus_bleu(np.array([totals[0], referenced, *matches, *totals], dtype=float))
    assert found == pytest.approx(expected, rel=1e-13)


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
