"""Render a plan for the terminal, and convert it to JSON."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from etude.inspect.plan.budgets import BASELINE, Gap
from etude.inspect.plan.device import Device
from etude.inspect.plan.runs import PROPORTIONS, Proportions, RunPlan
from etude.model.precision import NO_UNITS
from etude.terminal import shorten_override

_SHORTEST_DIFFERENCE = 14  # columns for what differs: heads=16, a name such as max_steps=12000 is folded
_UNITS = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def render_plan(
    plans: Sequence[RunPlan],
    differences: Sequence[dict[str, Any]],
    paper: Sequence[float | None],
    device: Device,
    omitted: Sequence[str] = (),
) -> Table:
    """Render a table with a row for each run; the footer sums the runs that are still to do.

    `omitted` are keys of `OMISSIBLE`, whose columns are left out.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=len(plans) > 1, title=f"On {device.name}")
    to_do = [plan for plan in plans if not plan.done]

    def add_numbers(header: str, cells: Iterable[str], footer: str = "") -> None:
        table.add_column(header, footer=footer, justify="right", no_wrap=True)
        columns.append([*cells])

    columns = [[_name(plan, plans) for plan in plans]]
    table.add_column("run", footer=f"{len(to_do)} to do", no_wrap=True)
    add_numbers("params\nM", (f"{plan.parameters / 1e6:.2f}" for plan in plans))
    if any(number is not None for number in paper):
        add_numbers("paper\nM", ("" if number is None else f"{number:g}" for number in paper))
    for header, key, show, summed in _FIGURES:
        if key in omitted:
            continue
        total = show(_sum(to_do, key)) if summed else ""
        add_numbers(header, (show(getattr(plan, key)) for plan in plans), total)
    table.add_column("state", no_wrap=True)
    table.add_column("what differs", overflow="fold", min_width=_SHORTEST_DIFFERENCE)
    for row, plan, difference in zip(zip(*columns, strict=True), plans, differences, strict=True):
        differs = ", ".join(shorten_override(f"{key}={value}") for key, value in difference.items())
        table.add_row(*row, plan.state, Text(differs))
    return table


def _sum(plans: Sequence[RunPlan], key: str) -> float | None:
    """Sum a number over the plans; a training that several runs share counts once. None if it is known of none."""
    if plans and all(getattr(plan, key) is None for plan in plans):
        return None
    once = key in ("training_flops", "target_tokens")
    return sum(getattr(plan, key) or 0 for plan in plans if not (once and plan.state == "shared"))


def render_proportions(runs: Sequence[tuple[str, Sequence[Proportions]]], paper: Mapping[str, float]) -> Table:
    """Render a table of the dimensionless ratios of named groups of runs, beside the paper's, if it gives any.

    Where the runs of a group differ, their range is shown.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Dimensionless numbers")
    table.add_column("")
    for name, _ in runs:
        table.add_column(name, justify="right")
    if paper:
        table.add_column("paper", justify="right", style="dim")
    for key, name in PROPORTIONS.items():
        cells = [_range(one[key] for one in found) for _, found in runs]
        table.add_row(name, *cells, *([_three_digits(paper.get(key))] if paper else []))
    return table


def _range(numbers: Iterable[float | None]) -> str:
    """Format numbers as their range: "0.32 to 1.2", "0.32" if they are alike, "?" if none is known."""
    known = sorted(number for number in numbers if number is not None)
    return " to ".join(dict.fromkeys(map(_three_digits, (known[0], known[-1])))) if known else _three_digits(None)


def _three_digits(number: float | None) -> str:
    return "?" if number is None else f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def plan_notes(
    plans: Sequence[RunPlan],
    unequal: Sequence[Gap],
    same: Mapping[str, Sequence[str]],
    idle: Mapping[str, Sequence[str]],
    tolerance: float,
    device: Device,
) -> list[str]:
    """List what the numbers are based on, what exceeds memory, and which arms differ from the baseline or equal it."""
    lines = [*_on_lengths(plans), _memory(plans, device)]
    if large := list(dict.fromkeys(plan.config["arm"] for plan in plans if plan.peak_memory_bytes > device.memory)):
        lines.append(
            f"More than the {device.memory / 1e9:.0f} GB of {device.name}: {', '.join(large)}. "
            "trainer.micro_batches=2, or more, takes each batch in parts, with the same result."
        )
    lines += [f"Arms that are the same run as {first}: {', '.join(others)}." for first, others in same.items()]
    if idle:
        choices = "; ".join(f"{arm} ({', '.join(some)})" for arm, some in idle.items())
        lines.append(f"Choices that change nothing, as the model has no such part: {choices}.")
    for baseline in dict.fromkeys(gap.baseline for gap in unequal):
        lines.append(
            f"Not the budget of {baseline}, by more than {tolerance:.0%} (in brackets, what would even it out):"
        )
        gaps_by_arm: dict[str, dict[str, list[Gap]]] = {}
        for gap in unequal:
            if gap.baseline == baseline:
                gaps_by_arm.setdefault(gap.run.config["arm"], {}).setdefault(gap.what, []).append(gap)
        lines += [f"  {arm}: {', '.join(map(_name_gaps, gaps.values()))}" for arm, gaps in gaps_by_arm.items()]
    return lines


def _name_gaps(gaps: Sequence[Gap]) -> str:
    """Say how far an arm is off in one budget: at one size, with the way out, or as a range over several sizes."""
    ratios = " to ".join(dict.fromkeys(f"{end(gap.ratio for gap in gaps):.2f}" for end in (min, max)))
    ways = {gap.override for gap in gaps}
    way = f" ({ways.pop()})" if len(ways) == 1 and None not in ways else ""
    return f"{ratios} × the {gaps[0].what}{way}"


def _memory(plans: Sequence[RunPlan], device: Device) -> str:
    """Describe what the memory column counts."""
    asked = dict.fromkeys(plan.config["precision"] for plan in plans)
    precisions = ", ".join(dict.fromkeys(map(device.computed, asked)))
    if not device.is_gpu:
        why = "".join(f" ({one}: {NO_UNITS})" for one in asked if device.computed(one) != one)
        return f"GB: at the peak of training on a processor with Adam, {precisions}{why}."
    return f"GB: of each {device.name}'s own, at the peak of training with Adam, {precisions}; CUDA's own not counted."


def _on_lengths(plans: Sequence[RunPlan]) -> list[str]:
    """Say how long the sentences are, by arm if that differs, and how it is known."""
    arms: dict[str, list[str]] = {}
    for plan in plans:
        arms.setdefault(_lengths(plan), []).append(plan.config["arm"])
    return [
        sentence if len(arms) == 1 else f"{', '.join(dict.fromkeys(its))}: {sentence[0].lower()}{sentence[1:]}"
        for sentence, its in arms.items()
    ]


def _lengths(plan: RunPlan) -> str:
    data, text = plan.config["choices"]["data"], plan.text
    if text.prepared:
        return f"Sentences of {data} have {text.source:.1f} tokens of source and {text.target:.1f} of target: counted."
    why = text.missing or "it has not been prepared (etude prepare, with the arm's overrides, does)"
    return f"Sentences of {data} are taken to be {max(text.source, text.target):.0f} tokens long: {why}."


def as_json(
    plans: Sequence[RunPlan],
    differences: Sequence[dict[str, Any]],
    paper: Sequence[float | None],
    unequal: Sequence[Gap],
    same: Mapping[str, Sequence[str]],
    idle: Mapping[str, Sequence[str]],
    device: Device,
) -> dict[str, Any]:
    """Convert a plan to JSON: plain numbers, with units only in the names."""
    to_do = [plan for plan in plans if not plan.done]
    return {
        "device": {
            "name": device.name,
            "flops_per_second": device.flops(plans[0].config["precision"]),
            "us_dollars_per_hour": device.price,
        },
        "runs": [_run(*row) for row in zip(plans, differences, paper, strict=True)],
        "unequal": [
            {"run": gap.run.name, "what": gap.what, "ratio": gap.ratio, "override": gap.override} for gap in unequal
        ],
        "unchanged": same.get(BASELINE, []),
        "same": {first: others for first, others in same.items() if first != BASELINE},
        "idle": idle,
        "to_do": {
            "runs": len(to_do),
            **{key: _sum(to_do, key) for key in ("training_flops", "hours", "us_dollars")},
        },
    }


def _run(plan: RunPlan, difference: dict[str, Any], printed: float | None) -> dict[str, Any]:
    names = [field.name for field in fields(plan) if field.name not in ("config", "text", "training", "training_hours")]
    figures = {name: getattr(plan, name) for name in names}
    return {
        **{key: plan.config[key] for key in ("study", "arm", "seed")},
        "differs": difference,
        "paper_parameters_millions": printed,
        "steps": plan.config["budget"]["max_steps"],
        **figures,
        "without_units": plan.proportions,
        "lengths_counted": plan.text.prepared,
    }


def format_magnitude(number: float | None) -> str:
    """Format a number with three digits and a unit: 1.23G."""
    if not number:
        return "?" if number is None else "0"
    factor, unit = next((pair for pair in _UNITS if number >= 0.9995 * pair[0]), _UNITS[-1])  # 999.9k rounds to 1M
    return f"{number / factor:.3g}{unit}"


def format_hours(number: float) -> str:
    """Format a number of hours as hours and minutes: 0:02, 12:30."""
    minutes = round(number * 60)
    return f"{minutes // 60}:{minutes % 60:02d}"


def format_price(number: float) -> str:
    """Format a price: whole dollars from 100 on, else with cents; a dash for 0."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.2f}" if number else "–"


def _name(plan: RunPlan, plans: Sequence[RunPlan]) -> str:
    several = len({other.config["seed"] for other in plans}) > 1
    studies = len({other.config["study"] for other in plans}) > 1
    name = plan.name if studies or len(plans) == 1 else plan.config["arm"]
    return f"{name} seed {plan.config['seed']}" if several else name


_FIGURES: tuple[tuple[str, str, Callable[[Any], str], bool], ...] = (
    ("FLOP\na step", "flops_per_step", format_magnitude, False),
    ("FLOP to\ntrain", "training_flops", format_magnitude, True),
    ("decode", "decoding_flops", format_magnitude, True),
    ("GB", "peak_memory_bytes", lambda number: f"{number / 1e9:.1f}", False),
    ("tokens", "target_tokens", format_magnitude, True),
    ("hours", "hours", format_hours, True),
    ("US$", "us_dollars", format_price, True),
)
"""Columns: the header, the attribute of a plan, how it is formatted, and whether the footer sums the runs to do."""

OMISSIBLE = {
    "target_tokens": "tokens",
    "decoding_flops": "FLOP to decode",
    "flops_per_step": "FLOP a step",
    "training_flops": "FLOP to train",
}
"""Columns that a narrow terminal goes without, the first before the others, and what they count."""
