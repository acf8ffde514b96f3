"""Tensors as the library's buffers: types of elements, operations, and what is refused."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributed import ReduceOp

from lockstep.ops import Op

# ls_dtype. Elements of other types are copied as bytes, and can't be reduced.
U8 = 7
DTYPES: dict[torch.dtype, int] = {
    torch.float64: 0,
    torch.float32: 1,
    torch.bfloat16: 2,
    torch.float16: 3,
    torch.int64: 4,
    torch.int32: 5,
    torch.int8: 6,
    torch.uint8: U8,
    torch.uint16: 8,
    torch.uint32: 9,
    torch.uint64: 10,
    torch.int16: 11,
    torch.bool: 12,
}
_FLOATS = {0, 1, 2, 3}
_BOOL = 12

_OPS: dict[Any, Op] = {
    ReduceOp.SUM: Op.SUM,
    ReduceOp.AVG: Op.AVG,
    ReduceOp.PRODUCT: Op.PROD,
    ReduceOp.MIN: Op.MIN,
    ReduceOp.MAX: Op.MAX,
    ReduceOp.BAND: Op.BAND,
    ReduceOp.BOR: Op.BOR,
    ReduceOp.BXOR: Op.BXOR,
}
# For booleans as bytes of 0 and 1, what other backends compute: 1 + 1 is true.
_OF_BOOL = {
    Op.SUM: Op.LOR,
    Op.MAX: Op.LOR,
    Op.BOR: Op.LOR,
    Op.PROD: Op.LAND,
    Op.MIN: Op.LAND,
    Op.BAND: Op.LAND,
    Op.BXOR: Op.LXOR,
}


_op_codes: dict[tuple[Any, int], int] = {}  # what op_for() has found


def op_for(reduce_op: Any, dtype: int, call: str) -> int:
    """The ls_op of a ReduceOp on elements of a type. Raises NotImplementedError."""
    code = _op_codes.get((reduce_op, dtype))
    if code is None:
        code = _op_codes[reduce_op, dtype] = _find_op(reduce_op, dtype, call)
    return code


def _find_op(reduce_op: Any, dtype: int, call: str) -> int:
    kind = getattr(reduce_op, "op", reduce_op)
    op = _OPS.get(kind)
    if op is None:
        raise NotImplementedError(f"lockstep: {call}: no operation {kind}")
    if dtype == _BOOL:
        op = _OF_BOOL.get(op)
        if op is None:
            raise NotImplementedError(f"lockstep: {call}: no average of booleans")
    elif op == Op.AVG and dtype not in _FLOATS:
        raise NotImplementedError(f"lockstep: {call}: no average of integers; use ReduceOp.SUM")
    elif op in (Op.BAND, Op.BOR, Op.BXOR) and dtype in _FLOATS:
        raise NotImplementedError(f"lockstep: {call}: no {kind} of floating-point elements")
    return int(op)


def check(tensor: Tensor, call: str) -> None:
    if not tensor.is_cpu:
        raise NotImplementedError(
            f"lockstep: {call}: a tensor on {tensor.device}; the backend is for CPUs"
        )
    if tensor.layout is not torch.strided:
        raise NotImplementedError(f"lockstep: {call}: a tensor of layout {tensor.layout}")
    if not tensor.is_contiguous():
        raise ValueError(f"lockstep: {call}: Tensors must be contiguous")


def reducible(tensor: Tensor, call: str) -> tuple[int, int, int]:
    """Address, elements and ls_dtype."""
    code = DTYPES.get(tensor.dtype)
    if code is None:
        raise NotImplementedError(f"lockstep: {call}: no reduction of {tensor.dtype}")
    check(tensor, call)
    return tensor.data_ptr(), tensor.numel(), code


def real(tensor: Tensor, reduce_op: Any, call: str) -> Tensor:
    """A complex tensor as one of real numbers, where its sum is theirs."""
    if not tensor.is_complex():
        return tensor
    if getattr(reduce_op, "op", reduce_op) not in (ReduceOp.SUM, ReduceOp.AVG):
        raise NotImplementedError(f"lockstep: {call}: of complex tensors only SUM and AVG")
    return torch.view_as_real(tensor)


def copyable(tensor: Tensor, call: str) -> tuple[int, int, int]:
    """Address, elements and ls_dtype; of types that the library has not, bytes."""
    check(tensor, call)
    code = DTYPES.get(tensor.dtype)
    if code is None:
        return tensor.data_ptr(), tensor.numel() * tensor.element_size(), U8
    return tensor.data_ptr(), tensor.numel(), code


def flat(tensors: list[Tensor]) -> Tensor | None:
    """A tensor over the memory of all, if they lie one behind the other; else None."""
    first = tensors[0]
    at = first.data_ptr()
    storage = first.untyped_storage().data_ptr()
    n = 0
    for t in tensors:
        if (
            t.data_ptr() != at
            or t.dtype != first.dtype
            or not t.is_contiguous()
            or t.untyped_storage().data_ptr() != storage
        ):
            return None
        at += t.numel() * t.element_size()
        n += t.numel()
    return first.detach().as_strided((n,), (1,), first.storage_offset())
