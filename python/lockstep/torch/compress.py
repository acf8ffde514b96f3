"""Communication hooks of DDP that send few bytes, by the library's compressed all-reduces.

    state = lockstep.torch.Compression("int8")
    model.register_comm_hook(state, lockstep.torch.compressed)

What an encoding loses is added to the next step's gradient, so nothing is lost for good. For a number
of workers the result has the same bits each time, at all workers.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from lockstep._c import ErrorStruct, library
from lockstep.torch.lane import Job
from lockstep.torch.types import check

_GradBucket: Any = vars(dist)["GradBucket"]
KINDS = ("topk", "onebit", "int8", "int4", "powersgd", "bf16")  # in the order of the library
_AVG = 1


class _How(ctypes.Structure):
    """ls_compression."""

    _fields_ = [
        ("kind", ctypes.c_int), ("feedback", ctypes.c_int), ("op", ctypes.c_int),
        ("k", ctypes.c_size_t), ("ratio", ctypes.c_double), ("block", ctypes.c_size_t),
        ("sign_scale", ctypes.c_int), ("rank", ctypes.c_int), ("rows", ctypes.c_size_t),
        ("decay", ctypes.c_float), ("two_hops", ctypes.c_bool), ("seed", ctypes.c_uint64),
        ("step", ctypes.c_uint64), ("virtual_workers", ctypes.c_int),
    ]  # fmt: skip


class _Buffers(ctypes.Structure):
    """ls_compression_state."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("errors", "shared", "sums")]


_all_reduce = library.ls_all_reduce_compressed
_all_reduce.restype = ctypes.c_int
_all_reduce.argtypes = [
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(_How),
    ctypes.POINTER(_Buffers), ctypes.POINTER(ErrorStruct),
]  # fmt: skip
_shared = library.ls_compression_shared
_shared.restype = ctypes.c_size_t
_shared.argtypes = [ctypes.POINTER(_How), ctypes.c_size_t]


def _call(group: int, at: int, n: int, how: Any, buffers: Any, _request: Any, error: Any) -> int:
    return int(_all_reduce(group, at, at, n, how, buffers, error))


@dataclass
class _Bucket:
    """What is carried from step to step for one bucket of gradients."""

    how: _How
    errors: Tensor
    shared: Tensor
    step: int = 0


class Compression:
    """How gradients are compressed, and what is carried from step to step.

    kind     "int8", "int4", "onebit", "bf16", "topk" (`ratio`: the part of the elements), "powersgd"
             (`rank`)
    group    the process group; None: the default one
    """

    def __init__(
        self, kind: str, group: Any = None, *, ratio: float = 0.0, block: int = 0, rank: int = 0,
        seed: int = 0,
    ) -> None:  # fmt: skip
        if kind not in KINDS:
            raise ValueError(f"Compression: no kind {kind!r}; there are {', '.join(KINDS)}")
        self.group = group
        self._how = {"kind": KINDS.index(kind), "op": _AVG, "ratio": ratio, "block": block,
                     "rank": rank, "seed": seed}  # fmt: skip
        self._buckets: dict[int, _Bucket] = {}

    def _bucket(self, index: int, n: int) -> _Bucket:
        """DDP makes its buckets anew after the first step: then their state begins anew, too."""
        b = self._buckets.get(index)
        if b is None or b.errors.numel() != n:
            how = _How(**self._how)
            shared = torch.zeros(_shared(ctypes.byref(how), n))
            b = self._buckets[index] = _Bucket(how, torch.zeros(n), shared)
        return b

    def start(self, index: int, x: Tensor) -> Any:
        """x becomes the average; its future has it."""
        if x.dtype != torch.float32:
            raise NotImplementedError(f"lockstep: compressed all_reduce of {x.dtype}; only float32")
        check(x, "compressed all_reduce")
        b = self._bucket(index, x.numel())
        b.how.step = b.step
        b.step += 1
        buffers = _Buffers(b.errors.data_ptr(), b.shared.data_ptr() if b.shared.numel() else None)
        group: Any = self.group or dist.group.WORLD
        arguments = (x.data_ptr(), x.numel(), ctypes.byref(b.how), ctypes.byref(buffers))
        job = Job("all_reduce", [(_call, arguments)], [x], (x, b, buffers), blocking=True)
        return group._start(job, None).get_future()


def compressed(state: Compression, bucket: _GradBucket) -> Any:
    """A communication hook of DistributedDataParallel."""
    return state.start(bucket.index(), bucket.buffer()).then(lambda f: f.value()[0])


# DDP compares a hook's annotations with the classes themselves, not with their names.
compressed.__annotations__.update(
    {"bucket": _GradBucket, "return": torch.futures.Future[torch.Tensor]}
)
