"""Every collective, with every dtype and operation, against NumPy. Prints "right" at its end."""

from __future__ import annotations

from typing import Any

import numpy as np
from references import cases, reduced, values

import lockstep

SHAPES: list[tuple[int, ...]] = [(), (1,), (0, 3), (5, 4), (2, 3, 501)]


def same(found: Any, expected: Any) -> None:
    expected = np.asarray(expected)  # NumPy makes scalars of arrays without dimensions
    assert isinstance(found, np.ndarray), found
    assert found.dtype == expected.dtype and found.shape == expected.shape, (found, expected)
    assert np.array_equal(found, expected), (found, expected)


def reductions(g: lockstep.Group, dtype: Any, op: str, shape: tuple[int, ...]) -> None:
    rank, size, root = g.rank, g.size, g.size - 1
    inputs = [values(r, size, dtype, shape) for r in range(size)]
    blocks = [values(r, size, dtype, (size, *shape)) for r in range(size)]
    mine, o = inputs[rank], lockstep.Op[op]
    same(g.all_reduce(mine, o), reduced(inputs, op))
    out = np.empty(shape, dtype)
    assert g.all_reduce(mine, op.lower(), out=out) is out
    same(out, reduced(inputs, op))
    found = g.reduce(mine, o, root)
    same(found, reduced(inputs, op)) if rank == root else same(
        np.array(found is None), np.array(True)
    )
    same(g.reduce_scatter(blocks[rank], o), reduced(blocks, op)[rank])
    if op != "AVG":
        same(g.scan(mine, o), reduced(inputs[: rank + 1], op))
        before = g.exscan(mine, o)
        assert (before is None) == (rank == 0)
        if before is not None:
            same(before, reduced(inputs[:rank], op))
    same(mine, values(rank, size, dtype, shape))  # inputs are only read
    g.all_reduce(mine, o, out=mine)
    same(mine, reduced(inputs[:rank] + [values(rank, size, dtype, shape)] + inputs[rank + 1 :], op))


def virtual(g: lockstep.Group, dtype: Any, op: str, shape: tuple[int, ...]) -> None:
    """Sums of which each virtual worker has a part, with more of them than workers."""
    for n in (g.size, g.size + 1, 8)[: 2 if op == "PROD" else 3]:  # products of 8 are not exact
        own = g.virtual_workers(n)
        assert sum(g.all_gather(len(own)).tolist()) == n and len(own) >= 1
        inputs = [values(v, n, dtype, shape) for v in range(n)]
        mine = np.stack([inputs[v] for v in own])
        same(g.all_reduce_virtual(mine, n, lockstep.Op[op]), reduced(inputs, op))
        out = np.empty(shape, dtype)
        assert g.all_reduce_virtual(mine, n, op.lower(), out=out) is out
        same(out, reduced(inputs, op))
        same(mine, np.stack([inputs[v] for v in own]))  # the input is only read
        first = mine[:1].reshape(shape)
        g.all_reduce_virtual(mine, n, op, out=first)
        same(first, reduced(inputs, op))


def copies(g: lockstep.Group, dtype: Any, shape: tuple[int, ...]) -> None:
    rank, size, root = g.rank, g.size, g.size // 2
    inputs = [values(r, size, dtype, shape) for r in range(size)]
    blocks = [values(r, size, dtype, (size, *shape)) for r in range(size)]
    same(g.all_gather(inputs[rank]), np.stack(inputs))
    buf = inputs[rank].copy()
    assert g.broadcast(buf, root) is buf
    same(buf, inputs[root])
    found = g.gather(inputs[rank], root)
    assert (found is None) == (rank != root)
    if found is not None:
        same(found, np.stack(inputs))
    out = None if rank == root else np.empty(shape, dtype)
    same(g.scatter(blocks[root] if rank == root else None, root, out=out), blocks[root][rank])
    same(g.all_to_all(blocks[rank]), np.stack([b[rank] for b in blocks]))
    in_place = blocks[rank].copy()
    g.all_to_all(in_place, out=in_place)
    same(in_place, np.stack([b[rank] for b in blocks]))


def blocks_of_any_length(g: lockstep.Group, dtype: Any, row: tuple[int, ...]) -> None:
    rank, size, root = g.rank, g.size, 0
    counts = [(r * 2 + 1) % 4 for r in range(size)]  # 1, 3, 1, 3 ..
    ends = np.cumsum([0, *counts])
    parts = [values(r, size, dtype, (counts[r], *row)) for r in range(size)]
    whole = [values(r, size, dtype, (sum(counts), *row)) for r in range(size)]
    mine = slice(ends[rank], ends[rank + 1])
    op = "MINLOC" if dtype.names else "LXOR" if dtype.kind == "b" else "SUM"
    same(g.reduce_scatter_v(whole[rank], counts, op), reduced(whole, op)[mine])
    same(g.all_gather_v(parts[rank], counts), np.concatenate(parts))
    found = g.gather_v(parts[rank], counts if rank == root else None, root)
    assert (found is None) == (rank != root)
    if found is not None:
        same(found, np.concatenate(parts))
    if rank == root:
        same(g.scatter_v(whole[root], counts, root), whole[root][mine])
    else:
        same(
            g.scatter_v(None, root=root, out=np.empty((counts[rank], *row), dtype)),
            whole[root][mine],
        )
    lengths = [[(r + 2 * s) % 3 for s in range(size)] for r in range(size)]  # [from][to]
    sent = [values(r, size, dtype, (sum(lengths[r]), *row)) for r in range(size)]
    pieces = [np.split(sent[r], np.cumsum(lengths[r])[:-1])[rank] for r in range(size)]
    got = g.all_to_all_v(sent[rank], lengths[rank], [lengths[r][rank] for r in range(size)])
    same(got, np.concatenate(pieces))


def messages(g: lockstep.Group, dtype: Any) -> None:
    if g.size == 1:
        return
    to, source = (g.rank + 1) % g.size, (g.rank - 1) % g.size
    for shape in ((), (2, 3)):
        future = g.send_start(values(g.rank, g.size, dtype, shape), to)
        same(g.recv(np.empty(shape, dtype), source), values(source, g.size, dtype, shape))
        future.wait()
    if g.rank == 0:
        g.send(values(0, g.size, dtype, (7,)), g.size - 1)
    if g.rank == g.size - 1:
        same(g.recv(np.empty(7, dtype), 0), values(0, g.size, dtype, (7,)))


def refused(g: lockstep.Group, dtype: Any, ops: list[str]) -> None:
    """Operations that the type does not take, and the group lives."""
    for o in lockstep.Op:
        if o.name in ops:
            continue
        try:
            g.all_reduce(np.zeros(3, dtype), o)
        except lockstep.Error as e:
            assert e.code == lockstep.Status.EINVAL and not e.ends_group, e
        else:
            raise AssertionError(f"{o.name} of {dtype} was taken")


def main() -> None:
    with lockstep.Group.open() as g:
        for dtype, ops in cases():
            shapes = SHAPES if dtype == np.float32 else SHAPES[-1:]
            for op in ops:
                reductions(g, dtype, op, (5, 4))
                virtual(g, dtype, op, (5, 4))
            for shape in shapes:
                reductions(g, dtype, ops[0], shape)
                virtual(g, dtype, ops[0], shape)
                copies(g, dtype, shape)
            blocks_of_any_length(g, dtype, (3,))
            messages(g, dtype)
            refused(g, dtype, ops)
        blocks_of_any_length(g, np.dtype("f4"), ())
        g.barrier()
        print(f"{g.rank} right\n", end="", flush=True)


main()
