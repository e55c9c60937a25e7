"""BLEU as the paper's authors measured it: on tokenised text, with hyphenated compounds split.

Tables 2 and 3 report this score, which is not comparable with sacreBLEU's. The recipe was published with the paper's
code: Unicode punctuation is replaced, the Moses tokenizer splits the text, compounds are split at their hyphens, and
multi-bleu scores what is between spaces, cased and unsmoothed. It was made for German. For another language the
tokenizer applies its rules for that language, or, if it has none, the abbreviations of English.
"""

import re
from collections.abc import Sequence
from typing import Any

from etude.tasks.bleu import score

_COMPOUND = re.compile(r"(\S)-(\S)")


def paper_bleu(hypotheses: Sequence[str], references: Sequence[str], language: str) -> dict[str, Any]:
    """Compute corpus BLEU by the paper's recipe, of plain, detokenised text.

    Args:
        hypotheses, references: line by line; several references of a line have tabs between them.
        language: the code of their language, such as "de".

    Raises:
        UserError: there is nothing to compare, or the line counts differ.
    """
    from sacrebleu import BLEU
    from sacremoses import MosesPunctNormalizer, MosesTokenizer, __version__

    replace, moses = MosesPunctNormalizer().replace_unicode_punct, MosesTokenizer(language)

    def tokenize(line: str) -> str:
        sides = (moses.tokenize(replace(one), return_str=True) for one in line.split("\t"))
        return "\t".join(map(split_compounds, sides))

    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    found = score("BLEU", metric, *([tokenize(line) for line in side] for side in (hypotheses, references)))
    signature = found["signature"].replace("tok:none", f"tok:moses-{language}+compounds")
    return found | {"signature": f"{signature}|sacremoses:{__version__}"}


def split_compounds(line: str) -> str:
    """Split tokens at hyphens between two characters; the hyphen becomes the token ##AT##-##AT##.

    As in the published script, matches do not overlap: of hyphens one character apart, only every other is split.

    Example:
        >>> split_compounds("der EU-Vertrag - seit 2007")
        'der EU ##AT##-##AT## Vertrag - seit 2007'
    """
    return _COMPOUND.sub(r"\1 ##AT##-##AT## \2", line)
