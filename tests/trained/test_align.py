"""Words are aligned by where the decoder looks, however they are cut into subwords."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.data.tokenizer import EOS, SentencePiece, Tokenizer
from etude.data.vocabularies import Bytes, open_tokenizer
from etude.errors import UserError
from etude.tasks import build
from etude.trained import align as module
from etude.trained.align import align, word_numbers

LINES = ("der alte Bär läuft über den Fluss", "die alten Bären", "d", "")


@pytest.fixture(scope="module", params=["bpe", "char", "byte"])
def tokenizer(request, tmp_path_factory) -> Tokenizer:
    file = tmp_path_factory.mktemp("pieces") / "tokenizer.model"
    options = {"hard_vocab_limit": False, "vocab_size": 60, "character_coverage": 1.0, "normalization": "identity"}
    vocabulary = (
        Bytes(vocab_size=260) if request.param == "byte" else SentencePiece(model_type=request.param, **options)
    )
    file.write_bytes(vocabulary.train(LINES[:2] * 9))
    return open_tokenizer(file)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("as_read", [True, False])
def test_subwords_are_counted_to_the_word_that_they_are_part_of(tokenizer, line, as_read):
    tokens = tokenizer.encode(line)
    numbers = word_numbers(tokenizer, tokens, as_read=as_read)
    assert numbers == sorted(numbers)
    assert len(numbers) == len(tokens) or not line
    for n, word in enumerate(line.split()):
        part = [token for token, number in zip(tokens, numbers, strict=True) if number == n]
        assert tokenizer.decode(part).strip() == word


def test_an_unknown_letter_parts_a_word_that_is_written_and_none_that_is_read(tokenizer):
    tokens = tokenizer.encode("der Bжr läuft")
    written = word_numbers(tokenizer, tokens)
    assert 1 + max(written) == len(tokenizer.decode(tokens).split())
    assert 1 + max(word_numbers(tokenizer, tokens, as_read=True)) == 3


def test_unknown_words_are_counted_where_whole_words_are_tokens(tmp_path):
    words = SentencePiece(
        model_type="word", hard_vocab_limit=False, vocab_size=60, character_coverage=1.0, normalization="identity"
    )
    (tmp_path / "tokenizer.model").write_bytes(words.train(LINES[:2] * 9))
    whole = open_tokenizer(tmp_path / "tokenizer.model")
    for line, numbers in {
        "der Hund läuft": [0, 1, 2],
        "Hund und alte Bär": [0, 2, 3],
        "der alte": [0, 1],
    }.items():
        assert word_numbers(whole, whole.encode(line), as_read=True, line=line) == numbers


@pytest.mark.parametrize("seed", range(3))
def test_a_word_is_aligned_with_the_word_that_its_subwords_look_at_most(tokenizer, seed, monkeypatch):
    """Against sums over the words, one by one; whatever the batch, and wherever the end token draws the eye."""
    rng = np.random.default_rng(seed)
    pairs = [([*tokenizer.encode(one), EOS], tokenizer.encode(other)) for one, other in pairwise(LINES)]
    longest = max(len(side) for pair in pairs for side in pair)
    weights = {tuple(source): rng.random((2, 3, longest + 1, longest)) for source, _ in pairs}

    def look(model, source, mask, target_in, kinds):
        rows = [weights[tuple(line[line != 0].tolist())] for line in source]
        return {"cross": [torch.from_numpy(np.stack(rows))[:, layer] for layer in range(2)]}

    monkeypatch.setattr(module, "attention_weights", look)
    monkeypatch.setattr(module, "_check", lambda model, layer, head: None)
    model = torch.nn.Linear(1, 1)
    for layer, head in ((1, None), (2, 3)):
        found = align(model, tokenizer, pairs, batch_tokens=40, layer=layer, head=head)
        for (source, target), links in zip(pairs, found, strict=True):
            of_layer = weights[tuple(source)][layer - 1]
            chosen = of_layer.mean(0) if head is None else of_layer[head - 1]
            reads, writes = word_numbers(tokenizer, source[:-1], as_read=True), word_numbers(tokenizer, target)
            for j in sorted(set(writes)):
                looks = [
                    sum(chosen[t, s] for t, w in enumerate(writes) if w == j for s, r in enumerate(reads) if r == i)
                    for i in range(1 + max(reads))
                ]
                assert links[j] == (int(np.argmax(looks)), j)
            assert len(links) == len(set(writes))


@pytest.mark.parametrize("agreeing", [1, 2, 3])
def test_the_layer_whose_heads_agree_aligns_unless_one_is_chosen(tokenizer, agreeing, monkeypatch):
    rng = np.random.default_rng(agreeing)
    source, target = [*tokenizer.encode(LINES[0]), EOS], tokenizer.encode(LINES[0])
    weights = rng.random((3, 4, len(target) + 1, len(source)))  # (layers, heads, target tokens, source tokens)
    weights[agreeing - 1] = weights[agreeing - 1, 0] + 0.01 * rng.random(weights.shape[1:])

    def look(model, source, mask, target_in, kinds):
        return {"cross": list(torch.from_numpy(weights)[:, None])}

    monkeypatch.setattr(module, "attention_weights", look)
    monkeypatch.setattr(module, "_check", lambda model, layer, head: None)
    by_layer = [
        align(torch.nn.Linear(1, 1), tokenizer, [(source, target)], batch_tokens=99, layer=layer)
        for layer in (None, 1, 2, 3)
    ]
    assert by_layer[0] == by_layer[agreeing] != by_layer[agreeing % 3 + 1]


def test_a_model_without_cross_attention_has_no_alignments(tokenizer):
    with pytest.raises(UserError, match="no cross-attention that can be read"):
        align(torch.nn.Linear(1, 1), tokenizer, [], batch_tokens=1)


def test_a_layer_that_is_applied_several_times_is_as_many_layers(tokenizer):
    sizes = ["model.d_model=16", "model.heads=2", "model.n_layers=3", "model/decoder=shared"]
    model = build.model(resolve(compose(sizes)), 300).eval()
    pairs = [([4, 5, EOS], [6, 7])]
    by_layer = [align(model, tokenizer, pairs, batch_tokens=9, layer=layer) for layer in (1, 2, 3)]
    assert all(len(found) == 1 for found in by_layer)
    with pytest.raises(UserError, match=r"layer=4: .* has the layers 1 to 3"):
        align(model, tokenizer, pairs, batch_tokens=9, layer=4)
    with pytest.raises(UserError, match="head=3: layer 2 of this model has the heads 1 to 2"):
        align(model, tokenizer, pairs, batch_tokens=9, layer=2, head=3)
