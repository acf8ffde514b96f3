"""Two workers that take themselves to be on hosts of their own: their messages go over TLS."""

from __future__ import annotations

import os

os.environ["LOCKSTEP_HOST"] = f"host-{os.environ['RANK']}"

import torch
import torch.distributed as dist

import lockstep.torch  # noqa: F401

dist.init_process_group("lockstep")
x = torch.full((100000,), float(dist.get_rank() + 1))
dist.all_reduce(x)
assert torch.equal(x, torch.full((100000,), 3.0))
out: list[object] = [None, None]
dist.all_gather_object(out, os.environ["LOCKSTEP_HOST"])
assert out == ["host-0", "host-1"], out
dist.destroy_process_group()
print("right\n", end="")
