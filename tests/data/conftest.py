"""Small corpora to test with."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from tests.pieces import sentence_piece

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.config.resolvers import register
from etude.data.corpus import SPLITS, Corpus, Pair, digest
from etude.data.store import TokenStore, prepare
from etude.data.tokenizer import SentencePiece

register()  # what `conf/data` and `conf/tokenizer` ask for, whichever test comes first


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def grammar() -> DictConfig:
    """The config `data=grammar` with enough pairs to count words."""
    return OmegaConf.create(resolve(compose(["data=grammar", "budget.pairs=40000"]))["data"])


@pytest.fixture(scope="session")
def configured(grammar: DictConfig) -> dict[str, list[Pair]]:
    """Every pair of it, by split."""
    made = instantiate(grammar)
    return {split: list(made.pairs(split)) for split in SPLITS}


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve the files of a folder; the address."""
    with (
        pytest.MonkeyPatch.context() as patch,
        ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server,
    ):
        patch.setenv("no_proxy", "*")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class ListCorpus(Corpus):
    """Pairs given as lists; counts how often it was asked for them."""

    languages = ("en", "xx")
    vocab_size = 60

    def __init__(self, **splits: list[Pair]) -> None:
        self.splits = splits
        self.fetched = 0
        self.asked: list[str] = []

    def fingerprint(self) -> str:
        return digest(self.splits)

    def fetch(self) -> None:
        self.fetched += 1

    def pairs(self, split: str) -> Iterator[Pair]:
        self.asked.append(split)
        return iter(self.splits[split])


def sentences(count: int, seed: int) -> list[Pair]:
    """Sentences of one to twelve words and their letters reversed."""
    words = ["the", "a", "small", "big", "cat", "dog", "bird", "sees", "hears", "likes", "never", "today", "house"]
    generator = random.Random(seed)
    lines = [" ".join(generator.choices(words, k=generator.randint(1, 12))) for _ in range(count)]
    return [(line, line[::-1]) for line in lines]


@pytest.fixture
def make_corpus() -> Callable[..., ListCorpus]:
    """A corpus of 300, 20 and 20 pairs, or with some of the splits given."""

    def make(**splits: list[Pair]) -> ListCorpus:
        sizes = {"train": 300, "valid": 20, "test": 20}
        return ListCorpus(**{name: splits.get(name, sentences(size, size)) for name, size in sizes.items()})

    return make


@pytest.fixture(scope="session")
def bpe() -> SentencePiece:
    return sentence_piece(60)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory, bpe: SentencePiece) -> TokenStore:
    """A prepared store, for reading only."""
    splits = {"train": sentences(300, 300), "valid": sentences(20, 1), "test": sentences(20, 2)}
    cache: Path = tmp_path_factory.mktemp("cache")
    return prepare(ListCorpus(**splits), bpe, cache, 64)
