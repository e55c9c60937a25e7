"""`etude report --from FILE.csv --ladder`: the ladder of anybody's runs, and what makes none."""

import csv
import math
import re
import runpy
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from etude.cli.report import main as report
from etude.cli.results import main as results
from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.errors import UserError
from etude.report.figures.ladder import difference, predicted
from etude.report.ladder import ladder_of_csv, ladder_of_study
from etude.report.ladder_table import sentences, table
from etude.search.sweep_file import planned_runs
from etude.store.run_dir import RunDir
from etude.study.metrics import Metric
from etude.study.study import load_study

LOSS = Metric("loss", "loss", "loss", "lower", digits=3)
SEEDS = (3, 3, 1, 1, 1)
Row = dict[str, object]
Change = Callable[[list[Row]], object]


def rows_of(noise: float = 0.005) -> list[Row]:
    """Five rungs; `better` gains 5 % of what is above the floor, `worse` loses as much, `even` is the baseline."""
    random, rows = np.random.default_rng(0), []
    for arm, share in {"base": 1.0, "better": 0.95, "worse": 1.05, "even": 1.0}.items():
        for rung, seeds in enumerate(SEEDS):
            size, tokens = 1e6 * 2 ** (rung / 2), 2e7 * 2 ** (rung / 2)
            for seed in range(seeds):
                loss = 1.7 + 1.8 * share * 2 ** (-0.15 * rung) + random.normal(0, noise)
                rows.append({"arm": arm, "seed": seed, "parameters": size, "tokens": tokens + seed, "loss": loss})
    return rows


def named(rows: list[Row]) -> list[Row]:
    """The rows with a column that names their rungs: 1, 2, ..."""
    sizes = sorted({float(str(row["parameters"])) for row in rows})
    return [row | {"rung": 1 + sizes.index(float(str(row["parameters"])))} for row in rows]


def write(rows: list[Row], file: Path) -> Path:
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return file


def test_the_ladder_of_anybodys_runs_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(rows_of(), tmp_path / "mine.csv")
    words = ["--from", str(file), "--baseline", "base", "--metric", "loss:lower", "--ladder", "--markdown", "-"]
    report([*words, "--target", "1e16"])
    told = capsys.readouterr().out
    header = next(line for line in told.splitlines() if line.startswith("| arm"))
    assert header.count("Δ loss") == 6
    assert header.count("predicted") == 2
    assert "1.0e+16 is predicted: 5.2 times the compute of the largest rung" in told
    assert "held out and predicted" in told


def test_a_difference_is_predicted_where_it_comes_to_lie(tmp_path: Path) -> None:
    found = ladder_of_csv(write(rows_of(), tmp_path / "mine.csv"), "base", [LOSS])
    assert found.target == pytest.approx(found.x[-1] + math.log(4))
    for arm, share in {"better": -0.05, "worse": 0.05, "even": 0.0}.items():
        truth = share * 1.8 * 2 ** (-0.15 * 6)
        low, high = found.laws[arm].at(found.target).interval
        assert low < truth < high < low + 0.03
    factor = found.multiplier("better")
    assert factor == pytest.approx(0.95 ** (-1 / 0.15), rel=0.15), "so much more compute of the baseline"
    assert found.laws["better"].at(found.target).sign > 0.99
    assert [len(one.came) for one in found.judged] == [3, 3]
    assert found.alone(0).pairs == 6


def test_the_example_of_the_document_is_what_the_command_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = Path(__file__).parents[2] / "docs"
    monkeypatch.setattr("sys.argv", ["simulate_ladders.py", "example"])
    runpy.run_path(str(docs / "simulate_ladders.py"), run_name="__main__")
    file = tmp_path / "ladder.csv"
    file.write_text(capsys.readouterr().out)
    printed = [line.split() for line in (docs / "ladders.md").read_text(encoding="utf-8").splitlines()]
    for row in table(ladder_of_csv(file, "base", [LOSS], target=1e15)).rows:
        assert " ".join(row.texts).split() in printed


def test_the_page_draws_each_arm_to_the_target(tmp_path: Path) -> None:
    file = write(rows_of(), tmp_path / "mine.csv")
    report(["--from", str(file), "--metric", "loss:lower", "--ladder", "--html", str(tmp_path / "page.html")])
    assert 'id="ladder"' in (tmp_path / "page.html").read_text()
    assert "95 %" not in (tmp_path / "page.html").read_text(), "all intervals of a ladder are of 90 %"
    found = ladder_of_csv(file, "base", [LOSS])
    figure = difference(found, "better")
    assert figure
    assert figure.plotly().data[4].x[0] == pytest.approx(math.exp(found.target))
    assert [row[1] for row in figure.rows] == ["came"] * 5 + ["held out, predicted"] * 2 + ["target"]


def test_the_page_draws_what_was_predicted_of_a_held_out_rung_and_marks_what_missed(tmp_path: Path) -> None:
    rows = rows_of()
    for row in rows:  # an arm whose law breaks at the largest rung
        if row["arm"] == "better" and row["tokens"] == max(other["tokens"] for other in rows):
            row["loss"] = float(row["loss"]) + 1.0
    found = ladder_of_csv(write(rows, tmp_path / "mine.csv"), "base", [LOSS])
    before, last = predicted(found, 0), predicted(found, 1)
    assert before
    assert last
    assert {row[0]: row[-1] for row in before.rows}["better"] == "yes"
    assert {row[0]: row[-1] for row in last.rows}["better"] == "no"
    bars, within, outside = last.plotly().data
    assert set(outside.y) == {"better"}
    assert {*within.y, *outside.y} == {*bars.y} == {*found.arms}
    assert dict(zip(bars.y, bars.x, strict=True)) == {a: one.value for a, one in found.judged[1].predicted.items()}


def test_a_csv_of_a_study_is_held_against_its_baseline_to_its_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row | {"arm": {"base": "A1", "better": "base"}.get(str(row["arm"]), row["arm"])} for row in rows_of()]
    file = write([row | {"test_perplexity": np.exp(float(str(row["loss"])))} for row in rows], tmp_path / "mine.csv")
    report(["table3", "--from", str(file), "--ladder", "--markdown", "-"])
    shown = capsys.readouterr().out
    assert "| base |" not in shown
    assert "| A1 |" in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["seed=1", "--from", "mine.csv"], "seed=1: a ladder has all rows of mine.csv"),
        (["--from", "wandb:me/etude"], "a ladder is read from a CSV"),
    ],
)
def test_what_a_ladder_of_a_csv_does_not_take_is_answered(words: list[str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        report([*words, "--ladder"])


def test_a_column_names_rungs_that_tokens_do_not_tell_apart(tmp_path: Path) -> None:
    rows = rows_of()
    plain = ladder_of_csv(write(rows, tmp_path / "plain.csv"), "base", [LOSS])
    for row in rows:
        rung = round(2 * math.log2(float(str(row["parameters"])) / 1e6))
        row |= {"rung": f"d{64 * (rung + 1)}", "tokens": 2e7}
    named = ladder_of_csv(write(rows, tmp_path / "named.csv"), "base", [LOSS])
    assert [rung.label for rung in named.rungs] == ["d64", "d128", "d192", "d256", "d320"]
    assert named.differences == plain.differences


def test_columns_of_sizes_may_differ_from_rung_to_rung(tmp_path: Path) -> None:
    rows = named(rows_of())
    sized = [row | {"model.d_model": 8 * int(str(row["rung"])), "model.attention.d_k": row["rung"]} for row in rows]
    with_sizes = ladder_of_csv(write(sized, tmp_path / "sized.csv"), "base", [LOSS])
    assert with_sizes.differences == ladder_of_csv(write(rows, tmp_path / "mine.csv"), "base", [LOSS]).differences


def test_of_a_score_that_is_better_the_higher_the_sign_is_the_scores_own(tmp_path: Path) -> None:
    rows = [row | {"loss": -float(str(row["loss"]))} for row in rows_of()]
    higher = ladder_of_csv(write(rows, tmp_path / "mine.csv"), "base", [Metric("loss", "loss", "loss", digits=3)])
    lower = ladder_of_csv(write(rows_of(), tmp_path / "lower.csv"), "base", [LOSS])
    assert higher.laws["better"].level == pytest.approx(-lower.laws["better"].level)
    assert higher.multiplier("better") == pytest.approx(lower.multiplier("better"))


def test_an_arm_that_diverged_has_no_law_and_is_named(tmp_path: Path) -> None:
    rows = rows_of()
    next(row for row in rows if row["arm"] == "worse" and row["parameters"] == 2e6)["loss"] = "nan"
    found = ladder_of_csv(write(rows, tmp_path / "mine.csv"), "base", [LOSS])
    assert found.arms == ["better", "even"]
    assert "Without a law, because a run diverged: worse." in sentences(found)


@pytest.mark.parametrize("loss", ["nan", "9.7"])
@pytest.mark.parametrize("rung", [0, 1])
def test_without_a_seed_of_the_baseline_that_diverged_the_ladder_is_that_of_the_others(
    rung: int, loss: str, tmp_path: Path
) -> None:
    rows = [row | {"diverged": ""} for row in rows_of()]
    lost = next(row for row in rows if of("base", rung)(row) and row["seed"] == 1)
    expected = ladder_of_csv(write([row for row in rows if row is not lost], tmp_path / "others.csv"), "base", [LOSS])
    lost |= {"loss": loss, "diverged": "its loss grew"}
    found = ladder_of_csv(write(rows, tmp_path / "mine.csv"), "base", [LOSS])
    assert {arm: found.laws[arm] for arm in found.arms} == {arm: expected.laws[arm] for arm in expected.arms}
    assert "Left out, because it diverged: base, seed 1." in sentences(found)


def test_an_arm_whose_seeds_are_not_the_baselines_is_named(tmp_path: Path) -> None:
    rows = [row | {"seed": int(str(row["seed"])) + 10 * (row["arm"] == "even")} for row in rows_of()]
    assert "No seed in common with base: even." in sentences(
        ladder_of_csv(write(rows, tmp_path / "mine.csv"), "base", [LOSS])
    )


def of(arm: str, rung: int) -> Callable[[Row], bool]:
    return lambda row: row["arm"] == arm and row["parameters"] == 1e6 * 2 ** (rung / 2)


@pytest.mark.parametrize(
    ("change", "words", "told"),
    [
        (lambda rows: [r for r in rows if float(r["parameters"]) < 2e6], [], "4 rungs or more.* this has 2"),
        (
            lambda rows: [r for r in rows if not of("base", 2)(r)],
            [],
            "base has no run at the rung of 40,000,000 tokens",
        ),
        (lambda rows: [r | {"loss": "inf"} if of("base", 4)(r) else r for r in rows], [], "base diverged at the rung"),
        (lambda rows: [r for r in rows if r["arm"] == "base"], [], "base is the only arm"),
        (lambda rows: [r for r in rows if r["seed"] == 0], [], "no arm has two seeds"),
        (
            lambda rows: [r | {"loss": {"base": 3.0}.get(str(r["arm"]), 2.5)} for r in rows],
            [],
            "each arm differs from base by the same at all its seeds, .* give loss with more digits",
        ),
        (
            lambda rows: [r | {"parameters": 4e6 / (i := int(str(r["rung"]))), "tokens": 2e7 * i} for r in named(rows)],
            [],
            "the rungs 1 and 2 have the same compute",
        ),
        (lambda rows: [*rows, rows[0]], [], "base has seed 0 twice at one rung"),
        (lambda rows: [r | {"tokens": ""} if r is rows[3] else r for r in rows], [], "line 5: no tokens"),
        (
            lambda rows: [r | {"optimizer.betas": 0.9 if float(r["parameters"]) < 3e6 else 0.98} for r in rows],
            [],
            r"rungs of base differ in optimizer.betas \(0.9, 0.98\)",
        ),
        (lambda rows: rows, ["--target", "1e12"], "target's compute, 1.0e.12, lies within the ladder"),
        (lambda rows: rows, ["--target", "far"], "--target far: it is the compute"),
        (lambda rows: rows, ["--baseline", "bas"], "no arm 'bas'; did you mean base"),
        (lambda rows: rows, ["--serve"], "--serve is not for a ladder"),
    ],
)
def test_what_makes_no_ladder_is_answered_in_one_sentence(
    change: Change, words: list[str], told: str, tmp_path: Path
) -> None:
    rows = change(rows_of())
    assert isinstance(rows, list)
    file = write(rows, tmp_path / "mine.csv")
    with pytest.raises(UserError, match=told):
        report(["--from", str(file), "--metric", "loss:lower", "--ladder", *words])


def test_a_ladder_has_a_target_and_reads_a_csv() -> None:
    with pytest.raises(UserError, match="--target is where a ladder leads"):
        report(["table3", "--target", "1e20"])
    with pytest.raises(UserError, match="axes has no ladder"):
        report(["axes", "--ladder"])


def test_the_ladder_of_a_study_is_that_of_its_finished_runs(make_run: Callable[..., RunDir]) -> None:
    study, random = load_study("heads"), np.random.default_rng(0)
    rungs, places = [], []
    for arm, share in {"base": 1.0, "A1": 1.05}.items():
        for rung, seeds in enumerate((2, 2, 1, 1)):
            for seed in range(seeds):
                ppl = math.exp(1.7 + 1.8 * share * 2 ** (-0.15 * rung) + random.normal(0, 0.003))
                size = 2.0 ** (rung / 2)
                places.append(make_run(arm, seed, ppl=ppl, parameters=1e6 * size, tokens=2e7 * size))
                rungs.append(f"w{rung}")
    unfinished = make_run("A1", 9, finished=False)
    found = ladder_of_study(study, [*rungs, "w3"], [*places, unfinished], target=1e16)
    assert [rung.label for rung in found.rungs] == ["w0", "w1", "w2", "w3"]
    assert found.laws["A1"].at(found.x[-1]).value == pytest.approx(0.09 * 2**-0.45, abs=0.01)
    assert "Not finished: 1 run." in sentences(found)


def test_a_study_whose_sweep_file_names_a_seed_is_read_on_its_rungs_and_written_as_one_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiments/own").mkdir(parents=True)
    rungs = "".join(f"    w{n}: [budget.max_steps={10 * 2**n}]\n" for n in range(4))
    (tmp_path / "experiments/own/study.yaml").write_text(
        f"baseline: a\narms: {{a: [], b: [model.heads=2]}}\nladder:\n  rungs:\n{rungs}  seeds: [2, 1, 1, 1]\n"
    )
    (tmp_path / "sweeps").mkdir()
    (tmp_path / "sweeps/own.yaml").write_text(
        "program: etude\nmethod: grid\nparameters:\n  experiment: {values: [own/a, own/b]}\n  seed: {values: [1]}\n"
    )
    random = np.random.default_rng(0)
    for words in planned_runs("own", ["ladder=true"]):
        run = freeze(compose(words))
        steps = run.config()["budget"]["max_steps"]
        ppl = math.exp(
            1.7 + 1.8 * (1.05 if "experiment=own/b" in words else 1) * steps**-0.15 + random.normal(0, 0.003)
        )
        scores = {"valid": {}, "test": {"perplexity": ppl, "sentences": 9}, "steps": steps}
        tokens = 1000.0 * steps * (2 if "experiment=own/b" in words else 1)  # as many as the baseline's of another rung
        run.write_result(scores | {"parameters": 10_000 * steps, "tokens": tokens, "finished": True})
    report(["own", "--ladder", "--markdown", "-"])
    told = capsys.readouterr().out
    assert re.search(r"\| b +\|", told)
    results(["own", "ladder=true", "--csv", "own.csv"])
    rows = csv.DictReader(Path("own.csv").read_text().splitlines())
    assert Counter(row["rung"] for row in rows) == {"w0": 4, "w1": 2, "w2": 2, "w3": 2}
    results(["own", "ladder=false", "--csv", "plain.csv"])
    assert "rung" not in Path("plain.csv").read_text().splitlines()[0].split(",")
    report(
        ["--from", "own.csv", "--baseline", "a", "--metric", "test_perplexity:lower:log", "--ladder", "--markdown", "-"]
    )
    again = capsys.readouterr().out
    numbers = re.findall(r"[+−]0\.\d+", told)
    assert len(numbers) > 6
    assert re.findall(r"[+−]0\.\d+", again) == numbers
