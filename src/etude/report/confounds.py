"""Find differences between an arm and the baseline other than the ones that the arm is meant to test."""

from collections.abc import Collection

from etude.config.difference import Config, Pair, difference
from etude.report.comparison import Compared
from etude.report.wording import format_value
from etude.runs.records import Run
from etude.runs.tested_weights import tested_weights
from etude.studies.arms import override_key
from etude.studies.study import value_at

_SAID = {"store": "other text or subwords, store", "weights": "tested weights"}
_ALWAYS_REPORTED = ("budget", "data", "scale")  # even if the arm changes these on purpose


def find_confounds(compared: Compared) -> dict[str, list[str]]:
    """Find what makes the comparison of arms with their references unequal: sentence -> arms concerned."""
    found: dict[str, list[str]] = {}
    arms = {arm.arm: arm for arm in compared.arms}
    signatures = [metric.signature for metric in compared.study.metrics.values() if metric.signature]
    measured = ("store", "test.sentences", "test.tokens", *signatures)
    for arm in compared.arms:
        base = arms[compared.study.reference(arm.arm)]
        if not base.runs:
            continue
        meant = {override_key(override) for override in (*base.overrides, *arm.overrides)}
        differing: dict[str, Pair] = {}
        seen: list[Config] = []  # the seeds of an arm have one config but for the seed
        for run in arm.runs:
            if (config := _comparable_config(run)) not in seen:
                seen.append(config)
                pairs = _sources(_comparable_config(base.runs[0]), config).items()
                differing |= {
                    key: its
                    for key, its in pairs
                    if (key.split(".")[0] in _ALWAYS_REPORTED or not _follows(key, meant))
                    and not _is_set_alike(key, base.runs[0], run)
                }
            tested = tested_weights(base.runs[0].config), tested_weights(run.config)
            differing |= {"weights": tested} if tested[0] != tested[1] else {}
            results = {key: (value_at(base.runs[0].result, key), value_at(run.result, key)) for key in measured}
            differing |= {key: (theirs, its) for key, (theirs, its) in results.items() if theirs != its}
        if differing:
            pairs = differing.items()
            whose = "baseline" if base is compared.baseline else base.arm
            changes = (
                f"{_SAID.get(key, key)} {format_value(its)} ({whose}: {format_value(theirs)})"
                for key, (theirs, its) in pairs
            )
            found.setdefault(f"Not an equal comparison: {', '.join(changes)}.", []).append(arm.arm)
    return found


def _is_set_alike(key: str, run: Run, other: Run) -> bool:
    """Whether two runs set a key to the same value, of which one makes no use: `budget.val_every` without callbacks."""
    value = value_at(run.config, key)
    return value is not None and value == value_at(other.config, key)


def _comparable_config(run: Run) -> Config:
    """Return the part of a run's config that may change its result."""
    return {key: value for key, value in run.material.items() if key != "weights"} | {"data": run.config.get("data")}


def _sources(before: Config, after: Config) -> dict[str, Pair]:
    """Find the differences between two configs, without keys that only repeat the change of another.

    A frozen config holds values, not interpolations. So if two keys have the same last name and the same change, one is
    taken for a copy of the other: `schedule.d_model` of `model.d_model`. The outermost key is kept.
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
    """Whether a difference in `key` follows from the intended changes of `meant`, groups and dotted keys.

    Within the model, values depend on each other: the size of a head on the number of heads; and a choice of a group
    may change other values. A top-level value such as `model.dropout` depends on no other value.
    """
    path = key.replace("/", ".")
    if any(f"{path}.".startswith(f"{name.replace('/', '.')}.") for name in meant):
        return True
    if not path.startswith("model."):
        return False
    chosen = any(name in ("model", "scale") or name.startswith("model/") for name in meant)
    return chosen or (path.count(".") > 1 and any(name.startswith("model.") for name in meant))
