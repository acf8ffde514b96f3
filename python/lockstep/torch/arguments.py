"""Arguments of the calls: lists of tensors, roots, options; and what is refused.

A call that is refused raises before anything is sent, as ValueError or TypeError, which are also the
RuntimeError that other backends raise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor


class BadValue(ValueError, RuntimeError):
    pass


class BadType(TypeError, RuntimeError):
    pass


def rooted_options(kind: Any, opts: Any, root: int | None) -> Any:
    """PyTorch's options of a call with a root, or its number."""
    if opts is None or isinstance(opts, int):
        number, opts = (opts if root is None else root) or 0, kind()
        opts.rootRank = number
    return opts


def check_root(opts: Any, size: int, call: str, ntensors: int = 1) -> None:
    if not 0 <= opts.rootRank < size:
        raise BadValue(f"lockstep: {call}: invalid root rank: {opts.rootRank} of {size} workers")
    index = getattr(opts, "rootTensor", 0)
    if not 0 <= index < ntensors:
        raise BadValue(f"lockstep: {call}: invalid root tensor: {index} of {ntensors}")


def as_list(tensors: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def one(tensors: Tensor | Sequence[Tensor], call: str, side: str = "") -> Tensor:
    if isinstance(tensors, Tensor):
        return tensors
    if len(tensors) != 1:
        raise BadValue(f"lockstep: {call}: requires a single-element {side}tensor list")
    return tensors[0]


def blocks_of(tensors: Sequence[Any], size: int, call: str, side: str) -> list[Tensor]:
    """The tensors of all workers; in a list of one list, as PyTorch gives them."""
    inner = tensors
    if not tensors or not isinstance(tensors[0], Tensor):
        if len(tensors) != 1:
            raise BadValue(f"lockstep: {call}: requires a single-element {side} list")
        inner = tensors[0]
    if len(inner) != size:
        raise BadValue(
            f"lockstep: {call}: Incorrect {side} list size {len(inner)}. {side.capitalize()} list "
            f"size should be {size}, the number of workers"
        )
    return list(inner)


def check_like(tensors: Sequence[Tensor], like: Tensor, call: str, sizes: bool = True) -> None:
    for t in tensors:
        if t.layout != like.layout:
            raise BadType(f"lockstep: {call}: invalid tensor layout: {t.layout} beside {like.layout}")
        if t.dtype != like.dtype:
            raise BadType(f"lockstep: {call}: invalid tensor type: {t.dtype} beside {like.dtype}")
        if sizes and t.numel() != like.numel():
            raise BadValue(
                f"lockstep: {call}: invalid tensor size: {t.numel()} elements beside {like.numel()}"
            )
