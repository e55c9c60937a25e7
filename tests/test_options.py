"""The tables of docs/options.md are of today's axes, parts and records."""

import runpy

import pytest

from etude.paths import shipped
from etude.report import results_of_csv
from etude.report.significance_notes import differences_of

DOCS = shipped("conf").parent / "docs"
OPTIONS = runpy.run_path(str(DOCS / "options.py"))


def test_the_page_has_todays_tables():
    page = (DOCS / "options.md").read_text(encoding="utf-8")
    assert OPTIONS["renew"](page) == page, "conf/ or a record has changed: make format"


@pytest.mark.parametrize(
    ("part", "arms"), [("model/residual=pre", ["pre_norm"]), ("model/position=rope", ["rope", "to_rope"])]
)
def test_what_a_part_was_worth_is_the_difference_of_each_arm_that_has_it_and_no_other(part, arms):
    compared = results_of_csv(DOCS.parent / "experiments" / "modern" / "record.csv", "modern").compare()
    found = differences_of(compared, compared.study.metrics["ppl"])
    told = [one.split()[1] for one in OPTIONS["differences"]({part})[part] if one.startswith("[modern]")]
    assert told == [f"{found[arm].test.difference:+.3f}\\*".replace("-", "−") for arm in arms]
