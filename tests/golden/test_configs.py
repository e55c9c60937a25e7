"""What every arm of every study is composed to, and the identities of its run and of its training."""

from collections.abc import Mapping
from typing import Any

import pytest

from etude.config.compose import compose
from etude.config.resolve import as_written, resolve_valid
from etude.store.identity import identify, identify_training
from etude.study.study import load_study, study_names

from .recorded import assert_as_recorded, leaves

STUDIES = study_names()
TEXT = "0123456789"  # in place of the text's fingerprint, so that no text is needed


def resolved_and_flat(overrides: list[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The resolved config, and the two forms of the config, flat, without the folders."""
    config = compose(overrides)
    written, resolved = as_written(config), resolve_valid(config)
    forms = {"written": written, "resolved": resolved}
    return resolved, {
        name: dict(leaves({key: value for key, value in form.items() if key not in ("runs_dir", "cache_dir")}))
        for name, form in forms.items()
    }


def difference(of: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """The leaves that are not those of the base; "absent" where it alone has one."""
    return {key: of.get(key, "absent") for key in base | of if key not in base or key not in of or base[key] != of[key]}


@pytest.mark.parametrize("scale", ["pocket", "full"])
def test_the_default_config_is_as_recorded(scale: str) -> None:
    assert_as_recorded(f"config-{scale}", resolved_and_flat([f"scale={scale}"])[1])


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["pocket", "full"])
@pytest.mark.parametrize("study", STUDIES)
def test_the_config_and_the_identities_of_each_arm_are_as_recorded(study: str, scale: str) -> None:
    base = resolved_and_flat([f"scale={scale}"])[1]
    found = {}
    for arm in load_study(study).arms:
        config, forms = resolved_and_flat([f"experiment={study}/{arm}", f"scale={scale}"])
        found[arm] = {
            "run": identify(config, TEXT),
            "training": identify_training(config, TEXT),
            **{form: difference(values, base[form]) for form, values in forms.items()},
        }
    assert_as_recorded(f"configs-{study}-{scale}", found)
