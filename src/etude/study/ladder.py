"""Read the ladder of a study: the sizes at which its arms are trained to say what becomes of them at a larger one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from etude.errors import UserError, did_you_mean
from etude.study.arms import override_key, read_overrides

FEWEST = 4
"""Rungs of a ladder: two are held out, and two make a line."""

SIZES = (
    "scale",
    "budget",
    "schedule.peak",
    "model.d_",
    "model.attention.d_",
    "model.n_layers",
    "model.heads",
    "model.kv_heads",
)
"""How the keys begin that say of what size a model is, and how long and at which rate it is trained."""


@dataclass(frozen=True)
class StudyLadder:
    """The ladder that a study fixes.

    Attributes:
        rungs: name -> overrides of every arm there, the smallest first.
        seeds: how many each rung has.
        target: the compute of the larger model, 6 x parameters x tokens; None: four times that of the largest rung.
    """

    rungs: dict[str, list[str]]
    seeds: list[int]
    target: float | None = None


def read_ladder(file: Path, given: Any) -> StudyLadder | None:
    """Read `ladder: {rungs: {NAME: [override, ...], ...}, seeds: [3, 3, 1, 1], target: {parameters: N, tokens: D}}`.

    Raises:
        UserError: it is not valid; the message names the file and the key.
    """
    if given is None:
        return None
    known = ("rungs", "seeds", "target")
    if not isinstance(given, dict) or not {"rungs", "seeds"} <= given.keys():
        raise UserError(f"{file}: ladder must hold rungs, each with its overrides, and seeds, one number a rung")
    if other := next((key for key in given if key not in known), None):
        raise UserError(f"{file}: ladder: unknown key {other!r}: {did_you_mean(str(other), known)}")
    rungs, seeds, target = given["rungs"], given["seeds"], given.get("target")
    if not isinstance(rungs, dict) or len(rungs) < FEWEST:
        raise UserError(
            f"{file}: ladder.rungs must map {FEWEST} names or more to overrides, such as w48: [scale.width=0.094], the "
            "smallest first: two are held out to check what the others predict"
        )
    read = {name: read_overrides(file, "ladder.rungs", name, words) for name, words in rungs.items()}
    for name, words in read.items():
        for key in map(override_key, words):
            if not key.startswith(SIZES):
                raise UserError(
                    f"{file}: ladder.rungs.{name}: {key} is neither size nor budget, so that what is said of larger "
                    f"models would be said of it, too: rungs set keys of {', '.join(SIZES[:3])}, and sizes of the model"
                )
    if twice := next((name for name in read if sum(words == read[name] for words in read.values()) > 1), ""):
        raise UserError(f"{file}: ladder.rungs.{twice}: another rung has the same overrides")
    if not isinstance(seeds, list) or len(seeds) != len(read) or not all(type(n) is int and n > 0 for n in seeds):
        raise UserError(f"{file}: ladder.seeds must be a list of {len(read)} numbers, one a rung, such as [3, 3, 1, 1]")
    if max(seeds[:-2]) < 2:
        raise UserError(
            f"{file}: ladder.seeds: nothing says how far seeds differ: give the smallest rungs two or three seeds"
        )
    return StudyLadder(read, seeds, _read_target(file, target))


def _read_target(file: Path, given: Any) -> float | None:
    if given is None:
        return None
    numbers = [given.get(key) for key in ("parameters", "tokens")] if isinstance(given, dict) else []
    known = [float(one) for one in numbers if isinstance(one, int | float) and not isinstance(one, bool) and one > 0]
    if len(known) != 2 or len(given) != 2:
        raise UserError(f"{file}: ladder.target must be numbers, such as {{parameters: 65.0e+6, tokens: 2.5e+9}}")
    return 6 * known[0] * known[1]
