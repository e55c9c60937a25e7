import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from etude.tasks.bleu_sums import corpus_bleu, sums

WORDS = st.sampled_from(["der", "die", "Hund", "Frau", "sieht", "alte", ",", ".", "3.5", "EU-Vertrag"])
LINES = st.lists(WORDS, max_size=9).map(" ".join)


@settings(max_examples=200)
@given(st.lists(st.tuples(LINES, LINES), min_size=1, max_size=6))
def test_bleu_put_together_from_sentences_is_sacrebleus(pairs: list[tuple[str, str]]) -> None:
    hypotheses, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    expected = sacrebleu.corpus_bleu(hypotheses, [references]).score
    found = corpus_bleu(sums([hypotheses], references).sum(axis=1))
    assert found == pytest.approx([expected], rel=1e-13)


@settings(max_examples=200)
@given(st.lists(st.tuples(LINES, LINES, LINES.filter(bool)), min_size=1, max_size=6))
def test_with_several_references_too(rows: list[tuple[str, str, str]]) -> None:
    hypotheses, first, second = ([row[k] for row in rows] for k in range(3))
    joined = ["\t".join(both) for both in zip(first, second, strict=True)]
    expected = sacrebleu.corpus_bleu(hypotheses, [first, second]).score
    assert corpus_bleu(sums([hypotheses], joined).sum(axis=1)) == pytest.approx([expected], rel=1e-13)


ANY = LINES | st.text(max_size=20).map(lambda text: text.replace("\t", " "))  # a tab would be between references


@settings(max_examples=200)
@given(st.lists(st.tuples(ANY, ANY, LINES), min_size=1, max_size=4))
def test_what_a_sentence_brings_is_what_sacrebleu_counts_whatever_stands_beside_it(
    rows: list[tuple[str, str, str]],
) -> None:
    references, *runs = ([row[k] for row in rows] for k in range(3))
    metric = sacrebleu.BLEU(effective_order=True)
    for found, translations in zip(sums(runs, references), runs, strict=True):
        scores = [metric.sentence_score(*pair) for pair in zip(translations, [[r] for r in references], strict=True)]
        assert found.tolist() == [[s.sys_len, s.ref_len, *s.counts, *s.totals] for s in scores]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("tokenize", ["zh", "char", "none"])
def test_words_are_those_of_the_tokenizer_and_the_case_that_are_asked_for(tokenize: str, lowercase: bool) -> None:
    ours, theirs = ["我们昨天去了北京。", "他喜欢猫 cat。"], ["我们昨天去了上海。", "她喜欢猫 Cat。"]
    expected = sacrebleu.corpus_bleu(ours, [theirs], tokenize=tokenize, lowercase=lowercase).score
    found = corpus_bleu(sums([ours], theirs, tokenize, lowercase).sum(axis=1))
    assert found == pytest.approx([expected], rel=1e-13)


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


def test_translations_and_references_are_as_many() -> None:
    with pytest.raises(ValueError, match="not as many translations"):
        sums([["one line"]], ["one line", "and another"])
