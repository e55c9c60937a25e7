from etude.sweep.slots import SweepFailed, run_side_by_side
from etude.sweep.sweepfile import sweep_overrides

__all__ = ["SweepFailed", "run_side_by_side", "sweep_overrides"]
