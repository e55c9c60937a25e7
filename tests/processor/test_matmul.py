"""Products of matrices come from the faster library, never from one that rounds more."""

import platform
from collections.abc import Iterator

import pytest
import torch

from etude.processor import matmul
from etude.processor.matmul import DEFAULT, ONEDNN, TF32, choose_matmul, without_tf32

needs_setting = pytest.mark.skipif(
    not hasattr(getattr(torch.backends.mkldnn, "matmul", None), "fp32_precision")
    or not torch.backends.mkldnn.is_available()
    or torch.cuda.is_available(),
    reason="this PyTorch has no such setting",
)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """PyTorch multiplies as it did."""
    yield
    matmul._use(DEFAULT)
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = False, True


MODEL, SMALL = torch.nn.Linear(256, 256), torch.nn.Linear(64, 64)
ZEN4 = {"AuthenticAMD", "avx2", "avx512f"}
ZEN3 = {"AuthenticAMD", "avx2"}
XEON = {"GenuineIntel", "avx2", "avx512f"}
AMX = XEON | {"amx_tile"}


def in_use() -> str:
    [library] = [name for name, said in matmul._SETTINGS.items() if said == matmul._settings().fp32_precision]
    return library


@needs_setting
@pytest.mark.parametrize(
    ("processor", "model", "asked", "begun_with", "chosen"),
    [
        (ZEN4, MODEL, "auto", None, ONEDNN),
        (ZEN4, SMALL, "auto", None, DEFAULT),
        (ZEN3, MODEL, "auto", None, DEFAULT),
        (XEON, MODEL, "auto", None, DEFAULT),
        (AMX, MODEL, "auto", None, DEFAULT),
        (set(), MODEL, "auto", None, DEFAULT),
        (ZEN3, SMALL, "onednn", None, ONEDNN),
        (AMX, MODEL, "onednn", None, DEFAULT),
        (ZEN4, MODEL, "default", None, DEFAULT),
        (ZEN4, MODEL, "auto", DEFAULT, DEFAULT),
        (ZEN3, MODEL, "default", ONEDNN, ONEDNN),
        (AMX, MODEL, "auto", ONEDNN, DEFAULT),
    ],
)
def test_the_faster_is_taken_if_it_is_as_exact_and_a_run_goes_on_with_its_own(
    processor: set[str],
    model: torch.nn.Module,
    asked: str,
    begun_with: str | None,
    chosen: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(matmul, "_processor", lambda: processor)
    monkeypatch.setattr(matmul.platform, "machine", lambda: "x86_64")
    assert choose_matmul(asked, model, begun_with) == in_use() == chosen
    assert ("oneDNN rounds more" in caplog.text) == (ONEDNN in (asked, begun_with) and chosen == DEFAULT)


@needs_setting
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="oneDNN is chosen on x86 alone")
@pytest.mark.parametrize("shape", [(300, 64, 256), (33, 512, 2000), (2000, 256, 64), (512, 1024, 256)])
def test_onednn_is_taken_where_it_is_as_near_to_double_precision_as_pytorchs_default_and_nowhere_else(
    shape: tuple[int, int, int],
) -> None:
    """On this processor; with bfloat16 the error is about ten thousand times as large."""
    m, k, n = shape
    left, right = torch.randn(m, k), torch.randn(k, n)
    exact = left.double() @ right.double()
    errors = []
    for library in (DEFAULT, ONEDNN):
        matmul._use(library)
        errors.append(float((left @ right - exact).norm() / exact.norm()))
    assert 4 * errors[0] < 1e-5
    assert (errors[1] <= 4 * errors[0]) == (choose_matmul("onednn", MODEL) == ONEDNN)


def test_where_pytorch_cannot_be_told_it_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "_settings", lambda: None)
    assert choose_matmul("auto", MODEL) == choose_matmul("onednn", MODEL) == DEFAULT


@pytest.mark.parametrize(
    ("asked", "precision", "begun_with", "capability", "chosen"),
    [
        ("auto", "bf16-mixed", None, (9, 0), TF32),
        ("auto", "16-mixed", None, (8, 0), TF32),
        ("auto", "32-true", None, (9, 0), DEFAULT),
        ("auto", "64-true", None, (9, 0), DEFAULT),
        ("tf32", "32-true", None, (9, 0), TF32),
        ("default", "bf16-mixed", None, (9, 0), DEFAULT),
        ("auto", "16-mixed", None, (7, 5), DEFAULT),
        ("auto", "bf16-mixed", DEFAULT, (9, 0), DEFAULT),
        ("default", "32-true", TF32, (9, 0), TF32),
        ("onednn", "32-true", None, (9, 0), DEFAULT),
    ],
)
def test_a_gpu_multiplies_in_tf32_if_told_to_or_if_the_rest_is_in_half_precision(
    asked: str,
    precision: str,
    begun_with: str | None,
    capability: tuple[int, int],
    chosen: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    for accelerator in ("auto", "gpu", "cuda"):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = chosen != TF32
        assert choose_matmul(asked, MODEL, begun_with, accelerator=accelerator, precision=precision) == chosen
        assert torch.backends.cuda.matmul.allow_tf32 == (chosen == TF32)
        assert torch.backends.cudnn.allow_tf32 == (chosen == TF32)
        torch.get_float32_matmul_precision()  # as Lightning does: fails if two settings disagree


@pytest.mark.parametrize("allowed", [False, True])
def test_what_is_compared_on_a_gpu_is_computed_without_tf32(allowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    settings = torch.backends.cuda.matmul, torch.backends.cudnn
    for one in settings:
        one.allow_tf32 = allowed
    with without_tf32():
        assert [one.allow_tf32 for one in settings] == [False, False]
    assert [one.allow_tf32 for one in settings] == [allowed, allowed]


def test_a_run_on_the_cpu_has_no_tf32_and_says_so_if_asked_for_it(caplog: pytest.LogCaptureFixture) -> None:
    assert choose_matmul("tf32", MODEL, accelerator="cpu", precision="bf16-mixed") == DEFAULT
    assert "TF32 needs a GPU" in caplog.text
    assert choose_matmul("default", MODEL, TF32) == DEFAULT
