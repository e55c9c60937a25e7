"""What trainings give: losses, scores and texts in double precision on any processor, and bits on those listed."""

import csv
import hashlib
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.training.conftest import Freeze, in_processes, killed_at

from etude.cli.main import main
from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.store.run_dir import RunDir
from etude.trained.checkpoint import read_checkpoint
from etude.training.run import train

from .recorded import VALUES, assert_as_recorded

pytestmark = pytest.mark.slow

SETTING = [
    *("model.d_model=16", "model.d_ff=32", "model.heads=2", "model.n_layers=1", "model.dropout=0.1"),
    *("budget=smoke", "budget.max_steps=60", "budget.val_every=15", "budget.source_tokens=300"),
    *("budget.target_tokens=300", "budget.lr_factor=0.3", "budget.warmup_steps=10"),
    *("trainer=cpu", "trainer.matmul=default", "trainer.compile=false", "logger=none"),
]
EAGER = "model/backend=eager"
MODELS = {
    "transformer": [],
    "pre-rms-rope-swiglu": ["model/residual=pre", "model/norm=rms", "model/position=rope", "model/feedforward=swiglu"],
    "learned-grouped": ["model/position=learned", "model/attention=grouped_query"],
    "shaw-local": ["model/position=shaw", "model/attention=local"],
    "t5-dk": ["model/position=t5", "model/scale=dk"],
    "rope-linear": ["model/position=rope", "model/attention=linear"],
    "alibi-cosine-rezero": ["model/position=alibi", "model/scale=cosine", "model/residual=rezero", "model/norm=none"],
    "recurrent": ["model/encoder=recurrent", "model/decoder=recurrent"],
    "convolution": ["model/encoder=convolution", "model/decoder=convolution"],
    "decoder-only": ["model/encoder=none", "task=language_modelling"],
    "encoder-only": ["model=encoder_only", "task=masked_language_modelling"],
}
WAYS = {  # how it is trained and decoded
    "greedy": ["decoding=greedy"],
    "averaging": ["averaging.checkpoints=3", "averaging.every=15"],
    "ema": ["callbacks=ema", "callbacks.ema.decay=0.9"],
    "best": ["callbacks=best_checkpoint", "callbacks.best_checkpoint.mode=max"],  # which is not the last
    "early": [
        "callbacks=early_stopping",
        *(f"callbacks.early_stopping.{key}" for key in ("patience=1", "min_delta=1")),
    ],
    "adamw-cosine": ["optimizer=adamw", "schedule=cosine"],
    "micro-batches": ["trainer.micro_batches=2"],
    "parsing": ["task=parsing", "data=treebank", "data.train_pairs=200", "data.test_pairs=20"],
    "agreement": ["task=agreement", "data=agreement", "data.train_pairs=200", "data.test_pairs=20"],
}


def processor() -> str:
    """This processor and PyTorch, which together decide the last digit."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    about = dict(reversed([line.replace("\t", "").partition(":")[::2] for line in lines if ":" in line]))
    names = [about.get(key, "").strip() for key in ("vendor_id", "cpu family", "model")]
    return "-".join([*names, torch.backends.cpu.get_cpu_capability(), torch.__version__])


def found(run: RunDir) -> dict[str, Any]:
    """The curve, the scores and the translations of a finished run."""
    with run.metrics_file.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["step"]) % 5 == 0]
    names = sorted({name for row in rows for name in row if "loss" in name or name in ("lr", "step")})
    result = run.result()
    texts = run.hypotheses_file
    return {
        "curve": {name: [_number(row.get(name)) for row in rows] for name in names},
        "steps": result["steps"],
        "tokens": result["tokens"],
        **{split: {k: v for k, v in result[split].items() if _is_score(k, v)} for split in ("valid", "test")},
        "texts": texts.read_text(encoding="utf-8").splitlines() if texts.is_file() else [],
    }


def _number(cell: str | None) -> float | None:
    return float(cell) if cell else None


def _is_score(key: str, value: object) -> bool:
    return isinstance(value, float | int) and math.isfinite(value) and not key.endswith("seconds")


def bits(run: RunDir) -> str:
    """The SHA-256 of the weights of the last checkpoint."""
    weights = read_checkpoint(run.checkpoint)["state_dict"]
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode() + weights[name].contiguous().numpy().tobytes())
    return digest.hexdigest()


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def runs(tmp_path: Path) -> Freeze:
    """Freezes runs of sixty steps: on lines of letters, if the overrides choose no data."""
    rows = [" ".join("abcdefgh"[(k * j + k // 8) % 8] for j in range(1, 3 + k % 6)) for k in range(1, 200)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{row} {k % 8}\t{row} {k % 8}\n" for k, row in enumerate(rows)))
    letters = ["data=files", f"data.tsv={tmp_path / 'pairs.tsv'}", "data.holdout=12", "tokenizer.vocab_size=30"]

    def frozen(name: str, *overrides: str) -> RunDir:
        text = [] if any(word.startswith("data=") for word in overrides) else letters
        search = [] if any(word.startswith("task=") for word in overrides) else ["decoding.max_len_offset=2"]
        folders = [f"runs_dir={tmp_path / name}", f"cache_dir={tmp_path / 'cache'}"]
        return freeze(compose([*SETTING, *text, *search, *folders, *overrides]))

    return frozen


@pytest.fixture
def trained(runs: Freeze) -> Callable[..., RunDir]:
    def make(name: str, *overrides: str) -> RunDir:
        run = runs(name, *overrides)
        train(run)
        return run

    return make


@pytest.mark.parametrize("name", [*MODELS, *WAYS])
def test_losses_scores_and_texts_in_double_precision_are_as_recorded(name: str, trained: Callable[..., RunDir]) -> None:
    overrides = (MODELS | WAYS)[name]
    eager = [] if name in ("recurrent", "convolution") else [EAGER]
    run = trained(f"double-{name}", "precision=64-true", *eager, *overrides)
    assert_as_recorded(f"training-{name}", found(run), relative=1e-6)


def test_the_weights_have_the_bits_that_were_recorded_for_this_processor(trained: Callable[..., RunDir]) -> None:
    name = f"weights-{processor()}"
    if not (VALUES / f"{name}.json").is_file() and "ETUDE_RECORD" not in os.environ:
        pytest.skip(f"no bits are recorded for {processor()}: ETUDE_RECORD=1 records them")
    assert_as_recorded(name, {model: bits(trained(model, *overrides)) for model, overrides in MODELS.items()})


def test_a_resumed_run_gives_what_was_recorded_of_the_undisturbed_one(
    runs: Freeze, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = runs("resumed", "precision=64-true", EAGER)
    killed_at(30, run, monkeypatch)
    train(run)
    assert_as_recorded("training-transformer", found(run), relative=1e-6)


def test_two_processes_give_what_is_recorded(runs: Freeze) -> None:
    run = runs("two", "precision=64-true", EAGER, "trainer.devices=2")
    done = in_processes(run)
    assert run.finished, done.stderr
    assert_as_recorded("training-two-processes", found(run), relative=1e-6)


@pytest.mark.parametrize("words", [["sampling.seed=3"], ["sampling.top_k=5", "sampling.temperature=0.7"]])
def test_a_sampled_text_is_as_recorded(
    words: list[str], trained: Callable[..., RunDir], capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained("sampled", "precision=64-true", EAGER, *MODELS["decoder-only"])
    with pytest.raises(SystemExit) as end:
        main(["generate", f"run={run.path}", "prompt=a b", "sampling.max_length=20", *words])
    assert end.value.code == 0
    assert_as_recorded(f"sampled-{words[0].partition('.')[2].replace('=', '-')}", capsys.readouterr().out)
