"""The service that W&B's client starts beside a process, and how it is ended."""

import time

_MOMENT = 0.2  # seconds; its answer to a question that was given up takes less than one thousandth of that


def end_service() -> None:
    """End it now, after a question that it did not answer in time.

    The client gives such a question up and hangs up on the service; if it is told to end in the same breath, the answer
    that nobody takes any more makes it drop the line before it has heard that. It would then stay for ten minutes, and
    the process with it. So it is given a moment first.
    """
    from wandb import teardown

    time.sleep(_MOMENT)
    teardown()
