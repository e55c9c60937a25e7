"""`etude plan`: estimate the cost of runs. All configs are composed and checked before anything is computed."""

import json
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etude.cli.arguments import parse
from etude.config.compose_cache import ConfigCache, ValidConfig, expand, naming
from etude.config.difference import ABSENT, Difference, difference
from etude.config.resolve import check_resolved
from etude.config.sweep_params import with_written_params
from etude.errors import UserError
from etude.report.wording import format_count
from etude.search.sweep_file import Saving, planned_runs, saving_of
from etude.store.metrics_file import to_number
from etude.study.arms import override_key, split_override
from etude.study.study import Paper, Study, arm_in, load_if_known, value_at, with_baseline
from etude.terminal import console, fit_table, needed_width

if TYPE_CHECKING:
    from etude.inspect.plan.runs import RunPlan

HELP = """usage: etude plan [FILE|STUDY] [key=value ...] [device=NAME] [--measure]
                  [detect=SIZE] [--tolerance SHARE] [--json]

Estimates runs before you launch them: parameters, operations, memory, hours,
what differs from the baseline, and what is finished already. Nothing is trained
or written.

  etude plan experiment=table3/A1 scale=full     one run
  etude plan table3 scale=full device=a100       every arm of a study
  etude plan sweeps/table3.yaml seed=1,2,3       what a sweep file would run

  device=NAME        a name in conf/devices.yaml; by default cpu, one core
  detect=SIZE        of a study: how many seeds find a difference of that size in
                     its first metric (of perplexity in nats) four times in five,
                     by the spread of finished runs, and their hours
  --measure          time a few seconds of training on this machine instead
  --tolerance SHARE  by how much an arm's budget may differ from the baseline's
                     before the plan names it; by default 0.1
  --json             print JSON
"""

Run = tuple[str, ...]  # overrides


def main(words: Sequence[str]) -> None:
    """Plan a study, a sweep file, or the runs of some overrides."""
    args = parse("plan", HELP, words)
    if ("precision", "auto") in map(split_override, args.words) and "device" in args.options:
        raise UserError(f"precision=auto is what this machine has: name the precision on {args.options['device']}")
    if "--measure" in args.options and "device" in args.options:
        raise UserError(f"--measure times this machine: leave it out, or device={args.options['device']}")
    tolerance = _share(args.options.get("--tolerance", "0.1"))
    detect = args.options.get("detect")
    study, sought = (None, 0.0) if detect is None else _study_to_detect(args.words, detect)
    named = bool(args.words) and "=" not in args.words[0]
    overrides = planned_runs(args.words[0], args.words[1:]) if named else expand(with_written_params(args.words))
    runs = [*dict.fromkeys(map(tuple, overrides))]  # a sweep trains what it draws twice once
    saving = saving_of(args.words[0], args.words[1:], runs) if named else None
    bases = [_baseline_of(run) for run in runs]
    valid = _compose_beside_torch(runs, bases)
    for run, one in valid.items():
        with naming(run, runs):
            check_resolved(one.config, one.typed)
    configs = {run: one.config for run, one in valid.items()}

    from etude.inspect.plan.budgets import find_gaps, find_idle, find_same  # these import torch
    from etude.inspect.plan.device import load_device, measure_device
    from etude.inspect.plan.runs import plan_runs
    from etude.inspect.plan.table import OMISSIBLE, as_json, plan_notes, render_plan, render_proportions

    where = (
        measure_device(configs[bases[0] or runs[0]])
        if "--measure" in args.options
        else load_device(args.options.get("device", "cpu"))
    )
    plans = dict(zip(configs, plan_runs(configs.values(), where), strict=True))
    ours = [plans[run] for run in runs]
    varied = _varied(runs)
    differs = [
        _differences(
            difference(configs[base], configs[run], (valid[base].written, valid[run].written)),
            _override_keys(run),
            configs[run],
        )
        | {key: _chosen(configs[run], key) for key in varied if any(override_key(word) == key for word in run)}
        for base, run in zip(bases, runs, strict=True)
    ]
    paper = [_paper_of(one.config["study"]).arms.get(one.config["arm"], {}).get("params_M") for one in ours]
    arms_of = {base: [plans[r] for r, b in zip(runs, bases, strict=True) if b == base] for base in dict.fromkeys(bases)}
    comparisons = [(plans[base], arms) for base, arms in arms_of.items()]
    unequal, same = find_gaps(comparisons, tolerance), find_same(comparisons)
    idle = find_idle(ours)
    detected = _detect(study, sought, ours) if study else ("", {})
    if "--json" in args.options:
        content = as_json(ours, differs, paper, unequal, same, idle, where)
        if saving:
            content["to_do"]["hours_at_most"] = _hours(ours, saving)
        if saving and saving.share is not None:
            content["to_do"]["hours_with_promotion"] = _hours(ours, saving, saving.share)
        content |= {"detect": detected[1]} if study else {}
        sys.stdout.write(json.dumps(content, indent=2, default=str) + "\n")
        return
    out = console()
    table, left_out = fit_table(out, partial(render_plan, ours, differs, paper, where), [*OMISSIBLE])
    out.width = max(out.width, needed_width(out, table))  # a line that is wrapped can be read, a number cut off cannot
    out.print(table)
    alike: dict[Run, list[Run]] = {}  # the runs of one baseline, whatever their seeds and the values tried
    for run, base in zip(runs, bases, strict=True):
        alike.setdefault(tuple(word for word in base if override_key(word) not in {"seed", *varied}), []).append(run)
    of_baseline = [[run for run in some if run in bases] or some for some in alike.values()]
    shown = [[plans[run] for run in some] for some in of_baseline]
    printed = {key: value for one in ours for key, value in _paper_of(one.config["study"]).proportions.items()}
    out.print(render_proportions([(_name(some), [one.proportions for one in some]) for some in shown], printed))
    lines = plan_notes(ours, unequal, same, idle, tolerance, where)
    counted = {(one.config["choices"]["model/conventions"], one.config["choices"]["scale"]) for one in ours}
    if any(paper) and counted != {("t2t_2017", "full")}:
        lines.insert(0, "The paper's column is counted as model/conventions=t2t_2017 scale=full counts.")
    if saving:
        lines.insert(0, _on_saving(ours, saving))
    if left_out:
        lines.append(f"Left out, because this terminal is too narrow: {', '.join(OMISSIBLE[key] for key in left_out)}.")
    for line in [*([detected[0]] if study else []), *lines]:
        out.print(line)


def _study_to_detect(words: Sequence[str], detect: str) -> tuple[Study, float]:
    """Return the study in which a difference is to be found, and the difference.

    Raises:
        UserError: none is named, or the difference is not a number above 0.
    """
    from etude.report.power import read_difference

    difference = read_difference(detect)
    study = load_if_known(words[0]) if words else None
    if study is None:
        raise UserError("detect= is for the arms of a study: name one, as in `etude plan table3 detect=0.02`")
    return study, difference


def _detect(study: Study, difference: float, plans: Sequence["RunPlan"]) -> tuple[str, dict[str, Any]]:
    """Return how many seeds find a difference and what they cost, as a sentence and as JSON."""
    from etude.inspect.plan.table import format_hours
    from etude.report.power import find_noise, on_detection, seeds_for
    from etude.store.identity import canonical, identify_training

    configs = [plan.config for plan in plans]
    base = next((config for config in configs if config["arm"] == study.baseline), configs[0])
    where = {key: base["choices"][key] for key in ("data", "scale", "budget")}
    noise = find_noise(study, Path(base["runs_dir"]), where)
    seeds = seeds_for(study, noise, difference) if noise else None
    of_arm = {plan.config["arm"]: plan for plan in sorted(plans, key=lambda plan: plan.hours)}
    trained = {
        identify_training(plan.config | {"seed": 0}, canonical(plan.config["data"])): plan.training_hours
        for plan in of_arm.values()
    }
    decoding = sum(plan.hours - plan.training_hours * (plan.state != "shared") for plan in of_arm.values())
    hours = (seeds or 0) * (decoding + sum(trained.values()))
    known = {"deviation": noise.of_run, "runs": noise.runs, "study": noise.study} if noise else {}
    found = {"difference": difference, "seeds": seeds, "hours": hours if seeds else None} | known
    return on_detection(study, noise, difference, format_hours(hours), seeds), found


def _hours(plans: Sequence["RunPlan"], saving: Saving, share: float = 1.0) -> float:
    """Return the hours of the runs to do if of the trials among them this share is trained, of an arm one at a time."""
    hours, trials = 0.0, dict[str, list[float]]()
    for plan in plans:
        if not plan.done and saving.pilots and plan.config["seed"] not in saving.pilots:
            hours += plan.hours
        elif not plan.done:
            trials.setdefault(plan.config["arm"], []).append(plan.hours)
    most = inf if saving.hours is None else saving.hours
    seeds = len(saving.pilots) or 1  # of a trial, which the last one begun completes
    return hours + sum(min(sum(one) * share, most + seeds * max(one)) for one in trials.values())


def _on_saving(plans: Sequence["RunPlan"], saving: Saving) -> str:
    """Say that the cost is the most that there may be, and about how much it will be."""
    from etude.inspect.plan.table import format_hours

    begun = f"; one by one, no trial of an arm begins after {format_hours(saving.hours)} hours" if saving.hours else ""
    most = format_hours(_hours(plans, saving))
    if saving.share is None:
        return f"At most {most} hours: trials that are stopped early and arms that are decided early cost less{begun}."
    about = format_hours(_hours(plans, saving, saving.share))
    return (
        f"At most {most} hours, if every trial came to its end; about {about} with promotion, which is expected to "
        f"train {saving.share:.0%} of the steps of the trials{begun}."
    )


def _share(text: str) -> float:
    if not 0 <= (share := to_number(text)) < inf:
        raise UserError(f"--tolerance must be a share of the baseline's budget, such as --tolerance 0.1, not {text!r}")
    return share


def _compose_beside_torch(runs: Sequence[Run], bases: Sequence[Run]) -> dict[Run, ValidConfig]:
    """Call `_compose` in a second process while this one imports PyTorch, which takes about as long."""
    if "torch" in sys.modules:
        return _compose(runs, bases)
    with ProcessPoolExecutor(1, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as other:
        composed = other.submit(_compose, runs, bases)
        import torch  # noqa: F401

        return composed.result()


def _compose(runs: Sequence[Run], bases: Sequence[Run]) -> dict[Run, ValidConfig]:
    """Compose the config of each run, then of the baselines; to check them needs torch."""
    configs = ConfigCache()
    composed = dict(zip(runs, configs.resolve_all(runs, check=False), strict=True))
    others = [base for base in dict.fromkeys(bases) if base not in composed]
    return composed | {base: configs.resolve(base, check=False) for base in others}


def _baseline_of(run: Run) -> Run:
    """Return the run's overrides with the arm replaced by the study's baseline; without a study, no overrides."""
    return tuple(with_baseline(run)) if arm_in(run)[0] else ()


def _override_keys(run: Run) -> set[str]:
    """Return the keys of the overrides of a run and of its arm."""
    study, arm = arm_in(run)
    of_arm = study.arms[arm] if study else []
    return {override_key(override) for override in [*run, *of_arm]}


def _varied(runs: Sequence[Run]) -> list[str]:
    """Return the keys of which the runs have several values: what a sweep lists, and what a study tries."""
    values: dict[str, set[str | None]] = {}
    for run in runs:
        for key, value in map(split_override, run):
            values.setdefault(key, set()).add(value)
    return [key for key, several in values.items() if len(several) > 1 and key not in ("experiment", "seed")]


def _chosen(config: dict[str, Any], key: str) -> Any:
    """Return the option of a config group, or the value of a key."""
    return config["choices"].get(key) or value_at(config, key)


def _name(plans: Sequence["RunPlan"]) -> str:
    """Return the name that the plans share, or else their number."""
    return plans[0].name if len({one.name for one in plans}) == 1 else format_count(len(plans))


def _differences(found: Difference, overridden: set[str], config: dict[str, Any]) -> dict[str, Any]:
    """Return the choices and values that differ from the baseline: key -> value.

    Of the values inside a group with another choice (`model=big` sets `model.d_model`) only the `overridden` ones are
    given, those that are the baseline's again among them: they differ from what the choice stands for. So are the axes
    of a part that only one of the two has.
    """
    inside = tuple(f"{group.replace('/', '.')}." for group in found.choices)
    values = {key: after for key, (_, after) in found.values.items() if not key.startswith(inside)}
    both = [group for group, pair in found.choices.items() if ABSENT not in pair]
    said = {key: value_at(config, key) for key in sorted(overridden) if key.startswith(inside)}
    axes = {group: after for group, (_, after) in found.choices.items() if group in both or group in overridden}
    return axes | values | said


def _paper_of(study: str) -> Paper:
    """Load the numbers printed in the paper that a study reproduces; empty if it reproduces none."""
    return known.paper if (known := load_if_known(study)) else Paper()
