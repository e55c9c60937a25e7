"""W&B's service ends when it is told to, also after a question that it could not answer."""

import threading

import pytest

from etude.wandb_service import end_service


@pytest.mark.slow
def test_a_service_that_was_given_up_on_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the moment before its end, one in a dozen stays for ten minutes."""
    import wandb

    for name, value in (("BASE_URL", "http://127.0.0.1:9"), ("API_KEY", "0" * 40), ("ERROR_REPORTING", "false")):
        monkeypatch.setenv(f"WANDB_{name}", value)
    for _ in range(6):
        with pytest.raises(Exception, match="did not respond in time"):
            _ = wandb.Api(timeout=1).default_entity
        ending = threading.Thread(target=end_service, daemon=True)
        ending.start()
        ending.join(30)
        assert not ending.is_alive()
