"""What is checked before a run trains: this machine, and parts of the user's own, which would fail after hours."""

from functools import partial
from typing import Any

import torch

from etude.errors import UserError
from etude.processor.matmul import without_tf32
from etude.store.own_parts import blame, own_targets
from etude.store.run_dir import RunDir
from etude.tasks import build
from etude.tasks.claims import LENGTH, BrokenClaim, add_noise, check_left_to_right, check_resumes
from etude.training.optimizer import make_optimizer

Config = dict[str, Any]

_NOISE = 0.05  # added to the weights
_TOLERANCE = 1e-3  # in single precision; a share of the largest logit


def check_device(run: RunDir) -> None:
    """Check that this machine can train a run, if there is no result yet, before its text is downloaded and prepared.

    Raises:
        UserError: the run needs a GPU, and PyTorch finds none.
    """
    config = run.config()
    accelerator, precision = config["trainer"]["accelerator"], config["precision"]
    if run.finished or not trains_on_cpu(config):
        return
    if accelerator in ("gpu", "cuda"):
        raise UserError(f"trainer.accelerator={accelerator}: PyTorch finds no GPU here; trainer=cpu needs none")
    if precision == "16-mixed":
        raise UserError("precision=16-mixed needs a GPU: here, say precision=bf16-mixed")


def trains_on_cpu(config: Config) -> bool:
    """Return whether a run will train on the CPU: it is told to, or PyTorch finds no GPU."""
    found = torch.cuda.is_available() or torch.backends.mps.is_available()
    return config["trainer"]["accelerator"] == "cpu" or not found


def check_own_parts(config: Config, vocab_size: int) -> None:
    """Hold the user's own model, its parts and optimizer to the claims of `etude.tasks.claims`, if there are any.

    Args:
        config: of the run; with `trainer.check_parts=false` nothing is checked.
        vocab_size: V.

    Raises:
        UserError: a part fails, or breaks a claim.
    """
    optimizer, model = ({name: config[name]} for name in ("optimizer", "model"))
    if not config["trainer"].get("check_parts", True):  # runs that were begun earlier lack the key
        return
    with torch.random.fork_rng(devices=[]), without_tf32():
        torch.manual_seed(0)
        if own_targets(optimizer):
            parameters = [*build.shapes(config).named_parameters()]
            _explain(optimizer, partial(check_resumes, partial(make_optimizer, config["optimizer"]), parameters))
        if "step" in build.task(config).methods and own_targets(model):
            _explain(model, partial(_check_model, config, vocab_size))


def _check_model(config: Config, vocab_size: int) -> None:
    model = build.model(config, vocab_size).to(build.device_of_training(config)).eval()
    add_noise(model, _NOISE)
    check_left_to_right(model, vocab_size, length=min(LENGTH, config["budget"]["max_tokens"]), tolerance=_TOLERANCE)


def _explain(part: Config, check: Any) -> None:
    """Turn what goes wrong in a check into one sentence that names the user's classes."""
    [section] = part
    try:
        check()
    except UserError:
        raise
    except BrokenClaim as broken:
        way_out = "trainer.check_parts=false trains it all the same"
        raise UserError(f"the {section}{blame(broken, part)}: {broken}; {way_out}") from None
    except Exception as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UserError(f"the {section} fails on a small batch{blame(error, part)}: {why}") from error
