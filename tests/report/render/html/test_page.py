"""The page in a real browser."""

import http.server
import itertools
import math
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from etude.files import write_text
from etude.report.compare import compare
from etude.report.comparison import Compared
from etude.report.render.html.document import document
from etude.report.selection import Selection
from etude.report.statistics import Interval, Mean
from etude.study.metrics import Metric

pytestmark = pytest.mark.slow

Fabricate = Callable[..., Compared]
HOSTILE = ("It's <b>5 & 6</b>.", "Das ist fünf.", "</script><img src=x onerror=alert(1)> ${x} <!-- ü")
HEADS = [
    {"attention": kind, "layer": 1, "head": head, "perplexity": 3.1, "change": change, "interval": [0.0, 0.5]}
    | {"bleu": None, "entropy": 1.2, "distance": 2.5}
    for kind, changes in {"encoder": (0.1, 0.2), "decoder": (0.3, 0.1), "cross": (0.1, 0.4)}.items()
    for head, change in enumerate(changes, start=1)
]
MAP = {
    "source": ["▁Ja", "</s>"],
    "target": ["<s>", "▁Yes", "s"],
    "encoder": [[[[90, 10], [20, 80]]] * 2],
    "decoder": [[[[100, 0, 0], [60, 40, 0], [10, 20, 70]]] * 2],
    "cross": [[[[5, 95], [50, 50], [75, 25]]] * 2],
}
ORDER = {"perplexity": 12.4, "change": 9.7, "interval": [7.9, 11.6]}
ANALYSIS = {"heads": HEADS, "maps": [MAP], "order": ORDER, "lengths": [], "decoding": [], "averaging": []}


def write_page(compared: Compared, file: Path, refresh: float = 0) -> None:
    write_text(file, document(compared, refresh))


@pytest.fixture(scope="module")
def file(fabricate: Fabricate, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a study with 6 arms of 2 seeds, one sentence of which is out to break it."""
    made = tmp_path_factory.mktemp("page") / "page.html"
    write_page(fabricate(6, 2, 60, said=HOSTILE, analysis=ANALYSIS), made)
    return made


@pytest.fixture
def tab(browser: Any, file: Path) -> Any:
    opened = browser.open(file.as_uri())
    see(opened, "#curves")  # the table and its notes may fill the window
    opened.run("scrollTo({top: 0, behavior: 'instant'})")
    return opened


def drawn(section: str) -> str:
    return f"Boolean(document.querySelector('{section} .plot').data)"


def see(tab: Any, section: str) -> None:
    """Scroll to a section, whose plot is drawn then."""
    tab.run(f"document.querySelector('{section}').scrollIntoView({{behavior: 'instant'}})")
    tab.until(drawn(section))


def plotted(tab: Any, section: str, expression: str) -> Any:
    """The value of an expression over `data` and `layout`, what plotly was given."""
    return tab.run(f"(({{data, layout}}) => {expression})(document.querySelector('{section} .plot'))")


def shown(tab: Any, section: str) -> list[str]:
    """The names of the curves in a plot."""
    return plotted(tab, section, "data.map(trace => trace.name).filter(Boolean)")


def cells(tab: Any, table: str) -> list[list[str]]:
    """The text of a table's body."""
    return tab.run(
        f"[...document.querySelectorAll('{table} tbody tr')].map(row => [...row.cells].map(c => c.innerText))"
    )


def column(tab: Any, header: str) -> list[str]:
    """The cells below a header of the study's table, from top to bottom."""
    headers = tab.run("[...document.querySelectorAll('#study thead button')].map(button => button.innerText)")
    index = next(index for index, told in enumerate(headers) if told.startswith(header))
    return [row[index] for row in cells(tab, "#study")]


def caption(tab: Any, section: str) -> str:
    return tab.run(f"document.querySelector('{section} figcaption').innerText")


def budget(tab: Any) -> list[str]:
    """What the two arms side by side were given beside the baseline."""
    return next((row[1:] for row in cells(tab, "#card") if row[0].startswith("budget")), [])


def sorted_by(tab: Any, arm: int) -> str:
    return tab.run(f"document.querySelectorAll('#study thead th')[{arm}].getAttribute('aria-sort')")


def test_the_page_opens_without_a_complaint_and_asks_no_server(browser: Any, file: Path) -> None:
    tab = browser.open(file.as_uri())
    for section in ("#curves", "#forest", "#cost", "#paper", "#buckets", "#heads", "#maps"):
        see(tab, section)
    assert tab.complaints == []
    assert [url for url in tab.requests if not url.startswith("data:")] == [file.as_uri()]


def test_text_that_looks_like_markup_stays_text(tab: Any) -> None:
    tab.choose("#arms-a", "A1")
    assert "Heads & <positions>" in tab.run("document.querySelector('h1').innerText")
    texts = tab.run("[...document.querySelectorAll('.samples dd.text')].map(dd => dd.innerText)")
    assert {HOSTILE[0], HOSTILE[1], HOSTILE[2]} <= set(texts)
    assert tab.run("document.querySelectorAll('main img').length") == 0


def test_a_header_sorts_up_down_and_back_to_the_study(tab: Any) -> None:
    order = column(tab, "arm")
    button = "#study thead th:nth-child(4) button"  # arm, h, d_k, PPL
    tab.press(button)
    ours = [float(cell.split(" ± ")[0]) for cell in column(tab, "PPL")]
    assert ours == sorted(ours)
    assert (sorted_by(tab, 3), sorted_by(tab, 0)) == ("ascending", "none")
    tab.press(button)
    assert [float(cell.split(" ± ")[0]) for cell in column(tab, "PPL")] == sorted(ours, reverse=True)
    assert sorted_by(tab, 3) == "descending"
    tab.press(button)
    assert column(tab, "arm") == order
    assert sorted_by(tab, 3) == "none"


def test_a_header_sorts_from_the_keyboard(tab: Any) -> None:
    tab.run("document.querySelector('#study thead th:nth-child(2) button').focus()")
    for _ in range(2):
        tab.key("Enter", 13, "\r")
    assert column(tab, "h")[:2] == ["5", "4"]


def test_the_picker_changes_the_curves(tab: Any) -> None:
    before = shown(tab, "#curves")
    assert "base" in before
    assert "A1" not in before
    tab.press("#curves-arms input[value=A1]")
    assert set(shown(tab, "#curves")) == {*before, "A1"}
    tab.press("#curves-arms input[value=base]")
    assert set(shown(tab, "#curves")) == {*before, "A1"} - {"base"}


def test_curves_have_a_band_and_other_axes(tab: Any) -> None:
    traces = plotted(tab, "#curves", "data.map(({name, fill, x, y}) => ({name, fill, x: [...x], y: [...y]}))")
    low, high, mean = traces[:3]
    assert (high["fill"], mean["name"]) == ("tonexty", "base")
    assert all(a < b < c for a, b, c in zip(low["y"], mean["y"], high["y"], strict=True))
    tab.choose("#curves-x", "tokens")
    tab.choose("#curves-y", "loss")
    title = plotted(tab, "#curves", "layout.xaxis.title.text")
    assert title == "target tokens"
    assert plotted(tab, "#curves", "data[2].x[0]") == 50
    assert "Training loss" in plotted(tab, "#curves", "layout.yaxis.title.text")
    assert "the loss it was trained on: where label smoothing differs" in caption(tab, "#curves")
    tab.choose("#curves-y", "valid_perplexity")
    assert "label smoothing" not in caption(tab, "#curves")
    tab.choose("#curves-y", "valid_bleu")
    assert "Validation BLEU" in plotted(tab, "#curves", "layout.yaxis.title.text")
    assert plotted(tab, "#curves", "data[2].y.at(-1)") == 20


def test_perplexity_over_other_word_pieces_is_not_drawn_beside_the_baselines(
    browser: Any, fabricate: Fabricate, tmp_path: Path
) -> None:
    compared = fabricate(3, 1, 5)
    base, other, same = compared.arms
    write_page(
        replace(compared, arms=[base, replace(other, scores={"bleu": other.scores["bleu"]}), same]), tmp_path / "p.html"
    )
    tab = browser.open((tmp_path / "p.html").as_uri())
    see(tab, "#curves")
    assert shown(tab, "#curves") == ["base", "A2"]
    assert caption(tab, "#curves").endswith("over other text or other subwords: A1.")
    tab.choose("#curves-y", "loss")
    assert shown(tab, "#curves") == ["base", "A1", "A2"]
    assert "A1" not in caption(tab, "#curves")


def test_an_arm_that_still_runs_is_drawn(browser: Any, fabricate: Fabricate, tmp_path: Path) -> None:
    compared = fabricate(2, 1, 5)
    base, arm = compared.arms
    none = {"runs": [], "means": {}, "sentences": None, "against": None, "scores": {}}
    write_page(replace(compared, arms=[base, replace(arm, unfinished=arm.runs, **none)]), tmp_path / "p.html")
    tab = browser.open((tmp_path / "p.html").as_uri())
    see(tab, "#curves")
    assert shown(tab, "#curves") == ["base", "A1"]
    assert "A1 (begun)" in tab.run("document.getElementById('curves-arms').textContent")


@pytest.mark.parametrize("validated", [["base"], []], ids=["one arm", "no arm"])
def test_an_arm_that_was_never_validated_on_its_way_shows_its_loss(
    validated: list[str], browser: Any, fabricate: Fabricate, tmp_path: Path
) -> None:
    compared = fabricate(2, 1, 5)
    for arm in compared.arms:
        metrics = arm.runs[0].run_dir.metrics_file
        header, *rows = metrics.read_text().splitlines()
        if arm.arm not in validated:
            metrics.write_text("\n".join([header, *(row.rsplit(",", 2)[0] + ",," for row in rows)]) + "\n")
    write_page(compared, tmp_path / "p.html")
    tab = browser.open((tmp_path / "p.html").as_uri())
    see(tab, "#curves")
    assert shown(tab, "#curves") == (validated or ["base", "A1"])
    assert ("Without a curve so far: A1." in caption(tab, "#curves")) == bool(validated)
    tab.choose("#curves-y", "loss")
    assert shown(tab, "#curves") == ["base", "A1"]
    assert "Without a curve" not in caption(tab, "#curves")


def test_a_budget_is_called_the_same_of_the_baseline_alone(browser: Any, fabricate: Fabricate, tmp_path: Path) -> None:
    """Of FLOPs nothing is known; A1 has a few parameters more, A2 many."""
    compared = fabricate(3, 1, 5)
    base, some, many = compared.arms
    some = replace(some, costs=some.costs | {"parameters": 1050}, budget={})
    write_page(replace(compared, arms=[base, some, many]), tmp_path / "p.html")
    tab = browser.open((tmp_path / "p.html").as_uri())
    tab.choose("#arms-a", "A1")
    assert budget(tab) == ["within 10 %: parameters, tokens", "the same"]
    tab.run("document.querySelector('#forest details').open = true")
    tab.until("document.querySelectorAll('#forest details tbody tr').length === 2")
    assert [row[-1] for row in cells(tab, "#forest details table")] == [
        "within 10 %: parameters, tokens",
        "3.00 × the parameters",
    ]
    write_page(compare(compared.study, Selection([*some.runs, *many.runs], [], [])), tmp_path / "p.html")
    tab.go((tmp_path / "p.html").as_uri())
    assert budget(tab) == [], "the baseline was not run"


def test_a_drag_zooms_in_and_a_hover_tells_the_value(tab: Any) -> None:
    tab.run("document.querySelector('#curves figure').scrollIntoView({block: 'center', behavior: 'instant'})")
    left, top, width, height = tab.box("#curves .nsewdrag")
    reach = "(([low, high]) => high - low)(document.querySelector('#curves .plot')._fullLayout.xaxis.range)"
    before = tab.run(reach)
    middle = (left + width / 2, top + height / 2)
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=middle[0], y=middle[1])
    tab.until("document.querySelector('#curves .hoverlayer').textContent.includes('base')")
    tab.drag((left + width / 4, top + height / 4), middle)
    tab.until(f"{reach} < {before} / 2")


def test_every_plot_comes_with_the_same_numbers_as_a_table(tab: Any) -> None:
    tab.choose("#paper-y", "bleu")
    for section, rows in (("#forest", 5), ("#cost", 6), ("#paper", 6)):
        tab.run(f"document.querySelector('{section} details').open = true")
        tab.until(f"document.querySelectorAll('{section} details tbody tr').length === {rows}")
    bleu = {arm: ours for arm, _, ours in cells(tab, "#paper details table")}
    assert bleu == {arm: cell.split(" ± ")[0] for arm, cell in zip(bleu, column(tab, "BLEU"), strict=True)}


def test_the_paper_and_ours_are_set_side_by_side_in_nats_with_diagonal_and_margin(tab: Any) -> None:
    see(tab, "#paper")
    traces = plotted(tab, "#paper", "data.map(({x, y, customdata}) => ({x: [...x], y: [...y], arms: [...customdata]}))")
    found = {arm: (x, y) for one in traces for x, y, arm in zip(one["x"], one["y"], one["arms"], strict=True)}
    assert set(found) == {"A1", "A2", "A3", "A4", "A5"}
    assert found["A3"][0] == pytest.approx(math.log(5.3 / 5))
    assert traces[1]["arms"] == ["A1"], "2 % more perplexity are a tie in this paper"
    shapes = plotted(tab, "#paper", "layout.shapes.map(({type, y0, y1}) => [type, y0, y1])")
    assert shapes[0] == ["rect", -0.05, 0.05]
    assert shapes[1][0] == "line"
    assert "slope" in caption(tab, "#paper")
    tab.run("document.querySelector('#paper details').open = true")
    tab.until("document.querySelectorAll('#paper details tbody tr').length === 5")


def test_a_tie_counts_where_a_test_shows_it_as_in_the_table(browser: Any, fabricate: Fabricate, tmp_path: Path) -> None:
    compared = fabricate(4, 2, 5)
    assert compared.agreement
    points = compared.agreement.points
    assert [point.large for point in points.values()] == [False, True, True]
    open_yet = points | {"A1": replace(points["A1"], agrees=True, shown=False)}
    compared = replace(compared, agreement=replace(compared.agreement, points=open_yet))
    write_page(compared, tmp_path / "p.html")
    tab = browser.open((tmp_path / "p.html").as_uri())
    see(tab, "#paper")
    tab.run("document.querySelector('#paper details').open = true")
    tab.until("document.querySelectorAll('#paper details tbody tr').length === 3")
    assert [row[-1] for row in cells(tab, "#paper details table")] == ["within the margin, not shown", "yes", "yes"]
    assert column(tab, "agrees") == ["", "? tie", "✓ sign", "✓ sign"]


def test_the_forest_shows_differences_with_their_intervals(tab: Any) -> None:
    see(tab, "#forest")
    tab.choose("#forest-y", "ppl")
    traces = plotted(tab, "#forest", "data.map(({x, y, error_x}) => ({x: [...x], y: [...y], up: [...error_x.array]}))")
    found = {arm: (x, up) for one in traces for x, arm, up in zip(one["x"], one["y"], one["up"], strict=True)}
    assert set(found) == {"A1", "A2", "A3", "A4", "A5"}
    nats = [sum(math.log(3 + k / 10 + seed / 100) for seed in (1, 2)) / 2 for k in (0, 3)]
    assert found["A3"][0] == pytest.approx(nats[1] - nats[0])
    assert all(up > 0 for _, up in found.values())


def test_an_arm_without_an_interval_has_no_bar_and_the_zero_lies_within_the_forest(
    browser: Any, fabricate: Fabricate, tmp_path: Path
) -> None:
    write_page(fabricate(4, 1, 5), tmp_path / "p.html")
    tab = browser.open((tmp_path / "p.html").as_uri())
    see(tab, "#forest")
    tab.choose("#forest-y", "ppl")
    assert tab.run("document.querySelectorAll('#forest .scatterlayer .points path').length") == 3
    assert tab.run("document.querySelectorAll('#forest .errorbar path').length") == 0
    least, most = plotted(tab, "#forest", "layout.xaxis.range")
    assert least < 0 < math.log(3.31 / 3.01) < most, "a mark on the edge is cut in two"


@pytest.mark.parametrize("metric", ["ppl", "bleu"])
def test_the_titles_of_the_forest_and_of_the_paper_are_whole_on_a_phone(
    metric: str, browser: Any, fabricate: Fabricate, tmp_path: Path
) -> None:
    compared = fabricate(3, 1, 5)
    base, *others = compared.arms
    arms = [base, *(replace(arm, arm=f"position-sinusoid-{arm.arm}") for arm in others)]
    write_page(replace(compared, arms=arms), tmp_path / "p.html")
    tab = browser.open((tmp_path / "p.html").as_uri(), width=390)
    tab.choose("#forest-y", metric)
    for section in ("#forest", "#paper"):
        see(tab, section)
        left, _, width, _ = tab.box(f"{section} .xtitle")
        whole, _, room, _ = tab.box(f"{section} .plot")
        assert whole <= left < left + width <= whole + room


def test_the_front_holds_what_nothing_cheaper_beats(tab: Any) -> None:
    see(tab, "#cost")
    tab.choose("#cost-x", "parameters")
    assert plotted(tab, "#cost", "data[2].customdata") == ["base"]  # best and cheapest
    assert plotted(tab, "#cost", "data[1].customdata.length") == 5


def test_equals_are_both_on_the_front_and_times_are_told_in_the_unit_of_the_longest(
    browser: Any, fabricate: Fabricate, tmp_path: Path
) -> None:
    compared = fabricate(3, 1, 5)
    base, equal, dearer = compared.arms
    times = [
        replace(arm, costs=arm.costs | {"seconds": time}) for arm, time in ((base, 0.9), (equal, 0.9), (dearer, 9))
    ]
    arms = [replace(arm, means=base.means) for arm in times]
    write_page(replace(compared, arms=arms), tmp_path / "p.html")
    tab = browser.open((tmp_path / "p.html").as_uri())
    see(tab, "#cost")
    tab.choose("#cost-x", "seconds")
    assert plotted(tab, "#cost", "data[2].customdata") == ["base", "A1"]
    assert plotted(tab, "#cost", "data[2].x") == [0.9, 0.9]
    assert plotted(tab, "#cost", "layout.xaxis.title.text") == "seconds of training"
    assert ["seconds of training", "0.9", "0.9"] in cells(tab, "#card")


def test_a_cost_that_all_arms_share_has_an_axis_in_its_own_size(tab: Any) -> None:
    see(tab, "#cost")
    tab.choose("#cost-x", "tokens")
    assert plotted(tab, "#cost", "layout.xaxis.range") == [2500, 7500]


def test_names_beside_points_do_not_overlap(browser: Any, fabricate: Fabricate, tmp_path: Path) -> None:
    """Five arms of almost the same cost and score: the axis has room for their intervals."""
    compared = fabricate(6, 1, 5)
    arms = [
        replace(
            arm,
            costs=arm.costs | {"parameters": 5000.0 + 10 * k if k else 1000.0},
            means=arm.means | {"bleu": Mean(20 + k / 2, Interval(-80.0, 120.0))},
        )
        for k, arm in enumerate(compared.arms)
    ]
    write_page(replace(compared, arms=arms), tmp_path / "p.html")
    tab = browser.open((tmp_path / "p.html").as_uri())
    see(tab, "#cost")
    tab.choose("#cost-x", "parameters")
    boxes = tab.run(
        "[...document.querySelectorAll('#cost .textpoint text')].map(t => t.getBoundingClientRect().toJSON())"
    )
    seen = [box for box in boxes if box["width"]]
    assert len(seen) > 1
    for one, other in itertools.combinations(seen, 2):
        apart = one["right"] <= other["left"] or other["right"] <= one["left"]
        assert apart or one["bottom"] <= other["top"] or other["bottom"] <= one["top"]


def test_two_arms_are_compared_as_chosen(tab: Any) -> None:
    tab.choose("#arms-a", "A2")
    tab.choose("#arms-b", "A5")
    card = tab.run("document.querySelector('#card').innerText")
    assert "h 2" in card
    assert "h 5" in card
    assert cells(tab, "#card")[-1] == ["model.heads", "2", "5"]
    terms = tab.run("[...document.querySelectorAll('.samples li:first-child dt')].map(dt => dt.innerText)")
    assert terms == ["source", "reference", "A2", "A5"]
    tab.choose("#samples-which", "second")
    scores = tab.run(
        "[...document.querySelectorAll('.samples .score')].filter(dd => dd.innerText).map(dd => Number(dd.innerText))"
    )
    assert len(scores) > 2
    assert all(second > first for first, second in zip(scores[::2], scores[1::2], strict=True))


def test_a_number_is_rounded_as_in_the_table(browser: Any, fabricate: Fabricate, tmp_path: Path) -> None:
    """Means halfway between two last digits, exactly or as the shortest decimal that stands for them."""
    compared = fabricate(4, 1, 5)
    means = [(87.25, 3.125), (20.15, 1.005), (20.25, 2.675), (20.35, 1.25e30)]
    arms = [
        replace(arm, means={"bleu": Mean(bleu, None), "ppl": Mean(ppl, None)})
        for arm, (bleu, ppl) in zip(compared.arms, means, strict=True)
    ]
    write_page(replace(compared, arms=arms), tmp_path / "p.html")
    tab = browser.open((tmp_path / "p.html").as_uri())
    told = []
    for arm in arms:
        tab.choose("#arms-a", arm.arm)
        told.append([row[1] for row in cells(tab, "#card") if row[0].startswith(("BLEU", "PPL"))])
    assert told == [list(pair) for pair in zip(column(tab, "PPL"), column(tab, "BLEU"), strict=True)]


def test_the_theme_turns_and_follows_the_system(browser: Any, file: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('#curves .xtick text')).fill"
    tab = browser.open(file.as_uri(), prefers_color_scheme="dark")
    see(tab, "#curves")
    see(tab, "#heads")
    dark, dark_ink, dark_heat = tab.run(ground), tab.run(ink), plotted(tab, "#heads", "layout.coloraxis.colorscale")
    tab.press("#theme")
    light, light_ink, heat = tab.run(ground), tab.run(ink), plotted(tab, "#heads", "layout.coloraxis.colorscale")
    assert dark != light
    assert dark_heat != heat
    assert dark_ink != light_ink
    tab.press("#theme")
    assert tab.run(ground) == dark
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    assert tab.run(ground) == dark  # chosen, whatever the system says
    tab.press("#theme")
    assert tab.run(ground) == light


def test_what_was_chosen_outlives_a_reload(tab: Any, file: Path) -> None:
    tab.press("#curves-arms input[value=A1]")
    tab.choose("#arms-b", "A4")
    tab.press("#study thead th:nth-child(2) button")
    before = shown(tab, "#curves")
    tab.go(file.as_uri())
    see(tab, "#curves")
    assert shown(tab, "#curves") == before
    assert tab.run("document.querySelector('#arms-b').value") == "A4"
    assert sorted_by(tab, 1) == "ascending"


def test_an_arm_with_a_space_in_its_name_stays_ticked_and_no_other_does(
    browser: Any, fabricate: Fabricate, tmp_path: Path
) -> None:
    compared = fabricate(3, 1, 5)
    names = dict(zip([arm.arm for arm in compared.arms], ["base", "h=2", "h=2 w=3"], strict=True))
    study = replace(compared.study, arms={names[arm]: words for arm, words in compared.study.arms.items()})
    runs = [replace(run, arm=names[run.arm]) for arm in compared.arms for run in arm.runs]
    write_page(compare(study, Selection(runs, [], [])), tmp_path / "p.html")
    tab = browser.open((tmp_path / "p.html").as_uri())
    tab.press("#curves-arms input[value='h=2']")
    tab.go((tmp_path / "p.html").as_uri())
    see(tab, "#curves")
    assert shown(tab, "#curves") == ["base", "h=2 w=3"]


@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_screen_needs_no_scrolling_sideways(browser: Any, file: Path, width: int) -> None:
    tab = browser.open(file.as_uri(), width, 800)
    for section in ("#curves", "#forest", "#cost", "#paper", "#buckets", "#heads", "#maps"):
        see(tab, section)
    assert tab.run("document.documentElement.scrollWidth") == width


def test_on_a_phone_the_table_goes_on_below_a_shade_and_the_names_of_the_arms_stay(browser: Any, file: Path) -> None:
    tab = browser.open(file.as_uri(), 390, 800, prefers_color_scheme="dark")
    left = tab.box("#study tbody th")[0]
    tab.run("document.querySelector('#table .scroll').scrollLeft = 150")
    assert tab.run("document.querySelector('#table .scroll').scrollLeft") > 100, "there is more to see"
    assert tab.box("#study tbody th")[0] == left
    assert "gradient" in tab.run("getComputedStyle(document.querySelector('#table .scroll')).backgroundImage")


def test_everything_is_printed_and_fits_the_sheet(browser: Any, file: Path) -> None:
    tab = browser.open(file.as_uri(), prefers_color_scheme="dark")
    widths = "[...document.querySelectorAll('.plot')].map(plot => plot._fullLayout?.width)"
    tab.run(f"addEventListener('beforeprint', () => {{ window.widths = {widths}; }})")
    assert tab.pdf().startswith(b"%PDF")
    assert len(tab.run("window.widths")) == 7
    assert all(0 < width <= 660 for width in tab.run("window.widths"))


def test_everything_that_can_be_reached_has_a_name(tab: Any) -> None:
    tab.run("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    tree = tab.call("Accessibility.getFullAXTree")["nodes"]
    roles = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node["ignored"]]
    for role in ("button", "combobox", "checkbox", "toolbar", "region", "table", "navigation", "main", "heading"):
        assert any(found == role for found, _ in roles), role
    assert ("button", "Zoom in") in roles  # plotly's own, from the keyboard
    named = {"button", "combobox", "checkbox", "image", "region", "navigation", "heading", "link"}
    assert [(role, name) for role, name in roles if role in named and not name.strip()] == []
    labels = tab.run("[...document.querySelectorAll('.plot')].map(plot => plot.ariaLabel)")
    assert len(labels) == 7
    assert all(labels)


def test_heads_and_maps_are_drawn_where_a_run_was_analysed(tab: Any) -> None:
    see(tab, "#maps")
    chosen = "['kind', 'layer', 'head'].map(key => document.getElementById(`maps-${key}`).value)"
    assert tab.run(chosen) == ["cross", "0", "1"]  # the head that would be missed most
    tab.choose("#maps-kind", "decoder")
    assert tab.run(chosen) == ["decoder", "0", "0"]
    tab.choose("#maps-kind", "cross")
    plot = plotted(tab, "#maps", "[data[0].z, layout.xaxis.ticktext, layout.yaxis.ticktext]")
    assert plot == [MAP["cross"][0][1], ["Ja", "&lt;/s>"], ["&lt;s>", "Yes", "·s"]]
    assert "Seed 1; an interval is over sentences" in tab.run("document.querySelector('#heads figcaption').innerText")
    assert "7.90 to 11.60" in tab.run("document.querySelector('#probes').innerText")


def test_a_map_names_every_piece_however_long(browser: Any, fabricate: Fabricate, tmp_path: Path) -> None:
    pieces = ["▁Die", "▁Donau", "dampfschifffahrts", "▁gesellschaftlich", "</s>"]
    long = {"source": pieces, "target": [], "encoder": [[[[20] * 5] * 5]], "decoder": [], "cross": []}
    write_page(fabricate(2, 1, 5, analysis=ANALYSIS | {"maps": [long]}), tmp_path / "p.html")
    tab = browser.open((tmp_path / "p.html").as_uri())
    see(tab, "#maps")
    left, top, _, _ = tab.box("#maps .plot")
    for axis in ("x", "y"):
        texts = tab.run(
            f"[...document.querySelectorAll('#maps .{axis}tick text')]"
            ".filter(t => getComputedStyle(t).display !== 'none')"
            ".map(t => [t.textContent, t.getBoundingClientRect().left, t.getBoundingClientRect().top])"
        )
        assert [text for text, _, _ in texts] == ["Die", "Donau", "·dampfschifffahrts", "gesellschaftlich", "</s>"]
        assert all(x >= left and y >= top for _, x, y in texts)


def test_what_there_is_not_takes_no_room(browser: Any, fabricate: Fabricate, tmp_path: Path) -> None:
    write_page(fabricate(1, 1, 5), tmp_path / "page.html")
    tab = browser.open((tmp_path / "page.html").as_uri())
    see(tab, "#curves")
    there = tab.run("[...document.querySelectorAll('main section:not([hidden])')].map(section => section.id)")
    assert there == ["table", "curves", "cost", "arms"]
    links = tab.run("[...document.querySelectorAll('nav a:not([hidden])')].map(link => link.hash.slice(1))")
    assert links == there
    assert tab.complaints == []


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/page.html"
    server.shutdown()
    server.server_close()


def test_a_served_page_shows_what_was_written_since(
    browser: Any, fabricate: Fabricate, tmp_path: Path, served: str
) -> None:
    write_page(fabricate(2, 1, 5), tmp_path / "page.html", refresh=0.1)
    os.utime(tmp_path / "page.html", (1_700_000_000, 1_700_000_000))
    tab = browser.open(served)
    assert len(column(tab, "arm")) == 2
    write_page(fabricate(3, 1, 5), tmp_path / "page.html", refresh=0.1)
    tab.until("document.querySelectorAll('#study tbody tr').length === 3")


def test_what_is_open_and_how_far_it_is_scrolled_outlive_an_update(
    browser: Any, fabricate: Fabricate, tmp_path: Path, served: str
) -> None:
    write_page(fabricate(3, 2, 5), tmp_path / "page.html", refresh=0.1)
    os.utime(tmp_path / "page.html", (1_700_000_000, 1_700_000_000))
    tab = browser.open(served, 390, 600)
    tab.run("document.querySelector('details.rest').open = true")
    tab.run("document.querySelector('#table .scroll').scrollLeft = 40")
    tab.run("scrollTo({top: 400, behavior: 'instant'})")
    write_page(fabricate(4, 2, 5), tmp_path / "page.html", refresh=0.1)
    tab.until(
        "document.querySelectorAll('#study tbody tr').length === 4 && 'ready' in document.documentElement.dataset"
    )
    seen = "[document.querySelector('details.rest').open, document.querySelector('#table .scroll').scrollLeft, scrollY]"
    assert tab.run(seen) == [True, 40, 400]


def test_the_metrics_that_a_study_declares_are_those_to_choose_from(
    browser: Any, fabricate: Fabricate, tmp_path: Path
) -> None:
    compared = fabricate(4, 3, 20)
    errors = Metric("errors", "test.bleu", "errors", better="lower", digits=2)
    study = replace(compared.study, metrics={"ppl": compared.study.metrics["ppl"], "errors": errors})
    runs = [run for arm in compared.arms for run in arm.runs]
    write_page(compare(study, Selection(runs, [], [])), tmp_path / "p.html")
    tab = browser.open((tmp_path / "p.html").as_uri())
    for chooser in ("#forest-y", "#cost-y"):
        assert tab.run(f"[...document.querySelector('{chooser}').options].map(one => one.value)") == ["ppl", "errors"]
        tab.choose(chooser, "errors")
    see(tab, "#forest")
    see(tab, "#cost")
    assert "Better is to the left." in caption(tab, "#forest")
    tab.run("document.querySelector('#cost details').open = true")
    tab.until("document.querySelectorAll('#cost details tbody tr').length === 4")
    shown = {arm: ours for arm, _, ours, *_ in cells(tab, "#cost details table")}
    assert shown == {arm: cell.split(" ± ")[0] for arm, cell in zip(shown, column(tab, "errors"), strict=True)}
    assert tab.complaints == []
