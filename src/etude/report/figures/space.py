"""What a search has learned of its space: which keys matter, and where the good values lie.

All trials are held against each other where all of them were: at their end, or at the last step that all have come to.
"""

import json
import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from math import isfinite, log10
from typing import TYPE_CHECKING, Any

import numpy as np

from etude.report.figures.figure import ACCENT, COLOUR, Figure, Layout, axis, error_bars, format_ends, format_known
from etude.report.searched import Searched, Tried
from etude.report.statistics import Interval
from etude.store.metrics_file import to_number
from etude.store.run_state import State
from etude.terminal import shorten_value

if TYPE_CHECKING:
    from optuna.importance import BaseImportanceEvaluator
    from optuna.trial import FrozenTrial

FEWEST = 8  # trials from which importance is computed
_RESAMPLES = {"PED-ANOVA": 100, "fANOVA": 10}
_TREES = 16  # of fANOVA's forest for each resample, which takes a second for the 64 of the estimate itself
_SHADES = 5  # of the lines of trials, from the worst to the best
_MESH = 40  # points of a contour in each direction


@dataclass(frozen=True)
class Space:
    """The trials of a search, held against each other at one step.

    Attributes:
        found: the search.
        scores: trial -> its first objective there; that of a trial which diverged is the worst of the others.
        step: where; None: at their end.
        diverged: the trials that have no score of their own.
    """

    found: Searched
    scores: dict[int, float]
    step: int | None
    diverged: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        """What the scores are."""
        return self.found.name + (f" at step {self.step:,}" if self.step is not None else "")

    @cached_property
    def trials(self) -> list[Tried]:
        """The trials that have a score there, the worst first."""
        there = [trial for trial in self.found.own if trial.number in self.scores]
        return sorted(there, key=lambda trial: self.found.sign * self.scores[trial.number], reverse=True)

    @cached_property
    def keys(self) -> list[str]:
        """The keys that every one of these trials has, and of which there are several values."""
        words = [trial.words for trial in self.trials]
        every = [key for key in self.found.keys if all(key in its for its in words)]
        return [key for key in every if len({its[key] for its in words}) > 1]

    def scale(self, key: str) -> "Scale":
        """Return how the values of a key are drawn on an axis."""
        words = [trial.words[key] for trial in self.trials]
        text = next((t.recorded.distributions[key] for t in self.trials if key in t.recorded.distributions), "{}")
        described = json.loads(text)
        numbers = {word: number if isfinite(number := to_number(word)) else None for word in words}
        if described.get("name") == "CategoricalDistribution" or None in numbers.values():
            order = sorted(numbers, key=lambda word: (numbers[word] is None, numbers[word] or 0, word))
            return Scale(key, {word: float(place) for place, word in enumerate(order)}, categories=order)
        is_log = bool(described.get("attributes", {}).get("log")) and min(filter(None, numbers.values()), default=0) > 0
        return Scale(key, {word: number for word, number in numbers.items() if number is not None}, is_log)


@dataclass(frozen=True)
class Scale:
    """An axis of the space.

    Attributes:
        key: what it shows.
        at: value, as it is typed -> its place on the axis.
        is_log: whether the axis is logarithmic.
        categories: the values in the order of their places, if they are no numbers.
    """

    key: str
    at: dict[str, float]
    is_log: bool = False
    categories: Sequence[str] = ()

    def share(self, word: str) -> float:
        """Return where a value lies between the least (0) and the largest (1)."""
        place, places = self._linear(self.at[word]), [*map(self._linear, self.at.values())]
        return (place - min(places)) / ((max(places) - min(places)) or 1)

    @property
    def ends(self) -> list[str]:
        """The least and the largest value, or all categories."""
        return [*self.categories] or [f(self.at, key=lambda word: self.at[word]) for f in (min, max)]

    def axis(self) -> Layout:
        """Return plotly's layout of it."""
        if self.categories:
            places = [*range(len(self.categories))]
            return axis(self.key, tickvals=places, ticktext=[*self.categories], range=[-0.5, len(places) - 0.5])
        return axis(self.key, self.at.values() if self.is_log else ()) | ({"type": "log"} if self.is_log else {})

    def _linear(self, place: float) -> float:
        return log10(place) if self.is_log else place


def space_of(found: Searched) -> Space | None:
    """Hold the trials of a search against each other at the last step that all have come to; None if there is none."""
    sign = found.sign
    ended = [t for t in found.own if t.state is not State.RUNNING]
    step: int | None = None
    if all(trial.state in (State.FINISHED, State.DIVERGED) for trial in ended):
        scores = {trial.number: trial.recorded.values[0] for trial in ended}
    else:
        curves = [{*trial.recorded.curve} for trial in ended if trial.state is not State.DIVERGED]
        step = max(set.intersection(*curves), default=None) if curves else None
        if step is None:
            scores = {trial.number: trial.recorded.values[0] for trial in found.judged}
        else:
            scores = {t.number: t.recorded.curve.get(step, sign * np.inf) for t in ended}
            scores |= {t.number: t.recorded.curve[step] for t in found.own if step in t.recorded.curve}
    known = [score for score in scores.values() if isfinite(score)]
    if len(known) < 2:
        return None
    worst = max(known, key=lambda score: sign * score)
    diverged = frozenset(n for n, score in scores.items() if not isfinite(score))
    return Space(found, scores | dict.fromkeys(diverged, worst), step, diverged)


def slices(space: Space, key: str) -> Figure:
    """Draw the score of each trial over its value of one key."""
    scale = space.scale(key)
    rest, best = space.trials[:-1], space.trials[-1:]

    def trace(some: Sequence[Tried], colour: str, size: int) -> dict[str, Any]:
        return {
            "x": [scale.at[trial.words[key]] for trial in some],
            "y": [space.scores[trial.number] for trial in some],
            "mode": "markers",
            "marker": {"color": colour, "size": size, "opacity": 0.75},
            "customdata": [[trial.number, trial.words[key], _score(space, trial)] for trial in some],
            "hovertemplate": "trial %{customdata[0]}: %{customdata[1]}, %{customdata[2]}<extra></extra>",
        }

    return Figure(
        [trace(rest, COLOUR, 7), trace(best, ACCENT, 11)],
        {"height": 380, "xaxis": scale.axis(), "yaxis": axis(space.name)},
        f"{space.name} of {len(space.trials)} trials over {key}",
        f"Each mark is a trial; the best is trial {best[0].number}.{_on_diverged(space)}",
        ["trial", key, space.name],
        _table(space, [key]),
    )


def parallel(space: Space) -> Figure | None:
    """Draw each trial as a line over all keys and its score; None if there are no two keys."""
    if len(space.keys) < 2:
        return None
    found, scales = space.found, [space.scale(key) for key in space.keys]
    digits = found.metrics[0].digits
    names = [*space.keys, space.name]
    low, high = min(space.scores.values()), max(space.scores.values())

    def heights(trial: Tried) -> list[float]:
        shares = [scale.share(trial.words[scale.key]) for scale in scales]
        return [*shares, (space.scores[trial.number] - low) / ((high - low) or 1)]

    traces, number = [], len(space.trials)
    for shade in range(_SHADES + 1):
        ends = (shade * (number - 1) // _SHADES, (shade + 1) * (number - 1) // _SHADES)
        some = space.trials[slice(*ends)] if shade < _SHADES else space.trials[-1:]
        line = {"color": COLOUR, "width": 1.0 + 0.15 * shade} if shade < _SHADES else {"color": ACCENT, "width": 3}
        x, y = [*range(len(names)), None], [[*heights(trial), None] for trial in some]
        told = [[trial.number] * len(x) for trial in some]
        traces.append(
            {"x": x * len(some), "y": [height for its in y for height in its], "mode": "lines", "line": line}
            | {"opacity": 0.15 + 0.15 * shade, "customdata": [number for its in told for number in its]}
            | {"hovertemplate": "trial %{customdata}<extra></extra>"}
        )
    scores = [format_known(end, digits) for end in (low, high)]
    labels = [*([shorten_value(end) for end in scale.ends] for scale in scales), scores]
    annotations = [
        {"x": place, "y": at / max(1, len(texts) - 1), "text": text, "showarrow": False, "xanchor": "left", "xshift": 3}
        | {"yanchor": "bottom" if at else "top", "font": {"size": 11}}
        for place, texts in enumerate(labels)
        for at, text in enumerate(texts)
    ]
    posts = [
        {"type": "line", "x0": n, "x1": n, "y0": 0, "y1": 1, "line": {"width": 1, "color": "#8b8982"}, "layer": "below"}
        for n in range(len(names))
    ]
    at: Layout = axis("", tickvals=[*range(len(names))], ticktext=names, showgrid=False)
    at |= {"range": [-0.2, len(names) - 0.5], "fixedrange": True}
    return Figure(
        traces,
        {"height": 420, "annotations": annotations, "shapes": posts, "xaxis": at}
        | {"yaxis": {"visible": False, "range": [-0.12, 1.12], "fixedrange": True}},
        f"Each of {number} trials as a line over {', '.join(names)}",
        f"The stronger a line, the better the trial; the best is trial {space.trials[-1].number}. The least values are "
        f"at the bottom.{_on_diverged(space)}",
        ["trial", *names],
        _table(space, space.keys),
        narrow={"xaxis": at | {"tickangle": -60}},
    )


def contour(space: Space, across: str, up: str) -> Figure | None:
    """Draw the score over two keys, interpolated between the trials; None if these are too few."""
    from scipy.interpolate import griddata
    from scipy.spatial import QhullError

    found, x, y = space.found, space.scale(across), space.scale(up)
    points = np.array([[x.share(t.words[across]), y.share(t.words[up])] for t in space.trials])
    scores = [space.scores[trial.number] for trial in space.trials]
    mesh = np.linspace(0, 1, _MESH)
    try:
        heights = griddata(points, np.array(scores), (mesh[None, :], mesh[:, None]), method="linear")
    except (QhullError, ValueError):
        return None
    digits = found.metrics[0].digits
    grid = [[None if np.isnan(height) else round(float(height), digits + 2) for height in row] for row in heights]
    marker = {"color": COLOUR, "size": 6, "line": {"width": 1, "color": "#ffffff"}}
    best = space.trials[-1]
    return Figure(
        [
            {"type": "contour", "x": _spread(x, mesh), "y": _spread(y, mesh), "z": grid, "coloraxis": "coloraxis"}
            | {"line": {"width": 0.5}, "contours": {"coloring": "heatmap"}, "hoverinfo": "skip"},
            {
                "x": [x.at[trial.words[across]] for trial in space.trials],
                "y": [y.at[trial.words[up]] for trial in space.trials],
                "mode": "markers",
                "marker": marker | {"color": [COLOUR] * (len(space.trials) - 1) + [ACCENT]},
                "customdata": [[t.number, _score(space, t)] for t in space.trials],
                "hovertemplate": "trial %{customdata[0]}: %{customdata[1]}<extra></extra>",
            },
        ],
        {"height": 460, "xaxis": x.axis() | {"showgrid": False}, "yaxis": y.axis() | {"showgrid": False}}
        | {"coloraxis": {"showscale": True, "reversescale": found.sign > 0, "colorbar": {"thickness": 12}}},
        f"{space.name} over {across} and {up}, interpolated between {len(space.trials)} trials",
        f"The more colour, the better. Marks are trials, the best is trial {best.number}; between them it is a guess."
        f"{_on_diverged(space)}",
        ["trial", across, up, space.name],
        _table(space, [across, up]),
    )


def _spread(scale: Scale, mesh: np.ndarray[Any, Any]) -> list[float]:
    """Return the places on an axis of shares between its least and its largest value."""
    low, high = min(scale.at.values()), max(scale.at.values())
    if scale.is_log:
        return [float(low * (high / low) ** share) for share in mesh]
    return [float(low + share * (high - low)) for share in mesh]


Importance = Mapping[str, tuple[float, Interval | None]]
"""Key -> its share of importance, and the interval of that over resampled trials; the most important first."""


def importances(space: Space) -> dict[str, Importance]:
    """Compute by each method that is installed how much each key matters; empty if there are too few trials or keys."""
    if len(space.trials) < FEWEST or len(space.keys) < 2:
        return {}
    methods = ["PED-ANOVA", *["fANOVA"] * (find_spec("sklearn") is not None)]
    return {method: found for method in methods if (found := _importance(space, method))}


def _importance(space: Space, method: str) -> Importance:
    """Compute the importance of each key, with its interval by the bootstrap over trials (percentiles)."""
    import optuna
    from optuna.distributions import json_to_distribution
    from optuna.trial import create_trial

    logging.getLogger("optuna").setLevel(logging.WARNING)  # it tells of every study that is made
    sign = space.found.sign
    trials = []
    for place, trial in enumerate(space.trials):
        distributions = {k: json_to_distribution(text) for k, text in trial.recorded.distributions.items()}
        drawn = {k: one.to_external_repr(trial.recorded.drawn[k]) for k, one in distributions.items()}
        value = sign * space.scores[trial.number]
        trials.append(create_trial(params=drawn, distributions=distributions, value=value))
        trials[-1]._trial_id = place  # by which the evaluator tells them apart
    evaluator: BaseImportanceEvaluator
    if method == "fANOVA":
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        of_resample: BaseImportanceEvaluator = optuna.importance.FanovaImportanceEvaluator(n_trees=_TREES, seed=0)
    else:
        top = min(0.5, max(0.1, 5 / len(trials)))  # five trials at least
        evaluator = of_resample = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=top)
    shares = _evaluate(evaluator, trials)
    if not shares:
        return {}
    random = np.random.default_rng(0)
    drawn_again = [random.integers(0, len(trials), len(trials)) for _ in range(_RESAMPLES[method])]
    samples = [again for some in drawn_again if (again := _evaluate(of_resample, [trials[n] for n in some]))]
    return {
        key: (share, _percentiles([again.get(key, 0.0) for again in samples]))
        for key, share in sorted(shares.items(), key=lambda item: -item[1])
    }


def _evaluate(evaluator: "BaseImportanceEvaluator", trials: "list[FrozenTrial]") -> dict[str, float]:
    """Return the share of each key; empty if none of them makes a difference among these trials."""
    import optuna

    study = optuna.create_study(storage=optuna.storages.InMemoryStorage())
    study.get_trials = lambda deepcopy=True, states=None: trials  # type: ignore[method-assign]
    with warnings.catch_warnings(action="ignore"):
        try:
            found = evaluator.evaluate(study)
        except (ValueError, RuntimeError):  # of one value only
            return {}
    whole = sum(found.values())
    return {key: float(share / whole) for key, share in found.items()} if whole > 0 else {}


def _percentiles(values: Sequence[float]) -> Interval | None:
    return Interval(*map(float, np.quantile(values, [0.025, 0.975]))) if len(values) > 1 else None


def importance(space: Space, method: str, found: Importance) -> Figure:
    """Draw how much each key matters, with intervals."""
    keys = [*found]
    shares, intervals = [share for share, _ in found.values()], [interval for _, interval in found.values()]
    what = "to be among the best" if method == "PED-ANOVA" else "to the variance of the score"
    layout: Layout = {
        "height": 110 + 34 * len(keys),
        "xaxis": axis("share of importance", range=[0, 1.02]),
        "yaxis": axis("", type="category", categoryorder="array", categoryarray=keys[::-1])
        | {"range": [-0.6, len(keys) - 0.4], "fixedrange": True},
    }
    marker = {"size": 10, "color": COLOUR}
    bars = error_bars(shares, intervals, thickness=2, width=5)
    return Figure(
        [
            {"x": shares, "y": keys, "mode": "markers", "marker": marker, "error_x": bars}
            | {"hovertemplate": "%{y}: %{x:.2f}<extra></extra>"}
        ],
        layout,
        f"Importance of {len(keys)} keys by {method}, with intervals",
        f"How much each key matters {what}, as shares of 1 ({method}): {len(space.trials)} trials by {space.name}. "
        "Bars: 95 % over resampled trials. A key matters within the values that were tried.",
        ["key", "share", "95 % interval"],
        [[key, format_known(share, 2), format_ends(interval, 2)] for key, (share, interval) in found.items()],
    )


def _table(space: Space, keys: Sequence[str]) -> list[list[str]]:
    return [
        [str(trial.number), *(shorten_value(trial.words[key]) for key in keys), _score(space, trial)]
        for trial in reversed(space.trials)
    ]


def _score(space: Space, trial: Tried) -> str:
    if trial.number in space.diverged:
        return "diverged"
    return format_known(space.scores[trial.number], space.found.metrics[0].digits)


def _on_diverged(space: Space) -> str:
    return " A trial that diverged stands at the worst of the others." if space.diverged else ""
