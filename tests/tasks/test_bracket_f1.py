"""Bracket F1 is EVALB's."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.data.trees import linearize, normalize, read_trees
from etude.errors import UserError
from etude.tasks.bracket_f1 import bracket_f1, count_brackets

GOLD = "(S (A (P this)) (B (Q is) (A (R a) (T test))))"
LONG = " ".join(["(A (P this)) (B (Q is) (A (R a) (T test)))"] * 11)

# The sentences that EVALB's own sample scores, with the brackets that its sample.rsl says are matched, gold, and test.
# The others are errors, or empty, for reasons that a line without words cannot have.
SAMPLE = [
    (GOLD, GOLD, (4, 4, 4)),
    (GOLD, "(S (A (P this)) (B (Q is) (C (R a) (T test))))", (3, 4, 4)),
    (GOLD, "(S (A (P this)) (B (Q is) (A (R a) (U test))))", (4, 4, 4)),
    (GOLD, "(S (C (P this)) (B (Q is) (A (R a) (U test))))", (3, 4, 4)),
    (GOLD, "(S (A (P this)) (B (Q is) (R a) (A (T test))))", (3, 4, 4)),
    (GOLD, "(S (A (P this) (Q is)) (A (R a) (T test)))", (2, 4, 3)),
    (GOLD, "(S (P this) (Q is) (R a) (T test))", (1, 4, 1)),
    (GOLD, "((P this) (Q is) (R a) (T test))", (0, 4, 0)),
    (GOLD, "(S (A (P this)) (B (Q is) (A (A (R a) (T test)))))", (4, 4, 5)),
    (GOLD, "(S (A (P this)) (B (Q is) (A (A (A (A (A (R a) (T test))))))))", (4, 4, 8)),
    (GOLD, f"(TOP {GOLD})", (4, 4, 4)),
    (GOLD, "(S (A (P this)) (B (Q is) (A (R a) (TT test))))", (4, 4, 4)),
    (GOLD, "(S (A (P This)) (B (Q is) (A (R a) (T test))))", (4, 4, 4)),
    ("(S (A-SBJ-1 (P this)) (B-WHATEVER (Q is) (A (R a) (T test))))", GOLD, (4, 4, 4)),
    (f"(S {LONG})", f"(S {LONG})", (34, 34, 34)),
    (f"{GOLD[:-1]} (-NONE- *))", f"{GOLD[:-1]} (-NONE- *))", (4, 4, 4)),
    (f"{GOLD[:-1]} (: *))", f"{GOLD[:-1]} (: *))", (4, 4, 4)),
]


@pytest.fixture
def lines(tmp_path: Path):
    """The lines of trees in brackets."""

    def of(*texts: str) -> list[str]:
        (tmp_path / "trees").write_text("\n".join(texts))
        return [linearize(kept) for tree in read_trees(tmp_path / "trees") if (kept := normalize(tree))]

    return of


def test_brackets_are_counted_as_in_the_sample_that_comes_with_evalb(lines) -> None:
    gold, test = lines(*(row[0] for row in SAMPLE)), lines(*(row[1] for row in SAMPLE))
    counts = [count_brackets(ours, theirs) for ours, theirs in zip(test, gold, strict=True)]
    assert counts == [row[2] for row in SAMPLE]
    recall, precision = 86 / 98, 86 / 95  # its summary prints 87.76 and 90.53
    assert bracket_f1(test, gold)["score"] == pytest.approx(100 * 2 * precision * recall / (precision + recall))


def test_where_the_words_are_not_as_many_nothing_matches_and_everything_counts() -> None:
    assert count_brackets("(S (NP XX )NP )S", "(S (NP XX )NP XX )S") == (0, 2, 2)
    assert bracket_f1(["(S XX )S", ""], ["(S XX )S", "(S XX )S"])["score"] == pytest.approx(200 / 3)


def test_the_corpus_is_scored_as_one_and_not_as_a_mean_of_sentences() -> None:
    right, wrong = "(S (NP XX )NP (VP XX )VP )S", "(S (X XX )X )S"
    found = bracket_f1([right, wrong], [right, "(S (NP XX )NP )S"])
    assert found["score"] == pytest.approx(100 * 2 * 4 / (5 + 5))
    assert found["signature"].startswith("EVALB|COLLINS.prm")


def test_no_bracket_that_matches_is_zero() -> None:
    assert bracket_f1(["XX"], ["(S XX )S"])["score"] == bracket_f1([""], ["XX"])["score"] == 0


@pytest.mark.parametrize("given", [([], []), (["XX"], ["XX", "XX"])])
def test_nothing_to_compare_is_refused(given: tuple[list[str], list[str]]) -> None:
    with pytest.raises(UserError, match="bracket F1"):
        bracket_f1(*given)


@st.composite
def trees(draw: st.DrawFn, size: int) -> str:
    """A line of `size` words: random spans that nest, nearly all of them about words only."""
    if size == 1 and draw(st.booleans()):
        return draw(st.sampled_from(["XX", "XX", ",", "."]))
    label = draw(st.sampled_from(["S", "NP", "ADVP", "PRT"]))
    cuts = sorted(draw(st.sets(st.integers(1, size - 1), max_size=2))) if size > 1 else []
    spans = [end - start for start, end in zip([0, *cuts], [*cuts, size], strict=True)]
    inner = " ".join(draw(trees(span)) if len(spans) > 1 else "XX " * span for span in spans)
    return f"({label} {inner} ){label}"


def by_hand(line: str, tags: list[str]) -> Counter[tuple[str, frozenset[int]]]:
    """Brackets as labelled sets of word numbers, by looking for the end of each by counting."""
    tokens, found = line.split(), Counter()
    for first, token in enumerate(tokens):
        if token[0] != "(":
            continue
        depth = 0
        for last in range(first, len(tokens)):
            depth += tokens[last][0] == "("
            depth -= tokens[last][0] == ")"
            if depth == 0:
                break
        before = sum(word[0] not in "()" for word in tokens[:first])
        inside = sum(word[0] not in "()" for word in tokens[first:last])
        held = frozenset(k for k in range(before, before + inside) if tags[k] == "XX")
        if held:
            found[token[1:].replace("PRT", "ADVP"), held] += 1
    return found


@given(st.integers(1, 7).flatmap(lambda size: st.tuples(trees(size), trees(size))))
def test_counting_sets_of_words_gives_the_same(pair: tuple[str, str]) -> None:
    ours, theirs = pair
    tags = [token for token in theirs.split() if token[0] not in "()"]
    test, gold = by_hand(ours, tags), by_hand(theirs, tags)
    assert count_brackets(ours, theirs) == ((gold & test).total(), gold.total(), test.total())
