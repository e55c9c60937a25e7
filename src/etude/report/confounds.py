"""Find differences between an arm and the baseline other than the ones that the arm is meant to test."""

from collections.abc import Collection

from etude.config.difference import Config, Pair, difference
from etude.report.comparison import Compared
from etude.report.wording import format_value
from etude.store.records import Run
from etude.store.tested_weights import tested_weights
from etude.study.arms import override_key
from etude.study.study import value_at

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
            if (config := comparable_config(run)) not in seen:
                seen.append(config)
                between = difference(comparable_config(first := base.runs[0]), config, (first.written, run.written))
                differing |= {
                    key: its
                    for key, its in (between.choices | between.values).items()
                    if not key.startswith("data.")  # but its store
                    and (key.split(".")[0] in _ALWAYS_REPORTED or not _follows(key, meant))
                    and not _is_set_alike(key, first, run)
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


def comparable_config(run: Run) -> Config:
    """Return the part of a run's config that may change its result."""
    return {key: value for key, value in run.recipe.items() if key != "weights"} | {"data": run.config.get("data")}


def _follows(key: str, meant: Collection[str]) -> bool:
    """Whether a difference in `key` is within the intended changes of `meant`, groups and dotted keys.

    A choice of a group of the model, or of the scale, may bring other values of the model with it.
    """
    path = key.replace("/", ".")
    if any(f"{path}.".startswith(f"{name.replace('/', '.')}.") for name in meant):
        return True
    return path.startswith("model.") and any(name in ("model", "scale") or name.startswith("model/") for name in meant)
