"""The Wall Street Journal's sections, in a made-up folder of the same form."""

from pathlib import Path
from typing import Any

import pytest

from etude.config.check import check
from etude.config.compose import compose
from etude.config.parts import make
from etude.config.resolve import resolve
from etude.data.wsj import Wsj
from etude.errors import UserError

TREE = """
( (S
    (NP-SBJ-1 (NNP {name}) )
    (VP (VBD slept)
      (S (NP-SBJ (-NONE- *-1) )))
    (. .) ))
"""
LINE = "(S (NP XX )NP (VP XX )VP . )S"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sections 00 to 24, two trees in each, as the Penn Treebank lays them out, and files that are none of it."""
    for section in range(25):
        here = tmp_path / "wsj" / f"{section:02}"
        here.mkdir(parents=True)
        for part in (1, 2):
            name = f"{section:02}{part:02}"
            (here / f"wsj_{name}.mrg").write_text(TREE.format(name=f"Name{name}"))
    (tmp_path / "wsj" / "README").write_text("(this is no tree")
    (tmp_path / "brown").mkdir()
    (tmp_path / "brown" / "cf01.mrg").write_text("(neither is this")
    return tmp_path


def corpus(root: object, *typed: str) -> Wsj:
    """`data=wsj` of a folder."""
    return make(resolve(compose(["data=wsj", f"data.root={root}", *typed]))["data"])


def test_sections_02_to_21_are_for_training_22_and_23_for_the_rest(folder: Path) -> None:
    made = corpus(folder)
    assert made.languages == ("en", "tree")
    pairs = {split: list(made.pairs(split)) for split in ("train", "valid", "test")}
    assert pairs["train"][0] == ("Name0201 slept .", LINE)
    assert [source.split()[0] for source, _ in pairs["train"]] == [
        f"Name{s:02}{n:02}" for s in range(2, 22) for n in (1, 2)
    ]
    assert [source.split()[0] for source, _ in pairs["valid"] + pairs["test"]] == [
        "Name2201", "Name2202", "Name2301", "Name2302"
    ]  # fmt: skip


def test_a_section_may_be_one_file(tmp_path: Path) -> None:
    for section in range(2, 24):
        (tmp_path / f"{section:02}.parse").write_text("(TOP (S (NP (PRP it)) (VP (VBZ rains)) (. .)))\n" * 2)
    assert list(corpus(tmp_path).pairs("test")) == [("it rains .", LINE)] * 2


def test_silver_trees_come_behind_those_of_the_sections(folder: Path, tmp_path: Path) -> None:
    silver = tmp_path / "more.txt"
    silver.write_text("(S (NP (PRP it)) (VP (VBZ rains)) (. .))\n")
    made = corpus(folder, f"data.silver=[{silver}]")
    assert list(made.pairs("train")) == [*corpus(folder).pairs("train"), ("it rains .", LINE)]
    assert list(made.pairs("valid")) == list(corpus(folder).pairs("valid"))
    assert made.fingerprint() != corpus(folder).fingerprint()
    assert made.training_fingerprint() != corpus(folder).training_fingerprint()
    assert corpus(folder, "data.sections.test=[22,22]").training_fingerprint() == corpus(folder).training_fingerprint()


def test_the_fingerprint_changes_with_what_the_files_hold_and_not_with_where_they_lie(folder: Path) -> None:
    before = corpus(folder).fingerprint()
    assert corpus(folder / "wsj").fingerprint() == before
    (folder / "wsj" / "07" / "wsj_0702.mrg").write_text(TREE.format(name="Nobody"))
    assert corpus(folder).fingerprint() != before


def test_a_tree_of_empty_elements_is_no_sentence(folder: Path) -> None:
    (folder / "wsj" / "23" / "wsj_2302.mrg").write_text("( (S (NP (-NONE- *)) ))")
    assert len(list(corpus(folder).pairs("test"))) == 1


def test_a_tree_that_does_not_close_is_told_with_file_and_line(folder: Path) -> None:
    (folder / "wsj" / "22" / "wsj_2202.mrg").write_text("\n( (S (NP (NNP Anna))\n")
    with pytest.raises(UserError, match=r"wsj_2202\.mrg, line 2: the tree that begins here does not close"):
        list(corpus(folder).pairs("valid"))


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"root": None}, r"data=wsj: no folder is named; set data\.root .* licensed"),
        ({"root": "nowhere"}, r"data=wsj: there is no folder nowhere; set data\.root .* licensed"),
        ({"silver": "more.parse"}, r"data\.silver=more\.parse must list files"),
        ({"silver": ["nothing.parse"]}, r"there is no file nothing\.parse"),
        (
            {"sections": {"train": 2}},
            r"data\.sections\.train=2 must name the first and the last section, such as \[2,21",
        ),
        ({"sections": {"train": [21, 2]}}, r"data\.sections\.train=\[21, 2\] must name"),
        ({"sections": {"train": [2, 21]}}, r"data\.sections\.valid=None must name"),
    ],
)
def test_what_is_not_there_is_told_in_one_sentence(folder: Path, given: dict[str, Any], complaint: str) -> None:
    config = resolve(compose(["data=wsj", f"data.root={folder}"]))["data"] | given
    with pytest.raises(UserError, match=complaint):
        make(config).fingerprint()


def test_missing_sections_are_named(folder: Path) -> None:
    for section in ("05", "23"):
        for file in (folder / "wsj" / section).iterdir():
            file.unlink()
    with pytest.raises(UserError, match=r"no \.mrg or \.parse file of section 05, 23"):
        corpus(folder).fingerprint()


def test_a_config_with_a_folder_passes_the_check(folder: Path) -> None:
    check(resolve(compose(["data=wsj", f"data.root={folder}", "metrics=bracket_f1", "decoding=parsing"])))
