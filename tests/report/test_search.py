import json
import math
import shlex
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from etude.cli.report import main as report
from etude.errors import UserError
from etude.report.render.terminal import RenderedTable, markdown
from etude.report.search import search
from etude.search import sweep_file
from etude.search.search import Objective
from etude.store.run_dir import RunDir
from etude.terminal import console

Make = Callable[..., RunDir]
Planned = tuple[list[str], RunDir]


@pytest.fixture
def tried(make_run: Make) -> Callable[..., Planned]:
    """Fabricates a run of a search, with the overrides that it was planned with."""

    def make(rate: float, valid: float, seed: int = 1, bleu: float = 40.0, ppl: float = 3.0, **more: Any) -> Planned:
        run = make_run("base", seed, typed=(f"budget.lr_factor={rate}",), bleu=bleu, ppl=ppl, **more)
        run.result_file.write_text(json.dumps(run.result() | {"valid": {"perplexity": valid}}))
        return words(rate, seed), run

    return make


def words(rate: float, seed: int = 1) -> list[str]:
    return ["experiment=heads/base", "scale=pocket", f"budget.lr_factor={rate}", f"seed={seed}"]


def test_trials_stand_by_their_validation_perplexity_and_only_the_best_is_tested(
    tried: Callable[..., Planned], runs_dir: Path
) -> None:
    runs = [tried(0.1, valid=5, bleu=61.5, ppl=2.5), tried(0.5, valid=3, bleu=44.4, ppl=4.75), tried(0.3, valid=4)]
    found = search("my.yaml", runs, drawn=())
    assert [column.header for column in found.columns] == ["budget.lr_factor", "PPL"]
    assert [row.texts for row in found.rows] == [["0.5", "3.00"], ["0.3", "4.00"], ["0.1", "5.00"]]
    told = " ".join(found.sentences)
    assert "budget.lr_factor=0.5" in told
    assert "4.75" in told
    assert "44.4 BLEU" in told
    assert "61.5" not in told
    assert "Expected" not in told


def test_a_random_search_is_told_what_so_many_trials_find(tried: Callable[..., Planned], runs_dir: Path) -> None:
    found = search("my.yaml", [tried(0.1, valid=5), tried(0.2, valid=3)], drawn={"budget.lr_factor"})
    assert "1: 4.00 ± 1.00, 2: 3.00." in found.sentences[-1]


def test_a_drawn_number_is_shown_short_and_told_in_full(tried: Callable[..., Planned], runs_dir: Path) -> None:
    found = search("my.yaml", [tried(0.17358239193, valid=3), tried(2, valid=4)], drawn={"budget.lr_factor"})
    assert [row.texts[0] for row in found.rows] == ["0.1736", "2"]
    assert "budget.lr_factor=0.17358239193" in " ".join(found.sentences)


def test_the_seeds_of_one_trial_are_averaged(tried: Callable[..., Planned], runs_dir: Path) -> None:
    runs = [tried(0.1, valid=4, seed=1), tried(0.1, valid=6, seed=2), tried(0.2, valid=4.5)]
    found = search("my.yaml", runs, drawn=())
    assert [row.texts for row in found.rows] == [["0.2", "4.50", "1"], ["0.1", "5.00", "2"]]


def test_what_is_not_finished_yet_is_counted(tried: Callable[..., Planned], runs_dir: Path) -> None:
    planned = [tried(0.1, valid=4), (words(0.3), RunDir(runs_dir / "one")), (words(0.4), RunDir(runs_dir / "other"))]
    found = search("my.yaml", planned, drawn={"budget.lr_factor"})
    assert [row.texts for row in found.rows] == [["0.1", "4.00"]]
    assert found.left_out == ["Not finished: 2 runs of the search."]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_diverged_stands_last_and_enters_no_expectation(
    bad: float, tried: Callable[..., Planned], runs_dir: Path
) -> None:
    runs = [tried(0.1, valid=bad), tried(0.2, valid=5), tried(0.3, valid=3)]
    found = search("my.yaml", runs, drawn={"budget.lr_factor"})
    assert [row.texts[0] for row in found.rows] == ["0.3", "0.2", "0.1"]
    assert "1 of 3 diverged." in found.sentences
    assert "that do not diverge" in found.sentences[-1]
    assert "1: 4.00 ± 1.00" in found.sentences[-1]


def test_what_was_drawn_twice_counts_twice(tried: Callable[..., Planned], runs_dir: Path) -> None:
    often, once = tried(0.1, valid=3), tried(0.2, valid=6)
    found = search("my.yaml", [often, once, often], drawn={"budget.lr_factor"})
    assert len(found.rows) == 2
    assert f"1: 4.00 ± {math.sqrt(2):.2f}, 2:" in found.sentences[-1]


def test_each_seed_that_was_drawn_is_a_draw_and_each_that_was_listed_is_not(
    tried: Callable[..., Planned], runs_dir: Path
) -> None:
    runs = [tried(0.1, valid=3, seed=1), tried(0.1, valid=3, seed=2), tried(0.2, valid=6)]
    found = search("my.yaml", runs, drawn={"budget.lr_factor", "seed"})
    assert f"1: 4.00 ± {math.sqrt(2):.2f}, 2:" in found.sentences[-1]
    found = search("my.yaml", runs, drawn={"budget.lr_factor"})
    assert "1: 4.50 ± 1.50, 2:" in found.sentences[-1]


def test_what_was_not_drawn_has_no_luck_to_be_reckoned(tried: Callable[..., Planned], runs_dir: Path) -> None:
    runs = [tried(0.1, valid=3), tried(0.2, valid=6)]
    assert "Expected" not in " ".join(search("my.yaml", runs, drawn={"model.heads"}).sentences)


def test_perplexities_over_other_word_pieces_are_not_ranked(tried: Callable[..., Planned], runs_dir: Path) -> None:
    with pytest.raises(UserError, match=r"^my\.yaml: its runs met different texts or subwords"):
        search("my.yaml", [tried(0.1, valid=3, store="a"), tried(0.2, valid=6, store="b")], drawn=())


def test_trials_of_other_code_are_marked(tried: Callable[..., Planned], runs_dir: Path) -> None:
    found = search("my.yaml", [tried(0.1, valid=3, version=0), tried(0.2, valid=6)], drawn=())
    assert [row.texts[-1] for row in found.rows] == ["3.00†", "6.00"]
    assert any(note.startswith("† made by other code") for note in found.sentences)


@pytest.mark.parametrize("damage", ["{", "{}", '{"valid": null, "test": {}}'])
def test_a_damaged_result_is_named_and_left_out(damage: str, tried: Callable[..., Planned], runs_dir: Path) -> None:
    good, bad = tried(0.1, valid=3), tried(0.2, valid=6)
    bad[1].result_file.write_text(damage)
    found = search("my.yaml", [good, bad], drawn=())
    assert len(found.rows) == 1
    assert str(bad[1].path) in found.left_out[0]
    with pytest.raises(UserError, match=f"no run of this search is finished.*{bad[1].path}"):
        search("my.yaml", [bad], drawn=())


def test_a_search_without_a_finished_run_says_how_to_make_them(runs_dir: Path) -> None:
    with pytest.raises(UserError, match=r"this makes them: etude sweep my\.yaml run_cap=3"):
        search("my.yaml run_cap=3", [(words(0.1), RunDir(runs_dir / "none"))], drawn={"budget.lr_factor"})


def test_what_was_typed_behind_the_sweep_is_typed_behind_its_report(
    tried: Callable[..., Planned], runs_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [tried(0.25, valid=4), tried(0.5, valid=3.5)]
    asked: list[tuple[str, list[str]]] = []

    def plans(name: str, words: Sequence[str]) -> list[Planned]:
        asked.append((name, list(words)))
        return runs

    def drawn(name: str, words: Sequence[str]) -> set[str]:
        return {"budget.lr_factor"}

    content = "method: grid\nparameters: {seed: {values: [1, 2]}}\nmetric: {name: valid/perplexity, goal: minimize}\n"
    Path("my.yaml").write_text(content)
    monkeypatch.setattr(sweep_file, "runs_of", plans)
    monkeypatch.setattr(sweep_file, "drawn_keys", drawn)
    report(["my.yaml", "run_cap=2", "scale=pocket", "--markdown", "out.md"])
    assert asked == [("my.yaml", ["run_cap=2", "scale=pocket"])]
    assert "| 0.25 | 4.00 |" in Path("out.md").read_text()
    report(["my.yaml", "run_cap=2", "scale=pocket"])
    assert "etude sweep my.yaml run_cap=2 scale=pocket" in capsys.readouterr().out
    with pytest.raises(UserError, match="--html is for a study"):
        report(["my.yaml", "--html", "page.html"])


def test_trials_and_judged_runs_of_a_tuned_study_are_no_search() -> None:
    with pytest.raises(UserError, match=r"tuned=true is for `etude sweep`: `etude report STUDY` shows each arm"):
        report(["sweeps/table3.yaml", "tuned=true", "seed=11"])


def test_a_search_without_a_score_on_the_test_set_says_nothing_of_it(
    tried: Callable[..., Planned], runs_dir: Path
) -> None:
    planned = tried(0.1, valid=5)
    result = planned[1].result()
    planned[1].result_file.write_text(json.dumps(result | {"test": {"sentences": 1000}}))
    assert "test set" not in " ".join(search("my.yaml", [planned], drawn=()).sentences)


@pytest.mark.parametrize(
    ("name", "maximize", "order", "shown"),
    [
        ("test/bleu", True, ["0.1", "0.3", "0.2"], ["61.5", "50.0", "44.4"]),
        ("test.bleu", False, ["0.2", "0.3", "0.1"], ["44.4", "50.0", "61.5"]),
        ("valid_perplexity", False, ["0.2", "0.3", "0.1"], ["3.00", "4.00", "5.00"]),
        ("valid/perplexity", True, ["0.1", "0.3", "0.2"], ["5.00", "4.00", "3.00"]),
        ("seconds", False, ["0.3", "0.1", "0.2"], ["1.000", "2.000", "3.000"]),
        ("valid_loss", False, ["0.3", "0.2", "0.1"], ["0.500", "0.700", "0.900"]),
        ("valid/loss", False, ["0.3", "0.2", "0.1"], ["0.500", "0.700", "0.900"]),
    ],
)
def test_the_metric_and_the_goal_of_a_file_rank_its_trials(
    name: str, maximize: bool, order: list[str], shown: list[str], tried: Callable[..., Planned], runs_dir: Path
) -> None:
    runs = [
        tried(0.1, valid=5, bleu=61.5, seconds=2.0),
        tried(0.2, valid=3, bleu=44.4, seconds=3.0),
        tried(0.3, valid=4, bleu=50.0, seconds=1.0),
    ]
    for (_, run), loss in zip(runs, (0.9, 0.7, 0.5), strict=True):  # of a curve the last counts
        run.metrics_file.write_text(f"step,loss,valid_loss\n1,9.0,{1 - loss}\n2,8.0,{loss}\n3,7.0,\n")
    found = search("my.yaml", runs, drawn=(), objective=Objective(name, maximize))
    assert [row.texts for row in found.rows] == [[rate, score] for rate, score in zip(order, shown, strict=True)]


def test_a_metric_that_no_run_has_is_refused_and_one_that_some_have_ranks_those(
    tried: Callable[..., Planned], runs_dir: Path
) -> None:
    runs = [tried(0.1, valid=5), tried(0.2, valid=3, chrf=40.0)]
    with pytest.raises(UserError, match=r"^my\.yaml: metric\.name=test\.bluu: .*; did you mean test\.bleu\?"):
        search("my.yaml run_cap=2", runs, drawn=(), objective=Objective("test.bluu"))
    found = search("my.yaml", runs, drawn=(), objective=Objective("chrf", maximize=True))
    assert [row.texts for row in found.rows] == [["0.2", "40.000"]]
    assert str(runs[0][1].path) in found.left_out[0]


@pytest.mark.parametrize(
    ("name", "maximize", "doubted"),
    [
        ("test.bleu", True, False),
        ("test.bleu", False, True),
        ("valid_perplexity", True, True),
        ("valid_perplexity", False, False),
        ("seconds", True, False),
        ("seconds", False, False),
    ],
)
def test_a_goal_that_asks_for_the_worst_is_doubted(
    name: str, maximize: bool, doubted: bool, tried: Callable[..., Planned], runs_dir: Path
) -> None:
    found = search("my.yaml", [tried(0.1, valid=5, seconds=1.0)], drawn=(), objective=Objective(name, maximize))
    assert ("the first trial is the worst" in " ".join(found.sentences)) == doubted


def test_scores_of_other_texts_are_not_ranked_and_of_other_subwords_if_they_count_none(
    tried: Callable[..., Planned], runs_dir: Path
) -> None:
    by_bleu = Objective("test.bleu", maximize=True)
    runs = [tried(0.1, valid=3, store="a"), tried(0.2, valid=6, store="b")]
    assert len(search("my.yaml", runs, drawn=(), objective=by_bleu).rows) == 2
    for other in ({"text": "another"}, {"signature": "nrefs:1|tok:zh"}):
        with pytest.raises(UserError, match=r"^my\.yaml: its runs met different texts, or were scored differently"):
            search("my.yaml", [*runs, tried(0.3, valid=4, **other)], drawn=(), objective=by_bleu)


def test_the_best_trial_is_a_command_with_all_that_it_was_run_with(
    tried: Callable[..., Planned], runs_dir: Path
) -> None:
    runs = [tried(0.1, valid=4, seed=1), tried(0.1, valid=6, seed=2), tried(0.2, valid=9)]
    typed = ["schedule=wsd", "model.d_k='a b'"]
    runs = [([*words, *typed, "hydra.launcher.workers=2"], run) for words, run in runs]
    arm = ["experiment=heads/base", "scale=pocket"]
    rows = search("my.yaml", runs, drawn=())
    [command] = (note.text for note in rows.notes if note.is_command)
    assert shlex.split(command) == ["etude", "train", "-m", *arm, "budget.lr_factor=0.1", *typed, "seed=1,2"]
    [command] = (note.text for note in search("my.yaml", runs[2:], drawn=()).notes if note.is_command)
    assert shlex.split(command) == ["etude", "train", *arm, "budget.lr_factor=0.2", *typed, "seed=1"]
    narrow = console(width=40, file=StringIO())
    narrow.print(RenderedTable(rows), crop=False)
    assert isinstance(narrow.file, StringIO)
    assert any(line.startswith("etude train -m") and line.endswith("seed=1,2") for line in lines_of(narrow.file))
    assert f"\n    {next(note.text for note in rows.notes if note.is_command)}\n" in markdown(rows)


def lines_of(file: StringIO) -> list[str]:
    return [line.rstrip() for line in file.getvalue().splitlines()]
