"""Datasets made here, as files that the package reads: nothing is asked of the hub."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from etude.config.parts import make
from etude.data.corpus import SPLITS
from etude.data.huggingface import HuggingFaceCorpus
from etude.data.running_text import RunningText, read_pieces
from etude.errors import UserError
from etude.paths import shipped

Make = Callable[..., HuggingFaceCorpus]

PAIRS = [(f"line {n}\n of two", f"Zeile {n}") for n in range(2500)]


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """`data=huggingface` with what is given set."""
    datasets = pytest.importorskip("datasets", reason="needs the extra huggingface: pip install 'etude[huggingface]'")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)

    def configured(**given: object) -> HuggingFaceCorpus:
        config = OmegaConf.load(shipped("conf") / "data" / "huggingface.yaml")
        whole = OmegaConf.merge({"cache_dir": str(tmp_path / "cache")}, {"data": config}, {"data": given})
        return make(OmegaConf.to_container(whole, resolve=True)["data"])  # type: ignore[index, call-overload]

    return configured


def write(folder: Path, form: str) -> dict[str, str]:
    """The pairs as files of a format, one a split, under the names that the hub's datasets have."""
    import datasets

    folder.mkdir(exist_ok=True)
    files = {}
    for split, rows in (("train", PAIRS), ("validation", PAIRS[:3]), ("test", PAIRS[3:5])):
        files[split] = str(folder / f"{split}.{form}")
        made = datasets.Dataset.from_list([{"id": "x", "translation": {"en": s, "de": t}} for s, t in rows])
        if form == "arrow":
            made.with_format("arrow")
            import pyarrow

            table = made.data.table
            with pyarrow.OSFile(files[split], "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table)
        else:
            getattr(made, f"to_{form}")(files[split])
    return files


@pytest.mark.parametrize("form", ["json", "parquet", "arrow"])
def test_the_columns_of_files_of_any_format_are_the_pairs(corpus: Make, tmp_path: Path, form: str) -> None:
    chosen = corpus(path=form, data_files=write(tmp_path / "files", form))
    chosen.fetch()
    expected = [(" ".join(source.split()), target) for source, target in PAIRS]
    assert {split: list(chosen.pairs(split)) for split in SPLITS} == {
        "train": expected,
        "valid": expected[:3],
        "test": expected[3:5],
    }
    assert chosen.source_counts() == {}


def test_a_folder_is_a_dataset_and_a_split_may_be_a_part_of_another(
    corpus: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "files", "parquet")
    chosen = corpus(
        path=str(tmp_path / "files"), splits={"train": "train[10:-5]", "valid": "train[:10]", "test": "train[-5:]"}
    )
    chosen.fetch()
    assert [sum(1 for _ in chosen.pairs(split)) for split in SPLITS] == [2485, 10, 5]
    assert "lines of the training text" not in caplog.text


def test_a_part_that_is_trained_on_too_is_counted(
    corpus: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus(path="json", data_files=write(tmp_path / "files", "json"), splits={"valid": "train[:10]"}).fetch()
    told = [message for message in caplog.messages if "lines of the training text" in message]
    assert [line.partition(" text are")[0] for line in told] == [
        "10 of 10 lines of the valid",
        "2 of 2 lines of the test",
    ]


def test_a_column_of_lists_is_no_text(corpus: Make, tmp_path: Path) -> None:
    """Python's way to write a list would be trained on."""
    (tmp_path / "a.json").write_text(json.dumps({"tokens": ["a", "dog"]}) + "\n")
    files = dict.fromkeys(("train", "validation", "test"), str(tmp_path / "a.json"))
    with pytest.raises(UserError, match=r"data\.columns .* one holds \['a', 'dog'\], a list"):
        corpus(path="json", data_files=files, columns={"source": "tokens", "target": None}).fetch()


def test_plain_text_is_its_own_target(corpus: Make, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n\ntwo\n")
    file = str(tmp_path / "a.txt")
    files = {"train": file, "validation": file, "test": file}
    chosen = corpus(path="text", data_files=files, columns={"source": "text", "target": None})
    chosen.fetch()
    assert list(chosen.pairs("test")) == [("one", "one"), ("", ""), ("two", "two")]


def test_the_text_is_pinned_by_what_was_taken_and_taken_anew_when_files_change(corpus: Make, tmp_path: Path) -> None:
    files = write(tmp_path / "files", "json")
    with pytest.raises(UserError, match=r"data\.path=json has not been taken yet: run `etude prepare`"):
        corpus(path="json", data_files=files).fingerprint()
    corpus(path="json", data_files=files).fetch()
    first = corpus(path="json", data_files=files).fingerprint()
    trained = corpus(path="json", data_files=files).training_fingerprint()
    assert first != corpus(path="json", data_files=files, languages=["en", "nl"]).fingerprint()
    Path(files["test"]).write_text(json.dumps({"translation": {"en": "new", "de": "neu"}}) + "\n")
    changed = corpus(path="json", data_files=files)
    changed.fetch()
    assert [*changed.pairs("test")] == [("new", "neu")]
    assert changed.fingerprint() != first
    assert changed.training_fingerprint() == trained


def test_files_behind_a_pattern_are_taken_anew_when_they_change(corpus: Make, tmp_path: Path) -> None:
    files = write(tmp_path / "files", "json")
    patterns = {split: str(Path(file).with_suffix(".js*")) for split, file in files.items()}
    corpus(path="json", data_files=patterns).fetch()
    Path(files["test"]).write_text(json.dumps({"translation": {"en": "new", "de": "neu"}}) + "\n")
    changed = corpus(path="json", data_files=patterns)
    changed.fetch()
    assert [*changed.pairs("test")] == [("new", "neu")]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"path": None}, r"needs data\.path"),
        ({"columns": {"source": "translation.eng"}}, r"no column translation\.eng; did you mean translation\.en"),
        ({"splits": {"valid": "dev"}}, r"datasets cannot load data\.path=json, split dev: Unknown split \"dev\""),
        ({"path": "nobody/has-this", "data_files": None}, r"datasets cannot load data\.path=nobody/has-this"),
    ],
)
def test_what_cannot_be_had_is_one_sentence(corpus: Make, tmp_path: Path, given: dict[str, object], told: str) -> None:
    files = write(tmp_path / "files", "json")
    with pytest.raises(UserError, match=told) as caught:
        corpus(**{"path": "json", "data_files": files} | given).fetch()
    assert "\n" not in str(caught.value)


def test_without_the_package_the_command_that_brings_it_is_told(
    corpus: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r"data=huggingface needs datasets: pip install 'etude\[huggingface\]'"):
        corpus(path="json").fetch()


def test_the_number_zero_is_no_missing_value(corpus: Make, tmp_path: Path) -> None:
    rows = [{"text": "a", "label": 0}, {"text": "b", "label": 1}, {"text": "c", "label": None}]
    (tmp_path / "a.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    file = str(tmp_path / "a.json")
    files = {"train": file, "validation": file, "test": file}
    chosen = corpus(path="json", data_files=files, columns={"source": "text", "target": "label"})
    chosen.fetch()
    assert [target.partition(".")[0] for _, target in chosen.pairs("test")] == ["0", "1", ""]


def test_running_text_is_the_rows_of_a_column_with_their_line_breaks(corpus: Make, tmp_path: Path) -> None:
    documents = {
        "train": ["one\n\ntwo \u2028 lines", "", "drei", None],
        "validation": ["vier"],
        "test": ["fünf", "sechs"],
    }
    files = {}
    for split, rows in documents.items():
        files[split] = str(tmp_path / f"{split}.jsonl")
        Path(files[split]).write_text("".join(json.dumps({"text": row, "n": 1}) + "\n" for row in rows))

    def configured(**given: object) -> RunningText:
        config = OmegaConf.load(shipped("conf") / "data" / "text_huggingface.yaml")
        del config["defaults"]
        own = {"path": "json", "data_files": files, **given}
        whole = OmegaConf.merge({"cache_dir": str(tmp_path / "cache")}, {"data": config}, {"data": own})
        return make(OmegaConf.to_container(whole, resolve=True)["data"])  # type: ignore[index, call-overload]

    text = configured()
    with pytest.raises(UserError, match="has not been taken yet"):
        text.fingerprint()
    text.fetch()
    assert [list(read_pieces(text, split)) for split in SPLITS] == [
        [(row, True) for row in rows if row] for rows in documents.values()
    ]
    assert text.fingerprint() == configured().fingerprint() != configured(documents="mask").fingerprint()
    with pytest.raises(UserError, match=r"data\.column must name a column of text, and one holds 1"):
        configured(column="n").fetch()
    with pytest.raises(UserError, match="has no column txt; did you mean text"):
        configured(column="txt").fetch()
