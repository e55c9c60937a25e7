"""English inflection: derive the forms of a word from its dictionary entry.

A person is an index into six forms: I, you, he/she/it, we, you (plural), they.
"""

import re
from dataclasses import dataclass

THIRD_SINGULAR, THIRD_PLURAL = 2, 5

BE = {"present": ("am", "are", "is", "are", "are", "are"), "past": ("was", "were", "was", "were", "were", "were")}

_ENDS_IN_HISS = re.compile(r"(s|x|z|ch|sh|[^aeiou]o)$")
_ENDS_IN_CONSONANT_Y = re.compile(r"[^aeiou]y$")
_DOUBLES_ITS_CONSONANT = re.compile(r"^[^aeiou]*[aeiou][bdgmnprt]$")
_IRREGULAR_THIRD = {"have": "has", "be": "is"}

_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


@dataclass(frozen=True, slots=True)
class EnglishVerb:
    """The forms of a verb, and its particle or preposition."""

    base: str
    third: str
    past: str
    participle: str
    gerund: str
    rest: str  # a particle or preposition, "up", "for", or ""
    movable: bool  # whether a pronoun comes before the particle: "picks him up"

    def finite(self, tense: str, person: int) -> str:
        """Return the form for a tense, "present" or "past", and the person of the subject."""
        if self.base == "be":
            return BE[tense][person]
        if tense == "past":
            return self.past
        return self.third if person == THIRD_SINGULAR else self.base

    @property
    def hides_tense(self) -> bool:
        """Whether present and past look the same: "they read"."""
        return self.past == self.base


def verb(entry: str) -> EnglishVerb:
    """Inflect a dictionary entry: "call", "see/saw/seen", "pick|up", "look for", "wake/woke/woken up"."""
    head, separator, rest = re.fullmatch(r"([^ |]+)([ |]?)(.*)", entry).groups()  # type: ignore[union-attr]
    base, *given = head.split("/")
    past, participle, gerund = given + [_past(base), _past(base), _gerund(base)][len(given) :]
    third = _IRREGULAR_THIRD.get(base, plural(base))
    return EnglishVerb(base, third, past, participle, gerund, rest, separator == "|")


def auxiliary(entry: str) -> EnglishVerb:
    """Inflect a modal, which has only a present and perhaps a past: "can/could", "may", "would like to"."""
    head, _, rest = entry.partition(" ")
    present, _, past = head.partition("/")
    return EnglishVerb(present, present, past, "", "", rest, False)


def plural(word: str) -> str:
    """Form the regular plural of a noun, and by the same rules the third person of a verb."""
    if _ENDS_IN_CONSONANT_Y.search(word):
        return word[:-1] + "ies"
    return word + ("es" if _ENDS_IN_HISS.search(word) else "s")


def article(following: str) -> str:
    """Return "a" or "an", by the first letter of the next word."""
    return "an" if following[0] in "aeiou" else "a"


def numeral(number: int) -> str:
    """Write a number from 1 to 99 in words: "twenty-one"."""
    if number < 20:
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")


def _past(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if _ENDS_IN_CONSONANT_Y.search(base):
        return base[:-1] + "ied"
    return _doubled(base) + "ed"


def _gerund(base: str) -> str:
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith(("ee", "be")):
        return base[:-1] + "ing"
    return _doubled(base) + "ing"


def _doubled(base: str) -> str:
    return base + base[-1] if _DOUBLES_ITS_CONSONANT.match(base) else base
