"""BLEU is sacreBLEU's."""

from collections.abc import Callable

import pytest
import sacrebleu

from etude.errors import UserError
from etude.tasks.bleu import bleu, options_of, tokenizer_of
from etude.tasks.bleu_sums import sums
from etude.tasks.chrf_ter import chrf, ter
from etude.tasks.paper_bleu import paper_bleu

REFERENCES = ["Der Hund sieht die alte Frau.", "Zwei Männer warten vor dem Haus, es regnet.", "Guten Morgen!"]
HYPOTHESES = ["Der Hund sieht eine alte Frau.", "Zwei Männer warten vor einem Haus, es regnet.", "Guten Tag!"]


def test_score_and_signature_are_those_of_sacrebleu() -> None:
    result = bleu(HYPOTHESES, REFERENCES)
    assert result["score"] == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert result["signature"] == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"


OTHERS = ["Der Hund sieht eine Frau.", "Zwei Männer warten vor einem Haus, und es regnet.", "Guten Tag allerseits!"]


@pytest.mark.parametrize("third", ["Hallo!", ""])
def test_several_references_are_sacrebleus(third: str) -> None:
    further: list[str | None] = [*OTHERS[:2], third or None]
    streams = [REFERENCES, further]
    joined = ["\t".join(refs) for refs in zip(REFERENCES, [*OTHERS[:2], third], strict=True)]
    result, metric = bleu(HYPOTHESES, joined), sacrebleu.BLEU()
    assert result["score"] == metric.corpus_score(HYPOTHESES, streams).score > bleu(HYPOTHESES, REFERENCES)["score"]
    assert result["signature"] == str(metric.get_signature())
    assert result["signature"].startswith("nrefs:2|" if third else "nrefs:var|")
    assert chrf(HYPOTHESES, joined, 6, 0)["score"] == sacrebleu.CHRF().corpus_score(HYPOTHESES, streams).score
    errors = ter(HYPOTHESES, joined, normalized=False, case_sensitive=False)
    assert errors["score"] == sacrebleu.TER().corpus_score(HYPOTHESES, streams).score
    of_recipe = [paper_bleu(HYPOTHESES, lines, "de") for lines in (joined, REFERENCES)]
    assert of_recipe[0]["score"] >= of_recipe[1]["score"]
    assert of_recipe[0]["signature"].startswith(result["signature"].partition("|")[0])


def test_in_lower_case_case_does_not_count_and_the_signature_says_so() -> None:
    shouted = [line.upper() for line in HYPOTHESES]
    result = bleu(shouted, REFERENCES, lowercase=True)
    assert result["score"] == sacrebleu.corpus_bleu(shouted, [REFERENCES], lowercase=True).score
    assert result["score"] == bleu(HYPOTHESES, REFERENCES, lowercase=True)["score"] > bleu(shouted, REFERENCES)["score"]
    assert "|case:lc|" in result["signature"]
    assert options_of(result["signature"]) == {"tokenize": "13a", "lowercase": True}


@pytest.mark.parametrize("tokenize", ["13a", "intl", "zh", "char", "none"])
def test_words_are_those_of_the_tokenizer_that_is_asked_for_and_the_signature_tells_it(tokenize: str) -> None:
    ours, theirs = ["我们昨天去了北京。", "他喜欢猫 cat。"], ["我们昨天去了上海。", "她喜欢猫 cat。"]
    result = bleu(ours, theirs, tokenize=tokenize)  # type: ignore[arg-type]
    assert result["score"] == sacrebleu.corpus_bleu(ours, [theirs], tokenize=tokenize).score
    assert options_of(result["signature"]) == {"tokenize": tokenize, "lowercase": False}


@pytest.mark.parametrize(
    ("signature", "found"),
    [
        ("nrefs:1|case:mixed|eff:no|tok:ja-mecab-0.996-IPA|smooth:exp|version:2.6.0", "ja-mecab"),
        ("nrefs:1|tok:flores200|smooth:exp", "flores200"),
        ("", "13a"),
        (None, "13a"),
    ],
)
def test_a_signature_names_its_tokenizer(signature: str | None, found: str) -> None:
    assert options_of(signature)["tokenize"] == found


@pytest.mark.parametrize(("lines", "told"), [(2, r"2 translations .* 3 references"), (0, "no lines")])
def test_nothing_to_compare_and_different_line_counts_are_refused(lines: int, told: str) -> None:
    with pytest.raises(UserError, match=told):
        bleu(HYPOTHESES[:lines], REFERENCES if lines else [])


@pytest.mark.parametrize("language", ["zh", "de", "en", "fr", "xx", ""])
def test_the_tokenizer_of_a_language_is_sacrebleus_own_choice(language: str) -> None:
    assert tokenizer_of(language) == sacrebleu.BLEU(trg_lang=language).tokenizer.signature()


@pytest.mark.parametrize(
    ("language", "tokenize"),
    [
        *(("ja", "ja-mecab"), ("ko", "ko-mecab"), ("th", "char"), ("zh-CN", "zh"), ("zh_TW", "zh"), ("ZH", "zh")),
        *(("jpn_Jpan", "ja-mecab"), ("kor", "ko-mecab"), ("tha", "char"), ("target", "13a"), ("that", "13a")),
    ],
)
def test_a_language_is_known_by_its_codes(language: str, tokenize: str) -> None:
    assert tokenizer_of(language) == tokenize


@pytest.mark.parametrize("count", [bleu, lambda ours, theirs, tokenize: sums([ours], theirs, tokenize)])
def test_a_package_that_sacrebleu_lacks_is_named(count: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    with pytest.raises(UserError, match=r"cannot split lines by ja-mecab here: .*pip install sacrebleu\[ja\]"):
        count(["a"], ["a"], tokenize="ja-mecab")
