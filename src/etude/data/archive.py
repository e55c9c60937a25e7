"""Extract files safely from a tar archive of unknown origin."""

import shutil
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from etude.data.folder import make_folder
from etude.errors import UserError, did_you_mean


def unpack(archive: Path, members: Mapping[str, str], folder: Path) -> None:
    """Copy some members of a tar archive, compressed or not, into a new folder, all or none.

    No path of the archive is ever written to: the caller names each file. If the folder exists, nothing is done.

    Args:
        archive: the tar file.
        members: path inside the archive -> file name in `folder`.
        folder: the folder to create.

    Raises:
        UserError: the archive is broken, lacks a member, or has one whose path or link points outside.
    """
    with make_folder(folder) as building:
        if building is not None:
            _copy(archive, members, building)


def _copy(archive: Path, members: Mapping[str, str], folder: Path) -> None:
    if not hasattr(tarfile, "data_filter"):
        raise UserError(f"unpacking {archive} safely needs Python 3.11.4 or later: its tarfile can refuse paths")
    seen = []
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                tarfile.data_filter(member, str(folder))  # refuses paths and links that point outside, and devices
                name = member.name.removeprefix("./")
                seen.append(name)
                content = tar.extractfile(member) if name in members else None
                if content:
                    with content, (folder / members[name]).open("wb") as file:
                        shutil.copyfileobj(content, file, 1 << 20)
    except tarfile.FilterError as error:
        raise UserError(f"{archive} is not to be trusted, for a path in it climbs out: {error}") from error
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise UserError(f"{archive} is no whole archive ({error}): delete it, and get it anew") from error
    for name, file_name in members.items():
        if not (folder / file_name).is_file():
            raise UserError(f"{archive} holds no file {name}; {did_you_mean(name, seen)}")
