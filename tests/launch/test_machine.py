import os
from pathlib import Path

import pytest

from etude.launch.options import parse_gpu_list, visible_gpus

LISTING = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-4a1b)
  MIG 1g.10gb     Device  0: (UUID: MIG-11)
  MIG 1g.10gb     Device  1: (UUID: MIG-12)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-5c2d)
GPU 10: NVIDIA H100 80GB HBM3 (UUID: GPU-6e3f)
"""


def test_gpus_are_known_by_number_and_slices_by_their_own_ids() -> None:
    assert parse_gpu_list(LISTING) == ("MIG-11", "MIG-12", "1", "10")
    assert parse_gpu_list("No devices were found\n") == ()


@pytest.mark.parametrize(
    ("named", "ids"),
    [
        ("2,0", ("2", "0")),
        (" 1, GPU-5c ", ("1", "GPU-5c")),
        ("", ()),
        ("-1", ()),
        ("3,-1,4", ("3",)),
        ("1,1", ("1",)),
        ("NoDevFiles", ()),
    ],
)
def test_what_cuda_visible_devices_names_is_all_there_is(
    named: str, ids: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert visible_gpus() == ids


def test_else_the_driver_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "nvidia-smi"
    driver.write_text(f"#!/bin/sh\n[ \"$1\" = -L ] && cat <<'END'\n{LISTING}END\n")
    driver.chmod(0o755)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert visible_gpus() == ("MIG-11", "MIG-12", "1", "10")


def test_a_machine_without_a_driver_has_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert visible_gpus() == ()
