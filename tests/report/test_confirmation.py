"""Selection and confirmation are told apart."""

import pytest
from scipy import stats

from etude.report.confirmation import Confirmed, Selection, on_optimism, spread_of
from etude.report.confirmation_table import table
from etude.study.metrics import Metric

LOSS = Metric("loss", "valid_loss", "loss", better="lower", digits=3)
SCORES = [3.01, 3.02, 3.03, 3.05, 3.1, 3.2]
CHOSEN = Selection(SCORES, worse=10, metric=LOSS, maximize=False)
BEST = [Confirmed("trial 7", [3.04, 3.05, 3.06], 0), Confirmed("trial 2", [3.02, 3.03, 3.07], 1)]
BASE = Confirmed("base", [3.11, 3.12, 3.16])


def test_the_spread_of_a_seed_is_pooled_over_all_that_were_confirmed() -> None:
    spread = spread_of([*BEST, BASE])
    assert spread
    assert spread[0] == pytest.approx(((0.0002 + 2 * 0.0014) / 6) ** 0.5)
    assert spread[1] == 6
    assert spread_of([Confirmed("trial 7", [3.0], 0)]) is None


def test_each_trial_has_what_it_was_chosen_for_and_apart_what_fresh_seeds_gave() -> None:
    rows = table("Confirmation", CHOSEN, BEST, BASE)
    cells = {row.cells[0].text: row.cells for row in rows.rows}
    assert [*cells] == ["trial 7", "trial 2", "base"]
    assert [cells[name][1].text for name in cells] == ["3.0100", "3.0200", "–"]
    assert [cells[name][3].value for name in cells] == pytest.approx([3.05, 3.04, 3.13])
    assert all(" to " in cells[name][2].text for name in ("trial 7", "trial 2"))
    assert cells["base"][2].text == "–"


def test_the_difference_from_the_baseline_is_a_t_interval_of_the_pooled_variance() -> None:
    found = table("Confirmation", CHOSEN, BEST[:1], BASE).rows[0].cells[4]
    theirs = stats.ttest_ind(BEST[0].scores, BASE.scores).confidence_interval(0.95)
    assert found.value == pytest.approx(-0.08)
    assert found.half == pytest.approx((theirs.high - theirs.low) / 2)


def test_the_optimism_of_the_best_is_told_with_the_spread_that_the_fresh_seeds_gave() -> None:
    told = " ".join(table("Confirmation", CHOSEN, BEST, BASE).sentences)
    assert "The best of 16 trials is optimistic: chosen for 3.0100, it is expected to have 3.0" in told
    assert "the mean of 3 of them" in told
    assert "confirm=3" in on_optimism(CHOSEN)


def test_without_a_baseline_nothing_is_compared_and_what_is_not_run_yet_says_so() -> None:
    rows = table("Confirmation", CHOSEN, [*BEST, Confirmed("trial 5", [], 2)])
    assert [column.header for column in rows.columns] == ["", "loss", "expected", "loss", "seeds"]
    assert [cell.text for cell in rows.rows[2].cells] == ["trial 5", "3.0300", "–", "not run", "0"]


def test_seeds_that_diverged_are_counted_and_the_others_do_not_stand_for_them() -> None:
    some, none = Confirmed("trial 7", [3.04, 3.05], 0, diverged=1), Confirmed("trial 2", [], 1, diverged=3)
    rows = table("Confirmation", CHOSEN, [some, none], BASE).rows
    assert [row.cells[3].text for row in rows] == [rows[0].cells[3].text, "diverged", rows[2].cells[3].text]
    assert [row.cells[5].text for row in rows] == ["2 of 3", "0 of 3", "3"]
    assert (rows[0].cells[4].value, rows[0].cells[4].half) == (pytest.approx(3.045 - 3.13), None)
