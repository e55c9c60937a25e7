"""The parameters of every variation, counted by a formula for each part."""

import pytest
import torch
from tests.variations import variations

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.tasks import build

V = 40
SIZES = ["model.d_model=12", "model.d_ff=20", "model.heads=4", "model.d_k=6", "model.d_v=5", "model.n_layers=3"]


def attention(m, kv_heads):
    """W_Q, W_K, W_V and W_O, and a bias for each unit where there are biases."""
    units = (m["heads"] * m["attention"]["d_k"], kv_heads * (m["attention"]["d_k"] + m["attention"]["d_v"]))
    read = m["heads"] * m["attention"]["d_v"]
    return m["d_model"] * (sum(units) + read) + (sum(units) + m["d_model"]) * m["attention"]["bias"]


def latent_attention(m, a):
    """W_D, that of the rotated key and W_Q; W_K and W_V of the latent with the gain of its norm; W_O."""
    read, units = m["heads"] * a["d_v"], m["heads"] * (a["content"] + a["d_k"])
    from_input, of_latent = a["latent"] + a["d_k"] + units, m["heads"] * (a["content"] + a["d_v"])
    biases = (from_input + of_latent + m["d_model"]) * a["bias"]
    return m["d_model"] * (from_input + read) + a["latent"] * (of_latent + 1) + biases


def synthesizer(m, scores, mix):
    """What self-attention has more than multi-head attention: synthetic scores; without products, no W_K and no W_Q."""
    a, h = m["attention"], m["heads"]
    own = {
        "dense": lambda: a["d_k"] * a["scores"]["max_length"],
        "random": lambda: h * a["scores"]["max_length"] ** 2,
        "factorized": lambda: 2 * h * a["scores"]["max_length"] * a["scores"]["rank"],
    }[scores]()
    absent = (mix == "alone") * (1 if scores == "dense" else 2)
    return own + (mix == "alpha") - absent * h * a["d_k"] * (m["d_model"] + a["bias"])


def light_convolution(m):
    """Two matrices and a gate, and kernels: learned, or each made by a matrix."""
    d, c = m["d_model"], m["attention"]["convolution"]
    kernels = c["kernels"] * c["kernel"]
    return 3 * (d * d + d) + (kernels * (d + 1) if c["_target_"].endswith("DynamicConvolution") else kernels)


def plain_network(m):
    return 2 * m["d_model"] * m["d_ff"] + m["d_ff"] + m["d_model"]


def gated_network(m):
    return 3 * m["d_model"] * round(2 * m["d_ff"] / 3)


def experts(m, f):
    return f["experts"] * (plain_network(m) + m["d_model"])


def memory(m, f):
    """Queries and their norm, keys of two halves, values."""
    queries = f["heads"] * f["key_size"]
    return queries * (m["d_model"] + 1) + f["key_size"] + queries * f["keys"] + f["keys"] ** 2 * m["d_model"]


def gates(d_in, d_out):
    """A layer of gated recurrent units: three gates, each with two matrices and two biases."""
    return 3 * d_out * (d_in + d_out + 2)


def factors(tokens, size):
    """A table of short vectors, and what makes them D-vectors."""
    return (tokens + D) * size


def clusters(m):
    """Of forty tokens, three whole vectors, eight and twenty-nine shorter ones."""
    return 3 * D + factors(8, m["tying"]["sizes"][0]) + factors(29, m["tying"]["sizes"][1])


def nothing(m):
    return 0


CONVOLUTIONS = ("lightweight_convolution", "dynamic_convolution")
IN_SOME_LAYERS = {"switch": (experts, 2), "product_key_memory": (memory, 1)}  # in how many of three
# Of one part: an attention, its scale, the positions of a stack of N layers, one norm, one network, the tables.
COUNTS = {
    "attention": {
        "multi_head": lambda m: attention(m, m["heads"]),
        "linear": lambda m: attention(m, m["heads"]),
        "local": lambda m: attention(m, m["heads"]),
        "differential": lambda m: attention(m, m["heads"]) + 4 * m["attention"]["d_k"] + 2 * m["attention"]["d_v"],
        "latent": lambda m: latent_attention(m, m["attention"]),
        "modular": lambda m: attention(m, m["heads"]) + 2 * m["attention"]["d_k"],
        **dict.fromkeys(("synthesizer", *CONVOLUTIONS), lambda m: attention(m, m["heads"])),
        "branched": lambda m: attention(m, m["heads"]) + plain_network(m) + 2 * m["heads"],
        "grouped_query": lambda m: attention(m, m["attention"]["kv_heads"]),
    },
    "scale": {
        **dict.fromkeys(("sqrt_dk", "none", "dk", "sqrt_dmodel"), nothing),
        "learned": lambda m: m["heads"],
        "cosine": lambda m: 1,
    },
    "position": {
        **dict.fromkeys(
            ("sinusoidal", "sinusoidal_t2t", "none", "rope", "partial_rope", "rope_in_some_layers", "alibi"), nothing
        ),
        **dict.fromkeys(("learned", "learned_unscaled"), lambda m: m["position"]["max_length"] * m["d_model"]),
        "shaw": lambda m: m["n_layers"] * (2 * m["position"]["clip"] + 1) * m["attention"]["d_k"],
        "t5": lambda m: m["heads"] * m["position"]["buckets"],
    },
    "norm": {
        "layer": lambda m: 2 * m["d_model"],
        **dict.fromkeys(("rms", "partial_rms"), lambda m: m["d_model"]),
        "dynamic_tanh": lambda m: 2 * m["d_model"] + 1,
        "none": nothing,
    },
    "feedforward": {
        **dict.fromkeys(("relu", "gelu", "plain", "squared_relu", "evolved", *IN_SOME_LAYERS), plain_network),
        "experts": lambda m: experts(m, m["feedforward"]),
        "normformer": lambda m: plain_network(m) + 2 * m["d_ff"],
        **dict.fromkeys(("swiglu", "geglu", "gated"), gated_network),
        "none": nothing,
    },
    "tying": {
        **dict.fromkeys(("all", "unscaled", "soft_cap"), lambda m: V * m["d_model"]),
        "none_normed": lambda m: 3 * V * m["d_model"] + 4 * m["d_model"],
        **dict.fromkeys(("decoder", "inputs"), lambda m: 2 * V * m["d_model"]),
        "factorized": lambda m: factors(V, m["tying"]["size"]) + V * m["d_model"],
        "factorized_shared": lambda m: factors(V, m["tying"]["size"]),
        "adaptive_input": clusters,
        "adaptive_softmax": lambda m: clusters(m) + 2 * m["d_model"],
        "mixture_of_softmaxes": lambda m: V * m["d_model"] + 15 * (m["d_model"] + 1) * m["d_model"],
        "none": lambda m: 3 * V * m["d_model"],
        "all_t2t": lambda m: (V + 32) * m["d_model"],
    },
}
D, N = 12, 4  # of SIZES, and streams
# Of a wrapping: how many norms it holds, how many numbers of its own, and how many norms open and close a stack.
RESIDUALS = {
    "post": (1, 0, 0),
    "pre": (1, 0, 1),
    "sandwich": (2, 0, 1),
    "rezero": (0, 1, 0),
    "rezero_pre": (1, 1, 1),
    "fixup": (0, 2, 0),
    "peri": (2, 0, 2),
    "layer_scale": (1, D, 1),
    "gated": (1, 3 * (2 * D * D + D), 1),
    "hyper": (2, N * N + 2 * N + D * (N + 2) + 2, 1),
}
OF_MODULAR = {  # numbers of a layer's self-attention, of its attention to the encoder, and those the first layer lacks
    ("qk_norm", "none"): (-12, -12, 0),
    ("qk_norm", "layer"): (12, 12, 0),
    ("values", "residual"): (2, 0, 2),
    ("sink", "learned"): (4, 4, 0),
    ("gate", "headwise"): (D * 4, D * 4, 0),
    ("gate", "scale"): (4, 4, 0),
    ("out_norm", "layer"): (2 * D, 2 * D, 0),
}


FORMULAS = {  # the variations of which the parameters are counted below
    **COUNTS,
    "residual": RESIDUALS,
    "encoder": {
        "transformer",
        "none",
        "recurrent",
        "convolution",
        "parallel",
        "shared",
        "transparent",
        "universal",
        "funnel",
        "evolved",
    },
    "decoder": {"transformer", "recurrent", "convolution", "parallel", "shared", "universal", "evolved"},
    "decoder/alignment": {"additive", "dot", "general", "none"},
}


def by_formula(model, choices):
    """The sum over the parts; all of them have a formula here."""
    of = {part: COUNTS[part][choices[f"model/{part}"]](model) for part in COUNTS}
    norms, own, closing = RESIDUALS[choices["model/residual"]]
    wrapping = norms * of["norm"] + own
    attentive = of["attention"] + of["scale"]
    stack = of["position"] + closing * of["norm"]
    steps = [(part, choices.get(f"model/attention/{part}")) for part, _ in OF_MODULAR]
    further = [
        sum(counts) for counts in zip((0, 0, 0), *(OF_MODULAR[one] for one in {*steps} & {*OF_MODULAR}), strict=True)
    ]
    if placed := IN_SOME_LAYERS.get(choices["model/feedforward"]):
        stack += placed[1] * (placed[0](model, model["feedforward"]["inside"]) - of["feedforward"])
    if choices["model/attention"] == "synthesizer":
        further[0] += synthesizer(model, choices["model/attention/scores"], choices["model/attention/mix"])
    if choices["model/attention"] in CONVOLUTIONS:
        further[0] += light_convolution(model) - attentive  # whose scale is not there either
    causal = attentive + further[0] + of["feedforward"] + 2 * wrapping
    crossing = attentive + further[1] + wrapping
    stack -= further[2]
    d, n = model["d_model"], model["n_layers"]
    convolution = 3 * d * 2 * d + 2 * d + wrapping
    encoders = {
        **dict.fromkeys(("transformer", "funnel"), lambda: stack + n * causal),
        "parallel": lambda: stack + n * (causal - wrapping),
        "shared": lambda: stack + causal,
        "universal": lambda: stack + causal + n * d,
        "transparent": lambda: stack + n * (causal + n + 1),
        # A gate; a matrix, a convolution over 3, their norm, and one over 9 of each channel, then across them.
        "evolved": lambda: (
            stack
            + n * (causal + 2 * wrapping + 2 * d * d + 2 * d)
            + n * ((d + 1) * 4 * d + (3 * d + 1) * d // 2 + 2 * 4 * d + 9 * 4 * d + (4 * d + 1) * d // 2)
        ),
        "none": lambda: 0,
        "recurrent": lambda: n * 2 * gates(d, d // 2),
        "convolution": lambda: stack + n * convolution,
    }
    alignments = {"additive": 2 * d * d + d, "dot": 0, "general": d * d, "none": -2 * d * d}
    decoders = {
        "transformer": lambda: stack + n * (causal + bool(encoder) * crossing),
        "shared": lambda: stack + causal + bool(encoder) * crossing,
        "universal": lambda: stack + causal + bool(encoder) * crossing + n * d,
        # Two attentions more to itself, one to the encoder; convolutions over 11 and 7, their norm, another over 7.
        "evolved": lambda: (
            stack
            + n * (causal + 2 * (attentive + further[0]) + bool(encoder) * (2 * crossing - wrapping) + 2 * wrapping)
            + n * (11 * d + (d + 1) * 2 * d + 7 * d + (d + 1) * d // 2 + 2 * 2 * d + 7 * 2 * d + (2 * d + 1) * d)
        ),
        "parallel": lambda: stack + n * (causal - wrapping + bool(encoder) * (crossing - wrapping)),
        # The first state; layers of which the first reads what was looked at too; W_c and the alignment's own.
        "recurrent": lambda: (
            (d * n * d + n * d)
            + gates(2 * d, d)
            + (n - 1) * gates(d, d)
            + 2 * d * d
            + alignments[choices["model/decoder/alignment"]]
        ),
        "convolution": lambda: stack + n * (convolution + bool(encoder) * crossing),
    }
    encoder = encoders[choices["model/encoder"]]()
    return of["tying"] + encoder + decoders[choices["model/decoder"]]()


def counted(config, device):
    with torch.device(device):
        return sum(parameter.numel() for parameter in build.model(config, V).parameters())


BIASED = variations("attention", "encoder", "decoder")  # where there are matrices with the biases of attention


@pytest.mark.parametrize(
    ("chosen", "bias"), [*((one, "false") for one in variations()), *((one, "true") for one in BIASED)]
)
def test_as_many_parameters_are_built_as_the_formula_counts(chosen, bias):
    config = resolve(compose([*SIZES, *chosen.split(), f"model.attention.bias={bias}", "model.vocabulary=null"]))
    choices = config["choices"]
    if unknown := [part for part, known in FORMULAS.items() if choices.get(f"model/{part}", "none") not in known]:
        pytest.skip(f"no formula stands here for another {unknown[0]}, a variation of one's own")
    assert counted(config, "cpu") == by_formula(config["model"], choices)


def test_a_norm_within_and_one_at_the_end_are_counted_for_every_pair_of_residual_and_norm():
    for residual in RESIDUALS:
        for norm in COUNTS["norm"]:
            config = resolve(compose([*SIZES, f"model/residual={residual}", f"model/norm={norm}"]))
            assert counted(config, "cpu") == by_formula(config["model"], config["choices"]), (residual, norm)
