import io
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from scipy import stats

from etude.errors import UserError
from etude.report import report
from etude.store.run_dir import RunDir

from .conftest import declared, printed

Make = Callable[..., RunDir]


def table(runs_dir: Path, **where: str) -> dict[str, dict[str, str]]:
    """The report of `heads` as cells by arm and header."""
    rows = report("heads", runs_dir, where).rows
    headers = [f"{column.header} {column.whose}".strip() for column in rows.columns]
    return {row.texts[0]: dict(zip(headers, row.texts, strict=True)) for row in rows.rows}


def notes(runs_dir: Path, **where: str) -> str:
    rows = report("heads", runs_dir, where).rows
    return "\n".join([*rows.sentences, *rows.left_out])


def test_ours_stands_beside_the_papers_and_cells_are_blank_where_as_in_the_baseline(
    runs_dir: Path, make_run: Make
) -> None:
    make_run("base", ppl=3.214, bleu=45.61)
    make_run("A1", ppl=3.5, bleu=44.0)
    make_run("E1")
    rows = table(runs_dir)
    assert rows["base"] == {
        "arm": "base",
        "h": "8",
        "positions": "sinusoidal",
        "steps": "100",
        "PPL ours": "3.21",
        "PPL paper": "4.92",
        "Δ ln PPL ours": "",
        "Δ ln PPL paper": "",
        "BLEU ours": "45.6",
        "BLEU paper": "25.8",
        "params ×10⁶ ours": "0.526",
        "params ×10⁶ paper": "65",
    }
    assert [rows["A1"][header] for header in ("h", "positions", "steps")] == ["1", "", ""]
    assert [rows["E1"][header] for header in ("h", "positions", "steps")] == ["", "learned", ""]
    assert (rows["A1"]["PPL paper"], rows["A1"]["params ×10⁶ paper"], rows["E1"]["PPL paper"]) == ("5.29", "", "")
    assert [rows["A1"][f"Δ ln PPL {whose}"] for whose in ("ours", "paper")] == [
        f"+{math.log(3.5 / 3.214):.3f}",
        f"+{math.log(5.29 / 4.92):.3f}",
    ]


def test_an_arm_that_was_not_run_says_so_and_one_that_is_not_finished_too(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    make_run("A2", finished=False)
    rows = table(runs_dir)
    assert (rows["A1"]["PPL ours"], rows["A2"]["PPL ours"]) == ("not run", "begun")
    assert rows["A1"]["BLEU ours"] == "–"
    assert "Not finished yet: A2 (seed 1)." in notes(runs_dir)


def test_a_run_that_failed_says_so_and_why_and_where_to_read_on(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    failed = [make_run(arm, seed, finished=False) for arm, seed in (("A1", 1), ("A2", 1))]
    make_run("A2", 2, finished=False)
    for run in failed:
        run.log_file.write_text("etude: the disk is full\n")
    rows = table(runs_dir)
    assert (rows["A1"]["PPL ours"], rows["A2"]["PPL ours"]) == ("failed", "begun")
    for run in failed:
        name = "/".join(run.path.parts[-3:])
        assert f"{name} failed: etude: the disk is full ({run.log_file})." in notes(runs_dir)
    assert "Not finished yet: A2 (seed 2)." in notes(runs_dir)


def test_without_the_baseline_every_cell_is_written_out(runs_dir: Path, make_run: Make) -> None:
    make_run("A1")
    assert [table(runs_dir)["A1"][header] for header in ("h", "positions", "steps")] == ["1", "sinusoidal", "100"]


def test_several_seeds_give_the_mean_half_its_interval_and_their_number(runs_dir: Path, make_run: Make) -> None:
    scores = [40.1, 41.7, 44.4]
    for seed, bleu in enumerate(scores, start=1):
        make_run("base", seed, bleu=bleu)
    make_run("A1", bleu=39.0)
    rows = table(runs_dir)
    half = stats.t.ppf(0.975, 2) * statistics.stdev(scores) / 3**0.5
    assert rows["base"]["BLEU ours"] == f"{statistics.mean(scores):.1f} ± {half:.1f}"
    assert (rows["base"]["seeds"], rows["A1"]["seeds"], rows["A2"]["seeds"]) == ("3", "1", "")
    assert rows["A1"]["BLEU ours"] == "39.0"
    assert "seed 1, 2, 3" in notes(runs_dir)


@pytest.mark.parametrize("key", ["arm", "arms"])
def test_a_table_holds_every_arm(key: str, runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    with pytest.raises(UserError, match=f"{key}=base: a table holds every arm"):
        report("heads", runs_dir, {key: "base"})


def test_a_table_may_be_of_some_seeds_and_says_so(runs_dir: Path, make_run: Make) -> None:
    for seed, bleu in ((1, 10.0), (11, 20.0), (12, 30.0)):
        make_run("base", seed, bleu=bleu)
    assert table(runs_dir, seed="11,12")["base"]["seeds"] == "2"
    assert "Left out, as asked: 1 run of other seeds than 11,12." in notes(runs_dir, seed="11,12")
    with pytest.raises(UserError, match=r"no finished run has seed=5; there are 1, 11, 12"):
        report("heads", runs_dir, {"seed": "5"})
    with pytest.raises(UserError, match=r"seed=1-3: name the seeds"):
        report("heads", runs_dir, {"seed": "1-3"})


def test_an_override_that_adds_a_key_is_the_arms_and_no_setting(runs_dir: Path, make_run: Make) -> None:
    study = runs_dir.parent / "experiments" / "heads" / "study.yaml"
    study.write_text(study.read_text().replace("[model/position=learned]", "[+model/position=learned]"))
    make_run("base")
    make_run("E1")
    assert [row["PPL ours"] for arm, row in table(runs_dir).items() if arm in ("base", "E1")] == ["3.00", "3.00"]


def test_several_seeds_bring_differences_and_a_star_where_one_is_more_than_luck(runs_dir: Path, make_run: Make) -> None:
    for seed in (1, 2, 3):
        make_run("base", seed, ppl=3.0 + 0.01 * seed, bleu=40.0 + seed)
        make_run("A1", seed, ppl=4.0 + 0.01 * seed, bleu=39.0 + seed)
        make_run("A2", seed, ppl=2.9 + 0.10 * seed)
    rows = table(runs_dir)
    nats = [rows[arm]["Δ ln PPL ours"] for arm in ("base", "A1", "A2", "E1")]
    assert nats == ["", "+0.286*", "+0.026", ""], "ln 4.02 - ln 3.02, and as much for A2"
    assert rows["A1"]["BLEU Δ"] == "−1.0", "the hypotheses are missing"
    assert "Bold with a star: p < 0.05 after Holm's correction for all arms, for each metric by itself" in notes(
        runs_dir
    )
    why = "without the translations of both, other sentences cannot be resampled"
    assert f"No test of BLEU, hence no star: {why} (all others)." in notes(runs_dir)
    markdown = report("heads", runs_dir, {}).markdown()
    assert "| **+0.286**\\* |" in markdown
    assert "**+0.026" not in markdown


def test_with_one_seed_nothing_is_bold_and_the_table_says_why(runs_dir: Path, make_run: Make) -> None:
    make_run("base", ppl=3.0)
    make_run("A1", ppl=300.0)
    assert "BLEU Δ" not in table(runs_dir)["A1"]
    assert "One seed an arm: no arm is starred or bold" in notes(runs_dir)
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    console.print(report("heads", runs_dir, {}))
    assert isinstance(console.file, io.StringIO)
    title, _, body = console.file.getvalue().partition("\n")
    assert "\x1b[1m" in title
    assert "\x1b[1m3" not in body


def test_the_papers_order_is_spoken_of_where_enough_arms_have_both_scores(runs_dir: Path, make_run: Make) -> None:
    for number, arm in enumerate(("base", "A1", "A2", "E1")):
        make_run(arm, ppl=3.0 + number)
    assert "No rank correlation with the paper, for 2 arms have both scores, and it takes 4." in notes(runs_dir)
    rows = "".join(f"  {arm}: {{ppl: {ppl}}}\n" for arm, ppl in (("base", 1), ("A1", 3), ("A2", 2), ("E1", 4)))
    (runs_dir.parent / "experiments" / "heads" / "paper.yaml").write_text(f"arms:\n{rows}")
    assert "Rank correlation with the paper, and its 95 % interval: PPL ρ 0.80 [−0.82, 1.00]" in notes(runs_dir)


def test_an_arm_whose_runs_all_diverged_says_so(runs_dir: Path, make_run: Make) -> None:
    make_run("base", 1, ppl=float("inf"))
    make_run("base", 2, ppl=2.0)
    make_run("A1", ppl=float("nan"))
    rows = table(runs_dir)
    assert (rows["base"]["PPL ours"], rows["A1"]["PPL ours"]) == ("2.00", "diverged")
    assert "base, seed 1, diverged" in notes(runs_dir)


def test_where_runs_diverged_the_seeds_say_how_many_are_left(runs_dir: Path, make_run: Make) -> None:
    for seed, ppl in enumerate((3.0, float("inf"), 3.1), start=1):
        make_run("base", seed, ppl=ppl)
        make_run("A1", seed)
        make_run("A2", seed, ppl=float("nan"))
    rows = table(runs_dir)
    assert [rows[arm]["seeds"] for arm in ("base", "A1", "A2", "E1")] == ["2 of 3", "3", "0 of 3", ""]


def test_another_cost_than_the_baselines_is_marked(runs_dir: Path, make_run: Make) -> None:
    make_run("base", tokens=1000)
    make_run("A1", tokens=2000)
    make_run("A2", tokens=1000, parameters=263_061)
    assert {"A1§", "A2§"} < set(table(runs_dir))
    assert "§ Not the baseline's budget, by more than 10 %" in notes(runs_dir)
    assert "as a multiple of it: parameters: A2 0.50; tokens: A1 2.00." in notes(runs_dir)


def test_another_budget_than_the_baselines_is_footnoted(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    make_run("A1")
    make_run("long")
    rows = table(runs_dir)
    assert rows["long¹"]["steps"] == "300"
    assert "A1" in rows
    assert "¹ Not an equal comparison: budget.max_steps 300 (baseline: 100)." in notes(runs_dir)
    assert "100 to 300 steps" in notes(runs_dir)


@pytest.mark.parametrize(("values", "words"), [((True, False), True), (([1, 2], [2]), True), ((1, 0.5), False)])
def test_what_is_no_number_sorts_as_a_word(
    values: tuple[object, object], words: bool, runs_dir: Path, make_run: Make
) -> None:
    study = runs_dir.parent / "experiments" / "heads" / "study.yaml"
    study.write_text(study.read_text().replace("columns: {", "columns: {extra: extra, "))
    for arm, value in zip(("base", "A1"), values, strict=True):
        make_run(arm, changed={"extra": value})
    rows = report("heads", runs_dir, {}).rows
    [place] = [index for index, column in enumerate(rows.columns) if column.header == "extra"]
    assert rows.columns[place].words is words


def test_a_column_that_no_run_has_a_value_for_is_named(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    assert "No run has a value" not in notes(runs_dir)
    file = runs_dir.parent / "experiments" / "heads" / "study.yaml"
    file.write_text(file.read_text().replace("h: model.heads", "h: model.headz"))
    assert "No run has a value for the columns h (model.headz)." in notes(runs_dir)


def test_without_scores_of_translations_nothing_is_said_of_how_many_were_scored(runs_dir: Path, make_run: Make) -> None:
    run = make_run("base")
    run.write_result(run.result() | {"test": run.result()["test"] | {"pairs": 2_000}})
    assert "tested on 2,000 sentences, BLEU on the first 1,000 of them" in notes(runs_dir)
    declared(runs_dir, metrics={"ppl": {}})
    assert "tested on 2,000 sentences; PPL per subword" in notes(runs_dir)


def test_the_conditions_of_the_numbers_stand_below_the_table(runs_dir: Path, make_run: Make) -> None:
    make_run("base", typed=("model.dropout=0.3",))
    told = notes(runs_dir)
    for fact in (
        "data=grammar, scale=pocket, budget=pocket, model.dropout=0.3; 100 steps; seed 1; tested on 1,000 sentences",
        "sacreBLEU: nrefs:1|tok:13a",
        "Paper: Someone 2017, Table 9; the development set.",
    ):
        assert fact in told


def test_beside_the_papers_bleu_stands_what_the_baseline_scores_by_its_recipe(runs_dir: Path, make_run: Make) -> None:
    recipe = "in Vaswani et al. 2017 that of tokenised text with German compounds split"
    make_run("base", 1, bleu=40.0, paper_bleu=41.5)
    make_run("base", 2, bleu=42.0, paper_bleu=42.0)
    assert f"{recipe}: the mean of base is 41.00 by the one, 41.75 by the other." in notes(runs_dir)
    make_run("base", 3)
    assert recipe not in notes(runs_dir), "one run did not measure it: two means of other runs"


def test_without_a_papers_bleu_nothing_is_said_of_its_recipe(runs_dir: Path, make_run: Make) -> None:
    make_run("base", paper_bleu=41.5)
    (runs_dir.parent / "experiments" / "heads" / "paper.yaml").write_text("arms: {base: {ppl: 5}}")
    assert "Vaswani" not in notes(runs_dir)


def test_settings_are_never_mixed_the_most_complete_is_shown_and_the_rest_can_be_asked_for(
    runs_dir: Path, make_run: Make
) -> None:
    make_run("base", bleu=10.0)
    make_run("A1", bleu=11.0)
    make_run("base", bleu=30.0, scale="small")
    make_run("base", bleu=50.0, typed=("model.dropout=0.3",))
    assert [table(runs_dir)[arm]["BLEU ours"] for arm in ("base", "A1", "A2")] == ["10.0", "11.0", "–"]
    assert table(runs_dir, scale="small")["base"]["BLEU ours"] == "30.0"
    assert table(runs_dir, **{"model.dropout": "0.3"})["base"]["BLEU ours"] == "50.0"
    told = notes(runs_dir)
    assert "Left out: 1 run of another setting: say budget=small scale=small to see them." in told
    assert "Left out: 1 run of another setting: say model.dropout=0.3 to see them." in told
    assert "Left out: 2 runs without model.dropout=0.3." in notes(runs_dir, **{"model.dropout": "0.3"})


def test_of_two_equally_complete_settings_the_newest_is_shown(runs_dir: Path, make_run: Make) -> None:
    make_run("base", scale="small", bleu=1.0)
    make_run("base", scale="pocket", bleu=2.0)
    assert table(runs_dir)["base"]["BLEU ours"] == "2.0"


def test_of_two_equally_complete_settings_the_one_as_written_is_shown(runs_dir: Path, make_run: Make) -> None:
    make_run("base", bleu=1.0)
    make_run("base", bleu=2.0, typed=["model.dropout=0.3"], changed={"model": {"heads": 8, "dropout": 0.3}})
    assert table(runs_dir)["base"]["BLEU ours"] == "1.0"


def test_a_filter_on_what_arms_change_looks_at_the_baseline(runs_dir: Path, make_run: Make) -> None:
    make_run("A1")
    make_run("base")
    assert table(runs_dir, **{"model.heads": "8"})["A1"]["h"] == "1"


def test_what_cannot_change_a_result_does_not_part_runs(runs_dir: Path, make_run: Make) -> None:
    make_run("base", 1, logger="none")
    make_run("base", 2, logger="wandb")
    assert table(runs_dir)["base"]["seeds"] == "2"


@pytest.mark.parametrize("default", ["budget.target_tokens=2000", "budget.target_tokens=2e3"])
@pytest.mark.parametrize("arm", ["base", "A1"])
def test_a_default_that_was_typed_is_no_other_setting(arm: str, default: str, runs_dir: Path, make_run: Make) -> None:
    """Of the same arm and of another."""
    make_run("base", 1)
    make_run(arm, 2, typed=(default,))
    assert "Left out" not in notes(runs_dir)
    made = report("heads", runs_dir, {})
    assert sum(len(found.runs) for found in made.compared.arms) == 2


OBSERVED = {"callbacks": {"norms": {"_target_": "etude.training.gradient_norms.GradientNorms", "every": 50}}}


@pytest.mark.parametrize(
    ("typed", "config"),
    [
        (("callbacks=gradient_norms",), OBSERVED),
        (("callbacks=gradient_norms", "callbacks.norms.every=50"), OBSERVED),
        (("model/backend=eager",), {}),
        (("budget.val_every=5",), {"budget": {"max_steps": 100, "val_every": 5}}),
    ],
)
def test_what_is_no_part_of_a_runs_identity_is_no_other_setting(
    typed: tuple[str, ...], config: dict[str, Any], runs_dir: Path, make_run: Make
) -> None:
    """The baseline is not trained again without it, and would never stand in the table of the others."""
    for arm, heads, backend, said in (("base", 8, "backend.Eager", typed), ("A1", 1, "fused.Fused", ())):
        model = {"heads": heads, "backend": {"_target_": f"etude.model.{backend}"}}
        callbacks = "gradient_norms" if said else "none"
        choices = {"data": "grammar", "scale": "pocket", "callbacks": callbacks, "model/backend": backend}
        budget = {"max_steps": 100, "val_every": 9}
        made = {"model": model, "choices": choices, "budget": budget, "callbacks": {}} | (config if said else {})
        make_run(arm, typed=said, changed=made)
    assert {arm for arm, row in table(runs_dir).items() if row["BLEU ours"] != "–"} == {"base", "A1"}
    assert "Left out" not in notes(runs_dir)
    assert "Not an equal" not in notes(runs_dir)


STOPPING = {"early_stopping": {"_target_": "lightning.pytorch.callbacks.EarlyStopping"}}


def test_of_several_callbacks_one_that_observes_makes_no_other_setting(runs_dir: Path, make_run: Make) -> None:
    """Hydra tells of a list no choice."""
    norms = {"gradient_norms": OBSERVED["callbacks"]["norms"]}
    choices = {"data": "grammar", "scale": "pocket"}
    chosen = {"callbacks": STOPPING, "choices": choices | {"callbacks": "early_stopping"}}
    make_run("base", 1, typed=("callbacks=early_stopping",), changed=chosen)
    make_run("base", 2, typed=("callbacks=[early_stopping]",), changed={"callbacks": STOPPING, "choices": choices})
    typed = ("callbacks=[early_stopping,gradient_norms]", "callbacks.gradient_norms.every=4")
    make_run("A1", typed=typed, changed={"callbacks": STOPPING | norms, "choices": choices})
    assert "Left out" not in notes(runs_dir)
    assert sum(len(found.runs) for found in report("heads", runs_dir, {}).compared.arms) == 3


def test_a_value_that_undoes_what_an_arm_is_there_to_change_is_another_setting(runs_dir: Path, make_run: Make) -> None:
    """The baseline has eight heads without being told, A1 only where it is told after its own."""
    undone = make_run("A1", 1, typed=("model.heads=8",))
    config = undone.config()
    config["model"]["heads"] = 8
    undone.config_file.write_text(yaml.safe_dump(config))
    make_run("base", 1)
    assert "Left out: 1 run of another setting: say model.heads=8 to see them." in notes(runs_dir)


def test_a_value_that_others_do_not_have_is_another_setting_though_one_arm_has_it(
    runs_dir: Path, make_run: Make
) -> None:
    """The arm `long` trains 300 steps anyway; the baseline does when asked."""
    make_run("base", 1)
    make_run("long", 1)
    make_run("base", 2, typed=("budget.max_steps=300",), changed={"budget": {"max_steps": 300}})
    assert "Left out: 1 run of another setting: say budget.max_steps=300 to see them." in notes(runs_dir)


@pytest.mark.parametrize("change", [{"rate": 2.0}, {"store": "other"}])
def test_seeds_of_an_edited_config_or_text_are_not_averaged_with_older_ones(
    change: dict[str, float], runs_dir: Path, make_run: Make
) -> None:
    make_run("base", 1, bleu=10.0)
    make_run("base", 2, bleu=10.0)
    make_run("base", 1, bleu=20.0, **change)
    assert next(iter(table(runs_dir).values()))["BLEU ours"] == "20.0"
    assert "Left out: 2 runs of another config or text than those shown of the same arm." in notes(runs_dir)


def test_a_run_whose_config_was_cut_short_is_left_out_and_named(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    torn = make_run("A1")
    torn.config_file.write_text(torn.config_file.read_text()[:120])
    told = notes(runs_dir)
    assert f"Left out: {torn.config_file} is incomplete: delete the directory and train again." in told


def test_a_torn_run_and_one_of_a_forgotten_arm_are_left_out_and_named(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    torn = make_run("A1")
    torn.result_file.write_text("{")
    headless = make_run("A2")
    headless.result_file.write_text('{"finished": true}')
    untested = make_run("E1")
    untested.result_file.write_text('{"parameters": 1, "steps": 1, "test": {"perplexity": 3.0}}')
    forgotten = runs_dir / "heads" / "Z9" / "seed1-0"
    forgotten.mkdir(parents=True)
    (forgotten / "config.yaml").write_text("{}")
    assert table(runs_dir)["A1"]["PPL ours"] == "not run"
    told = notes(runs_dir)
    assert (
        f"Left out: {torn.result_file} is incomplete: delete it, and the same command evaluates the run again." in told
    )
    assert f"Left out: {headless.path}, which cannot be read" in told
    assert f"Left out: {untested.path}, which cannot be read (its result has no test.sentences)." in told
    assert "the study has no arm Z9" in told


def test_no_finished_run_is_one_sentence_with_the_command(runs_dir: Path, make_run: Make) -> None:
    make_run("base", finished=False)
    with pytest.raises(UserError, match="holds no finished run of heads; this makes them: etude sweep heads"):
        report("heads", runs_dir, {})


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({"scale": "smal"}, "no finished run has scale=smal; did you mean small"),
        ({"scal": "small"}, "the runs know no scal; did you mean scale"),
        ({"tuned": "true"}, "tuned=true is for `etude sweep`; .*leave it out"),
        ({"scale": "small", "budget": "pocket"}, "no finished run has scale=small and budget=pocket at once"),
    ],
)
def test_a_filter_that_nothing_meets_is_told_with_what_there_is(
    where: dict[str, str], told: str, runs_dir: Path, make_run: Make
) -> None:
    make_run("base")
    make_run("base", scale="small")
    with pytest.raises(UserError, match=told):
        report("heads", runs_dir, where)


def test_a_wide_terminal_has_the_papers_columns_and_a_narrow_one_names_the_changes(
    runs_dir: Path, make_run: Make
) -> None:
    make_run("base")
    make_run("A1")
    made = report("heads", runs_dir, {})
    wide, narrow = printed(made, 160), printed(made, 60)
    assert "positions" in wide.splitlines()[3]
    assert "h=1" in narrow
    assert "h=1" not in wide


def test_rules_part_the_groups_of_arms(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    lines = printed(report("heads", runs_dir, {}), 120).splitlines()
    shown = ["rule" if set(line) <= set("─ ") and line.strip() else line.split(" ")[0] for line in lines[4:12]]
    assert shown == ["rule", "base", "rule", "A1", "A2", "rule", "E1", "rule"]


def test_markdown_holds_the_same_cells(runs_dir: Path, make_run: Make) -> None:
    make_run("base")
    make_run("A1")
    made = report("heads", runs_dir, {})
    lines = made.markdown().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert cells[2:] == [row.texts for row in made.rows.rows]
    assert {len(row) for row in cells} == {len(made.rows.columns)}
    assert all(note in lines for note in made.rows.sentences)


def test_a_failed_attempt_of_another_config_is_not_awaited(runs_dir: Path, make_run: Make) -> None:
    make_run("A1", finished=False, rate=5.0)
    make_run("A2", finished=False, rate=5.0)
    make_run("base")
    make_run("A1")
    make_run("A1", 2, finished=False)
    make_run("A2", 2, finished=False)
    assert "Not finished yet: A1 (seed 2), A2 (seed 2)." in notes(runs_dir)
