import io
import tarfile
from pathlib import Path

import pytest

from etude.data.archive import unpack
from etude.errors import UserError


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


def test_the_members_asked_for_are_copied_under_names_of_our_own(tmp_path: Path) -> None:
    archive = archive_of(tmp_path / "a.tgz", *map(tarfile.TarInfo, ("training/x.de", "./training/x.en", "other")))
    unpack(archive, {"training/x.de": "de", "training/x.en": "en"}, tmp_path / "new" / "out")
    assert sorted(file.name for file in (tmp_path / "new" / "out").iterdir()) == ["de", "en"]
    archive.unlink()
    unpack(archive, {"training/x.de": "de"}, tmp_path / "new" / "out")  # done already


@pytest.mark.parametrize(
    "member",
    [tarfile.TarInfo("../outside"), tarfile.TarInfo("a/../../outside"), link("l", "/etc/passwd"), link("l", "../../x")],
    ids=["parent", "parent of a folder", "absolute link", "link to a parent"],
)
def test_an_archive_with_a_path_that_climbs_out_is_refused_whole(tmp_path: Path, member: tarfile.TarInfo) -> None:
    archive = archive_of(tmp_path / "a.tgz", tarfile.TarInfo("good"), member)
    with pytest.raises(UserError, match=r"a\.tgz is not to be trusted, for a path in it climbs out"):
        unpack(archive, {"good": "good"}, tmp_path / "out" / "text")
    assert [file.name for file in (tmp_path / "out").iterdir()] == [".text.lock"]
    assert not (tmp_path / "outside").exists()


def test_a_member_that_is_not_there_names_the_nearest(tmp_path: Path) -> None:
    archive = archive_of(tmp_path / "a.tgz", tarfile.TarInfo("europarl-v7.de-en.de"))
    with pytest.raises(UserError, match=r"holds no file europarl-v7\.de-en\.en; did you mean europarl-v7\.de-en\.de"):
        unpack(archive, {"europarl-v7.de-en.en": "en"}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_torn_archive_is_one_sentence(tmp_path: Path, share: float) -> None:
    archive = archive_of(tmp_path / "a.tgz", *(tarfile.TarInfo(f"file{n}") for n in range(40)))
    whole = archive.read_bytes()
    archive.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(UserError, match=r"a\.tgz (is no whole archive|holds no file)"):
        unpack(archive, {"file39": "text"}, tmp_path / "out")
    assert not (tmp_path / "out").exists()
