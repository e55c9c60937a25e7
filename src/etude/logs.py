"""Who may speak, and where to."""

import logging
import warnings
from pathlib import Path

_LOUD = ("lightning", "lightning.pytorch", "lightning.fabric", "wandb", "sacrebleu", "fsspec", "filelock")
_MUTE = "opentelemetry"  # W&B's figures about itself, and its errors where they cannot be sent


class _LogFile(logging.FileHandler):
    """A log that a full disk cuts short, without a traceback for every line: what matters more will say so itself."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Leave the line out."""


def logging_to(file: Path | None) -> None:
    """Send étude's log to the terminal, and to `file` too where there is one."""
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
    """Keep the libraries' chatter out of ours: their warnings that mean nothing here, their greetings."""
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
