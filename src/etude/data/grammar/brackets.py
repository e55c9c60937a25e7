"""English as a tree: each constituent opens with its label and closes again, "(NP the dog )".

The grammar builds sentences that way, and the plain ones are what is left without the brackets.
"""

import re

_MARKS = re.compile(r" (?=[,.?]|'s\b)")
_FIRST_LETTER = re.compile(r"(?<= )[^\s()]")
_TIME_PREPOSITIONS = ("in", "at", "on")


def bracket(label: str, *parts: str) -> str:
    """A constituent of the parts that are not empty."""
    return f"({label} {' '.join(filter(None, parts))} )"


def inside(constituent: str) -> str:
    """What stands within the outermost brackets."""
    return constituent.partition(" ")[2].removesuffix(" )")


def verb_phrase(verbs: list[str], rest: list[str]) -> str:
    """Each verb, and "to" before an infinitive, with all that follows it as its complement."""
    phrase = " ".join(rest)
    for verb in reversed(verbs):
        phrase = bracket("VP", verb, phrase)
        if verb == "to":
            phrase = bracket("S", phrase)
    return phrase


def close_sentence(tree: str, mark: str) -> str:
    """The tree with a capital at its beginning and a mark at its end."""
    return _FIRST_LETTER.sub(lambda letter: letter[0].upper(), f"{tree.removesuffix(')')}{mark} )", count=1)


def leaves(tree: str) -> list[str]:
    """The words, punctuation and "'s" apart."""
    return [token for token in tree.split(" ") if token[0] not in "()"]


def plain(tree: str) -> str:
    """The words as they are written."""
    return _MARKS.sub("", " ".join(leaves(tree)))


def adverbial(words: str) -> str:
    """The constituent that words are: "often", "last week", "in the morning", "three days ago"; a tree stays one."""
    first, _, rest = words.partition(" ")
    if first in _TIME_PREPOSITIONS:
        return bracket("PP", first, bracket("NP", rest))
    if words.endswith(" ago"):
        return bracket("ADVP", bracket("NP", words.removesuffix(" ago")), "ago")
    return words if first.startswith("(") else bracket("NP" if rest else "ADVP", words)
