"""The comparison of a study's arms as a pandas DataFrame, a row an arm.

    arm, overrides                     what the arm is
    seeds                              how many are in its means
    <metric>, _low, _high              its mean, such as ppl, and the 95 % interval over seeds
    <metric>_difference, _low, _high   from the arm that it is held against; of a logarithmic metric, of its logarithm,
                                       for perplexity nats a token
    <metric>_p, <metric>_significant   after Holm's correction for all arms
    against                            the arm that it is held against
    parameters, steps, tokens, flops, seconds    means over its runs

A number that is not known is missing.
"""

from typing import TYPE_CHECKING, Any

from etude.report.comparison import ArmResult, Compared

if TYPE_CHECKING:
    from pandas import DataFrame


def arms_frame(compared: Compared) -> "DataFrame":
    """Make a DataFrame with one row per arm, in the study's order."""
    import pandas as pd

    rows = [_row(arm, [*compared.study.metrics]) for arm in compared.arms]
    return pd.DataFrame({key: pd.array([row[key] for row in rows], dtype=_dtype(key)) for key in rows[0]})


def _dtype(column: str) -> str:
    """Return the type of a column, whether or not a value of it is known."""
    words = dict.fromkeys(("arm", "overrides", "against"), "string") | {"seeds": "Int64"}
    return words.get(column, "boolean" if column.endswith("_significant") else "Float64")


def _row(arm: ArmResult, metrics: list[str]) -> dict[str, Any]:
    row: dict[str, Any] = {"arm": arm.arm, "overrides": " ".join(arm.overrides), "seeds": len(arm.runs)}
    for name in metrics:
        mean, found = arm.means.get(name), arm.against.differences.get(name) if arm.against else None
        test = found.test if found else None
        row |= {name: mean and mean.value, **_ends(name, mean.interval if mean else None)}
        row |= {
            f"{name}_difference": test and test.difference,
            **_ends(f"{name}_difference", test.interval if test else None),
        }
        row |= {f"{name}_p": found and found.holm, f"{name}_significant": found and found.star}
    return row | {"against": arm.against and arm.against.reference} | arm.costs


def _ends(name: str, interval: tuple[float, float] | None) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}
