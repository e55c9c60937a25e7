"""However attention is computed, every variation stays the same function: other kernels, and compiled code."""

from collections.abc import Iterable
from itertools import chain, zip_longest

import pytest
import torch
from tests.variations import unlike, variations
from torch.testing import assert_close

from etude.tasks import build

from .conftest import VOCABULARY, jitter

BACKENDS = [one for one in variations("backend")[1:] if one != "model/backend=eager"]  # the default is one of them
BIASES = [f"model/position={scheme}" for scheme in ("alibi", "shaw", "t5")]
TOGETHER = (  # axes whose options may stand in one graph, none in place of another
    ("encoder", "decoder"),
    ("attention", "tying", "norm"),
    ("residual", "feedforward", "position", "scale", "backend"),
)
ALONE = "model/encoder=none"
MODERN = ("residual=pre", "norm=rms", "position=rope", "attention=grouped_query", "feedforward=swiglu")


def logits_and_gradients(model, own, sentences):
    """With the gradients of the weights `own`; `model` may be the compiled form of theirs. Dropout draws anew."""
    torch.manual_seed(1)
    logits = model(*sentences)
    return logits, torch.autograd.grad(logits.logsumexp(-1).sum(), own, materialize_grads=True)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("chosen", variations("encoder", "decoder", "attention", "scale", "position"))
def test_every_backend_agrees_with_the_equation_step_by_step(backend, configured, chosen, longer_sentences):
    """Other axes do not reach what a backend is given: queries, keys, values, a mask and a bias."""
    blank = longer_sentences[1].clone()
    blank[1] = False  # one source is nothing but padding
    inputs = (longer_sentences[0], blank, longer_sentences[2])
    config, models = configured(chosen), []
    for one in ("model/backend=eager", backend):  # whose file is all that it changes
        part = {"backend": configured(one)["model"]["backend"]}
        model = build.model(config | {"model": config["model"] | part}, VOCABULARY)
        models.append(jitter(model.eval()).double())
    explicit, other = (logits_and_gradients(model, list(model.parameters()), inputs) for model in models)
    assert_close(other, explicit)


@pytest.mark.parametrize("backend", ["model/backend=eager", "model/backend=sdpa"])
@pytest.mark.parametrize("part", ["model/scale=sqrt_dk", "model/scale=cosine", *BIASES])
def test_half_precision_stays_finite_and_near_where_a_source_is_blank(tiny, sentences, part, backend):
    model, (source, mask, target) = tiny(part, backend), sentences
    blank = mask.clone()
    blank[1] = False
    with torch.autocast("cpu", torch.bfloat16):
        half = model(source, blank, target)
    assert_close(half.float(), model(source, blank, target), atol=0.2, rtol=0.05)


def beside(*columns: Iterable[str]) -> list[str]:
    """One option of each column together, as many times as the longest has options."""
    rows = zip_longest(*columns, fillvalue="")
    return [" ".join(dict.fromkeys(" ".join(row).split())) for row in rows]


def kinds(part: str) -> list[str]:
    """The options of an axis; of the axes within one, such as the steps of modular attention, one each together."""
    within: dict[str, dict[str, list[str]]] = {}
    for one in unlike(part):
        needs, _, inner = one.rpartition(" ")
        within.setdefault(needs, {}).setdefault(inner.partition("=")[0], []).append(one)
    return [one for columns in within.values() for one in beside(*columns.values())]


def graphs() -> list[str]:
    """Models in which every variation stands that is unlike the others, several that do not replace each other at once.

    The weights' start is no part of a graph, and without an encoder a decoder is but half of itself.
    """
    elsewhere = tuple(f"model/{part}=" for part in (*chain(*TOGETHER), "init"))
    encoders = [one for one in kinds("encoder") if one != ALONE]
    alone = [variations()[0], ALONE, *(one for one in variations() if not one.startswith(elsewhere))]
    together = [encoders, kinds("decoder")[::-1]], *([kinds(part) for part in parts] for parts in TOGETHER[1:])
    return [*alone, *chain(*(beside(*columns) for columns in together))]


@pytest.mark.slow
@pytest.mark.parametrize("chosen", graphs(), ids=lambda chosen: chosen.replace("model/", ""))
def test_the_whole_model_is_one_graph_that_agrees_with_the_model(jittered, chosen, longer_sentences):
    """In training, captured without a break and run as it is: what a compiler is given."""
    in_the_last = ["model.feedforward.behind=0"] * ("=product_key_memory" in chosen)  # of one layer, the only
    layers = 2 if "=funnel" in chosen else 1  # it halves the length in the second
    model = jittered(chosen, f"model.n_layers={layers}", "model.dropout=0.1", *in_the_last).double().train()
    torch._dynamo.reset()
    graph = torch.compile(model, backend="eager", fullgraph=True, dynamic=True)
    own = list(model.parameters())
    with torch._dynamo.config.patch(allow_rnn=True):  # PyTorch's recurrent layers are left out by default
        found = logits_and_gradients(graph, own, longer_sentences)
    assert_close(found, logits_and_gradients(model, own, longer_sentences))


@pytest.mark.slow
def test_compiled_code_agrees_with_the_model(jittered, longer_sentences):
    """Of a model of today; that of the paper is compiled in a run of its own (`test_compiled`)."""
    model = jittered("model.n_layers=1", *(f"model/{part}" for part in MODERN)).double()
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True)
    own = list(model.parameters())
    assert_close(
        logits_and_gradients(compiled, own, longer_sentences), logits_and_gradients(model, own, longer_sentences)
    )
