"""Trees in Penn-style brackets and as lines: one can be had from the other."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from etude.data.trees import Leaf, Tree, delinearize, linearize, normalize, read_trees, words
from etude.errors import UserError

JOHN = "( (S (NP-SBJ (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .)) )"


def read(folder: Path, text: str) -> list[Tree]:
    (folder / "trees.mrg").write_text(text, encoding="utf-8")
    return list(read_trees(folder / "trees.mrg"))


def line_of(folder: Path, text: str) -> str:
    [tree] = read(folder, text)
    kept = normalize(tree)
    assert kept is not None
    return linearize(kept)


def test_the_published_example_is_written_as_published_its_tags_normalised(tmp_path: Path) -> None:
    """Vinyals, Kaiser et al. 2015, figure 2."""
    assert line_of(tmp_path, JOHN) == "(S (NP XX )NP (VP XX (NP XX XX )NP )VP . )S"


def test_a_tree_may_stand_on_several_lines_and_lines_hold_several_trees(tmp_path: Path) -> None:
    assert read(tmp_path, JOHN.replace(" (VP", "\n\n   (VP") + JOHN) == 2 * read(tmp_path, JOHN)


@pytest.mark.parametrize("top", ["( {} )", "(TOP {})", "(ROOT {})", "(S1 {})", "{}"])
def test_the_top_is_called_what_it_likes(tmp_path: Path, top: str) -> None:
    assert line_of(tmp_path, top.format(JOHN[2:-2])) == line_of(tmp_path, JOHN)


def test_empty_elements_go_with_what_holds_nothing_else_and_labels_lose_their_functions(tmp_path: Path) -> None:
    text = (
        "( (S (NP-SBJ-1 (-NONE- *)) (NP=2 (-LRB- -LRB-) (NN x)) (VP (VB go) (SBAR (-NONE- 0) (S (-NONE- *T*-1)))"
        " (PRT|ADVP (RP up))) (. ?)) )"
    )
    assert line_of(tmp_path, text) == "(S (NP XX XX )NP (VP XX (PRT XX )PRT )VP . )S"


def test_of_a_tree_of_empty_elements_nothing_is_left(tmp_path: Path) -> None:
    [tree] = read(tmp_path, "( (S (NP (-NONE- *))) )")
    assert normalize(tree) is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (f"{JOHN}\n( (S (NP (DT the) (NN cat))\n{JOHN}\n", r"trees\.mrg, line 2: the tree .* does not close"),
        (f"{JOHN}\n{JOHN})\n", r"trees\.mrg, line 2: '\)' stands outside of any tree"),
        (f"\n\nhello {JOHN}", r"trees\.mrg, line 3: 'hello' stands outside"),
        ("( (S\n (NP the cat)))", r"trees\.mrg, line 2: .* neither \(TAG word\) nor"),
        ("( (S\n ()))", r"trees\.mrg, line 2: .* neither"),
        ("\n(NN cat)", r"trees\.mrg, line 2: .* neither"),
    ],
    ids=["a tree that does not close", "closed once more", "no tree", "words without tags", "nothing", "a bare word"],
)
def test_what_is_no_tree_is_told_with_file_and_line(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        read(tmp_path, text)


LABELS = st.sampled_from(["S", "NP", "VP", "PP", "ADVP"])
LEAVES = st.builds(Leaf, st.sampled_from(["XX", ",", ".", ":", "``", "''"]), st.text("abc'", min_size=1))
NODES = st.recursive(
    LEAVES, lambda inner: st.builds(Tree, LABELS, st.lists(inner, min_size=1, max_size=4).map(tuple)), max_leaves=20
)
TREES = st.builds(Tree, st.just("TOP"), st.lists(NODES, min_size=1, max_size=3).map(tuple))


@given(TREES)
def test_a_line_and_its_words_are_the_tree_again(tree: Tree) -> None:
    assert delinearize(linearize(tree), words(tree)) == tree


@given(TREES)
def test_a_normalised_tree_stays_as_it_is(tree: Tree) -> None:
    assert normalize(tree) == tree


@pytest.mark.parametrize(
    ("broken", "mended"),
    [
        ("(S (NP XX (VP XX", "(S (NP XX (VP XX )VP )NP )S"),
        ("(S (NP XX (VP XX )S", "(S (NP XX (VP XX )VP )NP )S"),
        ("(S XX )NP XX )S )S", "(S XX XX )S"),
        ("(S (NP )NP XX )S", "(S XX )S"),
        ("(S(NP XX)NP XX )S XX", "(S (NP XX )NP XX )S XX"),
        ("", ""),
    ],
    ids=["open at the end", "closed within", "closed without", "empty", "unspaced", "blank"],
)
def test_a_broken_line_is_mended(broken: str, mended: str) -> None:
    assert linearize(delinearize(broken)) == mended


@given(st.lists(st.sampled_from(["(S", ")S", "(NP", ")NP", "XX", ".", "(", ")"])).map(" ".join))
def test_whatever_a_model_writes_is_read_as_a_tree_of_as_many_words(line: str) -> None:
    tree = delinearize(line)
    assert len(tree.leaves) == len(re.findall(r"XX|\.", line))
    assert delinearize(linearize(tree)) == tree
