"""What a person types in any language is read by Hydra as one value, and what is a list stays one."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from etude.config.compose import compose
from etude.config.compose_cache import expand
from etude.config.quoting import make_readable, quote_text
from etude.errors import UserError


@pytest.mark.parametrize("path", ["/home/rené/x", "~/x", "/日本/x", "/a & b/x", "/my runs/x"])
def test_a_path_needs_no_quotes_but_the_shells(path: str) -> None:
    assert compose([f"runs_dir={path}"]).runs_dir == path
    assert expand([f"runs_dir={path}", "seed=1,2"])[1][1] == "seed=2"


@pytest.mark.parametrize("word", ["seed=1,2", "a=[é,b]", "a='é'", "a={é:1}", "--cfg=é", "é", "a=", "a=1e-5", "a=x y"])
def test_what_hydra_reads_or_may_be_several_values_is_left_as_it_was_typed(word: str) -> None:
    assert make_readable([word]) == [word]


@given(st.text("é~&#;!^<>`日 ab/.", min_size=1).map(str.strip).filter(bool))
def test_what_is_made_readable_is_read_as_it_was_typed(text: str) -> None:
    [override] = OverridesParser.create().parse_overrides(make_readable([f"key={text}"]))
    assert override.value() == text


@given(
    st.sampled_from(["5", "1e3", "null", "true", "a, b", "[x", "it's \\"]) | st.text("a5 ,'\\\\\"[]{}()=").filter(bool)
)
def test_what_is_quoted_is_text_whatever_it_looks_like(text: str) -> None:
    [override] = OverridesParser.create().parse_overrides([f"key={quote_text(text)}"])
    assert override.value() == text


def test_what_cannot_be_read_is_told_with_the_quotes_it_needs() -> None:
    with pytest.raises(UserError) as caught:
        compose(["runs_dir=/runs (rené)/x"])
    assert "twice, for the shell and for Hydra, such as  \"runs_dir='/runs (rené)/x'\"" in str(caught.value)
    assert compose(["runs_dir='/runs (rené)/x'"]).runs_dir == "/runs (rené)/x"
