from etude.launchers.slots import SweepFailed, run_side_by_side
from etude.search.sweep_file import sweep_overrides

__all__ = ["SweepFailed", "run_side_by_side", "sweep_overrides"]
