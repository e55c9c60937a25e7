"""Whether an arm differs from the baseline in more than what it is there to change."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from etude.config.compose_cache import ConfigCache
from etude.report import report
from etude.report.compare import compare
from etude.report.confounds import find_confounds
from etude.report.notes import notes
from etude.report.selection import Selection
from etude.store.records import Run
from etude.store.run_dir import RunDir
from etude.study.study import load_study

Make = Callable[..., RunDir]
ADAM = {"_target_": "adam", "beta1": 0.9, "beta2": 0.98}
SINUSOIDAL = "etude.model.position.sinusoidal"
EDITED = {"optimizer": ADAM | {"beta2": 0.999}}
KEEPING = {"_target_": "lightning.pytorch.callbacks.ModelCheckpoint", "monitor": "val_loss"}
ARMS = "arms:\n  base: []\n  A1: [model.heads=1, {}]\nbaseline: base\n"
RESULT = {"parameters": 1, "steps": 1, "store": "s0", "test": {"perplexity": 3.0, "bleu": 40.0, "sentences": 1}}


def footnotes(runs_dir: Path) -> dict[str, str]:
    """By arm, what is no equal comparison."""
    compared = report("heads", runs_dir, {}).compared
    return {arm: text for text, arms in find_confounds(compared).items() for arm in arms}


def overriding(runs_dir: Path, override: str) -> None:
    """A study in which A1 has one override more."""
    (runs_dir.parent / "experiments" / "heads" / "paper.yaml").unlink()
    (runs_dir.parent / "experiments" / "heads" / "study.yaml").write_text(ARMS.format(override))


def frozen(study: str, folder: Path) -> list[Run]:
    """A run of each arm, with the config that it would have."""
    configs, runs = ConfigCache(), []
    for arm in load_study(study).arms:
        found, run = configs.resolve([f"experiment={study}/{arm}"]), RunDir(folder / arm)
        run.path.mkdir()
        run.written_file.write_text(yaml.safe_dump(found.written))
        runs.append(Run(run, study, arm, 1, found.config, RESULT))
    return runs


@pytest.mark.parametrize(
    ("edited", "told"),
    [
        (EDITED, "optimizer.beta2 0.999 (baseline: 0.98)"),
        ({"precision": "bf16-mixed"}, "precision bf16-mixed (baseline: 32-true)"),
        ({"decoding": {"alpha": 1.0}}, "decoding.alpha 1.0 (baseline: 0.6)"),
        ({"weights": "auto", "callbacks": {"mine": KEEPING}}, "tested weights best (baseline: last)"),
        ({"averaging": {"checkpoints": 5, "every": 10}}, "averaging.checkpoints 5 (baseline: 0)"),
    ],
)
def test_what_was_edited_since_the_baseline_ran_is_told(
    edited: dict[str, Any], told: str, runs_dir: Path, make_run: Make
) -> None:
    before = {"optimizer": ADAM, "precision": "32-true", "decoding": {"alpha": 0.6}}
    make_run("base", changed=before)
    make_run("A1", changed=before | edited)
    make_run("A2", changed=before)
    assert list(footnotes(runs_dir)) == ["A1"]
    assert told in footnotes(runs_dir)["A1"]
    assert "A1¹" in [row.texts[0] for row in report("heads", runs_dir, {}).rows.rows]


@pytest.mark.parametrize("override", ["optimizer.beta2=0.999", "+optimizer.beta2=0.999", "optimizer=sgd"])
def test_an_arm_that_is_there_to_change_it_is_not_told(override: str, runs_dir: Path, make_run: Make) -> None:
    make_run("base", changed={"optimizer": ADAM})
    make_run("A1", changed=EDITED)
    assert footnotes(runs_dir)
    overriding(runs_dir, override)
    assert footnotes(runs_dir) == {}


@pytest.mark.parametrize(("asked", "told"), [("auto", {"A1"}), ("last", set())])
def test_that_an_arm_is_tested_with_its_best_weights_is_told_even_where_it_is_there_to_keep_them(
    asked: str, told: set[str], runs_dir: Path, make_run: Make
) -> None:
    overriding(runs_dir, "callbacks=mine")
    make_run("base", changed={"weights": asked})
    make_run("A1", changed={"weights": asked, "callbacks": {"mine": KEEPING}})
    assert {arm for arm, text in footnotes(runs_dir).items() if "tested weights best (baseline: last)" in text} == told


def test_what_the_baseline_is_there_to_change_is_not_told_of_the_others(runs_dir: Path, make_run: Make) -> None:
    make_run("base", changed={"optimizer": ADAM})
    make_run("A1", changed=EDITED)
    overriding(runs_dir, "optimizer.beta2=0.999")
    study = runs_dir.parent / "experiments" / "heads" / "study.yaml"
    study.write_text(study.read_text().replace("baseline: base", "baseline: A1"))
    assert footnotes(runs_dir) == {}


@pytest.mark.parametrize("key", ["optimizer.beta", "optimizer.beta2.more", "model.heads", "loss=plain"])
def test_to_change_something_else_explains_nothing(key: str, runs_dir: Path, make_run: Make) -> None:
    make_run("base", changed={"optimizer": ADAM})
    make_run("A1", changed=EDITED)
    overriding(runs_dir, f"{key}=1")
    assert footnotes(runs_dir) == {"A1": "Not an equal comparison: optimizer.beta2 0.999 (baseline: 0.98)."}


def test_a_size_that_follows_is_not_told_and_a_value_beside_it_is(runs_dir: Path, make_run: Make) -> None:
    written = {
        "attention": {"d_k": "${div:${model.d_model},${model.heads}}"},
        "residual": {"dropout": "${model.dropout}"},
    }

    def make(arm: str, heads: int, d_k: int, dropout: float) -> None:
        values = {"heads": heads, "dropout": dropout}
        model = values | {"attention": {"d_k": d_k}, "residual": {"dropout": dropout}}
        make_run(arm, changed={"model": model}).written_file.write_text(yaml.safe_dump({"model": values | written}))

    make("base", 8, 8, 0.1)
    make("A1", 1, 64, 0.1)
    assert footnotes(runs_dir) == {}
    make("A2", 4, 16, 0.2)
    assert footnotes(runs_dir) == {"A2": "Not an equal comparison: model.dropout 0.2 (baseline: 0.1)."}


def test_what_names_or_places_a_run_and_factors_are_not_told(runs_dir: Path, make_run: Make) -> None:
    make_run("base", changed={"runs_dir": "a", "trainer": {"devices": 1}, "scale": {"width": 0.125}})
    make_run("A1", changed={"runs_dir": "b", "trainer": {"devices": 2}, "scale": {"width": 0.5}}, logger="none")
    assert footnotes(runs_dir) == {}


def test_checkpoints_that_nobody_averages_make_no_difference(runs_dir: Path, make_run: Make) -> None:
    make_run("base", changed={"averaging": {"checkpoints": 0, "every": 10}})
    make_run("A1", changed={"averaging": {"checkpoints": 0, "every": 20}})
    make_run("A2")
    assert footnotes(runs_dir) == {}


def test_what_both_set_alike_is_not_told_where_only_one_makes_use_of_it(runs_dir: Path, make_run: Make) -> None:
    """Validation counts in the identity of a run only beside callbacks."""
    stop = {"stop": {"_target_": "lightning.pytorch.callbacks.EarlyStopping"}}
    overriding(runs_dir, "callbacks=stop")
    make_run("base", changed={"budget": {"val_every": 5}})
    make_run("A1", changed={"budget": {"val_every": 5}, "callbacks": stop})
    assert footnotes(runs_dir) == {}
    make_run("A1", seed=2, changed={"budget": {"val_every": 6}, "callbacks": stop})
    assert "budget.val_every 6 (baseline" in footnotes(runs_dir)["A1"]


@pytest.mark.parametrize(
    ("study", "told"), [("table3", {"big": ["budget.max_steps"]}), ("axes", {}), ("modern", {}), ("multi30k", {})]
)
def test_no_arm_of_a_shipped_study_differs_in_more_than_it_is_there_to_change(
    study: str, told: dict[str, list[str]], tmp_path: Path
) -> None:
    found = find_confounds(compare(load_study(study), Selection(frozen(study, tmp_path), [], [])))
    keys = {arm: re.findall(r"[\w./]+(?= \S+ \(baseline)", text) for text, arms in found.items() for arm in arms}
    assert keys == told


def test_an_arm_that_changes_nothing_is_named(runs_dir: Path, make_run: Make) -> None:
    make_run("base", seed=1)
    make_run("A1", seed=2)
    changed = {"model": {"heads": 8, "position": {"_target_": SINUSOIDAL}}}
    make_run("A2", seed=3, changed=changed, logger="none")
    assert copies(runs_dir) == ["Arms that are the same run as the baseline: A2."]


def test_an_arm_that_is_a_copy_of_another_is_named(runs_dir: Path, make_run: Make) -> None:
    make_run("base", seed=1)
    make_run("A1", seed=1)
    make_run("A2", seed=1, changed={"model": {"heads": 1, "position": {"_target_": SINUSOIDAL}}})
    assert copies(runs_dir) == ["Arms that are the same run as A1: A2."]


def copies(runs_dir: Path) -> list[str]:
    found = map(str, notes(report("heads", runs_dir, {}).compared))
    return [note for note in found if note.startswith("Arms that are the same")]
