"""English sentences as bracketed trees: each constituent is "(LABEL words )", such as "(NP the dog )".

The grammar builds trees; the plain sentence is the tree without brackets.
"""

import re

_MARKS = re.compile(r" (?=[,.?]|'s\b)")
_FIRST_LETTER = re.compile(r"(?<= )[^\s()]")
_TIME_PREPOSITIONS = ("in", "at", "on")


def bracket(label: str, *parts: str) -> str:
    """Make a constituent of the parts that are not empty."""
    return f"({label} {' '.join(filter(None, parts))} )"


def inside(constituent: str) -> str:
    """Return what is within the outermost brackets."""
    return constituent.partition(" ")[2].removesuffix(" )")


def verb_phrase(verbs: list[str], rest: list[str]) -> str:
    """Make a verb phrase in which each verb, and "to" before an infinitive, has the rest as its complement."""
    phrase = " ".join(rest)
    for verb in reversed(verbs):
        phrase = bracket("VP", verb, phrase)
        if verb == "to":
            phrase = bracket("S", phrase)
    return phrase


def close_sentence(tree: str, mark: str) -> str:
    """Start the sentence with a capital letter, and end it with a punctuation mark."""
    return _FIRST_LETTER.sub(lambda letter: letter[0].upper(), f"{tree.removesuffix(')')}{mark} )", count=1)


def leaves(tree: str) -> list[str]:
    """Return the words of a tree; punctuation and "'s" are words of their own."""
    return [token for token in tree.split(" ") if token[0] not in "()"]


def plain(tree: str) -> str:
    """Return the sentence of a tree as it is written."""
    return _MARKS.sub("", " ".join(leaves(tree)))


def adverbial(words: str) -> str:
    """Make the constituent of an adverbial such as "often", "last week", "in the morning" or "three days ago".

    A tree is returned unchanged.
    """
    first, _, rest = words.partition(" ")
    if first in _TIME_PREPOSITIONS:
        return bracket("PP", first, bracket("NP", rest))
    if words.endswith(" ago"):
        return bracket("ADVP", bracket("NP", words.removesuffix(" ago")), "ago")
    return words if first.startswith("(") else bracket("NP" if rest else "ADVP", words)
