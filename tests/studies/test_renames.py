"""Keys that had another name: whoever types the old one is told the new, and runs of before are still read."""

import pytest

from etude.config.compose import compose
from etude.config.resolve import resolve
from etude.errors import UserError
from etude.studies.renames import GROUPS, KEYS, VALUES, override_of_today, with_groups_of_today, with_new_names
from etude.studies.study import value_at


@pytest.mark.parametrize(("old", "new"), KEYS.items())
def test_an_old_key_is_told_with_its_new_name(old: str, new: str) -> None:
    with pytest.raises(UserError, match=f"{old} was renamed to {new}: write {new}="):
        compose([f"{old}=1"])


@pytest.mark.parametrize(("old", "new"), GROUPS.items())
def test_an_old_group_is_told_with_its_new_name(old: str, new: str) -> None:
    with pytest.raises(UserError, match=f"{old} was renamed to {new}: write {new}="):
        compose([f"{old}=x"])


def test_the_config_of_a_run_from_before_is_read_under_the_names_of_today() -> None:
    today = resolve(compose(list(VALUES.values())))
    before = today
    for old, new in KEYS.items():
        (section, key), (_, name) = old.split("."), new.split(".")
        assert value_at(today, new) is not None
        before = before | {section: {key if one == name else one: value for one, value in before[section].items()}}
    choices = dict(before["choices"])
    for old, new in VALUES.items():
        del choices[new.partition("=")[0]]
        choices[old.partition("=")[0]] = old.partition("=")[2]
    before = before | {"choices": choices}
    assert before != today
    assert with_new_names(before) == today == with_new_names(today)


@pytest.mark.parametrize("older", [{}, {"_target_": "etude.model.transformer.Transformer"}])
def test_groups_that_there_were_not_are_read_as_what_every_run_was_then(older: dict[str, str]) -> None:
    today = resolve(compose(["model/backend=eager"]))
    backend = today["model"]["backend"] | {"_target_": "etude.model.kernel.Explicit"}
    new = ("_target_", "encoder", "decoder")
    model = {key: value for key, value in today["model"].items() if key not in new} | older | {"backend": backend}
    groups = ("task", "model/encoder", "model/decoder")
    choices = {group: choice for group, choice in today["choices"].items() if group not in groups}
    before = {key: value for key, value in today.items() if key != "task"} | {"model": model, "choices": choices}
    assert with_groups_of_today(before) == today == with_groups_of_today(today)
    assert "task" not in before


def test_a_model_of_ones_own_gets_no_group_that_it_had_not_and_keeps_its_keys() -> None:
    own = {"task": {}, "model": {"_target_": "mine.models.Conv", "kernel": 3}, "choices": {"model": "conv"}}
    assert with_groups_of_today(own) == own
    assert override_of_today("model.kernel=5") == "model.kernel=5"


def test_what_was_typed_is_read_under_the_names_of_today() -> None:
    typed = ["model/kernel=explicit", "+model/kernel=sdpa", "budget.rate=1.2", "model.kernel.dropout=0.1", "seed=1"]
    today = [
        "model/backend=eager",
        "+model/backend=sdpa",
        "budget.lr_factor=1.2",
        "model.backend.dropout=0.1",
        "seed=1",
    ]
    assert [*map(override_of_today, typed)] == today
