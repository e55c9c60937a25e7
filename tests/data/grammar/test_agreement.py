"""Sentences in which a verb agrees with its subject over a distance."""

from collections import Counter

import pytest
from hydra.utils import instantiate

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.data.corpus import SPLITS, Pair, digest
from etude.data.grammar import GrammarCorpus
from etude.data.grammar.agreement import Agreement, AgreementCorpus, Questions
from etude.data.grammar.treebank import Treebank

SIZES = {"train_pairs": 2000, "valid_pairs": 40, "test_pairs": 50}
WHO, THAT, EAT = "(WHNP who )", "(WHNP that )", "(S (VP eat ) )"


def corpus(**changed: int) -> AgreementCorpus:
    return AgreementCorpus(**{"seed": 1, "vocab_size": 500} | SIZES | changed)


@pytest.mark.parametrize(
    ("tree", "other", "position", "distance", "is_plural"),
    [
        ("(S (NP The dog ) (VP sleeps ) . )", "sleep", 2, 1, False),
        ("(S (NP They ) (VP are (VP working ) ) . )", "is", 1, 1, True),
        ("(S (NP (NP Anna 's ) dogs ) not (VP have (VP slept ) ) . )", "has", 4, 2, True),
        ("(S (NP last week ) (NP the dogs ) (ADVP often ) (VP sleep ) . )", "sleeps", 5, 2, True),
        # nothing but the noun shows the number: its own clause is in the past, or is about somebody else
        (f"(S (NP (NP The dog ) (SBAR {THAT} (S (VP saw (NP cats ) ) ) ) ) (VP sleeps ) . )", "sleep", 5, 4, False),
        (
            f"(S (NP (NP The dogs ) (SBAR {THAT} (S (NP a man ) (VP sees ) ) ) ) (VP do not (VP see (NP it ) ) ) . )",
            *("does", 6, 5, True),
        ),
        # the verb of its clause shows it again
        (f"(S (NP (NP Men ) (SBAR {WHO} (S (VP are (ADJP old ) ) ) ) ) (VP sleep ) . )", "sleeps", 4, 2, True),
        # but not that of a clause within that clause
        (
            f"(S (NP (NP Men ) (SBAR {WHO} (S (VP saw (NP (NP cows ) (SBAR {THAT} {EAT} ) ) ) ) ) ) (VP go ) . )",
            *("goes", 6, 6, True),
        ),
    ],
)
def test_distances_counted_by_hand(tree, other, position, distance, is_plural, lexicon):
    assert Questions(lexicon).find(tree) == Agreement(other, position, distance, is_plural)


@pytest.mark.parametrize("tree", ["(S (NP I ) (VP am (ADJP old ) ) . )", "(S (NP He ) (VP can (VP sleep ) ) . )"])
def test_a_verb_with_one_form_for_both_numbers_is_no_question(tree, lexicon):
    assert Questions(lexicon).find(tree) is None


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[Pair]]:
    return {split: [*corpus().pairs(split)] for split in SPLITS}


def test_the_other_form_behind_a_pronoun_is_outside_the_grammar(drawn):
    right, wrong = set(), set()
    for sentence, question in drawn["train"]:
        other, position, _ = question.split()
        pronoun, verb = sentence.lower().split()[:2]
        if position == "1" and pronoun in ("he", "she", "they"):
            right.add((pronoun == "they", verb))
            wrong.add((pronoun == "they", other))
    assert len(wrong) > 10
    assert not right & wrong


def test_who_always_says_the_same_number_is_right_half_of_the_time_at_every_distance(lexicon, drawn):
    singular = {verb.english.third for verb in lexicon.verbs} | {"is", "has", "does"}
    counts: dict[int, Counter[bool]] = {}
    for sentence, question in drawn["train"]:
        _, position, distance = question.split()
        counts.setdefault(int(distance), Counter())[sentence.split()[int(position)] in singular] += 1
    assert max(counts) >= 20
    for count in counts.values():
        assert abs(count[True] - count[False]) <= 3 + 0.2 * count.total()
    assert sum(count[True] for count in counts.values()) == pytest.approx(SIZES["train_pairs"] / 2, rel=0.05)


def test_the_text_of_version_1_stays_what_it_is(drawn):
    """Runs on it are told apart by version: whoever changes it raises `AGREEMENT_VERSION`, and this digest."""
    assert digest([*drawn.values()]) == "c49b1c99a9d33108"


def test_the_config_gives_what_it_says():
    config = resolve(compose(["data=agreement", "data.train_pairs=70"]))["data"]
    made = instantiate(config)
    assert (made.languages, made.vocab_size) == (("en", "question"), config["vocab_size"])
    assert len(list(made.pairs("train"))) == 70
    assert made.fingerprint() == instantiate(config | {"vocab_size": 7}).fingerprint()
    assert len({instantiate(config | {"seed": seed}).fingerprint() for seed in (1, 2)}) == 2


def test_no_other_corpus_of_the_grammar_has_the_fingerprints_of_this_one():
    sizes = {"seed": 1, "train_pairs": 30, "valid_pairs": 10, "test_pairs": 10, "vocab_size": 100}
    texts = [AgreementCorpus(**sizes), GrammarCorpus(**sizes), Treebank(**sizes, silver=0, silver_errors=0.05)]
    assert len({text.fingerprint() for text in texts}) == 3
    assert len({text.training_fingerprint() for text in texts}) == 3
    longer = AgreementCorpus(**sizes | {"test_pairs": 20})
    assert longer.fingerprint() != texts[0].fingerprint()
    assert longer.training_fingerprint() == texts[0].training_fingerprint()
