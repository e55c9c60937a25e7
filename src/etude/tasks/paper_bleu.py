"""BLEU as the paper's authors measured it: on tokens, with hyphenated compounds split.

The figures of Tables 2 and 3 are of this kind, and may not be set beside sacreBLEU's. The recipe was published with the
paper's code: Unicode punctuation is replaced, the Moses tokenizer cuts the text, compounds are split at their hyphens,
and multi-bleu counts what stands between spaces: cased, unsmoothed. It was made for German. Another language gets its
own rules from the tokenizer, or, where that knows none, the abbreviations of English.
"""

import re
from collections.abc import Sequence

from etude.tasks.bleu import Bleu, refuse_unequal

_COMPOUND = re.compile(r"(\S)-(\S)")


def paper_bleu(hypotheses: Sequence[str], references: Sequence[str], language: str) -> Bleu:
    """Corpus BLEU by the paper's recipe, of plain, detokenised text, one reference a line.

    Args:
        hypotheses, references: line by line.
        language: the code of their language, "de".

    Raises:
        UserError: there is nothing to compare, or the line counts differ.
    """
    import sacrebleu
    from sacremoses import MosesPunctNormalizer, MosesTokenizer, __version__

    refuse_unequal("BLEU", hypotheses, references)
    replace, moses = MosesPunctNormalizer().replace_unicode_punct, MosesTokenizer(language)

    def prepared(line: str) -> str:
        return split_compounds(moses.tokenize(replace(line), return_str=True))

    metric = sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True)
    lines = [[prepared(line) for line in side] for side in (hypotheses, references)]
    score = metric.corpus_score(lines[0], [lines[1]]).score
    signature = str(metric.get_signature()).replace("tok:none", f"tok:moses-{language}+compounds")
    return Bleu(score, f"{signature}|sacremoses:{__version__}", len(hypotheses))


def split_compounds(line: str) -> str:
    """Tokens with each hyphen between two of their characters made a token of its own, ##AT##-##AT##.

    The rule does not look at a character twice: of hyphens one character apart it takes every other.

    Example:
        >>> split_compounds("der EU-Vertrag - seit 2007")
        'der EU ##AT##-##AT## Vertrag - seit 2007'
    """
    return _COMPOUND.sub(r"\1 ##AT##-##AT## \2", line)
