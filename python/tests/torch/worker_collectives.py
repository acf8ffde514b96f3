"""Every collective of torch.distributed, compared with what its definition gives."""

from __future__ import annotations

import datetime
import sys

import torch
import torch.distributed as dist

import lockstep.torch  # noqa: F401

torch.sparse.check_sparse_tensor_invariants.enable()
dist.init_process_group("lockstep", timeout=datetime.timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8,
]  # fmt: skip
FLOATS = DTYPES[:4]


def value(r: int, n: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """What worker r gives: small whole numbers, so that sums are exact in every type."""
    return ((torch.arange(n) * 3 + r) % 3 + 1).to(dtype)


def all_values(n: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.stack([value(r, n, dtype) for r in range(size)])


def same(got: torch.Tensor, want: torch.Tensor, what: str) -> None:
    assert got.dtype == want.dtype and torch.equal(got, want), (what, got, want)


def reductions() -> None:
    for n in (1, 300, 70001):
        for dtype in DTYPES:
            each = all_values(n, dtype)
            wants = {
                dist.ReduceOp.SUM: each.sum(0).to(dtype),
                dist.ReduceOp.PRODUCT: each.prod(0).to(dtype),
                dist.ReduceOp.MIN: each.amin(0),
                dist.ReduceOp.MAX: each.amax(0),
            }
            if dtype in FLOATS:
                wants[dist.ReduceOp.AVG] = (each.double().sum(0) / size).to(dtype)
            else:
                wants[dist.ReduceOp.BAND] = each[0].clone()
                wants[dist.ReduceOp.BOR] = each[0].clone()
                for other in each[1:]:
                    wants[dist.ReduceOp.BAND] &= other
                    wants[dist.ReduceOp.BOR] |= other
            for op, want in wants.items():
                x = value(rank, n, dtype)
                dist.all_reduce(x, op)
                same(x, want, f"all_reduce {op} {dtype}")
                x = value(rank, n, dtype)
                dist.reduce(x, size - 1, op)
                if rank == size - 1:
                    same(x, want, f"reduce {op} {dtype}")
                block = torch.empty(n, dtype=dtype)
                dist.reduce_scatter(block, [value(rank, n, dtype) for _ in range(size)], op)
                same(block, want, f"reduce_scatter {op} {dtype}")
                block = torch.empty(n, dtype=dtype)
                dist.reduce_scatter_tensor(block, value(rank, n, dtype).repeat(size), op)
                same(block, want, f"reduce_scatter_tensor {op} {dtype}")


def booleans_and_complex() -> None:
    x = torch.tensor([True, False, rank == 0])
    dist.all_reduce(x)
    same(x, torch.tensor([True, False, True]), "sum of bool")
    x = torch.tensor([True, False, rank == 0])
    dist.all_reduce(x, dist.ReduceOp.MIN)
    same(x, torch.tensor([True, False, size == 1]), "min of bool")
    z = torch.full((3,), complex(rank, 1))
    dist.all_reduce(z)
    same(z, torch.full((3,), complex(sum(range(size)), size)), "sum of complex")
    z = torch.full((3,), complex(rank, 1))
    out = [torch.empty_like(z) for _ in range(size)]
    dist.all_gather(out, z)
    for r in range(size):
        same(out[r], torch.full((3,), complex(r, 1)), "all_gather of complex")


def sparse() -> None:
    x = torch.sparse_coo_tensor([[rank, 5]], [1.0 + rank, 2.0], (8,))
    dist.all_reduce(x)
    want = torch.zeros(8)
    for r in range(size):
        want[r] += 1.0 + r
        want[5] += 2.0
    same(x.to_dense(), want, "sparse")


def copies() -> None:
    for dtype in [*DTYPES, torch.bool, torch.uint16]:
        for n in (1, 1000, 50000):
            mine = value(rank, n, dtype)
            out = [torch.empty(n, dtype=dtype) for _ in range(size)]
            dist.all_gather(out, mine)
            whole = torch.empty(size * n, dtype=dtype)
            dist.all_gather_into_tensor(whole, mine)
            for r in range(size):
                same(out[r], value(r, n, dtype), "all_gather")
                same(whole[r * n : (r + 1) * n], value(r, n, dtype), "all_gather_into_tensor")
            x = value(rank, n, dtype)
            dist.broadcast(x, size - 1)
            same(x, value(size - 1, n, dtype), "broadcast")
            out = [torch.empty(n, dtype=dtype) for _ in range(size)]
            dist.gather(mine, out if rank == 0 else None, 0)
            x = torch.empty(n, dtype=dtype)
            blocks = [value(r + 1, n, dtype) for r in range(size)]
            dist.scatter(x, blocks if rank == 0 else None, 0)
            same(x, value(rank + 1, n, dtype), "scatter")
            for r in range(size) if rank == 0 else []:
                same(out[r], value(r, n, dtype), "gather")


def all_to_alls() -> None:
    for n in (1, 900, 30000):
        mine = torch.cat([value(rank + r, n) for r in range(size)])
        out = torch.empty(size * n)
        dist.all_to_all_single(out, mine)
        outs = [torch.empty(n) for _ in range(size)]
        dist.all_to_all(outs, list(mine.chunk(size)))
        for r in range(size):
            same(out[r * n : (r + 1) * n], value(rank + r, n), "all_to_all_single")
            same(outs[r], value(rank + r, n), "all_to_all")
        rows = torch.full((sum(r + 1 for r in range(size)), 4), float(rank))
        out = torch.empty(size * (rank + 1), 4)
        dist.all_to_all_single(out, rows, [rank + 1] * size, [r + 1 for r in range(size)])
        want = torch.arange(size).repeat_interleave(rank + 1).float()[:, None].expand(-1, 4)
        same(out, want.contiguous(), "all_to_all_single with splits")


def several() -> None:
    """The process group's own calls, which take several tensors of a worker."""
    group = dist.group.WORLD
    both = [value(rank, 5), value(rank + size, 5)]
    group.allreduce(both).wait()
    total = sum(value(r, 5) for r in range(2 * size))
    for t in both:
        same(t, total, "all_reduce of two tensors")
    both = [value(rank, 5), value(rank + size, 5)]
    group.allreduce(both, op=dist.ReduceOp.MAX).wait()
    same(both[1], torch.stack([value(r, 5) for r in range(2 * size)]).amax(0), "maximum of two")
    sparse = [torch.sparse_coo_tensor([[k]], [1.0], (size + 1,)) for k in (rank, rank + 1)]
    group.allreduce(sparse).wait()
    want = torch.zeros(size + 1)
    for r in range(size):
        want[r] += 1
        want[r + 1] += 1
    same(sparse[1].to_dense(), want, "sparse all_reduce of two tensors")
    opts = dist.BroadcastOptions()
    opts.rootRank, opts.rootTensor = size - 1, 1
    both = [value(2 * rank, 5), value(2 * rank + 1, 5)]
    group.broadcast(both, opts).wait()
    for t in both:
        same(t, value(2 * size - 1, 5), "broadcast of the second tensor")
    outputs = [[torch.empty(5) for _ in range(2 * size)] for _ in range(2)]
    group.allgather(outputs, [value(2 * rank, 5), value(2 * rank + 1, 5)]).wait()
    for blocks in outputs:
        for r, t in enumerate(blocks):
            same(t, value(r, 5), "all_gather of two tensors")
    x = value(rank, 5)
    group.broadcast(x, root=0).wait()
    same(x, value(0, 5), "broadcast of root=0")
    twice = [value(rank, 5)] * 2
    group.allreduce_coalesced(twice).wait()
    same(twice[0], sum(value(r, 5) for r in range(size)), "the same tensor twice")


def strided() -> None:
    """Inputs of all_gather and gather need not be contiguous."""
    column = value(rank, 8).view(4, 2)[:, 1]
    outputs = [torch.empty(4, 2)[:, 0] for _ in range(size)]
    dist.all_gather(outputs, column)
    for r, t in enumerate(outputs):
        same(t, value(r, 8)[1::2], "all_gather of columns")
    to = [torch.empty(4) for _ in range(size)] if rank == 0 else None
    dist.gather(column, to, 0)
    for r, t in enumerate(to or []):
        same(t, value(r, 8)[1::2], "gather of columns")
    with torch.inference_mode():
        outputs = [torch.empty(4) for _ in range(size)]
        dist.all_gather(outputs, column, async_op=True).wait()
    for r, t in enumerate(outputs):
        same(t, value(r, 8)[1::2], "all_gather of tensors of the inference mode")


def objects() -> None:
    out: list[object] = [None] * size
    dist.all_gather_object(out, {"rank": rank, "text": "x" * (100 * rank)})
    assert out == [{"rank": r, "text": "x" * (100 * r)} for r in range(size)], out
    one = [("from", 0)] if rank == 0 else [None]
    dist.broadcast_object_list(one, 0)
    assert one == [("from", 0)], one
    got: list[object] = [None]
    dist.scatter_object_list(got, [f"for {r}" for r in range(size)] if rank == 0 else None, 0)
    assert got == [f"for {rank}"], got
    out = [None] * size
    dist.gather_object(rank * 10, out if rank == 0 else None, 0)
    assert rank or out == [r * 10 for r in range(size)], out


def futures() -> None:
    works = []
    tensors = [torch.full((1000 + i,), float(rank)) for i in range(20)]
    for t in tensors:
        works.append(dist.all_reduce(t, async_op=True))
    x = torch.ones(4)
    dist.all_reduce(x)  # in order after those in flight
    same(x, torch.full((4,), float(size)), "after others")
    total = float(sum(range(size)))
    for w, t in zip(works, tensors):
        w.wait()
        assert w.is_completed() and w.is_success() and w.exception() is None
        same(t, torch.full_like(t, total), "async_op")
        assert w.result()[0] is t
    t = torch.full((5,), float(rank))
    doubled = dist.all_reduce(t, async_op=True).get_future().then(lambda f: f.value()[0] * 2)
    same(doubled.wait(), torch.full((5,), 2 * total), "then")


def coalesced() -> None:
    tensors = [torch.full((100 * (i + 1),), float(rank)) for i in range(5)]
    with dist.distributed_c10d._coalescing_manager():
        for t in tensors:
            dist.all_reduce(t)
    for t in tensors:
        same(t, torch.full_like(t, float(sum(range(size)))), "coalesced all_reduce")
    outs = [torch.empty(size * 3) for _ in range(4)]
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as manager:
        for i, out in enumerate(outs):
            dist.all_gather_into_tensor(out, torch.full((3,), float(rank + i)))
    manager.wait()
    for i, out in enumerate(outs):
        want = torch.arange(size).repeat_interleave(3).float() + i
        same(out, want, "coalesced all_gather")


def messages() -> None:
    after, before = (rank + 1) % size, (rank - 1) % size
    if size == 1:
        return
    sent = [torch.full((n,), float(rank)) for n in (1, 10, 100000)]
    got = [torch.empty(n) for n in (1, 10, 100000)]
    works = [dist.isend(t, after, tag=i) for i, t in enumerate(sent)]
    works += [dist.irecv(t, before, tag=i) for i, t in reversed(list(enumerate(got)))]
    for w in works:
        w.wait()
    for t in got:
        same(t, torch.full_like(t, float(before)), "isend with tags, received in another order")
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            x = torch.empty(3)
            source = dist.recv(x, tag=9)
            same(x, torch.full((3,), float(source)), "recv from any")
            seen.add(source)
        assert seen == set(range(1, size)), seen
    else:
        dist.send(torch.full((3,), float(rank)), 0, tag=9)
    out = torch.empty(7)
    operations = [
        dist.P2POp(dist.irecv, out, before), dist.P2POp(dist.isend, torch.full((7,), rank), after),
    ]  # fmt: skip
    operations[1].tensor = torch.full((7,), float(rank))
    for w in dist.batch_isend_irecv(operations):
        w.wait()
    same(out, torch.full((7,), float(before)), "batch_isend_irecv")


def groups() -> None:
    group = dist.group.WORLD
    before = group.options._timeout
    group.set_timeout(datetime.timedelta(seconds=77))
    assert group.options._timeout == datetime.timedelta(seconds=77), group.options._timeout
    group.set_timeout(before)
    halves = [dist.new_group(list(range(k, size, 2))) for k in range(min(2, size))]
    mine = halves[rank % 2]
    x = torch.full((1000,), float(rank))
    dist.all_reduce(x, group=mine)
    same(x, torch.full((1000,), float(sum(range(rank % 2, size, 2)))), "new_group")
    dist.barrier(group=mine)
    local, _ = dist.new_subgroups(group_size=1)
    x = torch.ones(3)
    dist.all_reduce(x, group=local)
    same(x, torch.ones(3), "a group of one")
    for group in halves:
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(group)


def group_memory() -> None:
    for group in (None, dist.new_group()):
        x = lockstep.torch.empty(size, 3000, group=group)
        same(x, torch.zeros(size, 3000), "empty")
        x.fill_(rank)
        dist.all_reduce(x, group=group)
        same(x, torch.full((size, 3000), float(sum(range(size)))), "all_reduce of group memory")
        out = lockstep.torch.empty((3000,), dtype=torch.int64, group=group)
        dist.reduce_scatter_tensor(out, torch.ones(size * 3000, dtype=torch.int64), group=group)
        same(out, torch.full((3000,), size), "reduce_scatter into group memory")
        for i in range(300):  # memory that is free again is used again
            lockstep.torch.empty(1 << 22, group=group)[i] = 1
        part = x[0]
        del x
        if group is not None:
            dist.destroy_process_group(group)
        part += 1  # its memory is there as long as a tensor is
        same(part, torch.full((3000,), float(sum(range(size)) + 1)), "after the end of its group")
    assert lockstep.torch.empty(0, 5).shape == (0, 5)


def barriers() -> None:
    dist.barrier()
    dist.barrier(async_op=True).wait()
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=30))
    dist.monitored_barrier(wait_all_ranks=True)


def refuse(kind: type, text: str, call: object, *arguments: object) -> None:
    try:
        call(*arguments)  # type: ignore[operator]
    except kind as e:
        assert text in str(e), e
        return
    raise AssertionError(f"{text}: not raised")


def refused() -> None:
    refuse(NotImplementedError, "no average of integers", dist.all_reduce,
           torch.ones(2, dtype=torch.int32), dist.ReduceOp.AVG)  # fmt: skip
    refuse(NotImplementedError, "no reduction of torch.float8", dist.all_reduce,
           torch.ones(2).to(torch.float8_e5m2))  # fmt: skip
    refuse(NotImplementedError, "PREMUL_SUM", dist.all_reduce, torch.ones(2),
           dist._make_nccl_premul_sum(2.0))  # fmt: skip
    refuse(ValueError, "contiguous", dist.all_reduce, torch.ones(4, 4).t()[:, 1:])
    refuse(NotImplementedError, "meta", dist.all_reduce, torch.ones(2, device="meta"))
    group, x, y = dist.group.WORLD, torch.ones(2), torch.ones(2, dtype=torch.float64)
    refuse(RuntimeError, "invalid root rank: 99", group.broadcast, x, 99)
    refuse(ValueError, "invalid root rank: -1", group.reduce, x, -1)
    refuse(RuntimeError, "invalid tensor type", group.allreduce, [x, y])
    refuse(RuntimeError, "invalid tensor layout", group.allreduce, [x, x.to_sparse()])
    refuse(RuntimeError, "invalid tensor size", group.broadcast, [x, torch.ones(3)])
    refuse(RuntimeError, "requires non-empty tensor list", group.allreduce, [])
    refuse(RuntimeError, "Incorrect output list size", group.gather, [[x] * (size + 1)], [x], rank)
    refuse(RuntimeError, "single-element output list", group.gather, [], [x], rank)
    refuse(RuntimeError, "invalid size of output tensor at index 0", group.allgather_coalesced,
           [[torch.ones(3)]] * size, [x])  # fmt: skip
    refuse(ValueError, "3 elements", dist.all_gather_into_tensor, torch.empty(3), torch.empty(5))


TESTS = [reductions, booleans_and_complex, sparse, copies, several, strided, all_to_alls, objects,
         futures, coalesced, messages, groups, group_memory, barriers, refused]  # fmt: skip
for test in TESTS:
    if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
        test()
dist.barrier()
outlives = lockstep.torch.empty(1000)  # mpirun fails if the library's group is not closed at exit
dist.destroy_process_group()
print("right\n", end="")
