"""WMT 2014 from a local server: archives of the names and the layout of the real ones, with a few lines in each."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hydra.utils import instantiate
from omegaconf import OmegaConf
from tests.data.conftest import serving
from tests.pieces import sentence_piece

from etude.config.parts import make
from etude.data.folder import make_folder
from etude.data.store import prepare
from etude.data.wmt import WMT, classify, describe_source, unpack
from etude.errors import UserError
from etude.paths import shipped

PAIRS = 60
CONFIGS = {
    language: OmegaConf.load(shipped("conf") / "data" / f"wmt14_en_{language}.yaml") for language in ("de", "fr")
}


def pack(path: Path, files: Mapping[str, bytes]) -> None:
    """Write a tar archive, gzipped where its name says so, with these files and a few of other languages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as tar:
        for name, content in {"README": b"", **files, "training/europarl-v7.cs-en.cs": b"ne\n"}.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def content_of(member: str, source: str, language: str) -> bytes:
    """What a member of an archive holds: sentences of its source, or a test set of two documents."""
    if member.endswith(".sgm"):
        segs = "".join(f'<seg id="{n}"> {source} {language} &amp; {n} </seg>\n' for n in range(1, 4))
        return "".join(f'<doc sysid="ref" docid="{doc}">\n{segs}</doc>\n' for doc in "ab").encode()
    text = "".join(f"{language} sentence {n} of {source}\n" for n in range(PAIRS)).encode()
    return gzip.compress(text) if member.endswith(".gz") else text


of_each_language = pytest.mark.parametrize("language", CONFIGS, indirect=True)


@pytest.fixture(scope="module")
def language(request: pytest.FixtureRequest) -> str:
    return getattr(request, "param", "de")


@pytest.fixture(scope="module")
def folder(language: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every archive that the config names."""
    folder = tmp_path_factory.mktemp("statmt")
    archives: dict[str, dict[str, bytes]] = {}
    for name, node in {**CONFIGS[language].sources, **CONFIGS[language].test_sets}.items():
        members = archives.setdefault(node.archive, {})
        for code, side in zip(CONFIGS[language].languages, ("source", "target"), strict=True):
            members[node[side]] = content_of(node[side], name, code)
    for archive, members in archives.items():
        pack(folder / archive, members)
    return folder


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with serving(folder) as url:
        yield url


@pytest.fixture
def corpus(language: str, folder: Path, url: str, tmp_path: Path) -> Callable[..., WMT]:
    """The corpus of the shipped config, the sums of its test sets replaced by those of the small archives."""

    def configured(**given: object) -> WMT:
        sums = {
            name: {"sum": hashlib.sha256((folder / node.archive).read_bytes()).hexdigest()}
            for name, node in CONFIGS[language].test_sets.items()
        }
        own = {"data": {"test_sets": sums, "url": url, "root": None} | given, "cache_dir": str(tmp_path / "cache")}
        whole = OmegaConf.merge({"data": CONFIGS[language]}, own)
        return make(OmegaConf.to_container(whole, resolve=True)["data"])  # type: ignore[index, call-overload]

    return configured


@of_each_language
def test_every_source_is_downloaded_unpacked_and_prepared(
    corpus: Callable[..., WMT], language: str, tmp_path: Path
) -> None:
    chosen = corpus()
    store = prepare(chosen, sentence_piece(120, hard_vocab_limit=False), tmp_path / "cache", 256)
    sources = list(CONFIGS[language].sources)
    assert sources[:3] == ["europarl_v7", "common_crawl", "news_commentary_v9"]
    assert sources[3:] == (["un", "giga_fren"] if language == "fr" else [])
    assert store.meta["sources"] == {name: {"pairs": PAIRS} for name in sources}
    pairs = [*chosen.pairs("train")]
    assert len(pairs) == PAIRS * len(sources) == len(store.split("train"))
    assert pairs[0] == ("en sentence 0 of europarl_v7", f"{language} sentence 0 of europarl_v7")
    for split, name in (("valid", "newstest2013"), ("test", "newstest2014")):
        assert store.text(split) == tuple([f"{name} {code} & {n}" for n in (1, 2, 3)] * 2 for code in ("en", language))


def test_the_text_has_no_fingerprint_before_what_is_not_pinned_has_been_read(
    corpus: Callable[..., WMT], folder: Path
) -> None:
    with pytest.raises(UserError, match=r"there is no .*training-parallel-europarl-v7\.tgz; run `etude prepare`"):
        corpus().fingerprint()
    corpus().fetch()
    met = corpus().fingerprint()
    archive = "wmt13/training-parallel-europarl-v7.tgz"
    pinned = {"europarl_v7": {"sum": hashlib.sha256((folder / archive).read_bytes()).hexdigest()}}
    assert corpus(sources=pinned).fingerprint() == met
    assert corpus(root=str(folder)).fingerprint() == met
    assert corpus(max_words=9).fingerprint() != met
    assert corpus(valid="newstest2012").fingerprint() != met
    others = ({"max_words": 9}, {"valid": "newstest2012"})
    assert corpus(test="newstest2012").training_fingerprint() == (trained := corpus().training_fingerprint())
    assert trained not in {corpus(**other).training_fingerprint() for other in others}


def test_another_archive_under_the_same_name_is_another_text(
    corpus: Callable[..., WMT], folder: Path, tmp_path: Path
) -> None:
    shifted = tmp_path / "mirror"
    for file in (file for file in folder.rglob("*") if file.is_file()):
        (shifted / file.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
        (shifted / file.relative_to(folder)).write_bytes(file.read_bytes())
    before = corpus(root=str(shifted)).fingerprint()
    node = corpus()._sources["common_crawl"]
    pack(shifted / str(node["archive"]), {str(node[side]): b"new\n" for side in ("source", "target")})
    changed = corpus(root=str(shifted))
    assert changed.fingerprint() != before
    assert ("new", "new") in [*changed.pairs("train")]


def test_a_pinned_archive_may_be_deleted_once_it_is_unpacked(corpus: Callable[..., WMT], tmp_path: Path) -> None:
    corpus().fetch()
    archive = tmp_path / "cache" / "downloads" / "wmt" / "wmt14" / "test-full.tgz"
    archive.unlink()
    again = corpus()
    again.fetch()
    assert next(again.pairs("test"))[0] == "newstest2014 en & 1"
    assert not archive.exists()


def test_a_wrong_checksum_is_one_sentence(corpus: Callable[..., WMT]) -> None:
    with pytest.raises(UserError, match=r"europarl-v7\.tgz is not the file it should be: expected MD5 0, got \w{32};"):
        corpus(sources={"europarl_v7": {"sum": "md5:0"}}).fetch()


def test_valid_and_test_are_any_of_the_test_sets_and_no_other(corpus: Callable[..., WMT], folder: Path) -> None:
    table3 = corpus(valid="newstest2012", test="newstest2013", root=str(folder))
    assert next(table3.pairs("test"))[0] == "newstest2013 en & 1"
    assert next(table3.pairs("valid"))[0] == "newstest2012 en & 1"
    told = r"data\.test=newstest2015: .* no such test set; there are newstest2012, newstest2013, newstest2014"
    with pytest.raises(UserError, match=told):
        corpus(test="newstest2015").fingerprint()


def test_a_direction_that_is_turned_by_halves_is_refused_and_turned_wholly_is_another_text(
    corpus: Callable[..., WMT], folder: Path, language: str
) -> None:
    turned = {"languages": [language, "en"], "root": str(folder)}
    with pytest.raises(UserError, match=rf"data\.languages=\[{language},en\], but the source of europarl_v7 is"):
        corpus(**turned)
    swapped = {
        key: {name: {"source": node.target, "target": node.source} for name, node in CONFIGS[language][key].items()}
        for key in ("sources", "test_sets")
    }
    ours = corpus(root=str(folder))
    for name, node in ours._test_sets.items():
        swapped["test_sets"][name]["sum"] = node["sum"]
    theirs = corpus(**turned, **swapped)
    for one in (ours, theirs):
        one.fetch()
    assert [*theirs.pairs("test")] == [pair[::-1] for pair in ours.pairs("test")]
    assert [*theirs.pairs("train")] == [pair[::-1] for pair in ours.pairs("train")]
    assert ours.fingerprint() != theirs.fingerprint()


def test_what_the_rules_leave_out_is_counted_by_source(
    corpus: Callable[..., WMT], folder: Path, language: str, tmp_path: Path
) -> None:
    node = CONFIGS[language].sources.europarl_v7
    lines = [("a b", "c d"), ("", "c"), ("a", " "), ("a " * 9, "b " * 7), ("a", "b b b b"), ("a", "b b b")]
    texts = {
        node[side]: "".join(f"{pair[k]}\n" for pair in lines).encode() for k, side in enumerate(("source", "target"))
    }
    pack(tmp_path / node.archive, texts)
    only = corpus(root=str(tmp_path), max_words=8, max_ratio=3.0)
    only._sources = {"europarl_v7": only._sources["europarl_v7"]}
    assert [*only.pairs("train")] == [("a b", "c d"), ("a", "b b b")]
    assert only.source_counts() == {"europarl_v7": {"pairs": 2, "blank": 2, "long": 1, "uneven": 1}}


@pytest.mark.parametrize("given", [None, {}, {"archive": None}, {"target": ""}])
def test_a_source_that_does_not_say_what_it_must_is_named(language: str, given: dict[str, object] | None) -> None:
    config = OmegaConf.to_container(OmegaConf.merge({"cache_dir": "c"}, {"data": CONFIGS[language]}), resolve=True)
    node = config["data"]["sources"]["common_crawl"]  # type: ignore[index, call-overload]
    config["data"]["sources"]["common_crawl"] = given and node | given  # type: ignore[index, call-overload]
    with pytest.raises(UserError, match=r"data\.sources\.common_crawl must say archive, source, target and sum"):
        make(config["data"])  # type: ignore[index, call-overload, arg-type]


@of_each_language
def test_the_shipped_config_is_what_instantiate_takes(language: str) -> None:
    config = OmegaConf.merge({"cache_dir": "cache"}, {"data": CONFIGS[language]})
    assert instantiate(config.data).languages == ("en", language)


@pytest.mark.parametrize(
    ("source", "target", "fate"),
    [
        ("a b", "c d e f g", "pairs"),
        ("a b c d e f", "c d e", "pairs"),
        (" \u00a0", "c", "blank"),
        ("a", "", "blank"),
        ("a b c d e f g", "a b c d e f", "long"),
        ("a", "b " * 7, "long"),
        ("a b", "c d e f g h", "uneven"),
        ("a b c d e f", "c  d", "uneven"),
    ],
)
def test_a_pair_goes_under_the_first_rule_that_it_breaks(source: str, target: str, fate: str) -> None:
    assert classify(source, target, max_words=6, max_ratio=2.5) == fate


def test_the_counts_of_a_source_are_told_in_one_line() -> None:
    assert describe_source({"pairs": 7}) == "7 of 7 pairs"
    assert describe_source({"uneven": 1, "pairs": 1996, "blank": 3}) == (
        "1,996 of 2,000 pairs (3 blank, 1 uneven left out)"
    )


def archive_of(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            member.size = 2 if member.isreg() else 0
            tar.addfile(member, io.BytesIO(b"a\n"))
    return path


def link(name: str, to: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, to
    return info


def unpacked(archive: Path, members: Mapping[str, str], folder: Path) -> list[str]:
    with make_folder(folder) as building:
        unpack(archive, members, building or folder)
    return sorted(file.name for file in folder.iterdir())


def test_the_members_asked_for_are_copied_under_names_of_our_own(tmp_path: Path) -> None:
    archive = archive_of(tmp_path / "a.tgz", *map(tarfile.TarInfo, ("training/x.de", "./training/x.en", "other")))
    assert unpacked(archive, {"training/x.de": "de", "training/x.en": "en"}, tmp_path / "new" / "out") == ["de", "en"]


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ([tarfile.TarInfo("../outside")], "is not unpacked, because it has a path outside of its folder"),
        ([tarfile.TarInfo("a/../../outside")], "is not unpacked, because it has a path outside of its folder"),
        ([link("l", "/etc/passwd")], "is not unpacked, because it has a path outside of its folder"),
        ([link("l", "../../x")], "is not unpacked, because it has a path outside of its folder"),
        ([tarfile.TarInfo("gold")], "holds no file missing; "),
    ],
    ids=["parent", "parent of a folder", "absolute link", "link to a parent", "no such member"],
)
def test_an_archive_that_climbs_out_or_lacks_a_member_is_refused_whole(
    tmp_path: Path, members: list[tarfile.TarInfo], told: str
) -> None:
    archive = archive_of(tmp_path / "a.tgz", tarfile.TarInfo("good"), *members)
    with pytest.raises(UserError, match=rf"a\.tgz {told}"):
        unpacked(archive, {"good": "good", "missing": "x"}, tmp_path / "out" / "text")
    assert [file.name for file in (tmp_path / "out").iterdir()] == [".text.lock"]
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_torn_archive_is_one_sentence(tmp_path: Path, share: float) -> None:
    archive = archive_of(tmp_path / "a.tgz", *(tarfile.TarInfo(f"file{n}") for n in range(40)))
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(UserError, match=r"a\.tgz (is not a complete archive|holds no file)"):
        unpacked(archive, {"file39": "text"}, tmp_path / "out")
