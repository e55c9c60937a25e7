"""The site: it is built without a network, its links lead somewhere, and its figures and its gallery were made."""

import base64
import gzip
import hashlib
import json
import re
import runpy
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from etude.study.study import load_study

ROOT = Path(__file__).parents[1]
OFFLINE = """
import socket, sys
def refuse(*_): raise AssertionError("the documents are built without a network")
socket.socket.connect = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli
cli(["build", "--strict", "--site-dir", sys.argv[1]])
"""


class Page(HTMLParser):
    """What a page is asked for: where its links lead, what it loads, and the places in it that have a name."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        self.names |= {told[key] for key in ("id", "name") if told.get(key)}
        if tag == "a" and told.get("href"):
            self.links.append(told["href"])
        self.loaded += [told[key] for key in ("src", "href") if told.get(key) and tag in ("img", "script", "link")]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, folder], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    return {file: Page(file) for file in site.rglob("*.html") if file.name != "404.html"}


@pytest.mark.slow
def test_nothing_on_a_page_is_loaded_from_elsewhere(pages):
    assert not [place for page in pages.values() for place in page.loaded if urlsplit(place).netloc]


@pytest.mark.slow
def test_every_link_leads_to_a_file_and_a_place_in_it(pages):
    lost = []
    for file, page in pages.items():
        for link in (*page.links, *page.loaded):
            scheme, host, path, _, name = urlsplit(link)
            if scheme or host:
                continue
            target = (file.parent / unquote(path)).resolve() if path else file
            if not target.is_file() or (name and target in pages and unquote(name) not in pages[target].names):
                lost.append(f"{file.name}: {link}")
    assert not lost


@pytest.mark.slow
def test_every_document_is_a_page_and_every_group_of_configs_is_shown(site, pages):
    assert {
        site / file.relative_to(ROOT).with_suffix(".html") for file in (ROOT / "docs").rglob("*.md")
    } <= pages.keys()
    assert "position-rope" in (site / "experiments" / "axes" / "index.html").read_text()
    assert "_target_" in (site / "conf" / "model" / "position" / "index.html").read_text()


@pytest.mark.slow
def test_the_figures_on_statistics_are_what_the_simulation_prints(tmp_path, capsys):
    runpy.run_path(str(ROOT / "docs" / "simulate.py"))["main"](tmp_path)
    page = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    tables = capsys.readouterr().out.strip().split("\n\n")
    assert len(tables) == 4
    assert all(table in page for table in tables)
    for drawn in tmp_path.iterdir():
        assert drawn.read_text() == (ROOT / "docs" / "pictures" / drawn.name).read_text()


GALLERY = ROOT / "docs" / "gallery" / "table3.html"
RECORDINGS = sorted((ROOT / "docs" / "pictures").glob("terminal-*.svg"))
OF_A_MACHINE = re.compile(r"file:|localhost|(?<![\w.>*])/(home|root|tmp|work|mnt|usr|var|opt|Users)/")


def unpacked(page: str, name: str) -> str:
    """A block of the page, as its script unpacks it."""
    [block] = re.findall(rf'<script type="text/plain" id="{name}">(.*?)</script>', page)
    return gzip.decompress(base64.b64decode(block)).decode()


def test_the_example_page_is_small_and_holds_three_seeds_of_every_arm():
    assert GALLERY.stat().st_size < 3_000_000
    told = json.loads(unpacked(GALLERY.read_text(encoding="utf-8"), "data"))
    assert [arm["name"] for arm in told["arms"]] == [*load_study("table3").arms]
    assert {len(arm["seeds"]) for arm in told["arms"]} == {3}


def test_the_example_page_loads_nothing_and_names_no_path_of_a_machine():
    assert Page(GALLERY).loaded == ["data:,"]  # an icon that is none
    page = GALLERY.read_text(encoding="utf-8")
    plotly = re.compile(r'(<script type="text/plain" id="plotly">).*?</script>')
    assert not OF_A_MACHINE.search(plotly.sub("", page) + unpacked(page, "data"))


def test_the_example_page_has_todays_scripts_and_its_policy_lets_them_run():
    page = GALLERY.read_text(encoding="utf-8")
    [script] = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    for text in (script, unpacked(page, "plotly")):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in page
    for file in (ROOT / "src" / "etude" / "report" / "render" / "html" / "js").glob("*.js"):
        assert file.read_text(encoding="utf-8").strip() in script, file.name


@pytest.mark.parametrize("file", RECORDINGS, ids=lambda file: file.stem)
def test_a_recording_is_small_and_its_command_is_told_and_it_names_no_path_of_a_machine(file):
    assert file.stat().st_size < 300_000
    drawn = unescape(file.read_text(encoding="utf-8")).replace("\xa0", " ")
    assert re.findall(r">(etude .*?)\s*<", drawn)[0] in (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert not OF_A_MACHINE.search(drawn)
    assert {*re.findall(r"https?://[^\"\s]+", drawn)} <= {"http://www.w3.org/2000/svg", "https://www.textualize.io"}
