"""The process group: each call of torch.distributed as calls of the library."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import os
import threading
import time
import weakref
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from lockstep._c import library
from lockstep.torch import launcher, meeting, several
from lockstep.torch.arguments import (
    BadType,
    BadValue,
    as_list,
    blocks_of,
    check_like,
    check_root,
    one,
    rooted_options,
)
from lockstep.torch.buckets import is_bucket
from lockstep.torch.lane import Job, Lane
from lockstep.torch.memory import Memory, close_outliving
from lockstep.torch.messages import Messages
from lockstep.torch.sparse import all_reduce_sparse
from lockstep.torch.types import copyable, flat, op_for, real, reducible
from lockstep.torch.work import AllWork, Done, Work, done

_START: dict[str, Any] = {
    name: getattr(library, f"ls_{name}_start")
    for name in ("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_v", "all_gather",
                 "all_gather_v", "broadcast", "gather", "scatter", "all_to_all_v", "barrier")
}  # fmt: skip
_VERDICT = timedelta(seconds=10)  # rank 0 says which ranks are late when its own time is over
# In the order in which they were opened, the same at all workers: each waits for the others as it is
# closed.
_open_groups: weakref.WeakValueDictionary[int, ProcessGroup] = weakref.WeakValueDictionary()
_nopened = itertools.count()
_Tensors = list[Tensor]
_DONE = Done()  # of a call that its caller has waited for


def _counts(n: Sequence[int]) -> Any:
    return (ctypes.c_size_t * len(n))(*n)


# PyTorch's stubs have the overloads of its own calls, of which a subclass in Python gets one.
_Base: Any = dist.ProcessGroup
_Options: Any = getattr(dist, "_Backend").Options


class ProcessGroup(_Base):  # type: ignore[misc]
    """A process group over a group of the library. Made by init_process_group("lockstep"), and by
    new_group() of such a process.

    Each call is made in the order of submission, which must be the same at all workers. Point-to-point
    messages have a group of their own, and may be sent and received in any order.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._store = store
        self._own_store = meeting.rounds_of(store, rank)
        self._rank = rank
        self._size = size
        self._timeout = timeout.total_seconds()
        self._pid = os.getpid()
        self._name = self._description = ""
        self._sequence = 0
        self._nmonitored = itertools.count()
        self._coalesced: list[Work] | None = None
        pointer = launcher.take_opened() or meeting.meet(self._own_store, rank, size, self._timeout)
        self._lane = Lane(pointer)
        self._memory = Memory(pointer)
        self._messages = Messages(meeting.duplicate(pointer), rank, size)
        self._closing = threading.Lock()
        self._number = next(_nopened)
        _open_groups[self._number] = self

    # ---- what PyTorch asks of a group ----

    def size(self) -> int:
        return self._size

    def rank(self) -> int:
        return self._rank

    def name(self) -> str:
        return "lockstep"

    def getBackendName(self) -> str:
        return "lockstep"

    # PyTorch's own side of the group has names only with a backend of its own.
    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupName(self) -> str:
        return self._name

    def setGroupDesc(self, description: str) -> None:
        self._description = description

    def getGroupDesc(self) -> str:
        return self._description

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def group_desc(self) -> str:
        return self._description

    @property
    def _device_types(self) -> list[torch.device]:
        # None while the group is made: PyTorch then attaches no flight recorder, which needs a
        # backend on PyTorch's own side of the group.
        made = self in dist.distributed_c10d._world.pg_map
        return [torch.device("cpu")] if made else []

    def _get_backend(self, device: Any) -> ProcessGroup:
        if torch.device(device).type != "cpu":
            raise RuntimeError(f"No backend type associated with device type {device}")
        return self

    get_backend = _get_backend
    supports_splitting = False
    supports_coalescing = False
    supports_shrinking = False
    supports_window = False
    supports_reconfigure = False
    _supports_time_estimate = False
    bound_device_id = None

    def get_group_store(self) -> Any:
        return self._store

    _get_store = get_group_store

    def _set_sequence_number_for_group(self) -> None:
        self._sequence = 0

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout.total_seconds()

    set_timeout = _set_default_timeout

    @property
    def options(self) -> Any:
        return _Options("lockstep", timedelta(seconds=self._timeout))

    def supports_tensor_alloc(self, device: Any) -> bool:
        return bool(torch.device(device).type == "cpu")

    def allocate_tensor(
        self, size: int | Sequence[int], *, dtype: torch.dtype, device: Any = "cpu"
    ) -> Tensor:
        """lockstep.torch.empty(); FSDP2 calls it, too."""
        if not self.supports_tensor_alloc(device):
            raise NotImplementedError(f"lockstep: allocate_tensor on {device}")
        return self._memory.empty((size,) if isinstance(size, int) else tuple(size), dtype)

    def __repr__(self) -> str:
        return f"<lockstep.torch.ProcessGroup: worker {self._rank} of {self._size}>"

    # ---- what the calls have in common ----

    def _limit(self, opts: Any) -> float:
        """Seconds of a call."""
        limit = getattr(opts, "timeout", None)
        given = limit.total_seconds() if limit is not None else 0.0
        return given if given > 0 else self._timeout

    def _start(self, job: Job, opts: Any) -> Work:
        self._sequence += 1
        job.limit = self._limit, opts
        asynchronous = getattr(opts, "asyncOp", True) or self._coalesced is not None
        if not asynchronous and self._lane.run(job):
            return _DONE
        work = self._lane.submit(job, asynchronous)
        if work is None:
            return done(job.result) if asynchronous else _DONE
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    def start_coalescing(self, device: Any = None) -> None:
        self._coalesced = []

    def end_coalescing(self, device: Any = None) -> Work:
        works, self._coalesced = self._coalesced or [], None
        return AllWork(works)

    _start_coalescing = start_coalescing
    _end_coalescing = end_coalescing

    # ---- reductions ----

    def _reduction(self, tensor: Tensor, op: Any, call: str) -> tuple[Any, tuple[Any, ...]]:
        tensor = real(tensor, op, call)
        at, n, dtype = reducible(tensor, call)
        return _START["all_reduce"], (at, at, n, dtype, op_for(op, dtype, call))

    def allreduce(self, tensors: Any, opts: Any = None, op: Any = None) -> Work:
        if opts is None:
            opts = op if op is not None else dist.AllreduceOptions()
        op = getattr(opts, "reduceOp", opts)
        if not isinstance(tensors, Tensor) and len(tensors) != 1:
            return self._allreduce_several(list(tensors), op, opts)
        tensor = one(tensors, "all_reduce")
        if tensor.layout is torch.sparse_coo:
            return all_reduce_sparse(self, tensor, op, opts)
        if is_bucket(tensor):
            self._memory.move_here(tensor)
        call = self._reduction(tensor, op, "all_reduce")
        return self._start(Job("all_reduce", [call], [tensor], tensor), opts)

    def _allreduce_several(self, tensors: _Tensors, op: Any, opts: Any) -> Work:
        name = "all_reduce"
        several.check_alike(tensors, name)
        total = several.combined(tensors, op, name)
        if total.layout is torch.sparse_coo:
            all_reduce_sparse(self, total, op, opts)
            several.copy_to(tensors, [total] * len(tensors))
            return done(tensors)

        def after() -> None:
            several.copy_to(tensors, [total] * len(tensors))

        call = self._reduction(total, op, name)
        return self._start(Job(name, [call], tensors, total, after), opts)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Work:
        opts = opts if opts is not None else dist.AllreduceCoalescedOptions()
        tensors = as_list(tensors)
        if not tensors:
            raise BadValue("lockstep: allreduce_coalesced: requires non-empty tensor list")
        once = several.once(tensors)  # a tensor may be there twice
        calls = [self._reduction(t, opts.reduceOp, "all_reduce") for t in once]
        return self._start(Job("all_reduce", calls, tensors, tensors), opts)

    def reduce(
        self, tensors: Any, opts: Any = None, op: Any = None, *, root: int | None = None
    ) -> Work:
        opts = rooted_options(dist.ReduceOptions, opts, root)
        if op is not None:  # reduce(tensor, root, op)
            opts.reduceOp = op
        tensors = as_list(tensors)
        check_root(opts, self._size, "reduce", len(tensors))
        tensor = one(tensors, "reduce")
        view = real(tensor, opts.reduceOp, "reduce")
        at, n, dtype = reducible(view, "reduce")
        to = at if opts.rootRank == self._rank else None
        arguments = (at, to, n, dtype, op_for(opts.reduceOp, dtype, "reduce"), opts.rootRank)
        return self._start(
            Job("reduce", [(_START["reduce"], arguments)], [tensor], tensor), opts
        )

    def _scattered(self, output: Tensor, input: Tensor, op: Any) -> tuple[Any, tuple[Any, ...]]:
        call = "reduce_scatter"
        output, input = real(output, op, call), real(input, op, call)
        check_like([input], output, call, sizes=False)
        at, n, dtype = reducible(input, call)
        to, m, _ = reducible(output, call)
        if n != m * self._size:
            raise BadValue(
                f"lockstep: {call}: input tensor must be the same size as output size times world "
                f"size: {n} elements, {m} times {self._size}"
            )
        return _START[call], (at, to, m, dtype, op_for(op, dtype, call))

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        opts = opts if opts is not None else dist.ReduceScatterOptions()
        call = self._scattered(output, input, opts.reduceOp)
        return self._start(Job("reduce_scatter", [call], [output], (output, input)), opts)

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter_single_coalesced(
        self, outputs: Any, inputs: Any, opts: Any = None
    ) -> Work:
        opts = opts if opts is not None else dist.ReduceScatterOptions()
        calls = [
            self._scattered(o, i, opts.reduceOp)
            for o, i in zip(as_list(outputs), as_list(inputs))
        ]
        return self._start(
            Job("reduce_scatter", calls, as_list(outputs), (outputs, inputs)), opts
        )

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        opts = opts if opts is not None else dist.ReduceScatterOptions()
        name = "reduce_scatter"
        output = one(outputs, name)
        blocks = blocks_of(inputs, self._size, name, "input")
        check_like(blocks, output, name, sizes=False)
        if blocks[self._rank].numel() != output.numel():
            raise BadValue(f"lockstep: {name}: invalid tensor size: {output.numel()} elements "
                             f"for a block of {blocks[self._rank].numel()}")  # fmt: skip
        whole = flat(blocks)
        if whole is None:
            whole = torch.cat([b.detach().reshape(-1) for b in blocks])
        view, to = real(whole, opts.reduceOp, name), real(output, opts.reduceOp, name)
        at, _, dtype = reducible(view, name)
        width = view.numel() // max(whole.numel(), 1)
        counts = _counts([b.numel() * width for b in blocks])
        out, _, _ = reducible(to, name)
        arguments = (at, out, counts, dtype, op_for(opts.reduceOp, dtype, name))
        return self._start(
            Job(name, [(_START["reduce_scatter_v"], arguments)], [output], (whole, output, counts)),
            opts,
        )

    # ---- copies ----

    def broadcast(self, tensors: Any, opts: Any = None, *, root: int | None = None) -> Work:
        opts = rooted_options(dist.BroadcastOptions, opts, root)
        tensors = as_list(tensors)
        check_root(opts, self._size, "broadcast", len(tensors))
        tensor, after = tensors[opts.rootTensor if opts.rootRank == self._rank else 0], None
        if len(tensors) > 1:
            several.check_alike(tensors, "broadcast")

            def after() -> None:
                several.copy_to(tensors, [tensor] * len(tensors))

        at, n, dtype = copyable(tensor, "broadcast")
        call = (_START["broadcast"], (at, n, dtype, opts.rootRank))
        return self._start(Job("broadcast", [call], tensors, tensor, after), opts)

    def _gathered(self, output: Tensor, input: Tensor) -> tuple[Any, tuple[Any, ...]]:
        call = "all_gather"
        check_like([input], output, call, sizes=False)
        at, n, dtype = copyable(input, call)
        to, m, _ = copyable(output, call)
        if m != n * self._size:
            raise BadValue(
                f"lockstep: {call}: output tensor size must be equal to world_size times input "
                f"tensor size: {m} elements, {self._size} times {n}"
            )
        return _START[call], (at, to, n, dtype)

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        call = self._gathered(output, input)
        return self._start(Job("all_gather", [call], [output], (output, input)), opts)

    _allgather_base = all_gather_single

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        calls = [self._gathered(o, i) for o, i in zip(as_list(outputs), as_list(inputs))]
        return self._start(Job("all_gather", calls, as_list(outputs), (outputs, inputs)), opts)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Blocks of different lengths, too, if each worker's list has them."""
        name = "all_gather"
        inputs = as_list(inputs)
        several.check_alike(inputs, name, "input ")
        if outputs and isinstance(outputs[0], Tensor):
            outputs = [outputs]
        if len(outputs) != len(inputs):
            raise BadValue(
                f"lockstep: {name}: requires input/output tensor lists to have the same length: "
                f"{len(outputs)} and {len(inputs)}"
            )
        n = len(inputs)
        for blocks in outputs:
            if len(blocks) != n * self._size:
                raise BadValue(
                    f"lockstep: {name}: invalid output tensor list: {len(blocks)} tensors for "
                    f"{self._size} workers with {n}"
                )
            check_like(blocks, inputs[0], name, sizes=n > 1)
        blocks, input = list(outputs[0]), inputs[0].contiguous()
        if n > 1:
            input = self._whole_input(inputs)
        own = sum(b.numel() for b in blocks[n * self._rank : n * (self._rank + 1)])
        if own != input.numel():
            raise BadValue(f"lockstep: {name}: invalid tensor size: {own} elements for an input "
                           f"of {input.numel()}")  # fmt: skip
        at, _, dtype = copyable(input, name)
        whole, after = self._output_of([b for blocks in outputs for b in blocks], name, len(outputs))
        to, nelements, _ = copyable(whole, name)
        width = nelements // max(whole.numel(), 1)
        counts = _counts(
            [sum(b.numel() for b in blocks[n * r : n * (r + 1)]) * width for r in range(self._size)]
        )
        call = (_START["all_gather_v"], (at, to, counts, dtype))
        result = blocks if n == 1 else list(outputs)
        return self._start(Job(name, [call], result, (whole, input, counts), after), opts)

    def allgather_coalesced(self, output_lists: Any, inputs: Any, opts: Any = None) -> Work:
        """output_lists    [size][tensors]"""
        if len(output_lists) != self._size:
            raise BadValue(
                f"lockstep: all_gather: output lists should be equal to world size: "
                f"{len(output_lists)} for {self._size} workers"
            )
        inputs = as_list(inputs)
        for lists in output_lists:
            if len(lists) != len(inputs):
                raise BadValue(
                    f"lockstep: all_gather: invalid output size: {len(lists)} tensors for "
                    f"{len(inputs)} inputs"
                )
            for i, (output, input) in enumerate(zip(lists, inputs)):
                if output.shape != input.shape:
                    raise BadValue(
                        f"lockstep: all_gather: invalid size of output tensor at index {i}: "
                        f"{list(output.shape)} for {list(input.shape)}"
                    )
                if output.dtype != input.dtype:
                    raise BadType(
                        f"lockstep: all_gather: invalid tensor type at index {i}: {output.dtype} "
                        f"for {input.dtype}"
                    )
        works = [
            self.allgather([[lists[i] for lists in output_lists]], [input], opts)
            for i, input in enumerate(inputs)
        ]
        return AllWork(works)

    def _output_of(self, blocks: _Tensors, call: str, nlists: int = 1) -> tuple[Tensor, Any]:
        """One tensor for all blocks, and what copies it to them (None: it is theirs). With several
        lists, one for the blocks of the first, which each list gets."""
        whole = flat(blocks) if nlists == 1 else None
        if whole is not None:
            return whole, None
        if any(b.device.type != "cpu" or b.layout != torch.strided for b in blocks):
            raise NotImplementedError(f"lockstep: {call}: tensors that are not dense ones of CPUs")
        sizes = [b.numel() for b in blocks[: len(blocks) // nlists]]
        whole = torch.empty(sum(sizes), dtype=blocks[0].dtype)

        def after() -> None:
            several.copy_to(blocks, torch.split(whole, sizes) * nlists)

        return whole, after

    def _whole_input(self, blocks: _Tensors) -> Tensor:
        whole = flat(blocks)
        if whole is None:
            whole = torch.cat([b.detach().reshape(-1) for b in blocks])
        return whole

    def _rooted(self, name: str, tensors: Any, others: Any, opts: Any) -> Work:
        """gather: each worker's tensor goes to `others` of the root; scatter: the other way."""
        gathers = name == "gather"
        side = "output" if gathers else "input"
        check_root(opts, self._size, name)
        own = one(tensors, name, "input " if gathers else "output ")
        if gathers:
            own = own.contiguous()
        at, n, dtype = copyable(own, name)
        whole: Tensor | None = None
        after, blocks = None, []
        if self._rank == opts.rootRank:
            blocks = blocks_of(others, self._size, name, side)
            check_like(blocks, own, name)
            if gathers:
                whole, after = self._output_of(blocks, name)
            else:
                whole = self._whole_input(blocks)
        elif others:
            raise BadValue(f"lockstep: {name}: requires empty {side} on non-root")
        far = None if whole is None else copyable(whole, name)[0]
        ends = (at, far) if gathers else (far, at)
        call = (_START[name], (*ends, n, dtype, opts.rootRank))
        result = blocks if gathers else [own]
        return self._start(Job(name, [call], result, (own, whole), after), opts)

    def gather(
        self, outputs: Any, inputs: Any, opts: Any = None, *, root: int | None = None
    ) -> Work:
        opts = rooted_options(dist.GatherOptions, opts, root)
        return self._rooted("gather", inputs, outputs, opts)

    def gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        chunks = list(output.chunk(self._size)) if self._rank == opts.rootRank else []
        return self.gather([chunks] if chunks else [], [input], opts)

    gather_into_tensor = gather_single

    def scatter(
        self, outputs: Any, inputs: Any, opts: Any = None, *, root: int | None = None
    ) -> Work:
        opts = rooted_options(dist.ScatterOptions, opts, root)
        return self._rooted("scatter", outputs, inputs, opts)

    def all_to_all_single(
        self, output: Tensor, input: Tensor, output_splits: Any, input_splits: Any, opts: Any = None
    ) -> Work:
        name = "all_to_all"
        check_like([input], output, name, sizes=False)
        to, _, dtype = copyable(output, name)
        at, _, _ = copyable(input, name)
        receives = self._split(output, output_splits, name)
        sends = self._split(input, input_splits, name)
        call = (_START["all_to_all_v"], (at, sends, to, receives, dtype))
        return self._start(
            Job(name, [call], [output], (output, input, sends, receives)), opts
        )

    alltoall_base = all_to_all_single

    def _split(self, tensor: Tensor, rows: Any, call: str) -> Any:
        """Elements for each worker: rows of the first dimension, or equal parts."""
        n, size = tensor.numel(), self._size
        scale = copyable(tensor, call)[1] // n if n else 1
        length = tensor.shape[0] if tensor.dim() else 1
        if not rows:
            if length % size:
                raise BadValue(
                    f"lockstep: {call}: Tensor's dim 0 does not divide equally across group size"
                )
            return _counts([n // size * scale] * size)
        if len(rows) != size or sum(rows) != length:
            raise BadValue(
                f"lockstep: {call}: Split sizes doesn't match total dim 0 size: {list(rows)} for "
                f"{length} rows and {size} workers"
            )
        row = n // length if length else 1
        return _counts([int(r) * row * scale for r in rows])

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        name = "all_to_all"
        outs = blocks_of(outputs, self._size, name, "output")
        ins = blocks_of(inputs, self._size, name, "input")
        check_like([*outs, *ins], outs[0], name, sizes=False)
        whole_in = self._whole_input(ins)
        whole_out, after = self._output_of(outs, name)
        at, n, dtype = copyable(whole_in, name)
        to, m, _ = copyable(whole_out, name)
        scale = n // whole_in.numel() if whole_in.numel() else m // max(whole_out.numel(), 1)
        sends = _counts([t.numel() * scale for t in ins])
        receives = _counts([t.numel() * scale for t in outs])
        call = (_START["all_to_all_v"], (at, sends, to, receives, dtype))
        uses = (whole_in, whole_out, sends, receives)
        return self._start(Job(name, [call], outs, uses, after), opts)

    # ---- meeting points ----

    def barrier(self, opts: Any = None) -> Work:
        return self._start(Job("barrier", [(_START["barrier"], ())], []), opts)

    def _has_come(self, key: str, seconds: float) -> bool:
        """Is the key there, now or within so many seconds? No answer of the store may be too late."""
        if seconds >= 0.001:  # 0 ms would be without a limit
            with contextlib.suppress(Exception):
                self._own_store.wait([key], timedelta(seconds=seconds))
        return bool(self._own_store.check([key]))

    def monitored_barrier(
        self, timeout: timedelta | None = None, wait_all_ranks: bool = False
    ) -> None:
        """A barrier at which rank 0 says which ranks have not come, by the store."""
        limit = getattr(timeout, "timeout", timeout)
        if limit is None:
            limit = timedelta(seconds=self._timeout)
        prefix = f"monitored/{next(self._nmonitored)}"
        ms = int(limit / timedelta(milliseconds=1))
        if self._rank:
            self._own_store.set(f"{prefix}/{self._rank}", b"")
            try:
                self._own_store.wait([f"{prefix}/passed"], limit + _VERDICT)
                verdict = self._own_store.get(f"{prefix}/passed").decode()
            except Exception:
                verdict = f"Rank 0 did not pass it in {ms} ms"
            if verdict:
                raise RuntimeError(
                    f"[Rank {self._rank}]: Rank {self._rank} successfully reached monitoredBarrier, "
                    f"but received errors while waiting for send/recv from rank 0: {verdict}"
                )
            return
        late: list[int] = []
        end = time.monotonic() + limit.total_seconds()
        for rank in range(1, self._size):
            if not self._has_come(f"{prefix}/{rank}", end - time.monotonic()):
                late.append(rank)
                if not wait_all_ranks:
                    break
        names = ", ".join(map(str, late))
        text = f"Rank{'s' * (len(late) > 1)} {names} failed to pass monitoredBarrier in {ms} ms"
        if ms <= 0:
            late, text = [0], f"Rank 0 timed out in monitoredBarrier after {ms} ms"
        self._own_store.set(f"{prefix}/passed", text.encode() if late else b"")
        if late:
            raise RuntimeError(f"[Rank 0]: {text}")

    # ---- from one worker to another ----

    def send(self, tensors: Any, destination: int, tag: int = 0) -> Work:
        tensor = one(tensors, "send")
        copyable(tensor, "send")
        return self._messages.send(tensor, destination, tag, self._timeout)

    def recv(self, tensors: Any, source: int, tag: int = 0) -> Work:
        tensor = one(tensors, "recv")
        copyable(tensor, "recv")
        return self._messages.receive(tensor, source, tag, self._timeout)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        tensor = one(tensors, "recv")
        copyable(tensor, "recv")
        return self._messages.receive(tensor, None, tag, self._timeout)

    recvAnysource = recv_anysource

    # ---- the end ----

    def shutdown(self, at_exit: bool = False) -> None:
        """Leaves the group, after the last of its tensors is gone. Not a barrier."""
        with self._closing:
            if _open_groups.pop(self._number, None) is not None:
                if self._pid == os.getpid():
                    self._messages.close()
                    self._lane.close()
                    self._memory.close(at_exit)

    def abort(self) -> None:
        self.shutdown()

    def _refuse(self, call: str) -> Any:
        raise NotImplementedError(f"lockstep: no {call}")

    def split_group(self, *arguments: Any, **named: Any) -> Any:
        return self._refuse("split_group; use new_group")

    def merge_remote_group(self, *arguments: Any, **named: Any) -> Any:
        return self._refuse("merge_remote_group")

    def reconfigure(self, *arguments: Any) -> Any:
        return self._refuse("reconfigure")

    def new_window(self, *arguments: Any) -> Any:
        return self._refuse("new_window")


@atexit.register
def _close_all() -> None:
    for _, group in sorted(_open_groups.items()):
        group.shutdown(at_exit=True)
    close_outliving()


def create(store: Any, rank: int, size: int, timeout: timedelta) -> ProcessGroup:
    """What torch.distributed calls for the backend "lockstep"."""
    return ProcessGroup(store, rank, size, timeout)
