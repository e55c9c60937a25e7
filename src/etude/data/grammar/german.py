"""German inflection: derive the forms of a word from its dictionary entry.

A person is an index into six forms: ich, du, er/sie/es, wir, ihr, sie. An agreement is what articles and adjectives
agree with: the gender "m", "f" or "n" in the singular, "plural" for all genders.
"""

import re
from dataclasses import dataclass

CASES = ("nominative", "accusative", "dative")
AGREEMENTS = ("m", "f", "n", "plural")

Forms = dict[tuple[str, str], str]
"""(agreement, case) -> form."""


def _paradigm(table: str) -> Forms:
    """Parse a table of forms by case, with a bar between agreements; "-" is no ending."""
    return {
        (agreement, case): form.replace("-", "")
        for agreement, forms in zip(AGREEMENTS, table.split("|"), strict=True)
        for case, form in zip(CASES, forms.split(), strict=True)
    }


DEFINITE = _paradigm("der den dem | die die der | das das dem | die die den")
RELATIVE = DEFINITE | {("plural", "dative"): "denen"}
EIN_ENDINGS = _paradigm("- en em | e e er | - - em | e e en")
STRONG_ENDINGS = _paradigm("er en em | e e er | es es em | e e en")
ADJECTIVE_ENDINGS = {
    "strong": STRONG_ENDINGS,
    "weak": _paradigm("e en en | e e en | e e en | en en en"),
    "mixed": _paradigm("er en en | e e en | es es en | en en en"),
}
"""Declension, which depends on the word before the adjective -> endings."""

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
    """The forms of a verb."""

    prefix: str  # the separable prefix, such as "an" in "anrufen", or ""
    infinitive: str  # with the prefix
    participle: str  # with the prefix
    finite: dict[str, tuple[str, ...]]  # the six forms of "present" and of "past", without the prefix
    auxiliary: str  # of the perfect, "haben" or "sein"
    preposition: tuple[str, str] | None  # (preposition, case) of a prepositional object


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


def modal(entry: str) -> dict[str, tuple[str, ...]]:
    """Inflect a modal, by tense: "können kann konnte"; "möchte" has only the present, with past endings."""
    infinitive, *finite = entry.split()
    if not finite:
        return {"present": preterite(infinitive)}
    forms = {"present": present(infinitive, finite[0])}
    if finite[1:]:
        forms["past"] = preterite(finite[1])
    return forms


def present(infinitive: str, third: str) -> tuple[str, ...]:
    """Form the six persons of the present, including the vowel change of "du siehst, er sieht"."""
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
    """Form the six persons of the past from the first."""
    if first[-1] == "e":
        return first, first + "st", first, first + "n", first + "t", first + "n"
    link = "e" if first[-1] in "dtsß" else ""
    link_plural = "e" if first[-1] in "dt" else ""
    return first, f"{first}{link}st", first, first + "en", f"{first}{link_plural}t", first + "en"


def noun(singular: str, weak_ending: str, plural: str | None) -> dict[tuple[bool, str], str]:
    """Decline a noun: (is plural, case) -> form. A weak noun has its ending in every case but the nominative."""
    forms = {(False, case): singular + ("" if case == "nominative" else weak_ending) for case in CASES}
    if plural is not None:
        forms |= {(True, case): plural for case in CASES}
        if plural[-1] not in "ns":
            forms[True, "dative"] = plural + "n"
    return forms


def determiner(stem: str, declension: str) -> Forms:
    """Decline a determiner, given its stem: "der"; "ein", "mein", "kein" (mixed); "dies", "jed", "viel"."""
    if stem == "der":
        return DEFINITE
    endings = EIN_ENDINGS if declension == "mixed" else STRONG_ENDINGS
    return {key: stem + ending for key, ending in endings.items()}


def numeral(number: int) -> str:
    """Write a number from 1 to 99 in words: "einundzwanzig"."""
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
    """Form the third person, past and participle of a weak verb."""
    stem = _stem(infinitive)
    link = "e" if _NEEDS_E.search(stem) else ""
    ge = "" if _NO_GE.match(infinitive) else "ge"
    return f"{stem}{link}t", f"{stem}{link}te", f"{ge}{stem}{link}t"
