"""`etude plan`: compose, check, and only then compute."""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from etude.config.difference import Difference, difference
from etude.config.identity import sound
from etude.config.many import compose_many, expand
from etude.config.studies import load_study, study_names
from etude.errors import UserError, did_you_mean

HELP = """usage: etude plan [FILE|STUDY] [key=value ...] [device=NAME] [--measure] [--tolerance SHARE] [--json]

What runs will be, take and cost, before one is launched: parameters, operations, memory, hours, what differs from the
baseline, and what is finished already. Nothing is trained or written.

  etude plan experiment=table3/A1 scale=full     one run
  etude plan table3 scale=full device=a100       every arm of a study
  etude plan sweeps/table3.yaml seed=1,2,3       what a sweep file would run

  device=NAME        where the runs would go: a name in conf/devices.yaml; cpu, which is one core, if nothing is said
  --measure          time a few seconds of real training on this machine instead
  --tolerance SHARE  how far an arm's budget may be from the baseline's before it is named; 0.1 if nothing is said
  --json             for machines
"""
_PIPE_WIDTH = 120  # columns, where nobody says how wide the paper is


def plan(words: Sequence[str]) -> None:
    """What `etude plan` does with the words behind it.

    Raises:
        UserError: a config cannot run, or a word is not understood.
    """
    overrides, options = _options(words)
    runs = expand(overrides)
    bases = [_baseline_of(run) for run in runs]
    distinct = list(dict.fromkeys(map(tuple, [*runs, *bases])))
    composed = dict(zip(distinct, compose_many(distinct), strict=True))
    configs = {}
    for run, config in composed.items():
        try:
            configs[run] = sound(config)
        except UserError as error:
            raise UserError(f"{' '.join(run)}: {error}" if len(runs) > 1 else str(error)) from error

    from etude.plan.budgets import gaps  # these need torch
    from etude.plan.device import device, measured
    from etude.plan.runs import plan as make_plans
    from etude.plan.table import as_json, drawn, notes

    where = measured(configs[tuple(bases[0])]) if options["--measure"] else device(options["device"])
    plans = dict(zip(configs, make_plans(configs.values(), where), strict=True))
    ours = [plans[tuple(run)] for run in runs]
    written = {run: _written(config) for run, config in composed.items()}
    differs = [
        _told(difference(configs[base], configs[run], (written[base], written[run])))
        for base, run in zip(map(tuple, bases), map(tuple, runs), strict=True)
    ]
    paper = [_printed(one.config["study"], one.config["arm"]) for one in ours]
    if options["--json"]:
        found = [as_json(*row) for row in zip(ours, differs, paper, strict=True)]
        sys.stdout.write(json.dumps({"device": where.name, "runs": found}, indent=2) + "\n")
        return
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPE_WIDTH
    console.print(drawn(ours, differs, paper, where))
    tolerance = float(options["--tolerance"])
    for base in dict.fromkeys(map(tuple, bases)):
        of_study = [plans[tuple(run)] for run, its in zip(runs, bases, strict=True) if tuple(its) == base]
        for line in notes(of_study, gaps(of_study, plans[base], tolerance), plans[base].name, tolerance):
            console.print(line, markup=False)


def _options(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Overrides, and what is for the plan itself."""
    options = {"device": "cpu", "--measure": "", "--json": "", "--tolerance": "0.1"}
    overrides = []
    rest = iter(words)
    for word in rest:
        key, _, value = word.partition("=")
        if word in ("--measure", "--json"):
            options[word] = "yes"
        elif key == "--tolerance":
            options[key] = _share(value or next(rest, ""))
        elif key == "device":
            options[key] = value
        elif word.startswith("-"):
            raise UserError(f"plan: {word!r} is not understood; {did_you_mean(word, [*options, '--help'])}")
        else:
            overrides.append(word)
    return overrides, options


def _share(text: str) -> str:
    try:
        fits = float(text) >= 0
    except ValueError:
        fits = False
    if not fits:
        raise UserError(f"--tolerance {text}: it must be a share of the baseline's budget, such as 0.1")
    return text


def _baseline_of(run: Sequence[str]) -> list[str]:
    """The same overrides for the baseline of the run's study; without a study, the defaults."""
    study = next((o.partition("=")[2].partition("/")[0] for o in run if o.startswith("experiment=")), "")
    if study not in study_names():
        return []
    base = f"experiment={study}/{load_study(study).baseline}"
    return [base if override.startswith("experiment=") else override for override in run]


def _written(config: DictConfig) -> dict[str, Any]:
    """The config with its interpolations still standing."""
    plain = OmegaConf.to_container(OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"]))
    return plain  # type: ignore[return-value]


def _told(found: Difference) -> str:
    """`position=learned, heads=1`: what was chosen and written otherwise than in the baseline."""
    pairs = {**found.choices, **found.values}
    return ", ".join(
        f"{key.removeprefix('model/').removeprefix('model.')}={after}" for key, (_, after) in pairs.items()
    )


def _printed(study: str, arm: str) -> float | None:
    """The paper's parameters, in millions."""
    return load_study(study).paper.arms.get(arm, {}).get("params_M") if study in study_names() else None
