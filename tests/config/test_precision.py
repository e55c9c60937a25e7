"""`precision=auto` is what the machine's GPUs can do, and a run is named for that and not for the word."""

import os

import pytest

from etude.config import precision
from etude.config.compose import compose
from etude.config.identity import resolve
from etude.runs.material import identify


@pytest.fixture
def gpus(tmp_path, monkeypatch):
    """A machine whose `nvidia-smi` knows GPUs of these compute capabilities."""

    def found(*capabilities: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text("#!/bin/sh\n" + "".join(f"echo {one}\n" for one in capabilities))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
        precision._gpus_have_bf16.cache_clear()

    yield found
    precision._gpus_have_bf16.cache_clear()


@pytest.mark.parametrize(
    ("capabilities", "trainer", "expected"),
    [
        (["9.0"], "auto", "bf16-mixed"),
        (["8.0", "8.6"], "gpu", "bf16-mixed"),
        (["9.0"], "cpu", "32-true"),
        (["9.0", "7.0"], "auto", "32-true"),
        (["[N/A]"], "auto", "32-true"),
        ([], "auto", "32-true"),
    ],
)
def test_auto_is_bfloat16_where_every_gpu_has_it(gpus, capabilities, trainer, expected):
    gpus(*capabilities)
    assert resolve(compose([f"trainer={trainer}"]))["precision"] == expected
    assert resolve(compose([f"trainer={trainer}", "precision=64-true"]))["precision"] == "64-true"


def test_a_run_is_named_for_the_precision_that_it_gets(gpus):
    gpus("9.0")
    on_gpu, said = resolve(compose()), resolve(compose(["precision=bf16-mixed"]))
    gpus()
    nowhere, plain = resolve(compose()), resolve(compose(["precision=32-true"]))
    named = [identify(config, "text") for config in (on_gpu, said, nowhere, plain)]
    assert named[0] == named[1] != named[2] == named[3]
