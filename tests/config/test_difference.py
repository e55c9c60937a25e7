"""What differs is found, all of it, and causes are told apart from what follows."""

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from etude.config.compose import compose
from etude.config.difference import ABSENT, difference
from etude.config.resolve import resolve
from etude.store.identity import identify

leaves = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text("xy", max_size=2)
values = leaves | st.lists(leaves, max_size=2)
keys = st.sampled_from(["heads", "d_k", "position", "budget"])
configs = st.dictionaries(keys, values | st.dictionaries(keys, values, max_size=3), max_size=4)


def test_choices_stand_apart_and_bring_their_class_without_a_word():
    before = {"choices": {"model/position": "none"}, "model": {"position": {"_target_": "a.None", "_partial_": True}}}
    after = {
        "choices": {"model/position": "learned"},
        "model": {"position": {"_target_": "a.Learned", "_partial_": True, "max_length": 512}},
    }
    found = difference(before, after)
    assert found.choices == {"model/position": ("none", "learned")}
    assert found.values == {"model.position.max_length": (ABSENT, 512)}


def test_a_class_that_changed_under_the_same_choice_is_told():
    before, after = ({"choices": {"loss": "plain"}, "loss": {"_target_": name}} for name in ("a.Old", "a.New"))
    assert difference(before, after).values == {"loss._target_": ("a.Old", "a.New")}


def test_what_is_written_alike_follows_and_a_plain_copy_is_not_told_twice():
    written = {"heads": 8, "d_k": "${head_size:null}", "scale": {"d_k": "${d_k}"}}
    before, after = {"heads": 8, "d_k": 64, "scale": {"d_k": 64}}, {"heads": 1, "d_k": 512, "scale": {"d_k": 512}}
    found = difference(before, after, (written, written | {"heads": 1}))
    assert found.values == {"heads": (8, 1)}
    assert found.consequences == {"d_k": (64, 512)}
    assert difference(before, after).values.keys() == {"heads", "d_k", "scale.d_k"}


def test_in_real_configs_the_number_of_heads_decides_the_size_of_each():
    sides = [compose(overrides) for overrides in ([], ["model.heads=1"])]
    written = [{key: node for key, node in side.items_ex(resolve=False) if key != "hydra"} for side in sides]
    from omegaconf import OmegaConf

    plain = [OmegaConf.to_container(OmegaConf.create(node)) for node in written]
    found = difference(resolve(sides[0]), resolve(sides[1]), (plain[0], plain[1]))
    assert (found.choices, found.values) == ({}, {"model.heads": (4, 1)})
    assert found.consequences == {"model.attention.d_k": (16, 64), "model.attention.d_v": (16, 64)}


def test_names_of_runs_are_no_difference():
    before = {"study": "single", "arm": "base", "choices": {"experiment": None}}
    assert not difference(before, {"study": "table3", "arm": "A1", "choices": {"experiment": "table3/A1"}})


def test_what_is_one_value_is_so_for_the_identity_of_a_run_too():
    for before, after in ((1, 1.0), ([1], [1.0]), (0, -0.0), (1, True), (0, None), (0, False), (1, "1"), (1, 1.5)):
        one, other = ({"seed": value} for value in (before, after))
        same = identify(one, "text") == identify(other, "text")
        assert difference(one, other).values == ({} if same else {"seed": (before, after)})
    assert not difference({"x": 1}, {"x": 1.0})
    assert difference({"x": 1}, {"x": True})


@settings(max_examples=100, deadline=None)
@given(configs)
def test_a_config_does_not_differ_from_itself(config):
    assert not difference(config, copy.deepcopy(config))


@settings(max_examples=200, deadline=None)
@given(configs, configs)
def test_what_is_told_is_enough_to_make_one_config_out_of_the_other(before, after):
    made: dict[str, Any] = copy.deepcopy(before)
    found = difference(before, after)
    assert not found.choices
    assert not found.consequences
    for key, (old, new) in found.values.items():
        *sections, last = key.split(".")
        node = made
        for section in sections:
            node = node[section]
        assert node.get(last, ABSENT) == old
        if new is ABSENT:
            del node[last]
        else:
            node[last] = new
    assert repr(made) == repr(after) or made == after


@settings(max_examples=100, deadline=None)
@given(configs, configs)
def test_the_way_back_tells_the_same_pairs_turned_round(before, after):
    there, back = difference(before, after).values, difference(after, before).values
    assert {key: (new, old) for key, (old, new) in there.items()} == back


def test_a_part_within_a_part_is_told_by_its_values():
    before, after = (resolve(compose(overrides)) for overrides in ([], ["model/decoder=recurrent"]))
    found = difference(before, after)
    assert found.choices["model/decoder/alignment"] == (ABSENT, "additive")
    assert found.values["model.decoder.alignment.d_model"] == (ABSENT, 64)
    assert not any(isinstance(side, dict) for pair in found.values.values() for side in pair)
