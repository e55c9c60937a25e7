"""Keys that had another name: whoever types the old one is told the new, and runs of before are still read."""

import pytest

from etude.config.compose import compose
from etude.config.identity import resolve
from etude.errors import UserError
from etude.studies.renames import GROUPS, KEYS, VALUES, with_new_names
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
