"""How a search went: its best score so far, and the learning curves of its trials with where each stopped."""

from collections.abc import Iterator
from math import isfinite
from typing import Any

from etude.report.figures.figure import ACCENT, COLOUR, Figure, axis, format_known
from etude.report.searched import Searched, Tried
from etude.store.metrics_file import read_metrics
from etude.store.run_state import State

_ALONG = {"trials": "trials begun", "steps": "steps trained, all trials together", "hours": "hours of training"}
_POINTS = 20_000  # of all learning curves together, at most
_LOOKS = {  # colour, symbol of the end, and width of the line
    State.PRUNED: ("#8b8982", "x", 1.0),
    State.PAUSED: ("#a87a00", "square-open", 1.0),
    State.DIVERGED: ("#c04a56", "triangle-up", 1.0),
    State.RUNNING: ("#15926f", "diamond-open", 1.0),
    State.FINISHED: (COLOUR, "circle", 1.5),
}
_NAMES = {State.RUNNING: "unfinished"}
_TIMES = (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def progress(found: Searched) -> dict[str, Figure]:
    """Draw the best score so far against the trials, the steps and the time of training, those that are known."""
    walked = [*_walk(found)]
    if not walked:
        return {}
    drawn = {}
    for place, (along, title) in enumerate(_ALONG.items()):
        known = [(trial, at[place]) for trial, at in walked]
        if any(x is None for _, x in known):
            continue
        x = [float(x or 0) for _, x in known]
        if along == "hours":
            unit, seconds = next(((u, s) for u, s in _TIMES if max(x) >= s), _TIMES[-1])
            x, title = [one / seconds for one in x], title.replace("hours", unit)
        drawn[along] = _progress(found, [trial for trial, _ in known], x, title)
    return drawn


def _progress(found: Searched, trials: list[Tried], x: list[float], title: str) -> Figure:
    metric, y = found.metrics[0], [trial.recorded.values[0] for trial in trials]
    best: list[float] = []
    for value in y:
        best.append(min([value, *best[-1:]], key=lambda one: found.sign * one))
    shape = f"trial %{{customdata}}: %{{y:.{metric.digits}f}}<extra></extra>"
    marker = {"symbol": "circle-open", "size": 6, "color": COLOUR}
    numbers = [trial.number for trial in trials]
    return Figure(
        [
            {"x": x, "y": y, "mode": "markers", "marker": marker, "customdata": numbers, "hovertemplate": shape}
            | {"name": "finished trial"},
            {"x": x, "y": best, "mode": "lines", "line": {"shape": "hv", "color": ACCENT, "width": 2}}
            | {"name": "best so far", "hoverinfo": "skip"},
        ],
        {"height": 380, "showlegend": True, "legend": {"orientation": "h", "y": 1.12}}
        | {"xaxis": axis(title, rangemode="tozero"), "yaxis": axis(found.name)},
        f"Best {found.name} so far against {title}",
        "Each mark is a trial at its end, the line the best until then. Trials that were paused or pruned have no "
        "mark, and count for what they cost.",
        ["trial", title, found.name, "best so far"],
        [
            [
                str(number),
                format_known(at, 0 if at >= 100 else 2),
                *(format_known(v, metric.digits) for v in (one, top)),
            ]
            for number, at, one, top in zip(numbers, x, y, best, strict=True)
        ],
    )


def _walk(found: Searched) -> Iterator[tuple[Tried, tuple[int, int, float | None]]]:
    """Yield each trial that finishes, with the trials begun, the steps and the seconds spent until then."""
    own = {trial.number: trial for trial in found.own}
    clocks = {number: _clock(trial) for number, trial in own.items()}
    at: dict[int, tuple[int, float | None]] = {}
    begun = 0
    for number, step in found.recorded.events:
        begun = max(begun, number + 1)
        if number not in own:
            continue
        at[number] = _spent(own[number], step, clocks[number])
        if step is None and own[number].is_judged:
            seconds = [spent for _, spent in at.values()]
            known = None if None in seconds else sum(spent for spent in seconds if spent is not None)
            yield own[number], (begun, sum(steps for steps, _ in at.values()), known)


def _spent(trial: Tried, step: int | None, clock: dict[int, float]) -> tuple[int, float | None]:
    """Return the steps and the seconds that a trial had taken at a step of its curve, or with None at its end."""
    if len(trial.runs) > 1:
        ended = len(trial.runs) if step is None else step + 1
        seconds = [float(result["seconds"]) for result in trial.results[:ended] if "seconds" in result]
        known = sum(seconds) if len(seconds) == ended else None
        return (trial.steps or 0) // len(trial.runs) * ended, known
    if step is not None:
        return step, clock.get(step)
    ended_at = next((r["seconds"] for r in trial.results if "seconds" in r), None)
    return trial.step, max(clock.values(), default=None) if ended_at is None else float(ended_at)


def _clock(trial: Tried) -> dict[int, float]:
    """Return step -> the seconds of training until then, of a trial of one run."""
    if len(trial.runs) != 1:
        return {}
    rows = read_metrics(trial.runs[0].metrics_file)
    return {int(row["step"]): float(row["seconds"]) for row in rows if row.get("seconds")}


def learning_curves(found: Searched) -> Figure | None:
    """Draw the score of each trial at each validation, and where each stopped; None if there is no validation."""
    trials = [] if found.seeds else [trial for trial in found.own if trial.recorded.curve]
    if not trials:
        return None
    metric, traces = found.metrics[0], []
    most = max(2, _POINTS // len(trials))
    everything = [value for trial in trials for value in trial.recorded.curve.values() if isfinite(value)]
    for state, (colour, symbol, width) in _LOOKS.items():
        lines = [(trial, _points(trial, most)) for trial in trials if trial.state is state]
        if not lines:
            continue
        name = _NAMES.get(state, str(state))
        gaps: dict[str, list[Any]] = {"x": [], "y": []}
        for _, points in lines:
            gaps["x"] += [*(step for step, _ in points), None]
            gaps["y"] += [*(value for _, value in points), None]
        line = {"mode": "lines", "line": {"color": colour, "width": width}, "opacity": 0.55, "hoverinfo": "skip"}
        ends = [(trial, *points[-1]) for trial, points in lines if points]
        marks = {"mode": "markers", "marker": {"symbol": symbol, "size": 7, "color": colour}, "name": name}
        traces += [
            gaps | line | {"showlegend": False},
            marks
            | {"x": [step for _, step, _ in ends], "y": [value for *_, value in ends]}
            | {"customdata": [[trial.number, " ".join(trial.recorded.overrides)] for trial, *_ in ends]}
            | {"hovertemplate": f"trial %{{customdata[0]}}: %{{y:.{metric.digits}f}} at %{{x}}<br>%{{customdata[1]}}"}
            | {"meta": name},
        ]
    return Figure(
        traces,
        {"height": 460, "showlegend": True, "legend": {"orientation": "h", "y": 1.1}}
        | {"xaxis": axis("step", rangemode="tozero"), "yaxis": axis(found.name, everything)},
        f"{found.name} of {len(trials)} trials at each validation, and where each stopped",
        "A mark is where a trial stopped, or how far it has come. Scores at different steps are not to be compared.",
        ["trial", "state", "step", found.name],
        [
            [str(t.number), _NAMES.get(t.state, str(t.state)), f"{t.step:,}", format_known(t.score, metric.digits)]
            for t in found.ranked
            if t in trials
        ],
    )


def _points(trial: Tried, most: int) -> list[tuple[int, float]]:
    """Return at most so many points of a curve, its finite ones, with the first and the last; the end included."""
    curve = dict(sorted(trial.recorded.curve.items()))
    if trial.is_judged and trial.steps:
        curve[trial.steps] = trial.recorded.values[0]
    points = [(step, value) for step, value in curve.items() if isfinite(value)]
    apart = max(1, -(-len(points) // most))
    return [*points[:-1:apart], *points[-1:]]
