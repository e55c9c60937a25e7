import errno
import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from etude.errors import UserError
from etude.store.lock import Busy, hold, is_held


def test_one_holds_a_lock_and_all_others_see_it(tmp_path: Path) -> None:
    file = tmp_path / ".lock"
    assert not is_held(file)
    with hold(file, "busy"):
        assert is_held(file)
        with pytest.raises(Busy, match="busy"), hold(file, "busy"):
            pass
    assert not is_held(file)
    with hold(file, "busy"):
        pass


def test_whoever_looks_at_a_lock_takes_it_from_nobody(tmp_path: Path) -> None:
    """For a moment only: who asks for it at once is not told that it is held."""
    file = tmp_path / ".lock"
    file.touch()
    with file.open("rb") as opened:
        fcntl.flock(opened, fcntl.LOCK_SH)
        looks = Timer(0.03, lambda: fcntl.flock(opened, fcntl.LOCK_UN))
        looks.start()
        with hold(file, "busy"):
            looks.join()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else for a while")
def test_the_lock_of_another_user_is_seen() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        file = Path(folder, ".lock")
        with hold(file, "busy"):
            file.chmod(0o644)
            os.seteuid(65534)
            try:
                assert is_held(file)
            finally:
                os.seteuid(0)


def fails_with(number: int) -> Callable[..., None]:
    def flock(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    return flock


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.EACCES])
def test_a_lock_is_held_whatever_the_file_system_says_then(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".lock").touch()
    monkeypatch.setattr(fcntl, "flock", fails_with(number))
    assert is_held(tmp_path / ".lock")


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_named(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / ".lock"
    file.touch()
    monkeypatch.setattr(fcntl, "flock", fails_with(number))
    with (
        pytest.raises(UserError, match=r"this file system has no locks.*choose another place.*docs/clusters\.md"),
        hold(file, "busy"),
    ):
        pass
    with pytest.raises(UserError, match="this file system has no locks"):
        is_held(file)


def test_what_goes_wrong_while_a_lock_is_held_is_no_matter_of_the_lock(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="of the work"), hold(tmp_path / ".lock", "busy"):
        raise OSError(errno.ENOLCK, "of the work")
    assert not is_held(tmp_path / ".lock")


@pytest.mark.parametrize("replaced", [False, True])
def test_the_lock_of_a_folder_that_was_deleted_meanwhile_holds_nothing(
    replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has locked the file of old would work at once with one who locks the new one."""
    file, really = tmp_path / ".lock", fcntl.flock

    def flock(*arguments: Any) -> None:
        really(*arguments)
        file.unlink()
        if replaced:
            file.touch()
        monkeypatch.undo()

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(Busy, match="was moved or deleted meanwhile"), hold(file, "busy"):
        pass
