"""The page of a search, in a browser."""

from typing import Any

import pytest
from tests.report.render.html.conftest import browser
from tests.report.test_searched import made

from etude.report.render.html.search_page import search_page
from etude.report.search_table import table
from etude.search.search import Promotion

__all__ = ["browser"]
SECTIONS = ("progress", "curves", "importance", "parallel", "slices", "contour")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    found = made(folder, promotion=Promotion(), n_trials=15)
    file = folder / "page.html"
    file.write_text(search_page(found, table(found), "etude report my.yaml --html page.html"), encoding="utf-8")
    return file.as_uri()


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1400, "light")])
def test_every_figure_is_drawn_within_the_width_and_without_a_complaint(
    width: int, theme: str, browser: Any, page: str
) -> None:
    tab = browser.open(page, width=width, prefers_color_scheme=theme)
    for name in SECTIONS:
        tab.run(f"document.querySelector('#{name}').scrollIntoView({{behavior: 'instant'}})")
        tab.until(f"Boolean(document.querySelector('#{name} .plot').data)")
        left, _, across, _ = tab.box(f"#{name} .plot")
        assert left >= 0
        assert left + across <= width
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.complaints == []
    assert [url for url in tab.requests if not url.startswith("data:")] == [page]


def test_the_best_so_far_is_drawn_against_what_is_chosen(browser: Any, page: str) -> None:
    tab = browser.open(page)
    tab.run("document.querySelector('#progress').scrollIntoView({behavior: 'instant'})")
    tab.until("Boolean(document.querySelector('#progress .plot').data)")
    tab.choose("#progress-x", "steps")
    tab.until("document.querySelector('#progress .plot').layout.xaxis.title.text.startsWith('steps trained')")
