import gzip
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from etude.config.parts import make
from etude.data.corpus import SPLITS, Pair
from etude.data.text_files import FilesCorpus
from etude.errors import UserError
from etude.paths import shipped


def files_corpus(**given: object) -> FilesCorpus:
    """`data=files` with what is given set."""
    config = OmegaConf.load(shipped("conf") / "data" / "files.yaml")
    return make(OmegaConf.to_container(OmegaConf.merge(config, given)))


def write_tsv(path: Path, pairs: list[Pair]) -> str:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return str(path)


def numbered(count: int) -> list[Pair]:
    return [(f"sentence {n}", f"Satz {n}") for n in range(count)]


def splits_of(corpus: FilesCorpus) -> Mapping[str, list[Pair]]:
    return {split: list(corpus.pairs(split)) for split in SPLITS}


def test_two_files_and_one_tsv_hold_the_same_pairs(tmp_path: Path) -> None:
    pairs = numbered(40)
    tsv = files_corpus(tsv=write_tsv(tmp_path / "a.tsv", pairs), holdout=3)
    for side, name in enumerate(("a.en", "a.de.gz")):
        text = "".join(f"{pair[side]}\n" for pair in pairs).encode()
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    two = files_corpus(source=str(tmp_path / "a.en"), target=str(tmp_path / "a.de.gz"), holdout=3)
    assert splits_of(tsv) == splits_of(two)


def test_given_files_are_taken_as_they_are(tmp_path: Path) -> None:
    train, valid, test = numbered(5), [("v", "w"), ("", "")], [("sentence 1", "Satz 1")]
    corpus = files_corpus(
        tsv=write_tsv(tmp_path / "train.tsv", train),
        valid={"tsv": write_tsv(tmp_path / "valid.tsv", valid)},
        test={"tsv": write_tsv(tmp_path / "test.tsv", test)},
    )
    assert splits_of(corpus) == {"train": train, "valid": valid, "test": test}


def test_held_out_pairs_are_as_many_as_asked_for_and_in_one_split_only(tmp_path: Path) -> None:
    pairs = numbered(100)
    splits = splits_of(files_corpus(tsv=write_tsv(tmp_path / "a.tsv", pairs), holdout=10))
    assert [len(splits[split]) for split in SPLITS] == [80, 10, 10]
    assert sorted(chain.from_iterable(splits.values())) == sorted(pairs)


def test_a_repeated_sentence_is_never_in_two_splits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="etude")
    pairs = [(f"sentence {n % 20}", f"Übersetzung {n}") for n in range(100)]
    splits = splits_of(files_corpus(tsv=write_tsv(tmp_path / "a.tsv", pairs), holdout=4))
    assert [len(splits[split]) for split in SPLITS] == [60, 4, 4]
    sources = {split: {source for source, _ in pairs} for split, pairs in splits.items()}
    assert not sources["train"] & sources["valid"]
    assert not sources["train"] & sources["test"]
    assert not sources["valid"] & sources["test"]
    assert caplog.messages[-1] == (
        "holding out 8 pairs of the training text for valid and test, and leaving out 32 that repeat their sources"
    )


def test_the_hold_out_does_not_depend_on_the_order_of_the_lines_and_barely_on_new_ones(tmp_path: Path) -> None:
    pairs = numbered(200)
    before = files_corpus(tsv=write_tsv(tmp_path / "a.tsv", pairs), holdout=20)
    turned = files_corpus(tsv=write_tsv(tmp_path / "b.tsv", pairs[::-1]), holdout=20)
    grown = files_corpus(tsv=write_tsv(tmp_path / "c.tsv", [("new", "neu"), *pairs]), holdout=20)
    valid = set(before.pairs("valid"))
    assert valid == set(turned.pairs("valid"))
    assert len(valid & set(grown.pairs("valid"))) >= 19


def test_only_the_lacking_split_is_held_out(tmp_path: Path) -> None:
    valid = {"tsv": write_tsv(tmp_path / "valid.tsv", [("v", "w")])}
    corpus = files_corpus(tsv=write_tsv(tmp_path / "a.tsv", numbered(50)), valid=valid, holdout=5)
    assert {split: len(pairs) for split, pairs in splits_of(corpus).items()} == {"train": 45, "valid": 1, "test": 5}


def test_blank_lines_are_never_held_out(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    blank = "\n\n" + "".join(f"only source {n}\t\n" for n in range(50))
    file.write_text(blank + "".join(f"s{n}\tt{n}\n" for n in range(8)))
    splits = splits_of(files_corpus(tsv=str(file), holdout=2))
    assert [len(splits[split]) for split in SPLITS] == [52 + 4, 2, 2]
    assert all(source and target for split in ("valid", "test") for source, target in splits[split])


@pytest.mark.parametrize(
    ("pairs", "holdout", "way_out"),
    [(100, 0, "from 1 to 25"), (100, 26, "from 1 to 25"), (3, 1, r"give more text, or give files \(data\.valid")],
)
def test_a_hold_out_that_leaves_too_little_is_an_error_that_says_how_much_there_is(
    tmp_path: Path, pairs: int, holdout: int, way_out: str
) -> None:
    corpus = files_corpus(tsv=write_tsv(tmp_path / "a.tsv", numbered(pairs)), holdout=holdout)
    with pytest.raises(UserError, match=rf"data\.holdout={holdout} .* {pairs} different .*{way_out}"):
        list(corpus.pairs("valid"))


def test_the_fingerprint_follows_the_text_and_nothing_else(tmp_path: Path) -> None:
    path = write_tsv(tmp_path / "a.tsv", numbered(50))
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(Path(path).read_bytes()))
    first = files_corpus(tsv=path, holdout=5).fingerprint()
    assert len(first) == 16
    assert files_corpus(tsv=str(packed), holdout=5).fingerprint() == first
    assert files_corpus(tsv=path, holdout=6).fingerprint() != first
    write_tsv(tmp_path / "a.tsv", numbered(51))
    assert files_corpus(tsv=path, holdout=5).fingerprint() != first


def test_files_to_test_on_are_not_trained_on_and_held_out_text_is_missed(tmp_path: Path) -> None:
    path = write_tsv(tmp_path / "a.tsv", numbered(50))
    given = [{"tsv": write_tsv(tmp_path / f"{n}.tsv", numbered(n)), "source": None, "target": None} for n in (3, 4)]
    one, other = (files_corpus(tsv=path, holdout=5, test=test) for test in given)
    assert one.training_fingerprint() == other.training_fingerprint()
    assert [*one.pairs("train")] == [*other.pairs("train")]
    apart = files_corpus(tsv=path, holdout=5), files_corpus(tsv=path, holdout=6, test=given[0])
    for changed in apart:
        assert changed.training_fingerprint() != one.training_fingerprint()
        assert [*changed.pairs("train")] != [*one.pairs("train")]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("no tab here\n", r"line 1: 1 column where at least 2"),
        ("a\tb\n\nc\n", r"line 3: 1 column where 2"),
        ("a\tb\nc\td\te\n", r"line 2: 3 columns where 2"),
    ],
)
def test_a_line_with_other_columns_is_reported_with_file_and_line(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "a.tsv"
    file.write_text(text)
    with pytest.raises(UserError, match=r"a\.tsv, " + complaint):
        list(files_corpus(tsv=str(file)).pairs("train"))


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({}, "data"),
        ({"source": "a"}, "data"),
        ({"source": "a", "target": "b", "tsv": "c"}, "data"),
        ({"tsv": "c", "valid": {"target": "b"}}, "data.valid"),
    ],
)
def test_files_that_do_not_make_a_corpus_are_an_error_that_names_the_keys(given: dict[str, object], key: str) -> None:
    with pytest.raises(UserError, match=rf"needs {key}\.source and {key}\.target, two files, or {key}\.tsv alone"):
        files_corpus(**given).fingerprint()


def test_a_missing_file_is_an_error_from_the_fingerprint_on(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no file .*lost\.tsv"):
        files_corpus(tsv=str(tmp_path / "lost.tsv")).fingerprint()


def test_what_stands_in_the_training_text_too_is_counted_in_one_sentence_a_split(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    train = write_tsv(tmp_path / "train.tsv", numbered(40))
    test = write_tsv(tmp_path / "test.tsv", [*numbered(3), ("", ""), ("sentence 5", "another"), ("a new one", "neu")])
    files_corpus(tsv=train, test={"tsv": test}, holdout=3).fetch()
    [told] = caplog.messages
    assert told.startswith("3 of 5 lines of the test text are lines of the training text too, source and target alike")


def test_text_that_is_held_out_is_not_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files_corpus(tsv=write_tsv(tmp_path / "train.tsv", numbered(40) * 2), holdout=3).fetch()
    assert not caplog.messages


def test_a_sentence_with_other_white_space_is_the_same_sentence(tmp_path: Path) -> None:
    """The tokens are the same, so that it must not be trained on in one spelling and tested in the other."""
    pairs = [(f"{mark.join(('line', str(n)))} .", f"zeile {n}") for n in range(40) for mark in (" ", "  ", "\u00a0")]
    splits = splits_of(files_corpus(tsv=write_tsv(tmp_path / "a.tsv", pairs), holdout=8))
    words = {name: {" ".join(source.split()) for source, _ in rows} for name, rows in splits.items()}
    assert not words["train"] & words["test"]
    assert not words["train"] & words["valid"]
    assert not words["valid"] & words["test"]


FOUR = [("id", "english", "score", "german"), *((str(n), f"sentence {n}", "0.5", f"Satz {n}") for n in range(60))]


def write_columns(path: Path, rows: list[tuple[str, ...]]) -> str:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("rows", "source", "target"),
    [
        (FOUR[1:], 2, 4),
        (FOUR, "english", "german"),
        (FOUR, "english", 4),
        ([row[::-1] for row in FOUR], "english", "german"),
    ],
)
def test_columns_are_chosen_by_number_or_by_name(
    rows: list[tuple[str, ...]], source: int | str, target: int | str, tmp_path: Path
) -> None:
    file = write_columns(tmp_path / "four.tsv", rows)
    splits = {split: {"tsv": file} for split in ("valid", "test")}
    corpus = files_corpus(tsv=file, **splits, columns={"source": source, "target": target})
    assert splits_of(corpus) == dict.fromkeys(SPLITS, numbered(60)), "the header is no pair"


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"source": 2}, r"must give source and target"),
        ({"source": 0, "target": 1}, r"must give source and target, each by number from 1 on"),
        ({"source": 2, "target": 1.5}, r"must give source and target"),
        ({"source": 2, "target": 5}, r"four\.tsv, line 1: 4 columns where at least 5 are due"),
        (
            {"source": "english", "target": "germn"},
            r"the first line of .*four\.tsv has no column germn; did you mean ger",
        ),
    ],
)
def test_columns_that_are_not_there_are_one_sentence(
    columns: dict[str, object], complaint: str, tmp_path: Path
) -> None:
    file = write_columns(tmp_path / "four.tsv", FOUR)
    with pytest.raises(UserError, match=complaint):
        list(files_corpus(tsv=file, columns=columns, holdout=3).pairs("train"))


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(("order", "side"), [((0, 1), "column 1, the source"), ((1, 2), "column 2, the target")])
def test_numbers_alone_are_no_sentences_unless_they_are_asked_for(
    order: tuple[int, int], side: str, header: bool, tmp_path: Path
) -> None:
    """A score or an id stands first, as in corpora mined from the web; or numbers are what is to be learned."""
    file = write_columns(tmp_path / "a.tsv", [tuple(row[k] for k in order) for row in FOUR[not header :]])
    with pytest.raises(
        UserError, match=rf"a\.tsv: {side}, holds numbers alone, such as ([01]|0\.5): .*data\.columns\.source="
    ):
        files_corpus(tsv=file, holdout=3).fetch()
    told = files_corpus(tsv=file, columns={"source": 1, "target": 2}, holdout=3)
    told.fetch()
    assert told.fingerprint() == files_corpus(tsv=file, holdout=3).fingerprint(), "it is the same text"


def write_lines(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def test_several_references_are_files_or_columns_and_the_first_of_them_is_trained_on(tmp_path: Path) -> None:
    a, b, c = (write_lines(tmp_path / name, [f"{name} 1", f"{name}\t2"]) for name in "abc")
    rows = write_lines(tmp_path / "rows.tsv", ["a 1\tb 1\tc 1", "a 2\tb 2\tc 2"])
    files = files_corpus(source=a, target=b, valid={"source": a, "target": b}, test={"source": a, "target": [b, c]})
    columns = files_corpus(tsv=rows, valid={"tsv": rows}, test={"tsv": rows}, columns={"source": 1, "target": [2, 3]})
    paired, both = [("a 1", "b 1"), ("a\t2", "b 2")], [("a 1", "b 1\tc 1"), ("a 2", "b 2\tc 2")]
    assert splits_of(files) == {"train": paired, "valid": paired, "test": [("a 1", "b 1\tc 1"), ("a\t2", "b 2\tc 2")]}
    assert splits_of(columns) == {"train": [("a 1", "b 1"), ("a 2", "b 2")], "valid": both, "test": both}
    one = files_corpus(source=a, target=b, valid={"source": a, "target": b}, test={"source": a, "target": b})
    assert one.fingerprint() != files.fingerprint()
    assert one.training_fingerprint() == files.training_fingerprint()


def test_held_out_pairs_have_all_references(tmp_path: Path) -> None:
    rows = write_lines(tmp_path / "rows.tsv", [f"a {n}\tb {n}\tc {n}" for n in range(30)])
    splits = splits_of(files_corpus(tsv=rows, columns={"source": 1, "target": [2, 3]}, holdout=4))
    assert all(target.count("\t") == 0 for _, target in splits["train"])
    assert all(target == f"b {source[2:]}\tc {source[2:]}" for source, target in splits["valid"] + splits["test"])
    assert [len(splits[split]) for split in SPLITS] == [22, 4, 4]


def test_a_reference_file_of_other_lines_is_named(tmp_path: Path) -> None:
    a, b, c = (write_lines(tmp_path / name, [name] * lines) for name, lines in (("a", 2), ("b", 2), ("c", 3)))
    corpus = files_corpus(source=a, target=b, valid={"source": a, "target": b}, test={"source": a, "target": [b, c]})
    with pytest.raises(UserError, match=r"a has 2 lines but .*c has 3; line k of one"):
        list(corpus.pairs("test"))
