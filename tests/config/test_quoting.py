"""What a person types in any language is read by Hydra as one value, and what is a list stays one."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from etude.config.compose import compose
from etude.config.compose_cache import expand
from etude.config.quoting import make_readable, quote_text
from etude.config.resolve import resolve_valid
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


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("model.d_k=None", ["model.d_k=null"]),
        ("callbacks=None", ["callbacks=none"]),
        ("++model/position=None", ["++model/position=none"]),
        ("data=None", ["data=None"]),  # a group without `none`, whose options are told
        ("model={'heads': 1, 'd_k': None, 'a': {'b': 'x y'}}", ["model.heads=1", "model.d_k=null", "model.a.b=x y"]),
        ("data.test={'source': 'a,b.en', 'target': 'c.de'}", ["data.test.source='a,b.en'", "data.test.target=c.de"]),
        ("init_from={'run': 'a/b', 'vocabulary': 'adapt'}", ["init_from={run:a/b,vocabulary:adapt}"]),
        ("init_from={'run': '12e4'}", ["init_from={run:'12e4'}"]),
        ("a={'b': '1', 'c': 'null', 'd': '-.5', 'e': 2}", ["a.b='1'", "a.c='null'", "a.d='-.5'", "a.e=2"]),
        ("experiment=['a/x', \"a/y\"]", ["experiment=a/x+a/y"]),
        ("a='None'", ["a='None'"]),
        ("a={'b}", ["a={'b}"]),
    ],
)
def test_what_python_prints_of_nothing_and_of_a_dictionary_is_read_as_an_agent_means_it(
    typed: str, read: list[str]
) -> None:
    assert make_readable([typed]) == read


@pytest.mark.parametrize("word", ["arm=None", "seed=None", "data=None"])
def test_nothing_for_a_key_that_takes_no_null_is_refused_with_the_key(word: str) -> None:
    with pytest.raises(UserError, match=rf"^{word.partition('=')[0]}.* (must be .*, not None|no 'None' in the group)"):
        resolve_valid(compose([word]))
