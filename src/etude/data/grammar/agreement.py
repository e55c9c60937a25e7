"""Sentences in which a verb agrees with a distant subject, and the position of this verb.

In "The dogs that the old man has seen sleep ." the verb "sleep" is seven words after "dogs". No word between them shows
its number; "man" and "has" have the other number. In "The dogs that are old sleep ." the word "are" shows the number
again, so that the distance is only two.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from etude.data.corpus import Pair, digest
from etude.data.grammar import VERSION, GrammarCorpus
from etude.data.grammar.brackets import leaves
from etude.data.grammar.clauses import Clause, statement
from etude.data.grammar.draw_sentences import SentenceDrawer, ends_with_object
from etude.data.grammar.lexicon import Lexicon, shipped
from etude.data.grammar.selection import Selection
from etude.data.grammar.words import NounPhrase

AGREEMENT_VERSION = 1
"""The version of these sentences and questions. Increase it when a change of the grammar changes them, but no sentence
of `GrammarCorpus`."""

RELATIVE, WITHIN = 0.85, 0.5  # the share of noun phrases with a relative clause: in the main clause, in a relative one
DEPTH = 3  # the largest depth of nested relative clauses
COMMON = 4  # shorter distances are thinned out: of agreements with the next word every fourth is kept
SHOWN = frozenset({"present", "perfect", "progressive"})
"""The tenses whose finite verb shows its number."""

_AUXILIARIES = {"is": "are", "was": "were", "has": "have", "does": "do"}

Leaf = tuple[int, str]
Node = list[Any]
"""A list of a label and children: nodes, and leaves, which are (position in the sentence, word)."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of the finite verb of a main clause with its subject.

    Attributes:
        other: the form that the verb would have with a subject of the other number.
        position: the position of the verb; words and punctuation are counted from 0.
        distance: from the last word before it that shows the number of its subject; 1 for the next word.
        is_plural: whether the verb has the plural form, which "I" and "you" have too.
    """

    other: str
    position: int
    distance: int
    is_plural: bool


class Questions:
    """Finds the agreement in a sentence."""

    def __init__(self, lexicon: Lexicon) -> None:
        several = {verb.english.third: verb.english.base for verb in lexicon.verbs} | _AUXILIARIES
        self._several, self._one = several, {plural: singular for singular, plural in several.items()}

    def find(self, tree: str) -> Agreement | None:
        """Find the agreement in a statement; None if there is no other form for the other number ("I am")."""
        clause = _read(tree)
        subject, (position, verb) = _subject_and_verb(clause)
        other = self._other(verb)
        if subject is None or other is None:
            return None
        return Agreement(other, position, position - self._last_to_show_number(subject), verb in self._one)

    def _last_to_show_number(self, subject: Node) -> int:
        """Return the position of the noun, or of the verb of a relative clause whose subject is the noun."""
        last, _ = _head(subject)
        for relative in (part for part in subject[1:] if part[0] == "SBAR"):
            inner, (position, verb) = _subject_and_verb(relative[-1])
            if inner is None and self._other(verb):
                last = position
        return last

    def _other(self, verb: str) -> str | None:
        return self._several.get(verb) or self._one.get(verb)


class DistantDrawer(SentenceDrawer):
    """Draws statements whose verb shows its number, often far from its subject.

    At each distance singular and plural alternate. A corpus keeps the sentences of one split of these, so that it has
    about as many of both: a model that ignores the subject is right about half of the time.
    """

    def __init__(self, selection: Selection, random: Random) -> None:
        super().__init__(selection, random)
        self._questions, self._depth = Questions(selection.lexicon), 0
        self._last: dict[int, bool] = {}  # distance -> whether the verb was plural in the last sentence

    def sentence(self) -> Pair:
        """Draw the next sentence."""
        while True:
            pair = statement(self.clause(tenses=SHOWN, plain=True))
            found = self._questions.find(pair[0])
            if not found or not self.chance(found.distance / COMMON):
                continue
            if self._last.get(found.distance) != found.is_plural:
                self._last[found.distance] = found.is_plural
                return pair

    def _finish(self, clause: Clause, plain: bool) -> Clause:
        clause = super()._finish(clause, plain)
        share = WITHIN if self._depth else RELATIVE
        for phrase in (clause.subject, clause.object if ends_with_object(clause) else None):
            if isinstance(phrase, NounPhrase) and self._depth < DEPTH and self.chance(share):
                self._depth += 1
                phrase.relative = self.relative(phrase)
                self._depth -= 1
        return clause


class AgreementCorpus(GrammarCorpus):
    """Tokenised English sentences, each with the target "other-form position distance", see `Agreement`."""

    drawer = DistantDrawer
    words = range(4, 31)

    def __init__(self, **sizes: int) -> None:
        super().__init__(**sizes)
        self.languages = ("en", "question")

    def fingerprint_of(self, splits: Sequence[str]) -> str:
        """Hash the seed, the sizes, and the versions of the grammar and of these sentences; no other corpus's hash."""
        sizes = {split: self.sizes[split] for split in splits}
        return digest(["agreement", VERSION, AGREEMENT_VERSION, self.seed, sizes])

    def pairs(self, split: str) -> Iterator[Pair]:
        """Yield the sentences of a split, each with its agreement."""
        questions = Questions(shipped())
        for tree, _ in self.derivations(split):
            if found := questions.find(tree):
                yield " ".join(leaves(tree)), f"{found.other} {found.position} {found.distance}"


def _read(tree: str) -> Node:
    opened: list[Node] = [[]]
    place = 0
    for token in tree.split(" "):
        if token.startswith("("):
            opened.append([token[1:]])
        elif token == ")":
            closed = opened.pop()
            opened[-1].append(closed)
        else:
            opened[-1].append((place, token))
            place += 1
    sentence: Node = opened[0][0]
    return sentence


def _subject_and_verb(clause: Node) -> tuple[Node | None, Leaf]:
    """Return the noun phrase before the verb phrase, None if there is none, and the finite verb."""
    labels = [part[0] for part in clause]
    verb = labels.index("VP")
    subject = next((part for part in reversed(clause[1:verb]) if part[0] == "NP"), None)
    return subject, clause[verb][1]


def _head(phrase: Node) -> Leaf:
    """Return the noun, name or pronoun of a noun phrase: its last word, without relative clauses."""
    words = [part for part in phrase[1:] if isinstance(part, tuple)]
    return words[-1] if words else _head(phrase[1])
