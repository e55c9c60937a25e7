"""Configure logging: where étude's log goes, and which libraries are silenced."""

import logging
import warnings
from pathlib import Path

_LOUD = ("lightning", "lightning.pytorch", "lightning.fabric", "wandb", "sacrebleu", "fsspec", "filelock")
_MUTE = "opentelemetry"  # W&B's telemetry, which logs errors when it cannot be sent


class _LogFile(logging.FileHandler):
    """A log file that ignores write errors: on a full disk, more important writes report the error."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Drop the line, without a traceback."""


def logging_to(file: Path | None) -> None:
    """Send étude's log to the terminal, and also to `file` if it is given."""
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    handlers: list[logging.Handler] = [logging.StreamHandler()]
    if file is not None:
        handlers.append(_LogFile(file, encoding="utf-8"))
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    root.handlers = handlers
    quiet_libraries()


def quiet_libraries() -> None:
    """Silence messages of libraries below errors, and warnings of theirs that do not apply here."""
    for name in _LOUD:
        logging.getLogger(name).setLevel(logging.ERROR)
    logging.getLogger(_MUTE).setLevel(logging.CRITICAL)
    for pattern in (
        ".*does not have many workers.*",
        ".*val_check_interval.*",
        ".*isinstance\\(treespec, LeafSpec\\).*",
        ".*`IterableDataset` has `__len__` defined.*",
        ".*GPU available but not used.*",
        ".*lr_scheduler.step\\(\\).*",
    ):
        warnings.filterwarnings("ignore", pattern)
