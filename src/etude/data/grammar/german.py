"""German inflection: the forms that a dictionary leaves out because they follow from the entry.

A person is an index into six forms: ich, du, er/sie/es, wir, ihr, sie. An agreement is what articles and adjectives
follow: the gender "m", "f" or "n" in the singular, "plural" for all three.
"""

import re
from dataclasses import dataclass

CASES = ("nominative", "accusative", "dative")
AGREEMENTS = ("m", "f", "n", "plural")

Forms = dict[tuple[str, str], str]
"""(agreement, case) -> form."""


def _paradigm(table: str) -> Forms:
    """Read rows of agreements and columns of cases; "-" stands for no ending."""
    rows = (line.split() for line in table.strip().splitlines())
    return {
        (row[0], case): "" if ending == "-" else ending
        for row in rows
        for case, ending in zip(CASES, row[1:], strict=True)
    }


DEFINITE = _paradigm("""
    m       der  den  dem
    f       die  die  der
    n       das  das  dem
    plural  die  die  den
""")
RELATIVE = DEFINITE | {("plural", "dative"): "denen"}

_STRONG = _paradigm("""
    m       er  en  em
    f       e   e   er
    n       es  es  em
    plural  e   e   en
""")
_WEAK = _paradigm("""
    m       e   en  en
    f       e   e   en
    n       e   e   en
    plural  en  en  en
""")
_MIXED = _paradigm("""
    m       er  en  en
    f       e   e   en
    n       es  es  en
    plural  en  en  en
""")
_EIN = _paradigm("""
    m       -   en  em
    f       e   e   er
    n       -   -   em
    plural  e   e   en
""")
ADJECTIVE_ENDINGS = {"strong": _STRONG, "weak": _WEAK, "mixed": _MIXED}

CONTRACTIONS = {
    "in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans",
    "zu dem": "zum", "zu der": "zur", "von dem": "vom", "bei dem": "beim",
}  # fmt: skip

_IRREGULAR_PRESENT = {
    "sein": ("bin", "bist", "ist", "sind", "seid", "sind"),
    "werden": ("werde", "wirst", "wird", "werden", "werdet", "werden"),
}
_NO_GE = re.compile(r"be|emp|ent|er|ge|ver|zer|.*ieren$")
_NEEDS_E = re.compile(r"([dt]|[^aeiouäöülrhmn][mn])$")

_ONES = ["null", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"]
_IRREGULAR_TEENS = {16: "sechzehn", 17: "siebzehn"}
_TENS = ["zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"]


@dataclass(frozen=True, slots=True)
class GermanVerb:
    """The forms of a verb.

    Attributes:
        prefix: what a main clause splits off: "an" of "anrufen", or ""
        infinitive, participle: with the prefix
        finite: the six forms of "present" and of "past", without the prefix
        auxiliary: "haben" or "sein", which makes the perfect
        preposition: (preposition, case) of a prepositional object, or None
    """

    prefix: str
    infinitive: str
    participle: str
    finite: dict[str, tuple[str, ...]]
    auxiliary: str
    preposition: tuple[str, str] | None


def verb(entry: str) -> GermanVerb:
    """Inflect a dictionary entry: "kaufen", "an|rufen ruft rief gerufen", "folgen +sein", "warten auf+accusative"."""
    words = entry.split()
    preposition = next((tuple(word.split("+")) for word in words if "+" in word[1:]), None)
    principal = [word for word in words if "+" not in word]
    prefix, _, infinitive = principal[0].rpartition("|")
    third, past, participle = principal[1:] or _weak_forms(infinitive)
    return GermanVerb(
        prefix=prefix,
        infinitive=prefix + infinitive,
        participle=prefix + participle,
        finite={"present": present(infinitive, third), "past": preterite(past)},
        auxiliary="sein" if "+sein" in words else "haben",
        preposition=preposition,  # type: ignore[arg-type]
    )


def present(infinitive: str, third: str) -> tuple[str, ...]:
    """The six forms of the present, the vowel change of "du siehst, er sieht" included."""
    if infinitive in _IRREGULAR_PRESENT:
        return _IRREGULAR_PRESENT[infinitive]
    stem = _stem(infinitive)
    second_plural = stem + ("et" if _NEEDS_E.search(stem) else "t")
    if third[-1] != "t":  # kann, muss, weiß: an old past tense
        first, second = third, _with_st(third)
    elif stem[-1] == "t" and not third.endswith("et"):  # halten: er hält, du hältst
        first, second = stem + "e", third + "st"
    else:
        first, second = stem + "e", _with_st(third[:-1])
    return first, second, third, infinitive, second_plural, infinitive


def preterite(first: str) -> tuple[str, ...]:
    """The six forms of the past, from that of the first person."""
    if first[-1] == "e":
        return first, first + "st", first, first + "n", first + "t", first + "n"
    link = "e" if first[-1] in "dtsß" else ""
    link_plural = "e" if first[-1] in "dt" else ""
    return first, f"{first}{link}st", first, first + "en", f"{first}{link_plural}t", first + "en"


def noun(singular: str, weak_ending: str, plural: str | None) -> dict[tuple[bool, str], str]:
    """(is plural, case) -> form; the weak declension has its ending in every case but the nominative."""
    forms = {(False, case): singular + ("" if case == "nominative" else weak_ending) for case in CASES}
    if plural is not None:
        forms |= {(True, case): plural for case in CASES}
        if plural[-1] not in "ns":
            forms[True, "dative"] = plural + "n"
    return forms


def determiner(stem: str, declension: str) -> Forms:
    """The forms of an article-like word: "der"; "ein", "mein", "kein" (mixed); "dies", "jed", "viel"."""
    if stem == "der":
        return DEFINITE
    endings = _EIN if declension == "mixed" else _STRONG
    return {key: stem + ending for key, ending in endings.items()}


def adjective(stem: str) -> dict[str, Forms]:
    """declension ("strong", "weak", "mixed") -> forms."""
    return {
        name: {key: stem + ending for key, ending in endings.items()} for name, endings in ADJECTIVE_ENDINGS.items()
    }


def numeral(number: int) -> str:
    """A number from 1 to 99 in words: "einundzwanzig"."""
    if number == 1:
        return "eins"
    if number < 13:
        return _ONES[number]
    if number < 20:
        return _IRREGULAR_TEENS.get(number, f"{_ONES[number - 10]}zehn")
    tens, ones = divmod(number, 10)
    return (f"{_ONES[ones]}und" if ones else "") + _TENS[tens - 2]


def _stem(infinitive: str) -> str:
    return infinitive[: -2 if infinitive.endswith("en") else -1]


def _with_st(form: str) -> str:
    return form + ("t" if form[-1] in "sßzx" else "st")


def _weak_forms(infinitive: str) -> tuple[str, str, str]:
    """Third person, past and participle of a weak verb."""
    stem = _stem(infinitive)
    link = "e" if _NEEDS_E.search(stem) else ""
    ge = "" if _NO_GE.match(infinitive) else "ge"
    return f"{stem}{link}t", f"{stem}{link}te", f"{ge}{stem}{link}t"
