"""lockstep.Group on tensors of CPUs, which it takes by DLPack or the array interface."""

from __future__ import annotations

from typing import Any

import torch

import lockstep


class OnlyDLPack:
    """A tensor without its array interface."""

    def __init__(self, of: torch.Tensor) -> None:
        self.of = of

    def __dlpack__(self, **named: Any) -> Any:
        return self.of.__dlpack__(**named)

    def __dlpack_device__(self) -> Any:
        return self.of.__dlpack_device__()


with lockstep.Group.open() as g:
    for wrap in (OnlyDLPack, lambda t: t):
        for dtype in (torch.float32, torch.float64, torch.int64, torch.bool, torch.uint8):
            x = torch.ones(3, 5).to(dtype)
            got = torch.from_numpy(g.all_reduce(wrap(x), "lor" if dtype == torch.bool else "max"))
            assert got.dtype == dtype and torch.equal(got, x), dtype
            out = torch.empty(g.size, 3, 5, dtype=dtype)
            g.all_gather(wrap(x), out=wrap(out))
            assert torch.equal(out, x.expand(g.size, 3, 5)), dtype
        x = torch.full((4,), float(g.rank))
        g.broadcast(wrap(x), g.size - 1)
        assert torch.equal(x, torch.full((4,), g.size - 1.0))
        assert torch.equal(torch.from_numpy(g.all_reduce(wrap(torch.ones(4, 3).T))),
                           torch.full((3, 4), float(g.size)))  # fmt: skip
print("right\n", end="")
