"""`precision=auto` is what the machine's GPUs can do, and a run is named for that and not for the word."""

import os

import pytest

from etude.config import precision
from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.errors import UserError
from etude.store.identity import identify


@pytest.fixture
def gpus(tmp_path, monkeypatch):
    """A machine whose `nvidia-smi` knows GPUs of these compute capabilities, and a PyTorch that can use them."""
    monkeypatch.setattr(precision, "version", lambda library: "2.9.0+cu128")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def found(*capabilities: str, status: int = 0) -> None:
        program = tmp_path / "nvidia-smi"
        first, every = capabilities[:1], "\n".join(capabilities)
        asked = f'*"-i 0") echo "{"".join(first)}";; *"-i MIG"*) exit 6;; *) echo "{every}"'
        program.write_text(f'#!/bin/sh\ncase "$*" in {asked};; esac\nexit {status}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
        precision._gpus_have_bf16.cache_clear()

    yield found
    precision._gpus_have_bf16.cache_clear()


def chosen(*overrides: str) -> str:
    return resolve(compose(["precision=auto", *overrides]))["precision"]


@pytest.mark.parametrize(
    ("capabilities", "trainer", "expected"),
    [
        (["9.0"], "auto", "bf16-mixed"),
        (["8.0", "8.6"], "gpu", "bf16-mixed"),
        (["9.0"], "cpu", "32-true"),
        (["9.0", "7.0"], "auto", "32-true"),
        ([], "auto", "32-true"),
    ],
)
def test_auto_is_bfloat16_where_every_gpu_has_it(gpus, capabilities, trainer, expected):
    gpus(*capabilities)
    assert chosen(f"trainer={trainer}") == expected


def test_what_is_named_is_what_it_is_wherever_it_is_asked(gpus):
    gpus("7.0")
    assert resolve(compose(["precision=bf16-mixed"]))["precision"] == "bf16-mixed"


def test_nobody_who_says_nothing_is_named_for_the_machine(gpus):
    gpus("9.0")
    assert resolve(compose())["precision"] == "32-true"


@pytest.mark.parametrize(
    ("visible", "expected"), [("0", "bf16-mixed"), ("", "32-true"), ("0,1", "32-true"), ("MIG-5c8a", "32-true")]
)
def test_only_the_gpus_that_a_run_sees_count(gpus, visible, expected, monkeypatch):
    gpus("9.0", "7.0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert chosen() == expected


@pytest.mark.parametrize("hidden", ["-1", "NoDevFiles", "none"])
def test_gpus_that_are_hidden_by_a_name_that_none_has_do_not_count(gpus, hidden, monkeypatch):
    gpus("9.0", status=6)  # as nvidia-smi ends when it is asked for such a GPU
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert chosen() == "32-true"


def test_a_pytorch_without_cuda_has_no_gpu(gpus, monkeypatch):
    gpus("9.0")
    monkeypatch.setattr(precision, "version", lambda library: "2.9.0+cpu")
    assert chosen() == "32-true"


@pytest.mark.parametrize(("capabilities", "status"), [(["9.0"], 9), (["[N/A]"], 0)])
def test_auto_is_no_guess_where_the_driver_does_not_answer(gpus, capabilities, status):
    gpus(*capabilities, status=status)
    with pytest.raises(UserError, match="name it, such as precision=bf16-mixed"):
        chosen()


def test_a_run_is_named_for_the_precision_that_it_gets(gpus):
    gpus("9.0")
    auto, said, plain = (resolve(compose([f"precision={p}"])) for p in ("auto", "bf16-mixed", "32-true"))
    named = [identify(config, "text") for config in (auto, said, plain)]
    assert named[0] == named[1] != named[2]
