"""End the service process that W&B's client starts."""

import time

_MOMENT = 0.2  # seconds; answering an abandoned request takes the service less than one thousandth of that


def end_service() -> None:
    """End W&B's service after a request that it did not answer in time.

    The client abandons such a request and closes the connection. If the service is asked to end right then, it may fail
    to send the abandoned answer and drop the connection before it reads that it should end. The service, and with it
    this process, would then stay for ten minutes. So wait a moment first.
    """
    from wandb import teardown

    time.sleep(_MOMENT)
    teardown()
