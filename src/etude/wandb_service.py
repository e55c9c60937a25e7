"""Start and end the service process behind W&B's client."""

import os
import time

_MOMENT = 0.2  # seconds; answering an abandoned request takes the service less than one thousandth of that


def use_own_service() -> None:
    """Let W&B's client start a service of this process, instead of one whose address a parent process has left to it.

    A notebook that logs to W&B leaves the address in its environment. Its service keeps the ids of runs in use whose
    process was killed, and such a run could not continue its curve.
    """
    os.environ.pop("WANDB_SERVICE", None)


def ignore_empty_variables() -> None:
    """Remove empty `WANDB_...` variables from the environment, such as `docker run -e WANDB_MODE=` sets them.

    W&B's client refuses an empty mode, and takes a process with an empty sweep for one of an agent.
    """
    for name in [name for name, value in os.environ.items() if name.startswith("WANDB_") and not value]:
        del os.environ[name]


def end_service() -> None:
    """End W&B's service after a request that it did not answer in time.

    The client abandons such a request and closes the connection. If the service is asked to end right then, it may fail
    to send the abandoned answer and drop the connection before it reads that it should end. The service, and with it
    this process, would then stay for ten minutes. So wait a moment first.
    """
    from wandb import teardown

    time.sleep(_MOMENT)
    teardown()
