"""Try parts of the user's own on a small random batch before training: what fails after hours then fails at once."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import isfinite
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from etude.config.parts import make
from etude.data.tokenizer import BOS, EOS, PAD
from etude.decoding.beam import Hypothesis
from etude.errors import UserError
from etude.processor.matmul import without_tf32
from etude.runs.own_parts import blame, own_targets
from etude.runs.run_dir import RunDir
from etude.tasks import build
from etude.tasks.claims import (
    BrokenClaim,
    add_noise,
    check_left_to_right,
    check_positions,
    check_rebuilt,
    checked_shapes,
    is_deterministic,
    random_pairs,
    weights_without_gradient,
)
from etude.training.optimizer import make_optimizer
from etude.training.readable import check_readable
from etude.training.update_claims import calls_closure, check_resumes, check_same_rates

Config = dict[str, Any]

_LENGTH = 9  # tokens of a sentence
_NOISE = 0.05  # added to the weights
_TOLERANCE = 1e-3  # in single precision; a share of the largest logit, or nats per token
_WAY_OUT = "trainer.check_parts=false trains it all the same"

log = logging.getLogger(__name__)


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


def rehearse(config: Config, vocab_size: int) -> None:
    """Try the user's own parts of the model, the search, the loss, the schedule and the optimizer, if there are any.

    The model must not look at later tokens or at padding, must decode step by step as at once, and the search must give
    its translations the probability that the model gives them. The loss must be a sum over the real tokens. All must
    go on from a checkpoint as they would have without.

    Args:
        config: of the run.
        vocab_size: V.

    Raises:
        UserError: a part fails, or breaks one of these claims and `trainer.check_parts` is not false; the schedule has
            no rate to set.
    """
    tried = config["trainer"].get("check_parts", True)  # runs that were begun earlier lack the key
    with torch.random.fork_rng(devices=[]), without_tf32():
        torch.manual_seed(0)
        if own_targets({"optimizer": config["optimizer"]}):
            _check_optimizer(config, tried)
        if not tried:
            return
        schedule = config["schedule"]
        if own_targets({"schedule": schedule}) and not schedule.get("_partial_"):
            with _explained("schedule", {"schedule": schedule}):
                check_same_rates(make(schedule), config["budget"]["max_steps"])
        if own_targets({"loss": config["loss"]}):
            _check_loss(make(config["loss"], PAD), config, vocab_size)
        parts = {"model": config["model"], "decoding": config["decoding"]}
        if "step" in build.task(config).methods and own_targets(parts):
            _check_model(config, parts, vocab_size)


def _check_model(config: Config, parts: Config, vocab_size: int) -> None:
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")  # which fills with NaN what `torch.empty` gives
    try:
        model = build.model(config, vocab_size).to(build.device_of_training(config)).eval()
    finally:
        torch.set_deterministic_debug_mode(before)
    with _explained("model", parts):
        _check_initialisation(model)
        check_positions(model)
    add_noise(model, _NOISE)
    length = min(_LENGTH, config["budget"]["max_tokens"])
    with _explained("model", parts), checked_shapes(model):
        if not is_deterministic(model, vocab_size, length):
            log.warning(
                "the model with %s gives other numbers each time in evaluation mode: its scores cannot be had again, "
                "and nobody checks that it does not look at later tokens; draw at random only `if self.training`",
                ", ".join(own_targets(parts)),
            )
            return
        check_left_to_right(model, vocab_size, length=length, tolerance=_TOLERANCE)
        again = build.model(config, vocab_size).to(build.device_of_training(config)).eval()
        check_readable(model.state_dict(), "its state")
        check_rebuilt(model, again, vocab_size, length=length, tolerance=_TOLERANCE)
        del again
        if unused := weights_without_gradient(model, vocab_size, length):
            log.warning(
                "the model with %s has weights that nothing is computed with, so that they are not trained: %s",
                *(", ".join(own_targets(parts)), ", ".join(unused)),
            )
    if config["decoding"]:
        with _explained("search", parts):
            _check_search(model, make(config["decoding"]), *random_pairs(model, vocab_size, length)[:2])


@torch.no_grad()
def _check_initialisation(model: nn.Module) -> None:
    """Check that all weights are filled, and that no part fills linear layers within it, as `model/init` does after it.

    Raises:
        BrokenClaim: a part would train from other weights than it says.
    """
    if empty := [name for name, weight in model.named_parameters() if weight.isnan().any()]:
        raise BrokenClaim(f"nothing fills the weight {empty[0]}: do so in `reset_parameters` of its part")
    for module in model.modules():
        reset = getattr(module, "reset_parameters", None)
        linear = {name: part for name, part in module.named_modules() if isinstance(part, nn.Linear) and name}
        if not linear or not callable(reset):
            continue
        before = {name: [p.clone() for p in part.parameters()] for name, part in linear.items()}
        reset()
        for name, part in linear.items():
            if not all(map(torch.equal, before[name], part.parameters())):
                raise BrokenClaim(
                    f"reset_parameters of {type(module).__name__} sets the linear layer {name}, which model/init fills "
                    "after it: make its matrix an nn.Parameter of the part"
                )


@torch.no_grad()
def _check_search(model: Any, search: Any, source: Tensor, mask: Tensor) -> None:
    """Check that a search reports the probabilities that the model gives, as it does if `reorder` keeps the right rows.

    Raises:
        BrokenClaim: it does not.
    """
    for row, found in enumerate(search(model, source, mask)):
        best = found[0]
        if not (isinstance(best, Hypothesis) and isfinite(best.log_probability)):
            continue
        tokens = torch.tensor([[BOS, *best.tokens, EOS]], device=source.device)
        logits = model(source[[row]], mask[[row]], tokens[:, :-1])
        expected = float(logits.log_softmax(-1).gather(2, tokens[:, 1:, None]).sum())
        if not abs(best.log_probability - expected) <= _TOLERANCE * (1 + abs(expected)):
            found_it = f"a translation has log-probability {best.log_probability:.3f} in the search"
            raise BrokenClaim(
                f"{found_it} and {expected:.3f} in one forward pass; `reorder` must keep the rows it is given"
            )


def _check_loss(loss: Any, config: Config, vocab_size: int) -> None:
    """Check that a loss is a number with a gradient, and a sum over tokens that leaves padding out.

    Raises:
        UserError: it is not, or it fails.
    """
    logits, targets = torch.randn(1, 4, vocab_size), torch.randint(4, vocab_size, (1, 4))
    padded = F.pad(logits, (0, 0, 0, 8)), F.pad(targets, (0, 8), value=PAD)

    def expect(batch: Sequence[Tensor], growth: int, claim: str) -> None:
        cost = float(loss(*batch).detach())
        if once and abs(cost / once - growth) > 0.5:
            raise BrokenClaim(f"{once:.3g} for four tokens and {cost:.3g} for {claim}")

    with _explained("loss", {"loss": config["loss"]}):
        cost = loss(logits.requires_grad_(), targets)
        if not isinstance(cost, Tensor):
            raise BrokenClaim(f"{cost!r} is no tensor; return one of no dimensions, computed from the logits")
        if cost.dim():
            raise BrokenClaim(f"a tensor {tuple(cost.shape)} has dimensions; return its sum over the real tokens")
        if not cost.requires_grad:
            raise BrokenClaim(f"{cost!r} has no gradient; compute it from the logits")
        if (once := float(cost.detach())) < 0:
            log.warning("the loss is %.3g for random logits, and is minimised: mind its sign", once)
        for dim in (0, 1):
            twice = [one.repeat_interleave(2, dim) for one in (logits, targets)]
            expect(twice, 2, "the same tokens twice; it must be a sum, for training divides by the tokens")
        expect(padded, 1, "the same with padding; leave out targets that are `pad`")


def _check_optimizer(config: Config, tried: bool) -> None:
    """Check that the schedule can set the rate of an optimizer and, if `tried`, that its step keeps what it promises.

    Raises:
        UserError: a group has no rate, `step` does not call its closure, or a checkpoint lacks what it remembers.
    """
    target = config["optimizer"]["_target_"]
    parameters = [*build.shapes(config).named_parameters()]
    optimizer = make_optimizer(config["optimizer"], parameters)
    if any("lr" not in group for group in optimizer.param_groups):
        raise UserError(f"optimizer: {target}: its parameter groups need `lr`, which the schedule sets")
    if not tried:
        return

    if not calls_closure(optimizer):
        raise UserError(f"optimizer: `step` of {target} must call its closure, which computes the gradients")
    with _explained("optimizer", {"optimizer": config["optimizer"]}):
        check_resumes(partial(make_optimizer, config["optimizer"]), parameters)


@contextmanager
def _explained(section: str, parts: Config) -> Iterator[None]:
    """Turn what goes wrong in the context into one sentence that names the user's classes.

    Raises:
        UserError: anything went wrong.
    """
    try:
        yield
    except UserError:
        raise
    except BrokenClaim as broken:
        raise UserError(f"the {section}{blame(broken, parts)}: {broken}; {_WAY_OUT}") from None
    except Exception as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UserError(f"the {section} fails on a small batch{blame(error, parts)}: {why}") from error
