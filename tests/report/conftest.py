import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console, RenderableType
from sacrebleu import corpus_bleu

from etude.store.results_version import RESULTS_VERSION
from etude.store.run_dir import RunDir

STUDY = """
title: "Heads and positions"
baseline: base
arms:
  base: []
  A1: [model.heads=1]
  A2: [model.heads=4]
  E1: [model/position=learned]
  long: [budget.max_steps=300]
columns: {h: model.heads, positions: choices.model/position, steps: budget.max_steps}
"""
PAPER = """
source: "Someone 2017, Table 9"
test_set: "the development set"
arms:
  base: {ppl: 4.92, bleu: 25.8, params_M: 65}
  A1: {ppl: 5.29, bleu: 24.9, params_M: null}
"""
ARMS: dict[str, dict[str, Any]] = {
    "base": {},
    "A1": {"heads": 1},
    "A2": {"heads": 4},
    "E1": {"position": "learned"},
    "long": {"max_steps": 300},
}


@pytest.fixture
def runs_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty `runs`, where the study `heads` is known."""
    study = tmp_path / "experiments" / "heads"
    study.mkdir(parents=True)
    (study / "study.yaml").write_text(STUDY)
    (study / "paper.yaml").write_text(PAPER)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def printed(made: RenderableType, width: int) -> str:
    """What stands in a terminal that wide, or beyond its edge."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(made, crop=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def declared(runs_dir: Path, **more: object) -> None:
    """Adds keys to the study `heads`."""
    file = runs_dir.parent / "experiments" / "heads" / "study.yaml"
    file.write_text(file.read_text() + yaml.safe_dump(more, sort_keys=False))


@pytest.fixture
def make_run(runs_dir: Path) -> Callable[..., RunDir]:
    """Fabricates a run of the study `heads`; later ones are newer."""
    clock = 1_700_000_000

    def make(
        arm: str,
        seed: int = 1,
        *,
        ppl: float = 3.0,
        bleu: float | None = None,
        scale: str = "pocket",
        typed: tuple[str, ...] = (),
        finished: bool = True,
        store: str = "s0",
        rate: float = 1.0,
        logger: str = "wandb",
        version: int | None = RESULTS_VERSION,
        own_files: dict[str, str] | None = None,
        paper_bleu: float | None = None,
        changed: dict[str, Any] | None = None,
        signature: str = "nrefs:1|tok:13a",
        translations: list[str] | None = None,
        references: list[str] | None = None,
        text: str | None = None,
        **more: float,
    ) -> RunDir:
        """Without `bleu`, the translations are scored; `changed` goes into the config, `more` into the result."""
        nonlocal clock
        clock += 60
        change = ARMS[arm]
        steps = change.get("max_steps", 100)
        run = RunDir(runs_dir / "heads" / arm / f"seed{seed}-{clock:010}")
        run.path.mkdir(parents=True)
        position = change.get("position", "sinusoidal")
        config = {
            "arm": arm,
            "model": {"heads": change.get("heads", 8), "position": {"_target_": f"etude.model.position.{position}"}},
            "budget": {"steps": 0.1, "max_steps": steps, "target_tokens": 2000},
            "schedule": {"factor": rate},
            "seed": seed,
            "choices": {
                "data": "grammar",
                "scale": scale,
                "budget": scale,
                "model": "base",
                "model/position": position,
                "logger": logger,
                "experiment": f"heads/{arm}",
            },
        }
        config |= changed or {}
        run.config_file.write_text(yaml.safe_dump(config, sort_keys=False))
        overrides = [f"experiment=heads/{arm}", f"seed={seed}", f"scale={scale}", f"logger={logger}", *typed]
        run.overrides_file.write_text("".join(f"{override}\n" for override in overrides))
        if text:
            run.text_file.write_text(f"{text}\n")
        os.utime(run.config_file, (clock, clock))
        if finished:
            if bleu is None:
                bleu = corpus_bleu(translations, [references]).score if translations and references else 40.0
            sentences = len(translations) if translations else 1000
            test = {"perplexity": ppl, "bleu": bleu, "sentences": sentences, "tokens": 12345, "signature": signature}
            test |= {} if paper_bleu is None else {"paper_bleu": paper_bleu}
            result = {"parameters": 526_123, "steps": steps, "test": test, "store": store, **more, "finished": True}
            for file, lines in (
                (run.hypotheses_file, translations),
                (run.references_file, references),
                (run.sources_file, references),
            ):
                if lines:
                    file.write_text("".join(f"{line}\n" for line in lines))
            if version is not None:
                result |= {"results_version": version, "own_files": own_files or {}}
            run.result_file.write_text(json.dumps(result))
            os.utime(run.result_file, (clock, clock))
        return run

    return make
