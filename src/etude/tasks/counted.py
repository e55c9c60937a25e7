"""The cost of any model, counted by PyTorch in one call with tensors on the meta device, which have no memory."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from etude.data.tokenizer import EOS
from etude.errors import UserError
from etude.model.chunks import takes_cost

Numbers = tuple[int, int]


class CountedSize:
    """The size of any model, such as a class of the user's own, and its cost for one sentence, by counting.

    Args:
        model: on the meta device, called with a source (1, S), its mask and a target (1, T).
        build: builds the same model with memory, for models whose `forward` reads values of its input.
        blame: says which class of the user's an error comes from, such as " in mine.norm.Norm (mine/norm.py, line 9)".
    """

    def __init__(
        self, model: nn.Module, build: Callable[[], nn.Module], blame: Callable[[BaseException], str] = lambda _: ""
    ) -> None:
        self.model, self.build, self.blame = model.train(), build, blame
        self._names = {name for name, _ in model.named_parameters()}  # those that an optimizer is given
        self._count = cache(self._count)  # type: ignore[method-assign]

    @property
    def parameters(self) -> int:
        """Number of parameters, shared ones counted once."""
        return sum(weight.numel() for weight in self.model.parameters())

    def training_flops(self, source: int, target: int) -> int:
        """Count the operations of a forward and a backward pass."""
        return self._count(_count_forward, source, target)[0]

    def decoding_flops(self, source: int, target: int, beam: int) -> int:
        """Count the operations of decoding: source and first token once, later tokens for each of `beam` hypotheses."""
        first, later = self._count(_count_decoding, source, target)
        return first + beam * later

    def saved_bytes(self, source: int, target: int, *, half: bool = False) -> float:
        """Count the bytes that autograd keeps in float32, without parameters.

        `half` changes nothing, as it is not known which tensors would be in half precision.
        """
        return self._count(_count_forward, source, target)[1]

    @property
    def takes_cost(self) -> bool:
        """Whether logits are computed in chunks; see `etude.model.chunks`."""
        return takes_cost(self.model)

    def _count(self, count: Callable[[Any, int, int], Numbers], source: int, target: int) -> Numbers:
        """Call `count` with the model on the meta device, or, if that fails, with the same model in memory.

        Raises:
            UserError: the model fails in memory too, or makes parameters when it is called.
        """
        model = self.model
        try:
            counted = count(model, source, target)
        except Exception:  # for example, the model reads a value, which tensors on the meta device do not have
            model = self.build().train()
            try:
                with _without_onednn():
                    counted = count(model, source, target)
            except Exception as error:
                raise UserError(
                    f"model: {type(model).__name__} fails{self.blame(error)} when it is called with a source "
                    f"(1, {source}), its mask and a target (1, {target}): {type(error).__name__}: {error}"
                ) from error
        if late := [name for name, _ in model.named_parameters() if name not in self._names]:
            raise UserError(
                f"model.{late[0]} is made when the model is called, too late for the optimizer: "
                "make it in the constructor"
            )
        return counted


@contextmanager
def _without_onednn() -> Iterator[None]:
    """Keep oneDNN from computing a recurrent layer as one operation, whose cost PyTorch does not count."""
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


def _count_convolution(
    _gradient: Sequence[int],
    source: Sequence[int],
    weight: Sequence[int],
    *settings: Any,
    out_shape: Sequence[Sequence[int] | None],
) -> int:
    """Count the operations of a convolution's backward pass: as many as of the forward pass for each product.

    PyTorch's own count takes the gradient of the weights for that of an ungrouped convolution.
    """
    from torch.utils.flop_counter import conv_flop_count

    transposed = settings[4]
    forward = conv_flop_count([*source], [*weight], [*_gradient], transposed=transposed)
    return forward * sum(shape is not None for shape in out_shape[:2])


_CONVOLUTIONS = {torch.ops.aten.convolution_backward: _count_convolution}


def _inputs(model: nn.Module, source: int, target: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return a source (1, S), its mask and a target (1, T) on the model's device."""
    device = next((weight.device for weight in model.parameters()), torch.device("cpu"))
    sources, targets = (torch.full((1, length), EOS, device=device) for length in (source, target))
    return sources, torch.ones_like(sources, dtype=torch.bool), targets


def count_saved_bytes(
    model: nn.Module, inputs: Sequence[Tensor], *excluded: Tensor, call: Callable[..., Tensor] | None = None
) -> tuple[Tensor, int]:
    """Call the model, or `call`, and count the bytes that autograd saves for the backward pass, each storage once.

    Returns:
        The output; and the bytes, without those of parameters and of the `excluded` tensors.
    """
    saved: dict[int, Tensor] = {}  # which holds the tensors, so that no storage takes the place of another

    def save(tensor: Tensor) -> Tensor:
        saved[tensor.untyped_storage()._cdata] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        output = (call or model)(*inputs)
    for tensor in (*model.parameters(), *excluded):
        saved.pop(tensor.untyped_storage()._cdata, None)
    return output, sum(tensor.untyped_storage().nbytes() for tensor in saved.values())


def _count_forward(model: Any, source: int, target: int) -> tuple[int, int]:
    from torch.utils.flop_counter import FlopCounterMode  # late, as it imports the compiler, which is slow

    with FlopCounterMode(display=False, custom_mapping=_CONVOLUTIONS) as counter:
        inputs = _inputs(model, source, target)
        if takes_cost(model) and hasattr(model, "embedding"):  # logits are computed in chunks, and kept for none
            hidden, kept = count_saved_bytes(model, inputs, call=model.hidden)
            logits = model.embedding.read_out(hidden, None)
        else:
            logits, kept = count_saved_bytes(model, inputs)
        logits.sum().backward()
    model.zero_grad()
    return counter.get_total_flops(), kept


@torch.no_grad()
def _count_decoding(model: Any, source: int, target: int) -> tuple[int, int]:
    from torch.utils.flop_counter import FlopCounterMode  # late, as it imports the compiler, which is slow

    sources, mask, targets = _inputs(model, source, target)
    model.eval()  # as it decodes
    with FlopCounterMode(display=False) as first:
        state = model.start(sources, mask)
        model.step(targets[:, 0], state)
    with FlopCounterMode(display=False) as later:
        for token in targets[:, 1:].unbind(1):
            model.step(token, state)
    model.train()
    return first.get_total_flops(), later.get_total_flops()
