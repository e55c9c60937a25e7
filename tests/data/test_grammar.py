"""The corpus as a whole: splits, sizes, frequencies; its parts are tested in grammar/."""

import math
import os
import re
import subprocess
import sys
from collections import Counter
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import pytest
from hydra.utils import instantiate
from omegaconf import DictConfig
from tests.pieces import sentence_piece

from etude.data.corpus import SPLITS, Pair
from etude.data.grammar import VERSION, GrammarCorpus, split_of
from etude.data.tokenizer import Tokenizer

SIZES = {"train_pairs": 300, "valid_pairs": 40, "test_pairs": 50}


def corpus(**changed: int) -> GrammarCorpus:
    """A small corpus."""
    return GrammarCorpus(**{"seed": 1, "vocab_size": 500} | SIZES | changed)


def test_the_config_gives_what_it_says(grammar: DictConfig, configured: dict[str, list[Pair]]) -> None:
    made = instantiate(grammar)
    assert (made.languages, made.vocab_size) == (("en", "de"), grammar.vocab_size)
    assert {split: len(pairs) for split, pairs in configured.items()} == {
        split: grammar[f"{split}_pairs"] for split in SPLITS
    }


def test_neither_a_source_nor_a_target_is_in_two_splits(configured: dict[str, list[Pair]]) -> None:
    for side in (0, 1):
        lines = {split: {pair[side] for pair in pairs} for split, pairs in configured.items()}
        assert not lines["train"] & lines["valid"]
        assert not lines["train"] & lines["test"]
        assert not lines["valid"] & lines["test"]


def test_the_split_of_a_sentence_does_not_depend_on_the_seed() -> None:
    trained = {source for source, _ in corpus(seed=5, train_pairs=3000).pairs("train")}
    tested = {source for source, _ in corpus(seed=6, test_pairs=3000).pairs("test")}
    assert not trained & tested
    assert {split_of(target) for _, target in corpus(seed=7).pairs("valid")} == {"valid"}


def test_no_source_comes_twice_in_a_split(configured: dict[str, list[Pair]]) -> None:
    for pairs in configured.values():
        assert len({source for source, _ in pairs}) == len(pairs)


def test_english_determines_german(configured: dict[str, list[Pair]]) -> None:
    drawn = [pair for pairs in configured.values() for pair in pairs]
    drawn += corpus(seed=2, train_pairs=20_000).pairs("train")
    targets: dict[str, set[str]] = {}
    for source, target in drawn:
        targets.setdefault(source, set()).add(target)
    assert len(targets) < len(drawn), "some sentences should have been drawn twice"
    assert [source for source, found in targets.items() if len(found) > 1] == []


def test_every_line_is_written_as_a_sentence_of_4_to_22_words(configured: dict[str, list[Pair]]) -> None:
    line = re.compile(r"[A-ZÄÖÜ][\wäöüß'-]*(,? [\wäöüßÄÖÜ'-]+)*[.?]")
    for pair in (pair for pairs in configured.values() for pair in pairs):
        assert pair[0][-1] == pair[1][-1]
        for text in pair:
            assert line.fullmatch(text), text
            assert 4 <= len(text.split()) <= 22, text


def test_sentences_have_about_eight_words(configured: dict[str, list[Pair]]) -> None:
    for side in (0, 1):
        lengths = [len(pair[side].split()) for pair in configured["train"]]
        assert 7.5 < sum(lengths) / len(lengths) < 9.5


def test_words_are_about_as_frequent_as_zipf_says(configured: dict[str, list[Pair]]) -> None:
    for side in (0, 1):
        counts = Counter(word.lower() for pair in configured["train"] for word in re.findall(r"[\w'-]+", pair[side]))
        ranked = [count for _, count in counts.most_common(300)]
        xs, ys = [math.log(rank) for rank in range(1, 301)], [math.log(count) for count in ranked]
        mean_x, mean_y = sum(xs) / 300, sum(ys) / 300
        slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum(
            (x - mean_x) ** 2 for x in xs
        )
        assert -1.3 < slope < -0.7, f"log count falls by {-slope:.2f} per log rank; Zipf's law says 1"


def test_another_process_with_another_hash_seed_draws_the_same_text() -> None:
    program = (
        "from etude.data.grammar import GrammarCorpus\n"
        f"corpus = GrammarCorpus(seed=1, vocab_size=500, **{SIZES})\n"
        "import sys; sys.stdout.buffer.write('\\n'.join(' '.join(p) for p in corpus.pairs('train')).encode())"
    )
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        output = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True)
        assert output.stdout.decode().split("\n") == [" ".join(pair) for pair in corpus().pairs("train")]


def test_drawing_text_needs_no_torch() -> None:
    program = "import sys; import etude.data.grammar; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_a_larger_corpus_begins_with_the_smaller_one() -> None:
    assert list(islice(corpus(train_pairs=500).pairs("train"), 300)) == list(corpus().pairs("train"))


def test_another_seed_draws_another_text() -> None:
    assert set(corpus(seed=1).pairs("test")).isdisjoint(corpus(seed=2).pairs("test"))


@pytest.mark.parametrize("changed", [{"seed": 2}, {"train_pairs": 301}, {"valid_pairs": 41}, {"test_pairs": 51}])
def test_the_fingerprint_changes_with_what_changes_the_text(changed: dict[str, int]) -> None:
    assert corpus(**changed).fingerprint() != corpus().fingerprint()
    same = corpus(**changed).training_fingerprint() == corpus().training_fingerprint()
    assert same == ("test_pairs" in changed)


def test_the_fingerprint_stays_where_the_text_stays() -> None:
    assert corpus(vocab_size=600).fingerprint() == corpus().fingerprint()
    assert re.fullmatch("[0-9a-f]{16}", corpus().fingerprint())


def test_the_sentences_are_those_of_their_version(configured: dict[str, list[Pair]]) -> None:
    """Where they are meant to change, raise `VERSION` and add what the new ones hash to."""
    sentences = {1: "ac8ccae143b2bdcb"}
    text = blake2b(digest_size=8)
    for split, count in {"train": 40_000, "valid": 1_000, "test": 10_000}.items():
        text.update("".join(f"{source}\t{target}\n" for source, target in configured[split][:count]).encode())
    assert sentences[VERSION] == text.hexdigest()


def test_the_vocabulary_can_be_filled_mostly_with_whole_words(
    grammar: DictConfig, configured: dict[str, list[Pair]], tmp_path: Path
) -> None:
    bpe = sentence_piece(grammar.vocab_size)
    (tmp_path / "model").write_bytes(bpe.train(line for pair in configured["train"] for line in pair))
    tokenizer = Tokenizer(tmp_path / "model")
    assert len(tokenizer) == grammar.vocab_size
    for side in (0, 1):
        text = [pair[side] for pair in configured["test"]]
        pieces = sum(len(line) for line in tokenizer.encode_all(text))
        assert pieces / sum(len(re.findall(r"[\w'-]+|[.,?]", line)) for line in text) < 1.25
