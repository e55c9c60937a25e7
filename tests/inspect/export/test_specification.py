"""CTranslate2 computes what étude computes, for every variation that it can hold; étude's own model is the oracle."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.variations import variations
from torch.nn.utils.rnn import pad_sequence
from torch.testing import assert_close

from etude.data.tokenizer import BOS, EOS, PAD, Tokenizer
from etude.decoding.beam import BeamSearch
from etude.errors import UserError
from etude.inspect.export.export import convert, vocabulary
from etude.model.encoder_decoder import EncoderDecoder

ctranslate2: Any = pytest.importorskip("ctranslate2", reason="needs the extra ctranslate2")

REFUSED = {
    "model/encoder=convolution": "model/encoder: ConvolutionEncoder",
    "model/encoder=recurrent": "model/encoder: RecurrentEncoder",
    "model/encoder=none": "model/encoder: NoEncoder",
    "model/decoder=convolution": "model/decoder: ConvolutionDecoder",
    "model/decoder=recurrent": "model/decoder: RecurrentDecoder",
    "model/attention=linear": "model/attention: LinearAttention",
    "model/attention=local": "model/attention: LocalAttention",
    "model/scale=cosine": "model/scale: Cosine",
    "model/position=alibi": "model/position: Alibi",
    "model/norm=none": "model/norm: NoNorm",
    "model/residual=rezero": "model/residual: ReZero",
    "model/feedforward=none": "model/feedforward: NoFeedForward",
    "model=encoder_only": "model: EncoderOnly",
}
TOGETHER = [
    "model=big model.heads=2",
    "model.d_k=6 model.d_v=2",
    "model.d_k=2 model.d_v=7 model.attention_bias=true model/position=rope",
    "model.d_k=2 model.d_v=7 model/position=shaw model/scale=learned",
    "model/residual=sandwich model/norm=rms model/feedforward=swiglu model/attention=grouped_query model/position=rope",
    "model/residual=pre model/position=t5 model/tying=all_t2t model.attention_bias=true",
    "model.encoder.n_layers=1 model.decoder.n_layers=3 model.vocabulary=47",
]
HELD = [option for option in variations() if not any(word in REFUSED for word in option.split())] + TOGETHER


@pytest.fixture
def loaded(tmp_path: Path, tokenizer: Tokenizer) -> Callable[[EncoderDecoder], Any]:
    """Converts a model and loads it with CTranslate2."""

    def load(model: EncoderDecoder) -> Any:
        convert(model, tokenizer).save(str(tmp_path))
        return ctranslate2.Translator(str(tmp_path), compute_type="float32", intra_threads=1)

    return load


def draw(*lengths: int) -> list[list[int]]:
    """Sentences of so many subwords."""
    generator = torch.Generator().manual_seed(11)
    return [torch.randint(EOS + 2, 40, (length,), generator=generator).tolist() for length in lengths]


def padded(sentences: list[list[int]]) -> torch.Tensor:
    return pad_sequence([torch.tensor(sentence) for sentence in sentences], batch_first=True, padding_value=PAD)


@pytest.mark.parametrize("variation", HELD)
def test_log_probabilities_and_greedy_translations_are_those_of_etude(variation, jittered, loaded, tokenizer):
    model = jittered(variation)
    translator = loaded(model)

    sources, targets = draw(150, 7, 1, 12), draw(9, 140, 3, 1)  # the longest past every clipped distance
    source, target = padded([[*line, EOS] for line in sources]), padded([[BOS, *line] for line in targets])
    with torch.no_grad():
        ours = model(source, source != PAD, target).log_softmax(dim=-1)
    scores = translator.score_batch([tokenizer.subwords(s) for s in sources], [tokenizer.subwords(t) for t in targets])
    for row, score in enumerate(scores):
        words = torch.tensor([*targets[row], EOS])
        expected = ours[row, : len(words)].gather(1, words[:, None])[:, 0]
        assert_close(torch.tensor(score.log_probs), expected, rtol=0, atol=1e-4)

    search = BeamSearch(beam=1, alpha=0.0, max_len_offset=9)
    names = vocabulary(tokenizer, len(model.embedding.output_table.weight))
    for line in sources[1:]:
        ended = [*line, EOS]
        [[best, *_]] = search(model, torch.tensor([ended]), torch.ones(1, len(ended), dtype=torch.bool))
        [found] = translator.translate_batch(
            [tokenizer.subwords(line)],
            beam_size=1,
            min_decoding_length=0,
            max_decoding_length=len(ended) + 9 - 1,  # étude counts the end token
            suppress_sequences=[[names[PAD]], [names[BOS]]],
        )
        assert found.hypotheses[0] == [names[token] for token in best.tokens]


@pytest.mark.parametrize("variation", [option for option in variations() if option not in HELD])
def test_what_cannot_be_held_is_refused_by_its_name(variation, jittered, tokenizer):
    beside = " model/norm=none" * ("rezero" in variation)
    told = next(REFUSED[word] for word in variation.split() if word in REFUSED)
    with pytest.raises(UserError, match=rf"^{told} is not among what CTranslate2 can hold.*`etude translate"):
        convert(jittered(variation + beside), tokenizer)


def test_a_part_of_ones_own_is_refused_even_where_it_is_a_kind_of_one_that_is_held(jittered, tokenizer):
    model = jittered("model/position=sinusoidal")
    model.encoder.position.__class__ = type("Mine", (type(model.encoder.position),), {})
    with pytest.raises(UserError, match="model/position: Mine is not among"):
        convert(model, tokenizer)


def test_the_greatest_length_of_a_source_counts_its_end_token(jittered, loaded, tokenizer):
    [line] = [tokenizer.subwords(line) for line in draw(30)]
    translator = loaded(jittered("model/position=sinusoidal"))

    def score(words: list[str], most: int) -> float:
        [found] = translator.translate_batch([words], beam_size=1, max_input_length=most, return_scores=True)
        return found.scores[0]

    assert score(line, 11) == score(line[:10], 0) != score(line, 10)
