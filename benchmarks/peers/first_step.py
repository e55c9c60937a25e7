"""Where a start ends: after the first training step."""

import os
from typing import Any

from lightning import Callback


class FirstStep(Callback):
    """Ends the process there and then."""

    def on_train_batch_end(self, *told: Any) -> None:
        os._exit(0)
