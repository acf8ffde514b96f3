"""worker_calls.py WHAT: a function below as a worker. Prints "right" at its end."""

from __future__ import annotations

import array
import asyncio
import gc
import os
import signal
import sys
import threading
import time
from typing import Any, Callable

import numpy as np

import lockstep
from lockstep import Status


def fails(
    kind: type[BaseException], text: str, function: Any, *arguments: Any, **named: Any
) -> Any:
    """Calls, expects an exception with this text, and returns it."""
    try:
        function(*arguments, **named)
    except kind as e:
        assert text in str(e), f"{text!r} is not in {e}"
        return e
    raise AssertionError(f"{text}: nothing was raised")


def inputs() -> None:
    """All that has the buffer or array interface, and all that NumPy makes an array of."""

    with lockstep.Group.open() as g:
        n = g.size
        plain = np.arange(12.0).reshape(3, 4)
        assert np.array_equal(g.all_reduce(plain.T), n * plain.T)  # not contiguous: copied
        assert np.array_equal(g.all_reduce(plain[::2, 1]), n * plain[::2, 1])
        assert np.array_equal(g.all_reduce([1, 2]), [n, 2 * n])
        assert g.all_reduce(2.5) == 2.5 * n
        assert np.array_equal(g.all_reduce(array.array("i", [3, 4])), [3 * n, 4 * n])
        assert np.array_equal(g.all_reduce(bytearray(b"\1\2")), np.array([n, 2 * n], np.uint8))
        assert np.array_equal(g.all_reduce(b"\1\2"), np.array([n, 2 * n], np.uint8))
        assert np.array_equal(g.all_reduce(memoryview(array.array("d", [1.5]))), [1.5 * n])
        frozen = np.ones(3)
        frozen.flags.writeable = False
        assert np.array_equal(g.all_reduce(frozen), n * np.ones(3))
        out = array.array("d", [0.0, 0.0])
        g.all_reduce([1.0, 2.0], out=out)
        assert list(out) == [n, 2.0 * n]
        g.broadcast(frozen if g.rank == 0 else np.zeros(3), 0)


class OnlyDLPack:
    """An array that can be had by DLPack alone."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def __dlpack__(self, **named: Any) -> Any:
        if self.of is None:
            raise BufferError("it is on a GPU")
        return self.of.__dlpack__(**named)

    def __dlpack_device__(self) -> Any:
        return self.of.__dlpack_device__()


def dlpack() -> None:
    with lockstep.Group.open() as g:
        n = g.size
        plain = np.arange(6.0).reshape(2, 3)
        assert np.array_equal(g.all_reduce(OnlyDLPack(plain)), n * plain)
        assert np.array_equal(g.all_reduce(OnlyDLPack(plain.T)), n * plain.T)
        out = np.zeros((2, 3))
        if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
            g.all_reduce(plain, out=OnlyDLPack(out))
            assert np.array_equal(out, n * plain)
        else:  # what it has by DLPack is read-only
            fails(ValueError, "out is read-only", g.all_reduce, plain, out=OnlyDLPack(out))
        for gone in ({"x": OnlyDLPack(None)}, {"x": plain, "out": OnlyDLPack(None)}):
            fails(
                TypeError, "can't read a OnlyDLPack by DLPack: it is on a GPU", g.all_reduce, **gone
            )


def outputs() -> None:
    """Outputs that are refused, before anything is sent: the group lives."""
    with lockstep.Group.open() as g:
        x = np.ones((2, 3), np.float32)
        frozen = x.copy()
        frozen.flags.writeable = False
        fails(ValueError, "all_reduce: out is read-only", g.all_reduce, x, out=frozen)
        fails(ValueError, "not C-contiguous", g.all_reduce, x, out=np.ones((3, 2), np.float32).T)
        fails(
            ValueError,
            "shape (6,); the result has (2, 3)",
            g.all_reduce,
            x,
            out=np.ones(6, np.float32),
        )
        fails(
            TypeError,
            "elements of float64; the input's are float32",
            g.all_reduce,
            x,
            out=np.ones((2, 3)),
        )
        fails(TypeError, "out is a list", g.all_reduce, x, out=[0.0])
        fails(TypeError, "no elements of complex128", g.all_reduce, np.ones(2, complex))
        fails(TypeError, "no elements of >f8", g.all_reduce, np.ones(2, ">f8"))
        fails(TypeError, "no elements of object", g.all_reduce, [None])
        odd = np.zeros(9, np.uint8)[1:].view(np.float64)
        fails(ValueError, "not aligned", g.recv, odd, 0)
        fails(ValueError, "no operation 'mean'", g.all_reduce, x, "mean")
        fails(
            ValueError, f"first length must be {g.size}", g.reduce_scatter, np.ones((g.size + 1, 2))
        )
        fails(ValueError, f"{g.size} numbers, none negative", g.all_gather_v, x, [1])
        fails(ValueError, "x has 2 rows; counts[rank] is 3", g.all_gather_v, x, [3] * g.size)
        if g.rank:
            fails(TypeError, "need out", g.scatter, None)
        else:
            fails(TypeError, "the root needs x", g.scatter, None)
        e = fails(lockstep.Error, "root 9 is not in", g.broadcast, x.copy(), 9)
        assert e.code == Status.EINVAL and not e.ends_group
        assert g.all_reduce(1) == g.size
    fails(lockstep.Error, "the group is closed", g.barrier)
    assert repr(g).endswith("closed>")


def virtual(folder: str) -> None:
    """A sum of which each virtual worker has a part: its bits go into a file. And what is refused."""
    with lockstep.Group.open() as g:
        own = g.virtual_workers(7)
        parts = [np.random.default_rng(v).normal(size=1001).astype("f4") for v in own]
        total = g.all_reduce_virtual(parts, 7)
        if g.rank == 0:
            total.tofile(os.path.join(folder, f"{g.size}.bits"))
        x = np.zeros((len(own) + 1, 3))
        fails(ValueError, f"all_reduce_virtual: x has {len(own) + 1} rows; the number of this "
              f"worker's virtual workers is {len(own)}", g.all_reduce_virtual, x, 7)  # fmt: skip
        fails(ValueError, "x has no rows", g.all_reduce_virtual, 1.0, 7)
        fails(ValueError, "C's int does not hold it", g.all_reduce_virtual, x, 1 << 32)
        fails(TypeError, "", g.all_reduce_virtual, x, 7.5)
        few = g.size - 1
        e = fails(lockstep.Error, f"{few} virtual workers for {g.size} workers",
                  g.all_reduce_virtual, x, few)  # fmt: skip
        assert e.code == Status.EINVAL and not e.ends_group
        assert len(g.virtual_workers(0)) == 0
    fails(lockstep.Error, "the group is closed", g.all_reduce_virtual, x, 7)


def met(rank: str, size: str, address: str, key: str, listen_fd: str = "0") -> None:
    """Workers that no launcher has started, of two hosts: they meet at worker 0's address."""
    r, n = int(rank), int(size)
    place = lockstep.Meeting(r, n, address, key=key, listen_fd=int(listen_fd))
    with lockstep.Group.open(meeting=place) as g:
        assert (g.rank, g.size) == (r, n)
        assert list(g.all_gather(r)) == list(range(n))
        own = g.virtual_workers(8)
        assert g.all_reduce_virtual(np.array(own), 8) == sum(range(8))
        before = g.counters().bytes_sent
        g.all_reduce(np.ones(1 << 16))
        # Between hosts elements are sent; workers of one host share memory.
        assert g.counters().bytes_sent > before or "LOCKSTEP_HOST" not in os.environ
        g.barrier()


def unmet() -> None:
    """Meetings that are refused, and one to which nobody comes."""

    def refused(kind: type[BaseException], text: str, **fields: Any) -> Any:
        place = {"rank": 0, "size": 2, "address": "127.0.0.1:1", **fields}
        return fails(kind, text, lockstep.Group.open, meeting=lockstep.Meeting(**place),
                     timeout=0.2)  # fmt: skip

    e = refused(lockstep.Error, "meeting: rank 2 of 2 workers does not exist", rank=2)
    assert e.code == Status.EINVAL
    refused(lockstep.Error, "meeting: the join key has 5 characters", key="short")
    refused(lockstep.Error, "nowhere", address="nowhere")
    refused(ValueError, "C's int does not hold it", size=1 << 32)
    refused(ValueError, "has a zero byte", address="127.0.0.1:1\0")
    e = refused(lockstep.Error, "worker 1: worker 0 did not listen at 127.0.0.1:1 within 0.2 s",
                rank=1, key="0123456789abcdef")  # fmt: skip
    assert e.code == Status.ETIMEOUT


def futures() -> None:
    with lockstep.Group.open() as g:
        n, rank = g.size, g.rank
        waiting = [g.all_reduce_start(np.full(1000, i + rank)) for i in range(6)]
        for i in reversed(range(6)):
            assert np.array_equal(waiting[i].wait(), np.full(1000, i * n + n * (n - 1) // 2))
            assert waiting[i].done() and waiting[i].wait() is waiting[i].wait()
        tested = g.all_gather_start(rank)
        while not tested.done():
            pass
        assert np.array_equal(tested.wait(), np.arange(n))

        for i in range(5):  # dropped: their memory must live until the calls are done
            g.all_reduce_start(np.full(100_000, i), out=np.empty(100_000, int))
            gc.collect()
        g.barrier()

        async def both() -> list[Any]:
            async def one(x: int) -> Any:
                return await g.all_reduce_start(x)

            return list(await asyncio.gather(*(one(x) for x in (rank, 1, 2))))

        assert asyncio.run(both()) == [n * (n - 1) // 2, n, 2 * n]

        if rank == 0:  # the others come after its message
            barrier = g.barrier_start()
            e = fails(lockstep.Error, "still in flight after", barrier.wait, 0.01)
            assert e.code == Status.EPENDING and not e.ends_group
            assert not barrier.done()
            for r in range(1, n):
                g.send(r, r)
            barrier.wait()
        else:
            assert g.recv(np.empty((), int), 0) == rank
            g.barrier()
        left = g.recv_start(np.zeros(3), (rank + 1) % n)
    fails(lockstep.Error, "the group is closed", left.wait)


def divided() -> None:
    """Groups of some workers, duplicates, and two threads that share one."""
    with lockstep.Group.open() as g:
        half = g.split(g.rank % 2, key=-g.rank)
        assert half and half.size == len(range(g.rank % 2, g.size, 2))
        members = [r for r in reversed(range(g.size)) if r % 2 == g.rank % 2]
        assert list(half.all_gather(g.rank)) == members
        assert (g.split(-1 if g.rank == 0 else 0) is None) == (g.rank == 0)
        again = g.dup()
        other = threading.Thread(target=lambda: [again.all_reduce(1) for _ in range(50)])
        other.start()
        for _ in range(50):
            assert g.all_reduce(1) == g.size
        other.join()
        assert again.counters().calls == 50, again.counters()
        assert "all_reduce" in g.explain("all_reduce", 1000)
        fails(lockstep.Error, "", g.explain, "all_reduced", 1000)
        again.close()
        half.close()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def leaks() -> None:
    """A hundred groups, of which arrays may outlive some: no file descriptor more."""
    with lockstep.Group.open() as g:
        before = 0
        for _ in range(100):
            with g.dup() as new:
                x = new.empty(10, np.int64)
                x[:] = 1
                assert new.all_reduce(x, out=x)[0] == g.size
            assert x[9] == g.size  # the array outlives its group
            part = g.split(g.rank)
            assert part and part.all_reduce(1) == 1
            del part  # closed
            before = before or descriptors()
        assert descriptors() <= before, (descriptors(), before)


def opened() -> None:
    """A hundred groups, one after the other, in a process that no launcher has started."""
    before = 0
    for _ in range(100):
        with lockstep.Group.open(arena=1 << 20) as g:
            assert g.all_reduce(1) == g.size
            g.barrier()
        before = before or descriptors()
    assert descriptors() <= before, (descriptors(), before)


def memory() -> None:
    g = lockstep.Group.open()
    x = g.empty((3, 5), np.float32)
    assert x.shape == (3, 5) and x.dtype == np.float32 and x.flags.writeable and not x.any()
    x += g.rank
    assert g.all_reduce(x, out=x) is x and np.all(x == g.size * (g.size - 1) // 2)
    assert g.empty(0).shape == (0,) and g.empty((), bool).shape == ()
    fails(TypeError, "no elements of", g.empty, 3, "U4")
    fails(ValueError, "negative", g.empty, (2, -1))
    view = x[1:]
    del x
    g.barrier()
    g.close()
    assert np.all(view == g.size * (g.size - 1) // 2)
    fails(lockstep.Error, "the group is closed", g.empty, 3)


def shapes_differ() -> None:
    """Workers that disagree: each exception says who called what, and where."""
    g = lockstep.Group.open()
    try:
        g.all_reduce(np.zeros(3 + g.rank, np.float32))
    except lockstep.Error as e:
        assert e.code == Status.EDISAGREE and e.ends_group, e
        print(e, flush=True)
        fails(lockstep.Error, "the group can only be closed, since: workers disagree", g.barrier)
        return
    raise AssertionError("nothing was raised")


def is_waiting() -> bool:
    """Is the main thread in a wait of the package?"""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame:
        if frame.f_code.co_name == "wait" and frame.f_globals["__name__"].startswith("lockstep."):
            return True
        frame = frame.f_back
    return False


def would_end() -> bool:
    """Would Ctrl-C end the process, by its default action?"""
    with open("/proc/self/status") as f:
        caught = next(int(line.split()[1], 16) for line in f if line.startswith("SigCgt"))
    return not caught >> (signal.SIGINT - 1) & 1


def interrupt_when(begun: Callable[[], bool]) -> None:
    """Ctrl-C once this is true, and most often has been for a while."""

    def run() -> None:
        while not begun():
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=run, daemon=True).start()


def interrupted() -> None:
    """Ctrl-C in a wait, which can be continued; and in a blocking call."""
    with lockstep.Group.open() as g:
        if g.rank == 0:
            barrier = g.barrier_start()
            interrupt_when(is_waiting)
            fails(KeyboardInterrupt, "", barrier.wait)
            interrupt_when(is_waiting)
            fails(KeyboardInterrupt, "", g.recv, np.zeros(1), 1)
            for r in range(1, g.size):
                g.send(0, r)
            barrier.wait()
        else:
            g.recv(np.zeros((), int), 0)
            if g.rank == 1:
                g.send(np.zeros(1), 0)
            g.barrier()
        assert g.all_reduce(1) == g.size


def interrupted_start() -> None:
    """Ctrl-C in a start that waits for a worker eight calls behind ends the process."""
    g = lockstep.Group.open()
    if g.rank == 0:
        started: list[Any] = []
        interrupt_when(lambda: len(started) == 8 and would_end())
        for _ in range(9):
            started.append(g.barrier_start())
        print("all were started")
    time.sleep(1000)


def too_late(folder: str) -> None:
    """A wait beyond the group's limit: it can only be closed."""
    g = lockstep.Group.open(timeout=0.5)
    done = os.path.join(folder, "done")
    if g.rank == 0:
        e = fails(lockstep.Error, "worker 0 waited ", g.all_reduce, 1)
        assert e.code == Status.ETIMEOUT and "worker_calls.py:" in str(e), e
        fails(lockstep.Error, "the group can only be closed, since: worker 0 waited", g.barrier)
        open(done, "w").close()
    while not os.path.exists(done):
        time.sleep(0.01)


globals()[sys.argv[1]](*sys.argv[2:])
print("right\n", end="", flush=True)
