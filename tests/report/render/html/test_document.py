import base64
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import etude.report.render.html
from etude.report.comparison import Compared
from etude.report.render.html.document import as_json, document, pack

PAGE = Path(etude.report.render.html.__file__).parent


@given(st.text() | st.sampled_from(["</script>", "<!-- <script>", "</SCRIPT >", "\u2028", "&lt;", "]]>"]))
def test_no_text_can_end_the_block_of_data(text: str) -> None:
    written = pack(as_json({text: [text]}))
    assert re.fullmatch(r"[\w+/]+=*", written, re.ASCII)  # neither `</script` nor `<!--`, whatever comes after
    assert json.loads(gzip.decompress(base64.b64decode(written))) == {text: [text]}


def test_a_number_that_json_cannot_say_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON"):
        as_json([float("nan")])


@pytest.mark.slow
def test_sixty_runs_of_a_thousand_sentences_make_less_than_three_megabytes(fabricate: Callable[..., Compared]) -> None:
    """With an analysis of each arm, of six layers of eight heads."""
    compared = fabricate(20, 3, 1000)
    heads = [
        {"attention": kind, "layer": layer, "head": head, "perplexity": 1 / 3, "change": 1 / 7}
        | {"interval": [-1 / 3, 1 / 3], "bleu": None, "entropy": 2 / 3, "distance": 2 / 7}
        for kind in ("encoder", "decoder", "cross")
        for layer in range(1, 7)
        for head in range(1, 9)
    ]
    for arm in compared.arms:
        arm.runs[0].run_dir.analysis_file.write_text(json.dumps({"heads": heads}))
    assert 2_000_000 < len(document(compared).encode()) < 3_000_000


@pytest.fixture(scope="module")
def compared(fabricate: Callable[..., Compared]) -> Compared:
    """Two arms of a seed each."""
    return fabricate(2, 1, 5)


@pytest.fixture(scope="module")
def page(compared: Compared) -> str:
    return document(compared)


def test_only_the_scripts_that_were_written_may_run(page: str, compared: Compared) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "connect-src" not in policy[1]
    assert policy[1].count("sha256-") == 2
    assert "connect-src 'self'" in document(compared, refresh=2)


def test_the_notes_of_the_table_stand_on_the_page(page: str) -> None:
    assert "One seed an arm: no arm is starred or bold" in page
    assert "Heads &amp; &lt;positions&gt;" in page


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = (int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_curves_stand_out_from_light_and_from_dark() -> None:
    style, looks = (PAGE / "page.css").read_text(), (PAGE / "js" / "looks.js").read_text()
    grounds = set(re.findall(r"#\w{6}", re.findall("--paper: .*", style)[0]))
    colours = set(re.findall(r'"(#\w{6})"', looks))
    assert len(grounds) == 2
    assert len(colours) >= 8
    for colour in colours:
        for ground in grounds:
            assert contrast(colour, ground) >= 3, f"{colour} on {ground}"  # WCAG 1.4.11


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_can_be_read_on_its_ground(theme: int) -> None:
    style = (PAGE / "page.css").read_text()
    of = {name: ends[theme] for name, *ends in re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", style)}
    for name in ("ink", "soft", "accent"):
        assert contrast(of[name], of["paper"]) >= 4.5, name  # WCAG 1.4.3
