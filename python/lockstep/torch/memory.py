"""Tensors in the memory of a process group, which the other workers of the host can read: the library
adds and copies them where they lie.

The library frees this memory when its group is closed. So the group is closed only after the last of
the tensors is gone.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
import weakref
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from lockstep._c import library


_outliving: list[Memory] = []  # of process groups that are closed, with tensors that are left


def close_outliving() -> None:
    """At exit: the library's groups are closed, whatever tensors are left. Else a launcher such as
    mpirun takes the worker for one that has failed."""
    for memory in list(_outliving):
        if memory._pid == os.getpid():  # not in a forked process
            memory.close(at_once=True)


class Memory:
    """The memory of a group of the library, which it closes in the end."""

    def __init__(self, pointer: int) -> None:
        self._pointer = pointer
        self._pid = os.getpid()
        self._lock = threading.RLock()  # a collection may free a tensor while one is made
        self._nblocks = 0
        self._closed = False

    def _allocate(self, nbytes: int) -> int:
        with self._lock:
            if self._closed:
                raise RuntimeError("lockstep: the process group is closed")
            address = library.ls_group_alloc(self._pointer, nbytes)
            if not address:
                raise MemoryError(f"lockstep: no memory for {nbytes} bytes")
            self._nblocks += 1
        return int(address)

    def _tensor(self, address: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        block = (ctypes.c_ubyte * (math.prod(shape) * dtype.itemsize)).from_address(address)
        # At exit the group is closed with all its memory.
        weakref.finalize(block, self._free, address).atexit = False
        return torch.frombuffer(block, dtype=dtype).view(shape)

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        n = math.prod(shape)
        if n == 0:
            return torch.empty(shape, dtype=dtype)
        return self._tensor(self._allocate(n * dtype.itemsize), shape, dtype)

    def holds(self, tensor: Tensor) -> bool:
        """Do the other workers of the host read the tensor where it lies?"""
        return self._readable(tensor.data_ptr(), tensor.nbytes)

    def _readable(self, address: int, nbytes: int) -> bool:
        with self._lock:
            return bool(self._pointer and library.ls_group_readable(self._pointer, address, nbytes))

    def move_here(self, tensor: Tensor) -> None:
        """Gives the storage of a tensor memory of the group, if there is room. All tensors that share
        the storage follow; an address taken before is invalid."""
        storage: Any = tensor.untyped_storage()  # of which the stubs lack a part
        nbytes = tensor.nbytes
        if self._closed or storage.nbytes() != nbytes or storage.is_shared() or self.holds(tensor):
            return
        address = self._allocate(nbytes)
        if not self._readable(address, nbytes):
            self._free(address)
            return
        new = self._tensor(address, tuple(tensor.shape), tensor.dtype)
        new.copy_(tensor)
        storage._swap_data_ptr_(new.untyped_storage())

    def _free(self, address: int) -> None:
        with self._lock:
            if not self._pointer:
                return
            library.ls_group_free(self._pointer, address)
            self._nblocks -= 1
        self._close_if_unused()

    def close(self, at_once: bool = False) -> None:
        """Closes the group: now, if it has no tensors, or at_once is set; else after the last of them."""
        with self._lock:
            if not self._closed:
                _outliving.append(self)
            self._closed = True
        self._close_if_unused(at_once)

    def _close_if_unused(self, at_once: bool = False) -> None:
        with self._lock:
            if not self._closed or (self._nblocks and not at_once):
                return
            pointer, self._pointer = self._pointer, 0
        if pointer:
            _outliving.remove(self)
            library.ls_group_close(pointer)


def empty(*shape: Any, dtype: torch.dtype | None = None, group: Any = None) -> Tensor:
    """A zeroed tensor in the memory of a process group: the sums and copies of this group read and
    write it where it lies, without copies in between. Not collective.

    shape    numbers, or a tuple
    dtype    None: PyTorch's default
    group    None: the default process group

    It has ordinary memory, which works as well, where the group's has no room left
    (LOCKSTEP_TORCH_ARENA_MIB), and for workers that don't share memory.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    group = group if group is not None else dist.group.WORLD
    found: Tensor = group.allocate_tensor(
        sizes, dtype=dtype if dtype is not None else torch.get_default_dtype()
    )
    return found
