"""BLEU is sacreBLEU's."""

import pytest
import sacrebleu

from etude.errors import UserError
from etude.tasks.bleu import bleu

REFERENCES = ["Der Hund sieht die alte Frau.", "Zwei Männer warten vor dem Haus, es regnet.", "Guten Morgen!"]
HYPOTHESES = ["Der Hund sieht eine alte Frau.", "Zwei Männer warten vor einem Haus, es regnet.", "Guten Tag!"]


def test_score_and_signature_are_those_of_sacrebleu() -> None:
    result = bleu(HYPOTHESES, REFERENCES)
    assert result["score"] == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert result["signature"] == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"


def test_a_perfect_translation_scores_100() -> None:
    assert bleu(REFERENCES, REFERENCES)["score"] == pytest.approx(100)


def test_case_counts() -> None:
    assert bleu([line.lower() for line in REFERENCES], REFERENCES)["score"] < 100


def test_in_lower_case_case_does_not_count_and_the_signature_says_so() -> None:
    shouted = [line.upper() for line in HYPOTHESES]
    result = bleu(shouted, REFERENCES, lowercase=True)
    assert result["score"] == sacrebleu.corpus_bleu(shouted, [REFERENCES], lowercase=True).score
    assert result["score"] == bleu(HYPOTHESES, REFERENCES, lowercase=True)["score"] > bleu(shouted, REFERENCES)["score"]
    assert "|case:lc|" in result["signature"]


def test_different_line_counts_are_refused_and_both_are_named() -> None:
    with pytest.raises(UserError, match=r"2 translations .* 3 references"):
        bleu(HYPOTHESES[:2], REFERENCES)


def test_nothing_to_compare_is_refused() -> None:
    with pytest.raises(UserError, match="no lines"):
        bleu([], [])
