"""Products of matrices come from the faster library, never from one that rounds more."""

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
    """PyTorch multiplies as it did, and what was tried out, here or in a test before, is forgotten."""

    def forget() -> None:
        for remembered in (matmul._is_exact, matmul._is_faster):
            remembered.cache_clear()

    forget()
    yield
    matmul._use(DEFAULT)
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = False, True
    forget()


MODEL = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Linear(256, 64), torch.nn.Linear(64, 256))


def in_use() -> str:
    [library] = [name for name, said in matmul._SETTINGS.items() if said == matmul._settings().fp32_precision]
    return library


@needs_setting
@pytest.mark.parametrize(
    ("exact", "faster", "asked", "begun_with", "chosen"),
    [
        (True, True, "auto", None, ONEDNN),
        (True, False, "auto", None, DEFAULT),
        (True, False, "onednn", None, ONEDNN),
        (True, True, "default", None, DEFAULT),
        (False, True, "auto", None, DEFAULT),
        (False, True, "onednn", None, DEFAULT),
        (True, True, "auto", DEFAULT, DEFAULT),
        (True, False, "default", ONEDNN, ONEDNN),
        (False, True, "auto", ONEDNN, DEFAULT),
    ],
)
def test_the_faster_is_taken_if_it_is_as_exact_and_a_run_goes_on_with_its_own(
    exact: bool, faster: bool, asked: str, begun_with: str | None, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matmul, "_is_exact", lambda: exact)
    monkeypatch.setattr(matmul, "_is_faster", lambda sizes: faster)
    assert choose_matmul(asked, MODEL, begun_with) == in_use() == chosen


@needs_setting
@pytest.mark.parametrize(("slow", "chosen"), [(64, DEFAULT), (256, ONEDNN)])
def test_what_is_tried_out_is_products_of_the_models_sizes_as_often_as_they_come(
    slow: int, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two matrices of 64 x 256 and one of 256 x 64: MKL takes a second for a product over `slow`, oneDNN for others."""
    tried = []

    def second(library: str, k: int, n: int) -> float:
        tried.append((k, n))
        return float((k == slow) == (library == ONEDNN))

    monkeypatch.setattr(matmul, "_is_exact", lambda: True)
    monkeypatch.setattr(matmul, "_time", second)
    assert choose_matmul("auto", MODEL) == chosen
    assert set(tried) == {(64, 256), (256, 64)}


@needs_setting
@pytest.mark.parametrize("shape", [(300, 64, 256), (33, 512, 2000), (2000, 256, 64)])
def test_what_is_chosen_is_as_near_to_double_precision_as_pytorchs_default(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    left, right = torch.randn(m, k), torch.randn(k, n)
    exact = left.double() @ right.double()
    errors = []
    for asked in ("default", "auto"):
        choose_matmul(asked, MODEL)
        errors.append(float((left @ right - exact).norm() / exact.norm()))
    assert errors[1] <= 4 * errors[0] < 1e-5


@needs_setting
def test_a_library_that_rounds_to_bfloat16_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    real = matmul._error

    def rounding(library: str, left: torch.Tensor, right: torch.Tensor) -> float:
        if library == DEFAULT:
            return real(library, left, right)
        return real(DEFAULT, left, right) + float((left.bfloat16().double() - left).norm() / left.norm())

    monkeypatch.setattr(matmul, "_error", rounding)
    assert choose_matmul("onednn", MODEL) == in_use() == DEFAULT


def test_trying_out_changes_nothing_by_itself() -> None:
    before = matmul._settings() and in_use()
    matmul._is_exact()
    assert (matmul._settings() and in_use()) == before


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
