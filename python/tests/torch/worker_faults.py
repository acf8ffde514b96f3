"""What goes wrong, and what is said of it.

    worker_faults.py WHAT
"""

from __future__ import annotations

import datetime
import os
import signal
import sys
import threading
import time

import torch
import torch.distributed as dist

import lockstep
import lockstep.torch  # noqa: F401

what = sys.argv[1]
limit = datetime.timedelta(seconds=200)  # of what must happen; no measure of speed
dist.init_process_group("lockstep", timeout=limit)
rank, size = dist.get_rank(), dist.get_world_size()


def note(word: str) -> None:
    dist.distributed_c10d._get_default_store().set(f"{word}/{rank}", "")


def wait_for(word: str, *ranks: int) -> None:
    """Until these workers have noted the word."""
    keys = [f"{word}/{r}" for r in ranks]
    dist.distributed_c10d._get_default_store().wait(keys, limit)


def killed(n: int) -> None:
    """Worker 2 is killed while the others wait for it."""
    x = torch.ones(n)
    for _ in range(20):
        dist.all_reduce(x)
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    try:
        while True:
            dist.all_reduce(x)
    except lockstep.Error as e:
        print(f"worker {rank}: Error after {time.monotonic() - begin:.2f} s: {e}", flush=True)
        assert e.code == lockstep.Status.EPEER


def disagree() -> None:
    x = torch.ones(3)
    dist.barrier()
    try:
        if rank == 0:
            dist.all_reduce(x)
        else:
            dist.broadcast(x, 0)
        dist.barrier()
    except lockstep.Error as e:
        print(e, flush=True)


def late() -> None:
    """Worker 1 has not come when worker 0's patience ends."""
    dist.barrier()
    if rank == 1:
        wait_for("over", 0)
    else:
        dist.group.WORLD.set_timeout(datetime.timedelta(seconds=2))
        begin = time.monotonic()
        try:
            dist.all_reduce(torch.ones(3))
            raise AssertionError("it went on without worker 1")
        except lockstep.Error as e:
            assert e.code == lockstep.Status.ETIMEOUT and "Timed out" in str(e), e
            assert time.monotonic() - begin >= 2
        try:
            dist.all_reduce(torch.ones(3))
            raise AssertionError("a group that has lost a worker is used")
        except lockstep.Error as e:
            assert "the group can only be closed, since: worker 0: Timed out" in str(e), e
        note("over")
    print("right", flush=True)
    note("end")  # torchrun ends the others when one has ended
    wait_for("end", 0, 1)
    os._exit(0)


def monitored() -> None:
    """Worker 1 does not come to a monitored barrier."""
    dist.barrier()
    if rank == 1:
        wait_for("over", 0, 2)
    else:
        try:  # within the limit worker 2 comes, on a busy machine, too
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=10), wait_all_ranks=True)
            raise AssertionError("it passed without worker 1")
        except RuntimeError as e:
            assert "Rank 1 failed to pass monitoredBarrier in 10000 ms" in str(e), e
        note("over")
    print("right", flush=True)
    note("end")
    wait_for("end", 0, 1, 2)


def memory_and_descriptors() -> tuple[int, int]:
    with open("/proc/self/statm") as f:
        pages = int(f.read().split()[1])
    return pages * 4096, len(os.listdir("/proc/self/fd"))


def groups() -> None:
    """A hundred groups, opened and closed, leave nothing."""
    before = (0, 0)
    for i in range(100):
        group = dist.new_group()
        x = torch.ones(1000)
        dist.all_reduce(x, group=group, async_op=True).wait()
        assert float(x[0]) == size
        dist.destroy_process_group(group)
        if i == 19:
            before = memory_and_descriptors()
            threads = threading.active_count()
    after = memory_and_descriptors()
    assert after[1] == before[1], (before, after)
    assert after[0] - before[0] < 8 << 20, (before, after)
    assert threading.active_count() == threads
    print("right", flush=True)


def again() -> None:
    """Destroyed and made again, with a store that remembers the group before."""
    for i in range(3):
        if i:
            dist.init_process_group("lockstep")
        x = torch.full((3,), float(rank + i))
        dist.all_reduce(x)
        assert float(x[0]) == sum(r + i for r in range(size))
        if i < 2:
            dist.monitored_barrier()
        elif rank < size - 1:  # the barriers of the rounds before don't count
            try:
                dist.monitored_barrier(timeout=datetime.timedelta(seconds=1))
                raise AssertionError("it passed without the last worker")
            except RuntimeError:
                pass
        dist.barrier()
        dist.destroy_process_group()
    sys.stdout.write("right\n")  # in one piece, also unbuffered


def forked() -> None:
    """A child of a worker can't use its groups, and does them no harm."""
    for i in range(3):
        x = torch.full((3,), float(rank))
        pid = os.fork()
        if pid == 0:
            try:
                dist.all_reduce(x)
            except lockstep.Error as e:
                os._exit(0 if "was forked from worker" in str(e) else 1)
            os._exit(2)
        assert os.waitpid(pid, 0)[1] == 0
        dist.all_reduce(x)
        assert float(x[0]) == size * (size - 1) / 2
    sys.stdout.write("right\n")  # in one piece, also unbuffered


WHAT = {
    "killed": lambda: killed(10), "killed_large": lambda: killed(1 << 20), "disagree": disagree,
    "late": late, "monitored": monitored, "groups": groups, "again": again, "forked": forked,
}  # fmt: skip
WHAT[what]()
