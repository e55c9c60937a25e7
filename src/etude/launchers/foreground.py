"""One run on several devices: a process for each, launched and watched like a sweep of one."""

from collections.abc import Mapping
from typing import Any

from etude.errors import UserError
from etude.launchers.options import Options
from etude.launchers.slots import run_side_by_side
from etude.runs.lock import hold_lock
from etude.runs.run_dir import RunDir

_PATIENCE = 1.0  # seconds to wait for another process


def train_on_several(run: RunDir, launcher: Mapping[str, Any]) -> dict[str, Any]:
    """Train a frozen run in processes of its own, and wait for them.

    Args:
        run: frozen.
        launcher: Hydra's node, which says what there is to run on.

    Returns:
        What `result.json` holds.

    Raises:
        Busy: another process works on it.
        UserError: the data cannot be had, or the config or this machine does not fit; nothing was started.
        SweepFailed: they ended without a result.
        KeyboardInterrupt: they were asked to stop.
    """
    from etude.tasks import build

    options = {key: value for key, value in launcher.items() if not key.startswith("_")}
    try:
        asked = Options(**options)
    except TypeError as error:
        raise UserError("one run on several devices is launched on this machine: say hydra/launcher=slots") from error
    with hold_lock(run, _PATIENCE):
        pass  # a sweep would wait for the other process; whoever asks for one run is told
    config = run.config()
    build.shapes(config)
    build.token_store(config)  # made here, where a mistake is one sentence and not one of each process
    run_side_by_side([run], asked.slots(), **asked.how)
    return run.result()
