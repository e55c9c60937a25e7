"""The journal of a search: what becomes of it when a process dies, or the disk is full."""

import errno
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from optuna.storages.journal import JournalFileBackend
from tests.search.world import World, carry_out, search, table

from etude.errors import UserError
from etude.search.journal import Journal

HOLDER = """
import sys, time
from pathlib import Path
from etude.search.journal import Journal
with Journal(Path(sys.argv[1]), "s", [False], {}).locked():
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_process_that_is_killed_while_it_writes_leaves_no_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "s.journal")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGKILL)
    assert Journal(tmp_path / "s.journal", "s", [False], {}).trials() == []


def test_a_journal_may_be_named_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert Journal(Path("runs/s.journal"), "s", [False], {}).path == tmp_path / "runs/s.journal"


@pytest.mark.parametrize("half", [b"{", b"x" * 10_000])
def test_half_a_line_is_cut_off_however_long_and_whole_ones_stay(half: bytes, tmp_path: Path) -> None:
    path = Journal(tmp_path / "s.journal", "s", [False], {}).path
    whole = path.read_bytes()
    path.write_bytes(whole + half)
    assert Journal(path, "s", [False], {}).trials() == []
    assert path.read_bytes() == whole


def test_on_a_full_disk_a_search_ends_with_a_sentence_and_later_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = table(carry_out(search(n_trials=5), World(tmp_path / "peace")))
    write, left = JournalFileBackend.append_logs, 20

    def full(self: JournalFileBackend, logs: list[dict[str, Any]]) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            with Path(self._file_path).open("ab") as file:
                file.write(b'{"op_')  # what there was room for
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, logs)

    world = World(tmp_path / "full")
    with monkeypatch.context() as patch:
        patch.setattr(JournalFileBackend, "append_logs", full)
        with pytest.raises(UserError, match=r"cannot write .*No space left on device; free some space and type the"):
            carry_out(search(n_trials=5), world)
    assert table(carry_out(search(n_trials=5), world)) == expected
