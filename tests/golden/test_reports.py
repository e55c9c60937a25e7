"""The numbers, the stars and the kinds of notes of reports: of recorded runs, and of a study with every kind of run."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from etude.config.compose import compose
from etude.config.freeze import freeze
from etude.report import report, results_of_csv
from etude.report.comparison import ArmResult, Compared, Difference
from etude.store.run_dir import RunDir

from .recorded import assert_as_recorded

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
RECORDED = {  # study, name of the recorded values -> what is reported of the study's record.csv
    ("axes", "pocket"): {"seed": "31"},
    ("families", "pocket"): {"seed": "11,12,13"},
    ("gpt", "pocket_text"): {"seed": "11,12,13,14,15"},
    ("gpt_together", "pocket_text"): {"seed": "21,22,23"},
    ("history", "pocket"): {"seed": "31,32,33"},
    ("history_time", "pocket"): {"seed": "31,32,33"},
    ("modern", "pocket"): {"seed": "31,32,33"},
    ("narang2021", "pocket_text"): {"seed": "11"},
    ("table2", "pocket"): {"seed": "1"},
    ("table3", "pocket"): {"seed": "31,32,33"},
    ("table3", "multi30k"): {"seed": "21,22,23", "data": "multi30k_en_de"},
    ("table4", "pocket"): {"seed": "1"},
}
KINDS = {  # of notes: what is said of each
    "diverged": r"diverged",
    "failed": r"failed",
    "unfinished": r"[Nn]ot finished",
    "tuned": r"^tuned: ",
    "not compared": r"^Not compared",
    "seeds": r"^(More|Fewer) seeds than",
    "budget": r"[Nn]ot the baseline's budget",
    "copies": r"same run as",
    "conditions": r"^(Ours|All arms): ",
    "signature": r"nrefs:",
    "paper": r"^Paper: ",
    "agreement": r"[Aa]greement",
    "correction": r"Holm",
}
WORDS = ["the", "old", "woman", "sees", "a", "dog", "near", "my", "house", "and", "gives", "him", "some", "water"]


def numbers(compared: Compared) -> dict[str, Any]:
    """All that a comparison found, as plain numbers."""
    return {
        "arms": {arm.arm: _arm(arm) for arm in compared.arms if arm.runs or arm.diverged or arm.unfinished},
        "ranks": {name: [ranks.spearman.value, ranks.kendall.value] for name, ranks in compared.ranks.items()},
        "agreement": _agreement(compared),
    }


def _arm(arm: ArmResult) -> dict[str, Any]:
    return {
        "seeds": arm.seeds,
        "diverged": [run.seed for run in arm.diverged],
        "unfinished": {str(run.seed): str(run.state) for run in arm.unfinished},
        "means": {name: [mean.value, *(mean.interval or ())] for name, mean in arm.means.items()},
        "costs": arm.costs,
        "budget": arm.budget,
        "reference": arm.against.reference if arm.against else None,
        "differences": {n: _difference(one) for n, one in (arm.against.differences if arm.against else {}).items()},
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {
        "difference": one.test.difference,
        "interval": list(one.test.interval or ()),
        "p": one.test.p,
        "holm": one.holm,
        "star": one.star,
        "tie": one.tie,
        "tied": one.tied,
        "bootstrap": [*(one.bootstrap.interval or ()), one.bootstrap.p] if one.bootstrap else None,
        "randomisation": one.randomisation,
        "hedges_g": one.hedges_g,
    }


def _agreement(compared: Compared) -> dict[str, Any] | None:
    if not compared.agreement:
        return None
    line = compared.agreement.line
    points = compared.agreement.points.values()
    return {
        "signs": list(compared.agreement.signs),
        "ties": list(compared.agreement.ties),
        "line": [line.r, line.slope],
        "points": {point.arm: [point.paper, point.ours, point.agrees, point.shown] for point in points},
    }


def kinds(notes: list[str]) -> list[str]:
    """The kinds of some notes, each once."""
    return [kind for kind, pattern in KINDS.items() if any(re.search(pattern, note) for note in notes)]


@pytest.mark.parametrize(("study", "name"), RECORDED)
def test_the_numbers_of_recorded_runs_are_as_recorded(study: str, name: str) -> None:
    compared = results_of_csv(EXPERIMENTS / study / "record.csv", study, RECORDED[study, name]).compare()
    assert_as_recorded(f"report-{study}-{name}", numbers(compared), relative=1e-9)


@pytest.fixture
def runs_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study of two sizes of heads and a third arm, three seeds each, with a run of every state, tuned on a pilot."""
    study = {
        "title": "Heads",
        "baseline": "eight",
        "arms": {"eight": [], "two": ["model.heads=2"], "wide": ["model.d_ff=512"]},
        "seeds": 3,
        "tune": {"budget.lr_factor": [0.5, 1.0]},
        "pilots": [101],
        "columns": {"h": "model.heads"},
    }
    (tmp_path / "experiments" / "mine").mkdir(parents=True)
    (tmp_path / "experiments" / "mine" / "study.yaml").write_text(yaml.safe_dump(study))
    monkeypatch.chdir(tmp_path)
    noise = np.random.default_rng(5)
    quality = {"eight": 1.0, "two": 1.35, "wide": 0.98}
    for arm, factor in quality.items():
        for seed in (1, 2, 3):
            run = frozen(arm, seed)
            if (arm, seed) == ("wide", 1):
                write_result(run, float("nan"), noise, diverged=True)
            elif (arm, seed) == ("wide", 2):
                run.log_file.write_text("etude: the disk is full\n")
            elif (arm, seed) == ("wide", 3):
                run.log_file.write_text("going on\n")
            else:
                write_result(run, factor * (1 + 0.01 * noise.standard_normal()), noise)
    for arm in ("eight", "two"):
        for rate in (0.5, 1.0):
            trial = frozen(arm, 101, f"budget.lr_factor={rate}")
            write_result(trial, quality[arm] * (1.1 if (rate == 1.0) == (arm == "two") else 1.0), noise)
            for seed in (1, 2, 3):
                tuned = frozen(arm, seed, f"budget.lr_factor={rate}")
                write_result(tuned, quality[arm] * (0.95 + 0.01 * noise.standard_normal()), noise)
    return tmp_path / "runs"


def frozen(arm: str, seed: int, *overrides: str) -> RunDir:
    return freeze(compose([f"experiment=mine/{arm}", f"seed={seed}", "budget=smoke", *overrides]))


def write_result(run: RunDir, factor: float, noise: np.random.Generator, *, diverged: bool = False) -> None:
    """Write what a run leaves: its curve, its translations of forty sentences, and its result."""
    from sacrebleu import corpus_bleu

    references = [" ".join(np.random.default_rng(line).permutation(WORDS)[:9]) for line in range(40)]
    kept = min(0.97, 0.85 / factor) if factor == factor else 0.1
    hypotheses = [
        " ".join(word if noise.random() < kept else "x" for word in reference.split()) for reference in references
    ]
    texts = ((run.sources_file, references), (run.references_file, references), (run.hypotheses_file, hypotheses))
    for file, lines in texts:
        file.write_text("".join(f"{line}\n" for line in lines))
    run.metrics_file.write_text("step,train_loss,val_loss\n5,3.0,\n10,2.0,2.5\n")
    test = {
        "perplexity": 5.0 * factor,
        "bleu": corpus_bleu(hypotheses, [references]).score,
        "signature": "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0",
        "sentences": 40,
        "tokens": 400,
    }
    result = {
        "study": "mine",
        "arm": run.path.parent.name,
        "seed": run.config()["seed"],
        "parameters": 475_904,
        "steps": 10,
        "tokens": 5000,
        "flops": 1e9,
        "seconds": 2.0,
        "store": "s0",
        "valid": {"perplexity": 4.8 * factor},
        "test": test,
        "finished": True,
    }
    if diverged:
        result |= {"diverged": "the loss is nan at step 7", "test": {}, "valid": {}}
    run.result_file.write_text(json.dumps(result))


def test_the_numbers_of_a_study_with_a_run_of_every_state_are_as_recorded(runs_dir: Path) -> None:
    made = report("mine", runs_dir, {})
    found = numbers(made.compared) | {
        "tuned": numbers(made.compared.tuned) if made.compared.tuned else None,
        "kinds of notes": kinds([*made.rows.sentences, *made.rows.left_out]),
    }
    assert_as_recorded("report-mine", found, relative=1e-9)
