"""The parts of `bench.py`: what is measured, against whom."""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from turns import HERE, Figures, Peer, rates_in_turns, seconds_in_turns

US = "étude"
PAIRS = 50_000  # that are prepared
SEEDS = 3  # of each arm that is reported on
STEPS = 500  # of a round of training that is held against its bare steps; the fewer, the closer its rows of metrics
SMALL_STEPS = 150  # the same at the size below
SMALL = ["model.d_model=256", "model.d_ff=1024", "model.heads=4", "model.n_layers=3"]  # at which torch.nn trains here
ETUDE = [sys.executable, "-m", "etude"]
ABSENT = {"fairseq": "wants hydra-core < 1.1", "JoeyNMT": "wants protobuf < 3.21"}


@dataclass(frozen=True)
class Row:
    """What somebody reached.

    Attributes:
        part: what was measured; rows of the same are compared.
        who: reached it; the names of étude's rows begin with its own.
        unit: of the figures; of seconds the fewer are the better.
        figures: one a round, or why there are none.
        share: of the machine's fastest products of matrices, where those were measured too.
    """

    part: str
    who: str
    unit: str
    figures: Figures
    share: float | None = None


def training(rounds: int, threads: int) -> list[Row]:
    """3+3 layers, d_model 256, d_ff 1024, 4 heads, V 8000, the same ids; and what the machine's matrices reach."""
    return [*_training("fp32", ["MKL", "oneDNN"], rounds, threads, bf16=False)]


def training_bf16(rounds: int, threads: int) -> list[Row]:
    """The same under autocast."""
    return [*_training("bf16 autocast", ["oneDNN"], rounds, threads, bf16=True)]


def _training(precision: str, libraries: list[str], rounds: int, threads: int, *, bf16: bool) -> Iterator[Row]:
    from peers.ours import flops_of_a_token

    peers: dict[str, Peer] = {
        US: ("ours:Training", {"bf16": bf16}),
        "torch.nn, as written": ("torch_training:Training", {"bf16": bf16}),
        "torch.nn, like for like": ("torch_training:Training", {"bf16": bf16, "like_ours": True}),
        "HF Marian": ("marian:Training", {"bf16": bf16}),
    }
    if bf16:  # what the lower precision gains in all
        peers["torch.nn, as written, in fp32"] = ("torch_training:Training", {})
    products: dict[str, Peer] = {name: ("matrices:Products", {"library": name, "bf16": bf16}) for name in libraries}
    found = rates_in_turns(peers | products, rounds, threads)
    gflop = flops_of_a_token() / 1e9
    best = max((median(found[name]) for name in libraries if not isinstance(found[name], str)), default=None)
    for who in peers:
        rates = found[who]
        unknown = best is None or isinstance(rates, str) or who.endswith("fp32")
        share = None if unknown else median(rates) * gflop / best
        yield Row(f"training, {precision}", who, "tokens/s", rates, share)
    for who, why in ABSENT.items():
        yield Row(f"training, {precision}", who, "tokens/s", f"not installed: {why}")
    for who in libraries:
        yield Row(f"products of matrices, {precision.split()[0]}", who, "GFLOP/s", found[who])


def pipeline(rounds: int, threads: int) -> list[Row]:
    """What a run of étude's makes of its bare steps: at pocket scale with one thread, and larger."""
    pocket, small = {"steps": STEPS}, {"steps": SMALL_STEPS, "overrides": SMALL}
    return [
        *_rows("pipeline, pocket, one thread", "steps/s", rates_in_turns(_whole_and_bare(pocket), rounds, threads=1)),
        *_rows("pipeline, d_model 256", "steps/s", rates_in_turns(_whole_and_bare(small), rounds, threads)),
    ]


def _whole_and_bare(settings: dict[str, Any]) -> dict[str, Peer]:
    return {f"{US} train": ("pipeline:Whole", settings), "the bare step": ("pipeline:Bare", settings)}


def decoding(rounds: int, threads: int) -> list[Row]:
    """200 sentences, beam 4, 14 pieces and the end token for everybody."""
    peers: dict[str, Peer] = {
        US: ("ours:Decoding", {}),
        f"{US}, bf16 autocast": ("ours:Decoding", {"bf16": True}),
        "HF Marian generate": ("marian:Decoding", {}),
        "CTranslate2, fp32": ("ctranslate:Decoding", {"compute_type": "float32"}),
        "CTranslate2, int8": ("ctranslate:Decoding", {"compute_type": "int8"}),
    }
    return _rows("decoding, beam 4", "sentences/s", rates_in_turns(peers, rounds, threads))


def starting(rounds: int, threads: int) -> list[Row]:
    """From the start of the process to the end of the first training step, on prepared data."""
    with _folder() as folder:
        places = [f"cache_dir={folder}", f"runs_dir={folder}/runs"]
        prepared = seconds_in_turns({US: [*ETUDE, "prepare", *places]}, rounds=1, threads=threads)
        if isinstance(prepared[US], str):
            return _rows("start to first step", "s", prepared)
        store = next(folder.glob("*/meta.json")).parent
        first = "+callbacks.first._target_=peers.first_step.FirstStep"
        train = [*ETUDE, "train", "trainer=cpu", *SMALL, *places, first]
        commands = {
            US: [*train, "logger=none", "seed=1{round}"],
            f"{US}, logging to W&B": [*train, "seed=2{round}"],
            "torch.nn, a bare script": [sys.executable, str(HERE / "peers" / "torch_nn.py"), str(store)],
        }
        return _rows("start to first step", "s", seconds_in_turns(commands, rounds, threads))


def preparing(rounds: int, threads: int) -> list[Row]:
    """Learning subwords and cutting a text, read from a file, against sentencepiece alone."""
    from etude.data.grammar import GrammarCorpus

    with _folder() as folder:
        corpus = GrammarCorpus(seed=1, train_pairs=PAIRS, valid_pairs=1, test_pairs=1, vocab_size=2000)
        text = folder / "pairs.tsv"
        text.write_text("".join(f"{a}\t{b}\n" for a, b in corpus.pairs("train")), encoding="utf-8")
        data = ["data=files", f"data.tsv={text}", "data.vocab_size=2000"]
        alone = [sys.executable, str(HERE / "peers" / "subwords.py"), str(text), "2000", str(threads)]
        commands = {US: [*ETUDE, "prepare", *data, f"cache_dir={folder}/{{round}}"], "sentencepiece alone": alone}
        found = seconds_in_turns(commands, rounds, threads)
    rates: dict[str, Figures] = {
        who: taken if isinstance(taken, str) else [2 * PAIRS / seconds for seconds in taken]
        for who, taken in found.items()
    }
    return _rows(f"preparing {PAIRS:,} pairs", "lines/s", rates)


def reporting(rounds: int, threads: int) -> list[Row]:
    """Table 3 with several seeds and all its statistics."""
    from reporting import make_up

    with _folder() as folder:
        runs = make_up(folder, SEEDS, sentences=1000)
        commands = {US: [*ETUDE, "report", "table3", f"runs_dir={folder}"]}
        return _rows(f"report on {runs} runs", "s", seconds_in_turns(commands, rounds, threads))


PARTS = {part.__name__: part for part in (training, training_bf16, pipeline, decoding, starting, preparing, reporting)}


def _rows(part: str, unit: str, found: Mapping[str, Figures]) -> list[Row]:
    return [Row(part, who, unit, figures) for who, figures in found.items()]


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder for a while; W&B may still write to it when it goes."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder)
