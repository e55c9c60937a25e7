"""The recurrent encoder and decoder against PyTorch's own layers, read sentence by sentence and step by step."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

CELLS = {"gru": nn.GRU, "lstm": nn.LSTM}
RECURRENT = ("model/encoder=recurrent", "model/decoder=recurrent")
LENGTHS = [7, 4, 1]


def of_cells(cell: str) -> list[str]:
    return [f"model.encoder.cell={cell}", f"model.decoder.cell={cell}"]


@pytest.fixture(params=CELLS)
def cell(request) -> str:
    return request.param


def pytorchs_bidirectional(encoder: nn.Module, cell: str) -> nn.Module:
    """PyTorch's bidirectional layers with the weights of ours."""
    forwards, backwards = encoder.forwards, encoder.backwards
    d_model, units = forwards[0].input_size, forwards[0].hidden_size
    theirs = CELLS[cell](d_model, units, len(forwards), batch_first=True, bidirectional=True).double()
    for n in range(len(forwards)):
        for ours, suffix in ((forwards[n], ""), (backwards[n], "_reverse")):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(theirs, f"{name}_l{n}{suffix}").data = getattr(ours, f"{name}_l0").data
    return theirs


def test_the_encoder_reads_each_sentence_as_pytorchs_bidirectional_layers_do(jittered, sentences, cell):
    model, (source, mask, _) = jittered(*RECURRENT, *of_cells(cell)).double(), sentences
    theirs, read = pytorchs_bidirectional(model.encoder, cell), model.encode(source, mask)
    for row, length in enumerate(LENGTHS):
        alone = theirs(model.embedding.source(source[row : row + 1, :length]))[0]
        assert_close(read[row : row + 1, :length], alone)


def test_read_forwards_alone_the_encoder_is_pytorchs_layers(jittered, sentences, cell):
    model, (source, mask, _) = jittered(*RECURRENT, *of_cells(cell), "model.encoder.bidirectional=false"), sentences
    assert len(model.encoder.backwards) == 0
    x = model.embedding.source(source)
    for layer in model.encoder.forwards:
        x = nn.Module.__call__(layer, x)[0]
        assert x.shape == (3, 7, 16)
    assert_close(model.encode(source, mask)[0], x[0])


def test_without_input_feeding_or_alignment_the_decoder_is_pytorchs_layers_from_its_first_state(
    jittered, sentences, cell
):
    plain = ("model/decoder/alignment=none", "model.decoder.input_feeding=false")
    model, (source, mask, target) = jittered(*RECURRENT, *of_cells(cell), *plain).double(), sentences
    memory, decoder = model.encode(source, mask), model.decoder
    mean = torch.stack([memory[row, :length].mean(0) for row, length in enumerate(LENGTHS)])
    first = torch.tanh(decoder.first(mean)).view(3, 2, 16).transpose(0, 1).contiguous()
    theirs = CELLS[cell](16, 16, 2, batch_first=True).double()
    theirs.load_state_dict(decoder.layers.state_dict())
    hidden = first if cell == "gru" else (first, torch.zeros_like(first))
    expected = theirs(model.embedding.target(target), hidden)[0]
    assert_close(model.hidden(source, mask, target), expected)


@pytest.mark.parametrize("alignment", ["additive", "dot", "general"])
def test_input_feeding_gives_each_step_what_the_last_one_looked_at(jittered, sentences, cell, alignment):
    """Step by step, by hand, one sentence at a time, without padding."""
    model = jittered(*RECURRENT, *of_cells(cell), f"model/decoder/alignment={alignment}").double()
    source, mask, target = sentences
    decoder, whole = model.decoder, model.hidden(source, mask, target)
    theirs = CELLS[cell](32, 16, 2, batch_first=True).double()
    theirs.load_state_dict(decoder.layers.state_dict())
    for row, length in enumerate(LENGTHS):
        memory = model.encode(source[row : row + 1, :length], mask[row : row + 1, :length])
        first = torch.tanh(decoder.first(memory.mean(1))).view(1, 2, 16).transpose(0, 1).contiguous()
        hidden = first if cell == "gru" else (first, torch.zeros_like(first))
        fed = torch.zeros(1, 1, 16, dtype=torch.float64)
        for step in range(target.size(1)):
            embedded = model.embedding.target(target[row : row + 1, step : step + 1])
            out, hidden = theirs(torch.cat([embedded, fed], dim=-1), hidden)
            context, _ = looked(decoder.alignment, alignment, out[0, 0], memory[0])
            fed = torch.tanh(decoder.alignment.join.weight @ torch.cat([context, out[0, 0]]))[None, None]
            assert_close(whole[row, step], fed[0, 0])


def looked(part: nn.Module, alignment: str, state: torch.Tensor, memory: torch.Tensor):
    """The context of one state (D,), and the weights (S,), position by position."""
    scores = []
    for position in memory:
        if alignment == "additive":
            scores.append(part.score.weight[0] @ torch.tanh(part.state.weight @ state + part.key.weight @ position))
        elif alignment == "general":
            scores.append(state @ part.key.weight @ position)
        else:
            scores.append(state @ position)
    weights = torch.stack(scores).softmax(0)
    return sum(weight * position for weight, position in zip(weights, memory, strict=True)), weights


def test_the_weights_of_an_alignment_can_be_watched_all_steps_at_once(jittered, sentences):
    model, (source, mask, target) = jittered(*RECURRENT), sentences
    seen = []
    model.decoder.watched.register_forward_hook(lambda module, inputs, weights: seen.append(weights))
    model(source, mask, target)
    [weights] = seen
    assert weights.shape == (3, 1, 5, 7)
    assert_close(weights.sum(-1), torch.ones(3, 1, 5))
    assert not weights.masked_select(~mask[:, None, None].expand_as(weights)).any()


def test_a_language_model_can_be_recurrent(jittered, sentences):
    model = jittered("model/encoder=none", "model/decoder=recurrent", "model/decoder/alignment=none")
    source, mask, target = sentences
    assert torch.equal(model(source, mask, target), model(source.flip(0), mask.flip(0), target))
