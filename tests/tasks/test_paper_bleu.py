"""The paper's BLEU: its recipe step by step, and multi-bleu counted by hand."""

import math
from collections import Counter

import pytest
import sacrebleu
import sacremoses
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.errors import UserError
from etude.tasks.bleu import bleu
from etude.tasks.paper_bleu import paper_bleu, split_compounds

REFERENCES = ["Der Hund sieht die alte Frau.", "Zwei Männer warten vor dem Haus, es regnet.", "Guten Morgen!"]
HYPOTHESES = ["Der Hund sieht eine alte Frau.", "Zwei Männer warten vor einem Haus, es regnet.", "Guten Tag!"]


def multi_bleu(hypotheses: list[str], references: list[str]) -> float:
    """Papineni et al. (2002) on tokens between spaces: clipped n-grams to 4, brevity penalty, no smoothing."""
    matched, counted, lengths = Counter(), Counter(), Counter()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        ours, theirs = hypothesis.split(), reference.split()
        lengths["ours"] += len(ours)
        lengths["theirs"] += len(theirs)
        for n in range(1, 5):
            grams = [Counter(tuple(side[i : i + n]) for i in range(len(side) - n + 1)) for side in (ours, theirs)]
            matched[n] += sum(min(count, grams[1][gram]) for gram, count in grams[0].items())
            counted[n] += sum(grams[0].values())
    if any(matched[n] == 0 for n in range(1, 5)):
        return 0.0
    mean = sum(math.log(matched[n] / counted[n]) for n in range(1, 5)) / 4
    return 100 * math.exp(mean + min(0.0, 1 - lengths["theirs"] / lengths["ours"]))


words = st.sampled_from(["eins", "zwei", "drei", "Zwei"])
sentences = st.lists(words, max_size=9).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(pairs=st.lists(st.tuples(sentences, sentences), min_size=1, max_size=5))
def test_plain_words_are_scored_as_multi_bleu_counts_them(pairs: list[tuple[str, str]]) -> None:
    hypotheses, references = [ours for ours, _ in pairs], [theirs for _, theirs in pairs]
    assert paper_bleu(hypotheses, references, "de")["score"] == pytest.approx(multi_bleu(hypotheses, references))


def test_sentences_are_scored_after_tokenising_and_splitting_both_sides() -> None:
    hypotheses = ["Der EU-Vertrag kostet 3.000,50 Euro.", "„Ja“, sagte Dr. Müller am 3. Mai…"]
    references = ["Der US-Vertrag kostet 3.000,50 Euro!", "“Ja”, sagte Dr. Müller am 3. Mai..."]
    prepared = [
        ["Der EU ##AT##-##AT## Vertrag kostet 3.000,50 Euro .", "„ Ja &quot; , sagte Dr. Müller am 3. Mai ..."],
        ["Der US ##AT##-##AT## Vertrag kostet 3.000,50 Euro !", "&quot; Ja &quot; , sagte Dr. Müller am 3. Mai ..."],
    ]
    assert paper_bleu(hypotheses, references, "de")["score"] == pytest.approx(multi_bleu(*prepared))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("der EU-Vertrag", "der EU ##AT##-##AT## Vertrag"),
        ("Rhein-Main-Gebiet", "Rhein ##AT##-##AT## Main ##AT##-##AT## Gebiet"),
        ("Ost- und West-Berlin", "Ost- und West ##AT##-##AT## Berlin"),
        ("drei - vier -5", "drei - vier -5"),
        ("ein A-B-C", "ein A ##AT##-##AT## B-C"),
        ("--", "--"),
        ("x--y", "x ##AT##-##AT## -y"),
    ],
)
def test_compounds_are_split_where_the_recipe_splits_them(line: str, expected: str) -> None:
    assert split_compounds(line) == expected


def test_half_a_compound_counts_here_and_not_in_sacrebleu() -> None:
    hypotheses, references = ["sie sah den EU-Vertrag heute noch"], ["sie sah den US-Vertrag heute noch"]
    assert paper_bleu(hypotheses, references, "de")["score"] > bleu(hypotheses, references)["score"]


@pytest.mark.parametrize(
    ("language", "tokens"),
    [("de", "l &apos; ami kam bzw. Paul"), ("fr", "l&apos; ami kam bzw . Paul"), ("", "l &apos; ami kam bzw . Paul")],
)
def test_apostrophes_and_abbreviations_follow_the_language(language: str, tokens: str) -> None:
    score = paper_bleu(["gestern l'ami kam bzw. Paul"], ["heute l'ami kam bzw. Paul"], language)["score"]
    assert score == pytest.approx(multi_bleu([f"gestern {tokens}"], [f"heute {tokens}"]))


def test_the_signature_says_how_and_with_which_tokenizer() -> None:
    result = paper_bleu(HYPOTHESES, REFERENCES, "de")
    tokens, versions = "tok:moses-de+compounds", f"version:{sacrebleu.__version__}|sacremoses:{sacremoses.__version__}"
    assert result["signature"] == f"nrefs:1|case:mixed|eff:no|{tokens}|smooth:none|{versions}"


def test_different_line_counts_are_refused_and_both_are_named() -> None:
    with pytest.raises(UserError, match=r"2 translations .* 3 references"):
        paper_bleu(HYPOTHESES[:2], REFERENCES, "de")
