"""Every file of conf/decoding/ makes a search."""

import pytest
from hydra.utils import instantiate

from etude.config.compose import compose
from etude.decoding.beam import BeamSearch
from etude.paths import shipped

NAMES = sorted(path.stem for path in (shipped("conf") / "decoding").glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_a_decoding_config_makes_a_search(name: str) -> None:
    assert callable(instantiate(compose([f"decoding={name}"]).decoding))


def test_the_default_is_what_the_paper_says_in_section_6_1() -> None:
    search = instantiate(compose().decoding)
    assert isinstance(search, BeamSearch)
    assert (search.beam, search.alpha, search.max_len_offset) == (4, 0.6, 50)


def test_greedy_search_is_a_beam_of_one() -> None:
    assert instantiate(compose(["decoding=greedy"]).decoding).beam == 1
