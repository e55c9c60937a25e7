"""The tables of docs/options.md are of today's axes, parts and records."""

import re
import runpy

import pytest

from etude.paths import shipped
from etude.report import results_of_csv
from etude.report.significance_notes import differences_of
from etude.study.axes import axes

DOCS = shipped("conf").parent / "docs"
OPTIONS = runpy.run_path(str(DOCS / "options.py"))


def test_the_page_has_todays_tables():
    page = (DOCS / "options.md").read_text(encoding="utf-8")
    assert OPTIONS["renew"](page) == page, "conf/ or a record has changed: make format"


def test_renewing_touches_only_what_stands_between_the_markers():
    page = "before\n\n<!-- axes -->\nold | rows\n<!-- /axes -->\n\nbetween <!-- parts -->\n<!-- /parts -->\nafter\n"
    tables = (
        f"<!-- axes -->\n{OPTIONS['axes_table']()}<!-- /axes -->",
        f"<!-- parts -->\n{OPTIONS['parts_table']()}<!-- /parts -->",
    )
    assert OPTIONS["renew"](page) == "before\n\n{}\n\nbetween {}\nafter\n".format(*tables)


def test_there_is_a_row_for_each_axis_and_its_values_link_to_what_is_there():
    rows = OPTIONS["axes_table"]().splitlines()[2:]
    assert len(rows) == len(axes())
    for row, axis in zip(rows, axes(), strict=True):
        [folder] = re.findall(r"\]\((.*?)\)", row)
        assert (DOCS / folder).samefile(DOCS.parent / "conf" / axis.group)
        assert (f"with `{axis.needs}`" in row) == bool(axis.needs)
        assert re.findall(r"`(\w+)`", row.split("|")[2]) == list(axis.values)
        assert re.findall(r"\*\*`(\w+)`\*\*", row) == [axis.default]


def test_there_is_a_row_for_every_part_with_an_address_in_its_first_comment():
    rows = {row.split("`")[1].split()[-1]: row for row in OPTIONS["parts_table"]().splitlines()[2:]}
    for axis in axes():
        for value, said in axis.values.items():
            row = rows.pop(f"{axis.group}={value}", "")
            assert bool(row) == ("https://" in said)
            for address in re.findall(r"https://\S+", said):
                assert f"]({address}) |" in row
    assert not rows


@pytest.mark.parametrize(
    ("part", "arms"), [("model/residual=pre", ["pre_norm"]), ("model/position=rope", ["rope", "to_rope"])]
)
def test_what_a_part_was_worth_is_the_difference_of_each_arm_that_has_it_and_no_other(part, arms):
    compared = results_of_csv(DOCS.parent / "experiments" / "modern" / "record.csv", "modern").compare()
    found = differences_of(compared, compared.study.metrics["ppl"])
    told = [one.split()[1] for one in OPTIONS["differences"]({part})[part] if one.startswith("[modern]")]
    assert told == [f"{found[arm].test.difference:+.3f}\\*".replace("-", "−") for arm in arms]
