"""DDP's buckets of gradients in the memory of a process group.

DDP's reducer, which is C++, makes the buckets itself and asks only backends in C++ for their memory. So
a bucket is moved when it is reduced for the first time: the memory of its storage is exchanged, and
the gradients that are views of it follow. Later reductions read and write it where it lies.

User's tensors are never moved, since NumPy arrays may share their memory. A bucket that has not been
reduced yet is known to the reducer alone.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor

_LEAST = 256 << 10  # bytes; a smaller sum takes as long in other memory
_backward: Any = getattr(getattr(torch.autograd.graph, "_engine_run_backward", None), "__code__", None)
_can_move = hasattr(torch.UntypedStorage, "_swap_data_ptr_")


def is_bucket(tensor: Tensor) -> bool:
    """Is it a bucket worth moving? To be asked by what the reducer calls: below that call there is no
    function in Python until the one that began the backward pass."""
    if tensor.nbytes < _LEAST or not _can_move:
        return False
    caller = sys._getframe(1).f_back
    return caller is not None and caller.f_code is _backward
