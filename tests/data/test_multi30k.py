import gzip
import hashlib
from pathlib import Path

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf
from tests.data.conftest import serving

from etude.data.corpus import SPLITS, digest
from etude.data.multi30k import Multi30k
from etude.errors import UserError
from etude.paths import shipped

LANGUAGES = ["de", "fr"]


def from_config(language: str, cache: Path, **given: object) -> Multi30k:
    """`data=multi30k_en_<language>` with what is given set."""
    config = OmegaConf.load(shipped("conf") / "data" / f"multi30k_en_{language}.yaml")
    return instantiate(OmegaConf.merge({"cache_dir": str(cache)}, {"data": config}, {"data": given}).data)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the six files, two short lines in each."""
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("train", "val", "test_2016_flickr"):
        for language in ("en", "de"):
            (folder / f"{name}.{language}.gz").write_bytes(gzip.compress(f"{name} {language}\n2\n".encode(), mtime=0))
    return folder


def small(folder: Path, cache: Path, **given: object) -> Multi30k:
    """Multi30k whose pinned sums are those of `folder`."""
    sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    return from_config("de", cache, **{"sums": sums, **given})


@pytest.mark.parametrize("target", LANGUAGES)
def test_the_real_corpus_has_its_published_size(multi30k_root: Path, tmp_path: Path, target: str) -> None:
    corpus = from_config(target, tmp_path, root=str(multi30k_root))
    assert corpus.languages == ("en", target)
    counts = [sum(1 for source, translation in corpus.pairs(split) if source and translation) for split in SPLITS]
    assert counts == [29_000, 1_014, 1_000]
    assert next(corpus.pairs("test"))[0] == "A man in an orange hat starring at something."


def test_the_fingerprint_needs_no_data_and_tells_the_languages_apart(tmp_path: Path) -> None:
    prints = {from_config(target, tmp_path / "nothing", root=None).fingerprint() for target in LANGUAGES}
    assert len(prints) == 2
    assert all(len(fingerprint) == 16 for fingerprint in prints)


def test_the_fingerprint_does_not_depend_on_where_the_files_lie(tmp_path: Path) -> None:
    here, there = (from_config("de", tmp_path, root=root).fingerprint() for root in (None, "elsewhere"))
    assert here == there
    assert from_config("de", tmp_path, root="").root is None


@pytest.mark.parametrize("target", LANGUAGES)
def test_the_files_in_use_are_pinned_and_those_of_other_test_sets_are_listed(tmp_path: Path, target: str) -> None:
    names = {f"{split}.{language}.gz" for split in ("train", "val", "test_2016_flickr") for language in ("en", target)}
    others = {f"test_2017_{name}.{language}.gz" for name in ("flickr", "mscoco") for language in ("en", target)}
    corpus = from_config(target, tmp_path)
    assert {name for name, pinned in corpus.sums.items() if pinned} == names
    assert {name for name, pinned in corpus.sums.items() if not pinned} == others
    assert corpus.url.startswith("https://")


def test_fetching_downloads_the_files_and_then_they_are_read(folder: Path, tmp_path: Path) -> None:
    with serving(folder) as url:
        corpus = small(folder, tmp_path / "cache", root=None, url=f"{url}/")
        corpus.fetch()
    corpus.fetch()  # nothing left to ask for
    assert list(corpus.pairs("valid")) == [("val en", "val de"), ("2", "2")]
    assert (tmp_path / "cache" / "downloads" / "multi30k" / "train.en.gz").is_file()


def test_a_folder_of_the_users_is_read_and_nothing_is_downloaded(folder: Path, tmp_path: Path) -> None:
    corpus = small(folder, tmp_path / "cache", root=str(folder), url="http://127.0.0.1:1")
    corpus.fetch()
    assert next(corpus.pairs("test")) == ("test_2016_flickr en", "test_2016_flickr de")


def test_a_file_that_is_not_the_published_one_is_refused_and_left_alone(folder: Path, tmp_path: Path) -> None:
    corpus = small(folder, tmp_path / "cache", root=str(folder))
    changed = folder / "val.de.gz"
    changed.write_bytes(gzip.compress(b"changed\n2\n"))
    with pytest.raises(
        UserError, match=r"val\.de\.gz is not the file it should be: expected SHA-256 \w{64}, got \w{64}"
    ):
        list(corpus.pairs("valid"))
    assert changed.is_file()


@pytest.mark.parametrize(("root", "way_out"), [(None, "etude prepare"), ("files", r"data\.root must hold")])
def test_a_missing_file_is_an_error_with_the_way_out(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str | None, way_out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = small(folder, tmp_path / "cache", root=root)
    (folder / "train.de.gz").unlink()
    with pytest.raises(UserError, match=rf"there is no .*train.*gz; .*{way_out}"):
        list(corpus.pairs("train"))


def test_another_test_set_is_read_and_pinned_by_what_was_read(folder: Path, tmp_path: Path) -> None:
    def of_2017() -> Multi30k:
        return from_config("de", tmp_path / "cache", root=str(folder), sums=sums, test="test_2017_flickr")

    sums = {name: None if "2017" in name else pinned for name, pinned in small(folder, tmp_path).sums.items()}
    first = small(folder, tmp_path / "cache", root=str(folder)).fingerprint()
    for language in ("en", "de"):
        (folder / f"test_2017_flickr.{language}.gz").write_bytes(gzip.compress(f"2017 {language}\n".encode()))
    second = of_2017().fingerprint()
    assert [*of_2017().pairs("test")] == [("2017 en", "2017 de")]
    assert [*of_2017().pairs("valid")] == [("val en", "val de"), ("2", "2")]
    (folder / "test_2017_flickr.de.gz").write_bytes(gzip.compress(b"changed\n"))
    assert len({first, second, of_2017().fingerprint()}) == 3
    assert of_2017().training_fingerprint() == small(folder, tmp_path / "cache").training_fingerprint()


def test_a_test_set_that_there_is_not_names_those_there_are(tmp_path: Path) -> None:
    told = r"data\.test=test_2019: .* there are test_2016_flickr, test_2017_flickr, test_2017_mscoco$"
    with pytest.raises(UserError, match=told):
        from_config("de", tmp_path, test="test_2019").fingerprint()


@pytest.mark.parametrize("target", LANGUAGES)
def test_the_fingerprint_of_the_default_knows_nothing_of_other_test_sets(tmp_path: Path, target: str) -> None:
    corpus = from_config(target, tmp_path)
    names = [[f"{stem}.{code}.gz" for code in ("en", target)] for stem in ("train", "val", "test_2016_flickr")]
    assert corpus.fingerprint() == digest([[corpus.sums[name] for name in pair] for pair in names])


def test_a_language_without_sums_names_the_key(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data\.sums has no SHA-256 for train\.cs\.gz"):
        from_config("de", tmp_path, target="cs").fingerprint()
