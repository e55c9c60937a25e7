"""What is told of a text before it is trained on."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import sacrebleu
from tests.pieces import sentence_piece

from etude.data.tokenizer import Tokenizer
from etude.tasks.plain_text import describe_text

PLAIN = [
    ("A dog runs on the beach.", "Ein Hund rennt am Strand."),
    ("Two men, one with a hat, wait.", "Zwei Männer, einer mit Hut, warten."),
    ("She said: “It's over!”", "Sie sagte: „Es ist vorbei!“"),
    ("nothing", "nichts"),
]
METRICS = {"bleu": {"_target_": "etude.tasks.bleu.bleu"}}


@dataclass
class Prepared:
    """A prepared text of some test pairs, of which the subwords are learned."""

    folder: Path
    pairs: list[tuple[str, str]]
    normalization: str = "identity"

    def __post_init__(self) -> None:
        options = {"model_type": "char", "hard_vocab_limit": False, "normalization": self.normalization}
        learned = sentence_piece(200, **options).train(sum(self.pairs, ()) * 9)
        (self.folder / "tokenizer.model").write_bytes(learned)
        self.tokenizer = Tokenizer(self.folder / "tokenizer.model")

    def text(self, split: str) -> tuple[list[str], list[str]]:
        return tuple(map(list, zip(*self.pairs, strict=True)))


def told(store: Prepared, metrics: dict = METRICS) -> list[str]:
    return describe_text({"metrics": metrics, "data": {}}, store)


def test_nothing_is_told_of_plain_text_that_the_tokenizer_gives_back(tmp_path: Path) -> None:
    assert told(Prepared(tmp_path, PLAIN)) == []


def test_references_that_no_model_can_write_are_told_with_the_bleu_they_would_reach(tmp_path: Path) -> None:
    pairs = [*PLAIN, *((source, f"▁{target.replace(' ', ' ▁')}") for source, target in PLAIN[:3])]
    references = [target for _, target in pairs]
    best = sacrebleu.corpus_bleu([line.replace("▁", " ") for line in references], [references]).score
    [sentence] = [one for one in told(Prepared(tmp_path, pairs)) if "no model" in one]
    assert 0 < best < 90
    assert sentence.startswith("42.9 % of the test references cannot be reproduced")
    assert f"above {best:.1f} bleu on this text" in sentence
    assert "'▁Ein ▁Hund ▁rennt ▁am ▁Strand.'" in sentence


def test_lowercasing_limits_cased_bleu_alone(tmp_path: Path) -> None:
    both = METRICS | {"lowercased": METRICS["bleu"] | {"lowercase": True}}
    [sentence] = told(Prepared(tmp_path, PLAIN, "nmt_nfkc_cf"), both)
    lowered = [target.lower() for _, target in PLAIN]
    best = sacrebleu.corpus_bleu(lowered, [[target for _, target in PLAIN]]).score
    assert best < 90
    assert f"above {best:.1f} bleu, 100.0 lowercased on" in sentence


def test_a_task_without_bleu_is_told_nothing(tmp_path: Path) -> None:
    store = Prepared(tmp_path, [(source, f"▁{target}") for source, target in PLAIN])
    assert told(store, {"f1": {"_target_": "etude.tasks.bracket_f1.bracket_f1"}}) == []


LOOKS = {
    "SentencePiece": lambda line: f"▁{line.replace(' ', ' ▁')}",
    "BPE": lambda line: line.replace("n", "n@@ "),
    "tokenised": lambda line: line.replace(".", " .").replace(",", " ,"),
    "lowercased": str.lower,
    "CSV": lambda line: f'"{line}"',
}


@pytest.mark.parametrize("look", LOOKS)
def test_text_that_is_not_plain_is_named_with_its_side(look: str, tmp_path: Path) -> None:
    write = LOOKS[look]
    sides = {
        "source": [(write(source), target) for source, target in PLAIN],
        "target": [(source, write(target)) for source, target in PLAIN],
    }
    for side, pairs in sides.items():
        [sentence] = [one for one in told(Prepared(tmp_path, pairs)) if "lines look" in one]
        assert sentence.startswith(f"the {side} lines look ")
        assert [name for name in LOOKS if name in sentence] == [look]
