"""Calls with several tensors of one worker, each of which counts as the tensor of a separate worker.
The calls of torch.distributed give one; programs that call a process group itself may give more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributed import ReduceOp

from lockstep.torch.arguments import BadValue, check_like

_COMBINE: dict[Any, Any] = {
    ReduceOp.SUM: torch.add,
    ReduceOp.PRODUCT: torch.mul,
    ReduceOp.MIN: torch.minimum,
    ReduceOp.MAX: torch.maximum,
    ReduceOp.BAND: torch.bitwise_and,
    ReduceOp.BOR: torch.bitwise_or,
    ReduceOp.BXOR: torch.bitwise_xor,
}


def check_alike(tensors: Sequence[Tensor], call: str, side: str = "") -> None:
    if not tensors:
        raise BadValue(f"lockstep: {call}: requires non-empty {side}tensor list")
    check_like(tensors, tensors[0], call)
    if any(t.shape != tensors[0].shape for t in tensors):
        raise BadValue(f"lockstep: {call}: invalid tensor size: tensors of several shapes")


def combined(tensors: Sequence[Tensor], reduce_op: Any, call: str) -> Tensor:
    """The reduction of this worker's tensors, in memory of its own."""
    combine = _COMBINE.get(getattr(reduce_op, "op", reduce_op))
    if combine is None:
        raise NotImplementedError(f"lockstep: {call}: no operation {reduce_op} of several tensors")
    total = tensors[0].detach().clone()
    for t in tensors[1:]:
        total = combine(total, t.detach())
    return total


def copy_to(tensors: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """Copies sources to tensors, of one length."""
    with torch.no_grad(), torch.inference_mode(any(t.is_inference() for t in tensors)):
        for tensor, source in zip(tensors, sources):
            if tensor is source:
                continue
            if tensor.layout is torch.strided:
                tensor = tensor.detach()  # not of a sparse one: that has indices of its own
                source = source.view(tensor.shape)
            tensor.copy_(source)


def once(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors without those whose memory is that of one before them."""
    found: dict[Any, Tensor] = {}
    for t in tensors:
        found.setdefault((t.data_ptr(), t.numel(), t.dtype) if t.numel() else id(t), t)
    return list(found.values())
