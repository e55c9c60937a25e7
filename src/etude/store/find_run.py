"""Find a run by any of its names: its directory, its hash, `study/arm/seed`, or a row of a table of runs."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from etude.errors import UserError, did_you_mean
from etude.files import typed_path
from etude.paths import find_file, is_there
from etude.store.run_dir import RunDir
from etude.yaml_file import read_yaml


class Row(Protocol):
    """A row of a table of runs."""

    @property
    def path(self) -> Any:
        """The directory of the run."""


Which = str | os.PathLike[str] | Mapping[str, Any] | Row
"""What names a run; see `find_run`."""

HASH = re.compile(r"(?:seed-?\d+-)?[0-9a-f]+")
_SHOWN = 4  # paths that a message lists


def default_runs_dir() -> str:
    """Return the folder of runs that the config names, unless another is typed."""
    return str(read_yaml(find_file("conf", "train.yaml")).get("runs_dir") or "runs")


def find_run(which: Which, runs_dir: str | Path | None = None) -> RunDir:
    """Find a run.

    Args:
        which: the path of its directory, or of a checkpoint in it; its hash or the beginning of it, such as `9b2e41`;
            `study/arm/seed`, such as `table3/A1/1`; or a row of `etude.results`, or anything else that has a `path`.
        runs_dir: the folder of runs in which a hash or `study/arm/seed` is looked for; None: that of the config.

    Raises:
        UserError: there is no such run, or there are several.
    """
    given = which if isinstance(which, str | os.PathLike) else None
    if given is None:
        given = which.get("path") if isinstance(which, Mapping) else getattr(which, "path", None)
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise UserError(
            f"{type(which).__name__} without a path names no run: give its directory, its hash, study/arm/seed, or a "
            "row of etude.results(...)"
        )
    name = os.fspath(given)
    run = RunDir.at(name)
    if is_there(run.path):
        if not run.config_file.is_file():
            raise run.not_a_run
        return run
    runs_dir = typed_path(str(runs_dir or default_runs_dir()))
    found = _search(name, runs_dir)
    if len(found) > 1:
        shown = ", ".join(map(str, found[:_SHOWN])) + ", …" * (len(found) > _SHOWN)
        raise UserError(f"{name} names {len(found)} runs; say which: {shown}")
    if not found:
        raise _none(name, runs_dir)
    return RunDir(found[0])


def _search(name: str, runs_dir: Path) -> list[Path]:
    """List the directories in `runs_dir` that a hash or `study/arm/seed` names."""
    study, slash, rest = name.partition("/")
    arm, _, seed = rest.rpartition("/")
    if slash:
        pattern = f"{seed}-*" if seed.startswith("seed") else f"seed{seed}-*"
        return _runs(runs_dir / study / arm, pattern) if arm and re.fullmatch(r"(seed)?-?\d+", seed) else []
    return _runs(runs_dir, f"*/*/{'' if name.startswith('seed') else 'seed*-'}{name}*") if HASH.fullmatch(name) else []


def _runs(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if RunDir(path).id and (path / "config.yaml").is_file())


def _none(name: str, runs_dir: Path) -> UserError:
    """Return the error for a name that no run has; it suggests those in the folder of an arm, or of a study."""
    where = runs_dir.joinpath(*name.split("/")[:2]) if "/" in name else runs_dir
    names = [
        "/".join((*path.parts[-3:-1], path.name.rpartition("-")[0].removeprefix("seed")))
        for path in _runs(where, "seed*")
    ]
    way_out = did_you_mean(name, names) if names else f"`etude status` lists what {runs_dir} holds"
    return UserError(
        f"{name} is not the directory of a run, nor the hash or the study/arm/seed of one in {runs_dir}; {way_out}"
    )
