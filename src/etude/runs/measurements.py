"""Store the measurements of a measured study, a file per layer: `runs/table1/recurrent/measured-0123456789.json`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import Timeout

from etude.files import read_json
from etude.runs.file_lock import hold
from etude.runs.lock import Busy
from etude.runs.material import digest
from etude.studies.measured import MeasuredStudy, Row

MEASURED = "*/measured-*.json"  # below the folder of a study

Found = dict[str, Any]  # the measurement of one layer, made by `etude.inspect.complexity.study`


def place(study: MeasuredStudy, row: Row, runs_dir: Path) -> Path:
    """Return the file for the measurement of a layer; other settings of the same layer have other files."""
    return runs_dir / study.name / row.name / f"measured-{digest(study.setting(row))}.json"


def read_measurements(study: MeasuredStudy, runs_dir: Path) -> dict[str, Found]:
    """Read the measurement of each layer that has been measured with this setting."""
    kept = {row.name: read_json(place(study, row, runs_dir)) for row in study.rows}
    return {name: found for name, found in kept.items() if found is not None}


@contextmanager
def hold_measurements(study: MeasuredStudy, runs_dir: Path) -> Iterator[None]:
    """Hold the lock of a study's measurements within the context, as two processes would distort each other's times.

    Raises:
        Busy: another process is measuring the study.
    """
    folder = runs_dir / study.name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with hold(folder / "measuring.lock", 0):
            yield
    except Timeout as error:
        raise Busy(f"another process measures {study.name} in {runs_dir}: wait for it, or stop it first") from error


def note_on_measurements(study: MeasuredStudy, runs_dir: Path, typed: str = "") -> str:
    """Return a sentence on how many layers have been measured, and which `etude sweep TYPED` would still measure."""
    kept = read_measurements(study, runs_dir)
    missing = [row.name for row in study.rows if row.name not in kept]
    rest = f"; `etude sweep {typed or study.name}` measures {', '.join(missing)}" if missing else ""
    return f"{study.name} is measured, not trained: {len(kept)} of {len(study.rows)} layers are{rest}."
