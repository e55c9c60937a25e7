"""BLEU as sacreBLEU computes it, with its signature (Post 2018)."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from etude.errors import UserError

if TYPE_CHECKING:
    from sacrebleu import BLEU

_BY_LANGUAGE = {"zh": "zh", "zho": "zh", "cmn": "zh", "yue": "zh"}
_BY_LANGUAGE |= {"ja": "ja-mecab", "jpn": "ja-mecab", "ko": "ko-mecab", "kor": "ko-mecab"}
_BY_LANGUAGE |= dict.fromkeys(("th", "tha", "lo", "lao", "km", "khm", "my", "mya"), "char")
"""sacreBLEU's own choices; and for languages without spaces of which it has none, what needs no download."""


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    lowercase: bool = False,
    tokenize: Literal["13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "flores200", "none"] = "13a",
) -> dict[str, Any]:
    """Compute corpus BLEU of plain, detokenised text.

    Args:
        hypotheses, references: line by line; several references of a line have tabs between them.
        lowercase: compare both in lower case.
        tokenize: how sacreBLEU splits lines into words; see `tokenizer_of`. 13a, its default, splits at spaces and
            punctuation; ja-mecab, ko-mecab and flores200 need its extras.

    Raises:
        UserError: there is nothing to compare, the line counts differ, or sacreBLEU cannot split lines so.
    """
    return score("BLEU", make_bleu(tokenize, lowercase=lowercase), hypotheses, references)


def tokenizer_of(language: str) -> str:
    """Return the tokenizer of sacreBLEU that suits a language, given by its code such as "ja", "zh-CN" or "jpn_Jpan".

    It is 13a, unless the language is written without spaces, or is Korean.
    """
    return _BY_LANGUAGE.get(re.split("[-_]", language.lower())[0], "13a")


def make_bleu(tokenize: str, **options: Any) -> "BLEU":
    """Make sacreBLEU's metric.

    Raises:
        UserError: it lacks a package to split lines by `tokenize`, or a model that it cannot download.
    """
    from sacrebleu import BLEU

    try:
        return BLEU(tokenize=tokenize, **options)
    except (RuntimeError, OSError) as error:
        raise UserError(f"sacreBLEU cannot split lines by {tokenize} here: {' '.join(str(error).split())}") from error


def options_of(signature: str | None) -> dict[str, Any]:
    """Return the options `lowercase` and `tokenize` of a score with this signature."""
    from sacrebleu import BLEU

    found = re.search(r"\btok:([^|]+)", signature or "")  # ja-mecab-0.996-IPA: the version stands behind some
    tokenize = next((name for name in BLEU.TOKENIZERS if found and found[1].startswith(name)), "13a")
    return {"lowercase": "case:lc" in (signature or ""), "tokenize": tokenize}


def score(name: str, metric: Any, hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """Compute one of sacreBLEU's metrics, with its signature; raises as `refuse_unequal`."""
    refuse_unequal(name, hypotheses, references)
    found = metric.corpus_score(hypotheses, reference_streams(references)).score
    return {"score": found, "signature": str(metric.get_signature())}


def reference_streams(references: Sequence[str]) -> list[list[str | None]]:
    """Return the first reference of all lines, the second, ...: what sacreBLEU takes; None where a line has none."""
    split = [line.split("\t") for line in references]
    first: list[str | None] = [line[0] for line in split]
    return [
        first,
        *([line[n] or None if n < len(line) else None for line in split] for n in range(1, max(map(len, split)))),
    ]


def refuse_unequal(metric: str, hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Check that there are as many hypotheses as references, and at least one; `metric` is its name in messages.

    Raises:
        UserError: there is nothing to compare, or the line counts differ.
    """
    if len(hypotheses) != len(references):
        raise UserError(
            f"{len(hypotheses)} translations cannot be compared with {len(references)} references: "
            f"{metric} needs one reference line for each translated line"
        )
    if not hypotheses:
        raise UserError(f"{metric} of no lines is not defined: give at least one translation and its reference")
