"""Each arm of each study really is another model or another training than its reference, and only where it says."""

import re
from copy import deepcopy
from functools import cache, lru_cache

import pytest
import torch
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from etude.config import parts
from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.data.tokenizer import PAD
from etude.errors import UserError
from etude.model.embedding import WordTable
from etude.model.experts import mixtures
from etude.paths import shipped
from etude.study.arm_names import arm_names
from etude.study.arms import override_key, split_override
from etude.study.study import load_study
from etude.tasks import build
from etude.training.experts import balancing_cost
from etude.yaml_file import read_yaml

VOCABULARY = 40
NAMES = ("study", "arm", "experiment.")  # what a run is called
# Studies with the arms of another, to which `tests/experiments` holds them, and with updates of their own.
TWINS = {"narang2021_translation": "narang2021", "history_time": "history"}

# What may differ where an override names this section; the schedule knows d_model, equation (3).
MAY_DIFFER = {
    "model": {"shapes", "start", "function", "regularisation", "schedule"},
    "loss": {"loss"},
    "schedule": {"schedule"},
    "data": {"data"},
    "tokenizer": {"data"},
    "decoding": {"decoding"},
    **{key: {"training", "schedule"} for key in ("budget", "optimizer", "precision", "averaging", "callbacks")},
}


def overrides(arm: str) -> list[str]:
    """What the arm `<study>/<arm>` itself changes: what its reference has not, or has and the arm has not."""
    ours, theirs = listed(arm), listed(reference(arm))
    return [one for one in ours if one not in theirs] + [one for one in theirs if one not in ours]


def listed(arm: str) -> list[str]:
    study, _, name = arm.partition("/")
    return load_study(study).arms[name]


def reference(arm: str) -> str:
    study, _, name = arm.partition("/")
    return f"{study}/{load_study(study).reference(name)}"


def stands_elsewhere(arm: str) -> bool:
    """Whether another study's arm has the same overrides."""
    study, _, name = arm.partition("/")
    if study not in TWINS:
        return False
    own = {override for override in overrides(arm) if override_key(override) != "budget.max_steps"}
    return own == {*overrides(f"{TWINS[study]}/{name}")}


ARMS = [name for name in sorted(arm_names()) if name != reference(name) and not stands_elsewhere(name)]


@pytest.fixture(params=ARMS)
def arm(request) -> str:
    return request.param


@cache
def composed(*typed: str):
    return compose(typed)


@cache
def resolved(arm: str) -> dict:
    return resolve(composed(f"experiment={arm}"))


def leaves(node, path: str = "") -> dict:
    """Dotted key and value of each leaf."""
    if not isinstance(node, dict):
        return {path: node}
    return {k: v for key in node for k, v in leaves(node[key], f"{path}.{key}".lstrip(".")).items()}


@cache
def written(*typed: str) -> dict:
    """Each leaf as it stands in the files, interpolations and all, and where each group writes its choice."""
    config = composed(*typed)
    own = {key: value for key, value in OmegaConf.to_container(config, resolve=False).items() if key != "hydra"}
    chosen = resolve(config)["choices"].items()
    choices = {f"{group.rpartition('@')[2].replace('/', '.')}.": choice for group, choice in chosen}
    return {key: value for key, value in (leaves(own) | choices).items() if key not in NAMES}


def changed(one: dict, other: dict) -> set[str]:
    return {key for key in one | other if one.get(key, ...) != other.get(key, ...)}


def sections(override: str) -> list[str]:
    """Where an override may write: its key; or the section of the file that it chooses, or what that file names."""
    key, value = split_override(override)
    file = shipped("conf") / key / f"{value}.yaml"
    if not file.is_file():
        return [key]
    group, content = key.replace("/", "."), read_yaml(file)
    if not file.read_text(encoding="utf-8").startswith("# @package _global_"):
        return [group]
    chosen = [name.removeprefix("override /").replace("/", ".") for line in content.pop("defaults") for name in line]
    return [group, *chosen, *leaves(content)]


def test_what_is_written_differs_where_the_arm_says_and_nowhere_else(arm):
    """The rest of a difference is worked out from what is written: `${model.d_model}` and its kin."""
    named = tuple(f"{section}." for override in overrides(arm) for section in sections(override))
    found = changed(written(f"experiment={arm}"), written(f"experiment={reference(arm)}"))
    assert found
    assert [key for key in found if not f"{key}.".startswith(named)] == []


def test_no_override_of_an_arm_is_idle(arm):
    for idle in set(overrides(arm)) & set(listed(arm)):
        others = [override for override in listed(arm) if override != idle]
        left = f"experiment={reference(arm)}"  # composed already, and no other than its overrides typed
        try:
            rest = written(left) if set(others) == set(listed(reference(arm))) else written(*others)
        except (UserError, OmegaConfBaseException):  # which choose what this one brings, or sizes that go with it
            continue
        assert changed(rest, written(f"experiment={arm}")), f"{idle} changes nothing"


def inputs():
    """Source (2, 24), its mask with 24 and 15 real tokens, target (2, 20): longer than any window or exact bucket."""
    generator = torch.Generator().manual_seed(5)
    mask = torch.arange(24) < torch.tensor([[24], [15]])
    source, target = (torch.randint(4, VOCABULARY, (2, length), generator=generator) for length in (24, 20))
    return source.masked_fill(~mask, PAD), mask, target


def model_of(arm: str):
    return build.model(resolved(arm), VOCABULARY).double()


kept_model_of = lru_cache(maxsize=1)(model_of)  # most arms of a study have the same reference


def in_training(model):
    """The logits, and what balancing experts adds to the loss."""
    model.train()
    torch.manual_seed(1)
    with torch.enable_grad():  # without, balancing has no cost
        logits = model(*inputs())
    return torch.cat([logits.flatten(), torch.as_tensor(balancing_cost(mixtures(model))).reshape(1)])


def different_models(ours, theirs) -> set[str]:
    """How two models differ: in shapes, or else at the start, in what they compute, in what they drop.

    Their weights are no more those of the start.
    """
    weights, others = ours.state_dict(), theirs.state_dict()
    if {k: v.shape for k, v in weights.items()} != {k: v.shape for k, v in others.items()}:
        return {"shapes"}
    found = set() if all(torch.equal(weights[name], others[name]) for name in weights) else {"start"}
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        ours.load_state_dict(theirs.state_dict())
        if not torch.allclose(ours.eval()(*inputs()), theirs.eval()(*inputs())):
            found.add("function")
        elif not torch.allclose(in_training(ours), in_training(theirs)):
            found.add("regularisation")
    return found


def loss_of(config):
    logits = torch.randn(2, 20, VOCABULARY, generator=torch.Generator().manual_seed(5))
    return parts.make(config["loss"], PAD)(logits, inputs()[2])


def different_trainings(config, other) -> set[str]:
    found = set() if torch.equal(loss_of(config), loss_of(other)) else {"loss"}
    kinds = {"schedule": ("schedule",), "data": ("data", "tokenizer"), "decoding": ("decoding",)}
    kinds["training"] = ("budget", "optimizer", "precision", "averaging")
    return found | {kind for kind, keys in kinds.items() if any(config.get(k) != other.get(k) for k in keys)}


def assert_same_start(ours, theirs, chosen: list[str]) -> None:
    """W_Q, W_K and W_V start by the size of all three together: where another of them changed, with the same numbers
    times a factor. An arm that is about the start has its own in the linear layers, and GPT-2's in the tables too."""
    about_start = any(override.startswith("model/init=") for override in chosen)
    drawn = (torch.nn.Linear, torch.nn.Embedding) if "model/init=gpt2" in chosen else torch.nn.Linear
    own = {f"{name}.weight" for name, part in ours.named_modules() if isinstance(part, drawn)}
    weights, others = dict(ours.named_parameters()), dict(theirs.named_parameters())
    shared = [name for name in weights if name in others and weights[name].shape == others[name].shape]
    tables = [model.embedding.source_table for model in (ours, theirs)]
    as_wide = len({(type(table), *(weight.shape for weight in table.parameters())) for table in tables}) == 1
    as_wide &= isinstance(tables[0], WordTable)
    assert ("embedding.source_table.weight" in shared) == as_wide
    for name in shared:
        weight, other = weights[name], others[name]
        if torch.equal(weight, other) or (about_start and name in own):
            continue
        assert name.rpartition("attention.")[2] in {"q_proj.weight", "k_proj.weight", "v_proj.weight"}, name
        assert torch.allclose(weight * (other.norm() / weight.norm()), other), name


def test_an_arm_is_another_model_or_training_and_starts_with_its_reference_s_weights_where_name_and_shape_agree(arm):
    config, other = resolved(arm), resolved(reference(arm))
    ours, theirs = model_of(arm), deepcopy(kept_model_of(reference(arm)))
    assert_same_start(ours, theirs, overrides(arm))
    found = different_models(ours, theirs) | different_trainings(config, other)
    keys = [override_key(override) for override in overrides(arm)]
    assert found
    assert found <= set().union(*(MAY_DIFFER[re.split(r"[./]", key)[0]] for key in keys))
