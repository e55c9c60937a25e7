"""The embedded treebank: the grammar's sentences and their trees."""

import re
from collections import Counter
from hashlib import blake2b

import pytest
from hydra.utils import instantiate

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.data.corpus import SPLITS
from etude.data.grammar import GrammarCorpus, treebank
from etude.data.grammar.treebank import Treebank, linear
from etude.data.trees import delinearize, linearize, words

SIZES = {"train_pairs": 300, "valid_pairs": 40, "test_pairs": 50}
TREE = "(S (NP The cat ) , (VP has (VP slept ) ) ? )"


def corpus(**changed: float) -> Treebank:
    """A small treebank."""
    return Treebank(**{"seed": 1, "vocab_size": 500, "silver": 0, "silver_errors": 0.1} | SIZES | changed)


def test_the_config_gives_what_it_says() -> None:
    config = resolve(compose(["data=treebank", "data.train_pairs=70"]))["data"]
    made = instantiate(config)
    assert (made.languages, made.vocab_size) == (("en", "tree"), config["vocab_size"])
    assert [len(list(made.pairs(split))) for split in SPLITS] == [70, config["valid_pairs"], config["test_pairs"]]


def test_the_line_of_a_tree_has_labels_at_both_ends_and_tags_for_words() -> None:
    assert linear(TREE) == "(S (NP XX XX )NP , (VP XX (VP XX )VP )VP . )S"


TREES = """
He did not have to work . | (S (NP XX )NP (VP XX XX (VP XX (S (VP XX (VP XX )VP )VP )S )VP )VP . )S
Every dog should wake up . | (S (NP XX XX )NP (VP XX (VP XX (PRT XX )PRT )VP )VP . )S
He came to the concert . | (S (NP XX )NP (VP XX (PP XX (NP XX XX )NP )PP )VP . )S
Some hotels that were new were big . | (S (NP (NP XX XX )NP (SBAR (WHNP XX )WHNP (S (VP XX (ADJP XX )ADJP )VP )S )SBAR \
)NP (VP XX (ADJP XX )ADJP )VP . )S
A young dog that my white dog followed ate the eggs . | (S (NP (NP XX XX XX )NP (SBAR (WHNP XX )WHNP (S (NP XX XX XX \
)NP (VP XX )VP )S )SBAR )NP (VP XX (NP XX XX )NP )VP . )S
Where do we come today ? | (SBARQ (WHADVP XX )WHADVP (SQ XX (NP XX )NP (VP XX (ADVP XX )ADVP )VP )SQ . )SBARQ
Is a man rich ? | (SQ XX (NP XX XX )NP (ADJP XX )ADJP . )SQ
In the kitchen there is a picture . | (S (PP XX (NP XX XX )NP )PP (NP XX )NP (VP XX (NP XX XX )NP )VP . )S
Because we have the hat , we will sleep . | (S (SBAR XX (S (NP XX )NP (VP XX (NP XX XX )NP )VP )S )SBAR , (NP XX )NP \
(VP XX (VP XX )VP )VP . )S
You ate her apple because it snowed . | (S (NP XX )NP (VP XX (NP XX XX )NP (SBAR XX (S (NP XX )NP (VP XX )VP )S )SBAR \
)VP . )S
We did not laugh and a man drank water . | (S (S (NP XX )NP (VP XX XX (VP XX )VP )VP )S XX (S (NP XX XX )NP (VP XX (NP \
XX )NP )VP )S . )S
""".strip().splitlines()


def test_verbs_nest_and_prepositions_clauses_and_questions_are_constituents_of_their_kind() -> None:
    drawn = dict(corpus().pairs("train"))
    assert [f"{words} | {drawn.get(words)}" for words in (line.partition(" | ")[0] for line in TREES)] == TREES


def test_its_sentences_are_those_of_the_grammar_cut_into_words() -> None:
    plain = GrammarCorpus(seed=1, vocab_size=500, **SIZES)
    for split in SPLITS:
        joined = [re.sub(r" ([,.?]|'s)", r"\1", source) for source, _ in corpus().pairs(split)]
        assert joined == [source for source, _ in plain.pairs(split)]


def test_each_line_is_a_tree_of_its_words() -> None:
    for source, target in corpus(train_pairs=3000).pairs("train"):
        tree = delinearize(target, source.split())
        assert linearize(tree) == target
        assert words(tree) == source.split()
        assert len(tree.children) == 1


def test_the_trees_have_the_labels_of_the_penn_treebank() -> None:
    found = Counter(re.findall(r"\((\w+)", " ".join(target for _, target in corpus(train_pairs=3000).pairs("train"))))
    assert found.keys() == {
        "S", "SQ", "SBARQ", "SBAR", "NP", "VP", "PP", "PRT", "ADVP", "ADJP", "WHNP", "WHADVP"
    }  # fmt: skip


def test_no_sentence_has_two_trees() -> None:
    trees: dict[str, set[str]] = {}
    for seed in (1, 2):
        for source, target in corpus(seed=seed, train_pairs=15_000).pairs("train"):
            trees.setdefault(source, set()).add(target)
    assert len(trees) < 30_000, "some sentences should have been drawn twice"
    assert [source for source, found in trees.items() if len(found) > 1] == []


def test_silver_trees_come_behind_the_gold_ones_and_lack_some_constituents() -> None:
    gold = list(corpus(train_pairs=1200).pairs("train"))
    mixed = list(corpus(train_pairs=300, silver=3).pairs("train"))
    assert mixed[:300] == gold[:300]
    assert [source for source, _ in mixed] == [source for source, _ in gold]
    counts = [sum(target.count("(") - 1 for _, target in pairs[300:]) for pairs in (gold, mixed)]
    assert counts[1] / counts[0] == pytest.approx(0.9, abs=0.01)
    for _, target in mixed:
        assert linearize(delinearize(target)) == target
    assert mixed[300:] == list(corpus(train_pairs=300, silver=3).pairs("train"))[300:]


def test_valid_and_test_are_gold() -> None:
    for split in ("valid", "test"):
        assert list(corpus(silver=2).pairs(split)) == list(corpus().pairs(split))


@pytest.mark.parametrize("changed", [{"seed": 2}, {"train_pairs": 301}, {"silver": 1}, {"test_pairs": 51}])
def test_the_fingerprint_changes_with_what_changes_the_text(changed: dict[str, int]) -> None:
    assert corpus(**changed).fingerprint() != corpus().fingerprint()
    same = corpus(**changed).training_fingerprint() == corpus().training_fingerprint()
    assert same == ("test_pairs" in changed)


def test_what_is_gold_and_how_bad_the_silver_is_are_in_the_fingerprint() -> None:
    silver = {"train_pairs": 150, "silver": 1}
    prints = [corpus(**more).fingerprint() for more in ({}, silver, silver | {"silver_errors": 0.2})]
    assert len(set(prints)) == 3
    assert corpus(silver_errors=0.2).fingerprint() == corpus().fingerprint(), "there is no silver"


def test_the_trees_are_those_of_their_version() -> None:
    """Where they are meant to change, raise `TREES_VERSION` and add what the new ones hash to."""
    trees = {1: "97f9882463c54ac2"}
    made = corpus(train_pairs=4000, valid_pairs=1000, test_pairs=1000)
    text = blake2b(digest_size=8)
    for split in SPLITS:
        text.update("".join(f"{source}\t{target}\n" for source, target in made.pairs(split)).encode())
    assert trees[treebank.TREES_VERSION] == text.hexdigest()
