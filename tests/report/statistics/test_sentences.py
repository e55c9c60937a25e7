import pytest
import sacrebleu

from etude.errors import UserError
from etude.report.statistics import Counts, count
from etude.report.statistics.sentences import refuse_unpaired

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
