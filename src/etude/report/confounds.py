"""Whether an arm was trained and measured as the baseline was, but for what the arm is there to change."""

from collections.abc import Collection

from etude.config.difference import Config, Pair, difference
from etude.report.comparison import Compared
from etude.report.wording import format_value
from etude.runs.records import Run
from etude.studies.study import value_at

_TOLD = ("budget", "data", "scale")  # an arm that is meant to have another is no equal comparison all the same


def find_confounds(compared: Compared) -> dict[str, list[str]]:
    """What makes arms no equal comparison with the baseline, and which: text -> arms."""
    found: dict[str, list[str]] = {}
    base = compared.baseline
    signatures = [metric.signature for metric in compared.study.metrics.values() if metric.signature]
    measured = ("store", "test.sentences", "test.tokens", *signatures)
    for arm in compared.arms if base.runs else ():
        meant = {override.partition("=")[0].lstrip("+~") for override in (*base.overrides, *arm.overrides)}
        differing: dict[str, Pair] = {}
        seen: list[Config] = []  # the seeds of an arm have one config but for the seed
        for run in arm.runs:
            if (config := _comparable_config(run)) not in seen:
                seen.append(config)
                pairs = _sources(_comparable_config(base.runs[0]), config).items()
                differing |= {key: its for key, its in pairs if key.split(".")[0] in _TOLD or not _follows(key, meant)}
            results = {key: (value_at(base.runs[0].result, key), value_at(run.result, key)) for key in measured}
            differing |= {key: (theirs, its) for key, (theirs, its) in results.items() if theirs != its}
        if differing:
            pairs = differing.items()
            changes = (f"{key} {format_value(its)} (baseline: {format_value(theirs)})" for key, (theirs, its) in pairs)
            found.setdefault(f"Not an equal comparison: {', '.join(changes)}.", []).append(arm.arm)
    return found


def _comparable_config(run: Run) -> Config:
    """What of the config of a run may change its result."""
    return run.material | {"data": run.config.get("data")}


def _sources(before: Config, after: Config) -> dict[str, Pair]:
    """Where two such configs differ, without copies.

    A frozen config holds values and no references. So what has the name of another key, and changes from and to the
    same, is taken for its copy: `schedule.d_model` of `model.d_model`. The outermost of them is the source.
    """
    found = difference(before, after)
    pairs = {key: pair for key, pair in (found.choices | found.values).items() if pair[0] != pair[1]}
    sources: dict[str, tuple[str, Pair]] = {}
    for key in sorted(pairs, key=lambda key: (key.count("."), key)):
        change = (key.rpartition(".")[2], pairs[key])
        if change not in sources.values():
            sources[key] = change
    return {key: pair for key, pair in pairs.items() if key in sources and not key.startswith("data.")}  # but its store


def _follows(key: str, meant: Collection[str]) -> bool:
    """Whether a key differs because those groups and keys are meant to.

    In the model one thing follows from another: the size of a head from their number, and a choice may bring others
    along. But what is written at its top, such as `model.dropout`, follows from no other value.
    """
    path = key.replace("/", ".")
    if any(f"{path}.".startswith(f"{name.replace('/', '.')}.") for name in meant):
        return True
    if not path.startswith("model."):
        return False
    chosen = any(name in ("model", "scale") or name.startswith("model/") for name in meant)
    return chosen or (path.count(".") > 1 and any(name.startswith("model.") for name in meant))
