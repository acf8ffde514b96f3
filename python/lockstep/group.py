"""Groups of workers, and the collectives that keep them in step.

Shapes in this file: x has the same shape and dtype at all workers, if nothing else is said. Results
are new NumPy arrays, or `out`. Each collective is called by all workers of the group in the same
order; it returns when its result is there. Its `_start` form returns a Future at once.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lockstep import arrays
from lockstep._c import STARTS, ErrorStruct, Options, Pointer, library
from lockstep._c import Meeting as MeetingStruct
from lockstep.errors import Error
from lockstep.future import Future
from lockstep.handle import Handle, ending_at_interrupt
from lockstep.ops import Op, op_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from lockstep.arrays import Array
    from lockstep.ops import OpLike

_START: dict[str, Any] = {name: getattr(library, f"ls_{name}_start") for name in STARTS}
# At the worker where one of these is done, all workers have started it.
_SYNCHRONISES = {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier"}
_DEFAULT_TIMEOUT = 300.0


class Meeting(NamedTuple):
    """The ranks and the meeting place of a group, for programs that agree on them by themselves, in
    place of a launcher's variables. Workers meet over TCP, and workers on one host share memory. A
    process may open any number of such groups, each with some of the other processes.

    address      worker 0's: "host:port", "[ipv6]:port"
    key          the join key, 16 characters at least, the same at all workers; None:
                 $LOCKSTEP_KEY, or the file of $LOCKSTEP_KEY_FILE
    listen_fd    at worker 0: the descriptor of a socket that listens at the address, which the
                 library duplicates; 0: worker 0 opens one
    """

    rank: int
    size: int
    address: str
    key: str | None = None
    listen_fd: int = 0

    def _struct(self) -> MeetingStruct:
        return MeetingStruct(
            rank=_int(self.rank, "rank"),
            size=_int(self.size, "size"),
            address=_text(self.address),
            key=_text(self.key),
            listen_fd=_int(self.listen_fd, "listen_fd"),
        )


class Counters(NamedTuple):
    """What this worker has sent since the group was opened. Shared memory needs no messages."""

    calls: int
    messages_sent: int
    bytes_sent: int
    bytes_read: int  # from other workers' memory


def _text(value: str | None) -> bytes | None:
    """Raises ValueError where C would read only a part."""
    if value is not None and "\0" in value:
        raise ValueError(f"{value!r} has a zero byte")
    return None if value is None else value.encode()


class Group:
    """The workers that act together: ranks 0 to size - 1.

    `with` closes the group at its end. One thread at a time calls a group (others wait for it);
    another thread uses another group, of dup(). Errors of the library are Error; its code says
    whether the group can still be used.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._rank: int = library.ls_group_rank(handle.pointer)
        self._size: int = library.ls_group_size(handle.pointer)
        self._closed = False

    @classmethod
    def open(
        cls,
        *,
        transport: str | None = None,
        algorithm: str | None = None,
        timeout: float = _DEFAULT_TIMEOUT,
        report: float = 10.0,
        arena: int = 64 << 20,
        insecure: bool = False,
        links: str | None = None,
        meeting: Meeting | None = None,
    ) -> Group:
        """The group of all workers that were started together, by `lockstep run`, mpirun, srun or
        torchrun; a group of one in a program that was started alone; with a meeting, of the workers
        that meet there. Collective.

        transport    "shm", "tcp", "mpi"; None: $LOCKSTEP_TRANSPORT, or the best there is
        algorithm    forces one by name; None: $LOCKSTEP_ALGORITHM, or the fastest by the cost model
        timeout      seconds of a wait, after which the group can only be closed; < 0: none
        report       seconds of a wait, after which late workers are reported on stderr; < 0: never
        arena        bytes of each worker, for empty() and messages
        insecure     TCP without key and encryption
        links        a file of the links' speeds; None: $LOCKSTEP_LINKS, or they are measured
        meeting      where the workers meet, on any hosts; None: as the environment says

        While a group is opened, split or duplicated, Ctrl-C ends the process.
        """
        if not timeout or not report:
            raise ValueError("open: timeout and report are seconds, or negative for none; not 0")
        options = Options(
            transport=_text(transport),
            algorithm=_text(algorithm),
            timeout_s=timeout,
            report_s=report,
            arena_nbytes=arena,
            insecure=insecure,
            links=_text(links),
        )
        if meeting is not None:
            options.meeting = ctypes.pointer(meeting._struct())
        pointer, error = Pointer(), ErrorStruct()
        with ending_at_interrupt():
            if library.ls_group_open(
                ctypes.byref(options), ctypes.byref(pointer), ctypes.byref(error)
            ):
                raise Error(error.code, error.msg.decode(errors="replace"))
        assert pointer.value
        return cls(Handle(pointer.value, timeout))

    @property
    def rank(self) -> int:
        """This worker's number, 0 to size - 1."""
        return self._rank

    @property
    def size(self) -> int:
        """The number of workers."""
        return self._size

    def close(self) -> None:
        """Leaves the group; not a barrier. Futures that are not done can't be waited for any more.
        If there are arrays of empty(), the group is left after the last of them is gone."""
        if not self._closed:
            self._closed = True
            self._handle.close()

    def __enter__(self) -> Group:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_closed"):
            self.close()

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<lockstep.Group: worker {self._rank} of {self._size}{state}>"

    def split(self, color: int, key: int = 0) -> Group | None:
        """Workers of one color form a new group, ranked by key, then by rank in this one; None with
        a negative color. Collective on this group; the new one's calls are independent of it."""
        handle = self._handle.divide(library.ls_group_split, color, key)
        return Group(handle) if handle else None

    def dup(self) -> Group:
        """A second group of the same workers. Collective."""
        handle = self._handle.divide(library.ls_group_dup)
        assert handle
        return Group(handle)

    def empty(self, shape: int | Sequence[int], dtype: DTypeLike = np.float64) -> Array:
        """An array in the group's memory, zeroed: collectives on it need no copies between workers
        of one host. From the arena where it has room, else ordinary memory. Not collective."""
        kind = np.dtype(dtype)
        arrays.code_of(kind, "empty")
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(n < 0 for n in shape):
            raise ValueError(f"empty: the shape {shape} has a negative length")
        nbytes = kind.itemsize * int(np.prod(shape, dtype=np.int64))
        return np.asarray(self._handle.alloc(nbytes)).view(kind).reshape(shape)

    def counters(self) -> Counters:
        """What this worker has sent since the group was opened."""
        self._handle.check()
        c = library.ls_group_counters(self._handle.pointer)
        return Counters(c.calls, c.messages_sent, c.bytes_sent, c.bytes_read)

    def explain(self, collective: str, count: int, dtype: DTypeLike = np.float32) -> str:
        """A line with the algorithm of a collective of count elements, and why. Not collective."""
        self._handle.check()
        code, text, error = (
            arrays.code_of(np.dtype(dtype), "explain"),
            ctypes.create_string_buffer(1024),
            ErrorStruct(),
        )
        if library.ls_group_explain(
            self._handle.pointer,
            collective.encode(),
            count,
            code,
            text,
            len(text),
            ctypes.byref(error),
        ):
            raise Error(error.code, error.msg.decode(errors="replace"))
        return text.value.decode()

    # ---- what the calls have in common ----

    def _start(self, name: str, result: Any, uses: tuple[Any, ...], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future(self._handle, result, name in _SYNCHRONISES, uses)
        return future._start(name, _START[name], arguments)

    def _blocks(self, x: Array, call: str) -> int:
        """Elements of a block of x: [size, ...]."""
        if x.ndim == 0 or x.shape[0] != self._size:
            raise ValueError(
                f"{call}: x has the shape {x.shape}; the first length must be {self._size}, the "
                "group's size"
            )
        return x.size // self._size

    def _is_root(self, root: int) -> bool:
        return root == self._rank

    def _counts(self, counts: Sequence[int], row: int, call: str) -> Any:
        """The library's counts [size]: rows of so many elements."""
        rows = [int(n) for n in counts]
        if len(rows) != self._size or any(n < 0 for n in rows):
            raise ValueError(
                f"{call}: counts must be {self._size} numbers, none negative; they are {rows}"
            )
        return (ctypes.c_size_t * self._size)(*(n * row for n in rows))

    # ---- reductions ----

    def all_reduce_start(
        self, x: ArrayLike, op: OpLike = Op.SUM, *, out: Any = None
    ) -> Future[Array]:
        """all_reduce() as a Future."""
        call = "all_reduce"
        a, o = arrays.as_input(x, call), op_of(op, call)
        r = arrays.result_for(out, a.shape, a.dtype, call)
        code, at = arrays.code_of(a.dtype, call), arrays.address(a)
        to = at if r is a else arrays.address(r)
        return self._start(call, r, (a, r), at, to, a.size, code, o)

    def all_reduce(self, x: ArrayLike, op: OpLike = Op.SUM, *, out: Any = None) -> Array:
        """The reduction of every worker's x, at all workers: an array like x. `out` may be x."""
        return self.all_reduce_start(x, op, out=out).wait()

    def reduce_start(
        self, x: ArrayLike, op: OpLike = Op.SUM, root: int = 0, *, out: Any = None
    ) -> Future[Array | None]:
        """reduce() as a Future."""
        call = "reduce"
        a, o = arrays.as_input(x, call), op_of(op, call)
        code = arrays.code_of(a.dtype, call)
        r = arrays.result_for(out, a.shape, a.dtype, call) if self._is_root(root) else None
        to = None if r is None else arrays.address(r)
        return self._start(call, r, (a, r), arrays.address(a), to, a.size, code, o, root)

    def reduce(
        self, x: ArrayLike, op: OpLike = Op.SUM, root: int = 0, *, out: Any = None
    ) -> Array | None:
        """The reduction of every worker's x, at the root alone: an array like x; elsewhere None."""
        return self.reduce_start(x, op, root, out=out).wait()

    def reduce_scatter_start(
        self, x: ArrayLike, op: OpLike = Op.SUM, *, out: Any = None
    ) -> Future[Array]:
        """reduce_scatter() as a Future."""
        call = "reduce_scatter"
        a, o = arrays.as_input(x, call), op_of(op, call)
        n, code = self._blocks(a, call), arrays.code_of(a.dtype, call)
        r = arrays.result_for(out, a.shape[1:], a.dtype, call)
        return self._start(call, r, (a, r), arrays.address(a), arrays.address(r), n, code, o)

    def reduce_scatter(self, x: ArrayLike, op: OpLike = Op.SUM, *, out: Any = None) -> Array:
        """x: [size, ...]. Worker r gets block r of the reduction: [...]."""
        return self.reduce_scatter_start(x, op, out=out).wait()

    def reduce_scatter_v_start(
        self, x: ArrayLike, counts: Sequence[int], op: OpLike = Op.SUM, *, out: Any = None
    ) -> Future[Array]:
        """reduce_scatter_v() as a Future."""
        call = "reduce_scatter_v"
        a, o = arrays.as_input(x, call), op_of(op, call)
        code, c = arrays.code_of(a.dtype, call), self._counts(counts, _row(a, call), call)
        _check_rows(a, sum(counts), "sum(counts)", call)
        r = arrays.result_for(out, (counts[self._rank], *a.shape[1:]), a.dtype, call)
        return self._start(call, r, (a, r, c), arrays.address(a), arrays.address(r), c, code, o)

    def reduce_scatter_v(
        self, x: ArrayLike, counts: Sequence[int], op: OpLike = Op.SUM, *, out: Any = None
    ) -> Array:
        """x: [sum(counts), ...]. Worker r gets counts[r] rows of the reduction: [counts[r], ...].

        counts    [size] rows of each worker, the same at all
        """
        return self.reduce_scatter_v_start(x, counts, op, out=out).wait()

    def _scan(self, call: str, x: ArrayLike, op: OpLike, out: Any) -> Future[Any]:
        a, o = arrays.as_input(x, call), op_of(op, call)
        code = arrays.code_of(a.dtype, call)
        nothing = call == "exscan" and self._rank == 0 and out is None
        r = None if nothing else arrays.result_for(out, a.shape, a.dtype, call)
        to = None if r is None else arrays.address(r)
        return self._start(call, r, (a, r), arrays.address(a), to, a.size, code, o)

    def scan_start(self, x: ArrayLike, op: OpLike = Op.SUM, *, out: Any = None) -> Future[Array]:
        """scan() as a Future."""
        return self._scan("scan", x, op, out)

    def scan(self, x: ArrayLike, op: OpLike = Op.SUM, *, out: Any = None) -> Array:
        """The reduction of x over workers 0 to this one: an array like x. No AVG."""
        return self.scan_start(x, op, out=out).wait()

    def exscan_start(
        self, x: ArrayLike, op: OpLike = Op.SUM, *, out: Any = None
    ) -> Future[Array | None]:
        """exscan() as a Future."""
        return self._scan("exscan", x, op, out)

    def exscan(self, x: ArrayLike, op: OpLike = Op.SUM, *, out: Any = None) -> Array | None:
        """The reduction of x over the workers before this one: an array like x. At worker 0 None,
        or `out` untouched. No AVG."""
        return self.exscan_start(x, op, out=out).wait()

    # ---- sums for any number of workers ----

    def virtual_workers(self, virtual_workers: int) -> range:
        """This worker's virtual workers, of all of them, 0 to virtual_workers - 1."""
        self._handle.check()
        first, end = ctypes.c_int(), ctypes.c_int()
        library.ls_group_virtual_workers(
            self._handle.pointer,
            _int(virtual_workers, "virtual_workers"),
            ctypes.byref(first),
            ctypes.byref(end),
        )
        return range(first.value, end.value)

    def all_reduce_virtual(
        self, x: ArrayLike, virtual_workers: int, op: OpLike = Op.SUM, *, out: Any = None
    ) -> Array:
        """x: [own, ...], the contributions of this worker's virtual workers. The reduction of those
        of all virtual workers, at all workers: [...]. It has the same bits for any number of
        workers. AVG divides by virtual_workers.

        virtual_workers    of all workers together, the same at all, and at least their number; this
                           worker's own are self.virtual_workers(virtual_workers)
        out                may be x[0]

        Ctrl-C ends the process.
        """
        call = "all_reduce_virtual"
        a, o, own = arrays.as_input(x, call), op_of(op, call), self.virtual_workers(virtual_workers)
        row, code = _row(a, call), arrays.code_of(a.dtype, call)
        if virtual_workers >= self._size:  # else the library says what is wrong
            _check_rows(a, len(own), "the number of this worker's virtual workers", call)
        r = arrays.result_for(out, a.shape[1:], a.dtype, call)
        self._handle.call(
            library.ls_all_reduce_virtual,
            arrays.address(a),
            arrays.address(r),
            row,
            code,
            o,
            virtual_workers,
        )
        return r

    # ---- copies ----

    def broadcast_start(self, buf: Any, root: int = 0) -> Future[Array]:
        """broadcast() as a Future."""
        call = "broadcast"
        a = (
            arrays.as_input(buf, call)
            if self._is_root(root)
            else arrays.as_output(buf, call, "buf")
        )
        code = arrays.code_of(a.dtype, call)
        return self._start(call, a, (a,), arrays.address(a), a.size, code, root)

    def broadcast(self, buf: Any, root: int = 0) -> Array:
        """Copies the root's buf into that of all workers, which has the same shape and dtype, and
        returns it."""
        return self.broadcast_start(buf, root).wait()

    def all_gather_start(self, x: ArrayLike, *, out: Any = None) -> Future[Array]:
        """all_gather() as a Future."""
        call = "all_gather"
        a = arrays.as_input(x, call)
        code = arrays.code_of(a.dtype, call)
        r = arrays.result_for(out, (self._size, *a.shape), a.dtype, call)
        return self._start(call, r, (a, r), arrays.address(a), arrays.address(r), a.size, code)

    def all_gather(self, x: ArrayLike, *, out: Any = None) -> Array:
        """Every worker's x at all workers: [size, ...], where [r] is worker r's."""
        return self.all_gather_start(x, out=out).wait()

    def all_gather_v_start(
        self, x: ArrayLike, counts: Sequence[int], *, out: Any = None
    ) -> Future[Array]:
        """all_gather_v() as a Future."""
        call = "all_gather_v"
        a = arrays.as_input(x, call)
        code, c = arrays.code_of(a.dtype, call), self._counts(counts, _row(a, call), call)
        _check_rows(a, counts[self._rank], "counts[rank]", call)
        r = arrays.result_for(out, (sum(counts), *a.shape[1:]), a.dtype, call)
        return self._start(call, r, (a, r, c), arrays.address(a), arrays.address(r), c, code)

    def all_gather_v(self, x: ArrayLike, counts: Sequence[int], *, out: Any = None) -> Array:
        """x: [counts[rank], ...]. The rows of all workers at all workers: [sum(counts), ...].

        counts    [size] rows of each worker, the same at all
        """
        return self.all_gather_v_start(x, counts, out=out).wait()

    def gather_start(self, x: ArrayLike, root: int = 0, *, out: Any = None) -> Future[Array | None]:
        """gather() as a Future."""
        call = "gather"
        a = arrays.as_input(x, call)
        code = arrays.code_of(a.dtype, call)
        r = (
            arrays.result_for(out, (self._size, *a.shape), a.dtype, call)
            if self._is_root(root)
            else None
        )
        to = None if r is None else arrays.address(r)
        return self._start(call, r, (a, r), arrays.address(a), to, a.size, code, root)

    def gather(self, x: ArrayLike, root: int = 0, *, out: Any = None) -> Array | None:
        """Every worker's x at the root: [size, ...], where [r] is worker r's; elsewhere None."""
        return self.gather_start(x, root, out=out).wait()

    def gather_v_start(
        self, x: ArrayLike, counts: Sequence[int] | None = None, root: int = 0, *, out: Any = None
    ) -> Future[Array | None]:
        """gather_v() as a Future."""
        call = "gather_v"
        a = arrays.as_input(x, call)
        code, row = arrays.code_of(a.dtype, call), _row(a, call)
        if not self._is_root(root):
            return self._start(call, None, (a,), arrays.address(a), a.size, None, None, code, root)
        if counts is None:
            raise TypeError(f"{call}: the root needs counts")
        c = self._counts(counts, row, call)
        _check_rows(a, counts[self._rank], "counts[rank]", call)
        r = arrays.result_for(out, (sum(counts), *a.shape[1:]), a.dtype, call)
        return self._start(
            call, r, (a, r, c), arrays.address(a), a.size, arrays.address(r), c, code, root
        )

    def gather_v(
        self, x: ArrayLike, counts: Sequence[int] | None = None, root: int = 0, *, out: Any = None
    ) -> Array | None:
        """x: any number of rows, [n, ...]. The rows of all at the root: [sum(counts), ...];
        elsewhere None.

        counts    [size] rows of each worker; only the root needs them
        """
        return self.gather_v_start(x, counts, root, out=out).wait()

    def scatter_start(
        self, x: ArrayLike | None, root: int = 0, *, out: Any = None
    ) -> Future[Array]:
        """scatter() as a Future."""
        call = "scatter"
        if not self._is_root(root):
            r = _needed_output(out, call)
            return self._start(
                call, r, (r,), None, arrays.address(r), r.size, arrays.code_of(r.dtype, call), root
            )
        if x is None:
            raise TypeError(f"{call}: the root needs x")
        a = arrays.as_input(x, call)
        n, code = self._blocks(a, call), arrays.code_of(a.dtype, call)
        r = arrays.result_for(out, a.shape[1:], a.dtype, call)
        return self._start(call, r, (a, r), arrays.address(a), arrays.address(r), n, code, root)

    def scatter(self, x: ArrayLike | None, root: int = 0, *, out: Any = None) -> Array:
        """x: [size, ...] at the root, elsewhere None. Worker r gets x[r]: [...].

        out    at the other workers it must be given, since it says what is expected
        """
        return self.scatter_start(x, root, out=out).wait()

    def scatter_v_start(
        self,
        x: ArrayLike | None,
        counts: Sequence[int] | None = None,
        root: int = 0,
        *,
        out: Any = None,
    ) -> Future[Array]:
        """scatter_v() as a Future."""
        call = "scatter_v"
        if not self._is_root(root):
            r = _needed_output(out, call)
            code = arrays.code_of(r.dtype, call)
            return self._start(call, r, (r,), None, None, arrays.address(r), r.size, code, root)
        if x is None or counts is None:
            raise TypeError(f"{call}: the root needs x and counts")
        a = arrays.as_input(x, call)
        code, c = arrays.code_of(a.dtype, call), self._counts(counts, _row(a, call), call)
        _check_rows(a, sum(counts), "sum(counts)", call)
        r = arrays.result_for(out, (counts[root], *a.shape[1:]), a.dtype, call)
        return self._start(
            call, r, (a, r, c), arrays.address(a), c, arrays.address(r), r.size, code, root
        )

    def scatter_v(
        self,
        x: ArrayLike | None,
        counts: Sequence[int] | None = None,
        root: int = 0,
        *,
        out: Any = None,
    ) -> Array:
        """x: [sum(counts), ...] at the root, elsewhere None. Worker r gets counts[r] rows.

        counts    [size] rows of each worker; only the root needs them
        out       at the other workers it must be given, with as many rows as the root sends
        """
        return self.scatter_v_start(x, counts, root, out=out).wait()

    def all_to_all_start(self, x: ArrayLike, *, out: Any = None) -> Future[Array]:
        """all_to_all() as a Future."""
        call = "all_to_all"
        a = arrays.as_input(x, call)
        n, code = self._blocks(a, call), arrays.code_of(a.dtype, call)
        r = arrays.result_for(out, a.shape, a.dtype, call)
        return self._start(call, r, (a, r), arrays.address(a), arrays.address(r), n, code)

    def all_to_all(self, x: ArrayLike, *, out: Any = None) -> Array:
        """x: [size, ...], where x[s] is for worker s. The result's [r] is from worker r:
        [size, ...]. `out` may be x."""
        return self.all_to_all_start(x, out=out).wait()

    def all_to_all_v_start(
        self, x: ArrayLike, in_counts: Sequence[int], out_counts: Sequence[int], *, out: Any = None
    ) -> Future[Array]:
        """all_to_all_v() as a Future."""
        call = "all_to_all_v"
        a = arrays.as_input(x, call)
        code, row = arrays.code_of(a.dtype, call), _row(a, call)
        c, d = self._counts(in_counts, row, call), self._counts(out_counts, row, call)
        _check_rows(a, sum(in_counts), "sum(in_counts)", call)
        r = arrays.result_for(out, (sum(out_counts), *a.shape[1:]), a.dtype, call)
        return self._start(call, r, (a, r, c, d), arrays.address(a), c, arrays.address(r), d, code)

    def all_to_all_v(
        self, x: ArrayLike, in_counts: Sequence[int], out_counts: Sequence[int], *, out: Any = None
    ) -> Array:
        """x: [sum(in_counts), ...], rows for each worker. Rows from each: [sum(out_counts), ...].

        in_counts     [size] rows for each worker
        out_counts    [size] rows from each worker; each worker needs only its own counts
        """
        return self.all_to_all_v_start(x, in_counts, out_counts, out=out).wait()

    def barrier_start(self) -> Future[None]:
        """barrier() as a Future."""
        return self._start("barrier", None, ())

    def barrier(self) -> None:
        """Returns when all workers have called it."""
        self.barrier_start().wait()

    # ---- from one worker to another ----

    def send_start(self, x: ArrayLike, dest: int) -> Future[None]:
        """send() as a Future."""
        a = arrays.as_input(x, "send")
        return self._start(
            "send", None, (a,), arrays.address(a), a.size, arrays.code_of(a.dtype, "send"), dest
        )

    def send(self, x: ArrayLike, dest: int) -> None:
        """Sends x to one worker: the k-th send to it is its k-th receive from this one. Not
        collective. May return before the receive is called."""
        self.send_start(x, dest).wait()

    def recv_start(self, buf: Any, source: int) -> Future[Array]:
        """recv() as a Future."""
        a = arrays.as_output(buf, "recv", "buf")
        return self._start(
            "recv", a, (a,), arrays.address(a), a.size, arrays.code_of(a.dtype, "recv"), source
        )

    def recv(self, buf: Any, source: int) -> Array:
        """Receives an array of buf's dtype and number of elements into buf, and returns it."""
        return self.recv_start(buf, source).wait()


def _int(x: int, what: str) -> int:
    """x as C's int: ctypes would cut off what is too large."""
    if not -(1 << 31) <= x < 1 << 31:
        raise ValueError(f"{what} is {x}; C's int does not hold it")
    return operator.index(x)


def _row(x: Array, call: str) -> int:
    """Elements of a row of x: [n, ...]."""
    if x.ndim == 0:
        raise ValueError(f"{call}: x has no rows: its shape is ()")
    return int(np.prod(x.shape[1:], dtype=np.int64))


def _check_rows(x: Array, n: int, what: str, call: str) -> None:
    if x.shape[0] != n:
        raise ValueError(f"{call}: x has {x.shape[0]} rows; {what} is {n}")


def _needed_output(out: Any, call: str) -> Array:
    if out is None:
        raise TypeError(
            f"{call}: workers that are not the root need out, which says what is expected"
        )
    return arrays.as_output(out, call)
