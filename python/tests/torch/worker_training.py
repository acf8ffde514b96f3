"""Trains a small model in one of PyTorch's ways, and prints each loss with all its bits, and a hash
of the weights, which is compared between the workers.

    worker_training.py BACKEND WAY
"""

from __future__ import annotations

import gc
import hashlib
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

backend, way = sys.argv[1:3]
if backend == "lockstep":
    import lockstep.torch  # noqa: F401
dist.init_process_group(backend)
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)


def model() -> nn.Module:
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(48, 48), nn.GELU(), nn.LayerNorm(48)) for _ in range(3)]
    return nn.Sequential(*blocks, nn.Linear(48, 1))


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    g = torch.Generator().manual_seed(100 + step)
    x = torch.randn(size * 8, 48, generator=g)
    part = slice(rank * 8, (rank + 1) * 8)
    return x[part], x[part].square().sum(1, keepdim=True) / 48


def train(net: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 6) -> None:
    for step in range(steps):
        x, y = batch(step)
        loss = (net(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        if rank == 0:
            print(f"loss {float(total / size).hex()}")


def adam(net: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(net.parameters(), lr=0.01)


def same_weights(weights: list[torch.Tensor]) -> None:
    digest = hashlib.sha256(b"".join(w.detach().numpy().tobytes() for w in weights)).hexdigest()
    all_digests: list[str] = [""] * size
    dist.all_gather_object(all_digests, digest)
    assert len(set(all_digests)) == 1, all_digests
    if rank == 0:
        print(f"weights {digest[:16]}")


def ddp(**options: bool) -> None:
    net = DistributedDataParallel(model(), bucket_cap_mb=0.01, **options)
    train(net, adam(net))
    same_weights(list(net.parameters()))


def ddp_buckets(**options: bool) -> None:
    """Buckets of 1 MB, which a group of the library takes into its memory."""
    torch.manual_seed(0)
    layers = [nn.Linear(48, 600), nn.GELU(), nn.Linear(600, 600), nn.GELU(), nn.Linear(600, 1)]
    net = DistributedDataParallel(nn.Sequential(*layers), gradient_as_bucket_view=True, **options)
    train(net, adam(net))
    same_weights(list(net.parameters()))
    group = dist.group.WORLD
    large = net.module[2].weight.grad
    if backend != "lockstep" or options:
        return
    tensor = torch.zeros_like(large)
    dist.all_reduce(tensor)
    shares = not {"LOCKSTEP_TRANSPORT", "LOCKSTEP_TORCH_ARENA_MIB"} & set(os.environ)
    assert group._memory.holds(large) == shares, shares
    assert not group._memory.holds(tensor), "a tensor of the user's has moved"
    nblocks = group._memory._nblocks
    assert (nblocks > 0) == shares, nblocks
    kept = large.clone()
    dist.destroy_process_group()
    assert torch.equal(large, kept)
    net.zero_grad()
    del net, large
    gc.collect()
    assert group._memory._nblocks == 0 and not group._memory._pointer


def ddp_hook() -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    net = DistributedDataParallel(model())
    net.register_comm_hook(None, default_hooks.bf16_compress_hook)
    train(net, adam(net))
    net = DistributedDataParallel(model())
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
    net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    train(net, adam(net))
    same_weights(list(net.parameters()))


def compressed() -> None:
    """The kinds of lockstep's own compression: each reaches about the loss without it."""
    net = DistributedDataParallel(model(), bucket_cap_mb=0.01)
    train(net, adam(net), steps=15)
    for kind in ("int8", "bf16", "powersgd", "topk"):
        net = DistributedDataParallel(model(), bucket_cap_mb=0.01)
        state = lockstep.torch.Compression(kind, rank=4, ratio=0.3)
        net.register_comm_hook(state, lockstep.torch.compressed)
        train(net, adam(net), steps=15)
        same_weights(list(net.parameters()))


def fsdp2(group_memory: bool = False) -> None:
    from torch.distributed.fsdp import fully_shard

    net = model()
    for block in net:
        fully_shard(block)
    fully_shard(net)
    if group_memory:
        for block in [*net, net]:
            block.set_allocate_memory_from_process_group_for_comm(True)
    train(net, adam(net))
    same_weights([p.full_tensor() for p in net.parameters()])


def zero() -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    net = DistributedDataParallel(model())
    train(net, ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, lr=0.01))
    same_weights(list(net.parameters()))


def checkpoint() -> None:
    """Saves a sharded model, and loads it into another one."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_model_state_dict
    from torch.distributed.fsdp import fully_shard

    net = fully_shard(model())
    train(net, adam(net), steps=2)
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, 0)
    dcp.save(get_model_state_dict(net), checkpoint_id=folder[0])
    torch.manual_seed(7)
    other = fully_shard(model())
    state = get_model_state_dict(other)
    dcp.load(state, checkpoint_id=folder[0])
    for a, b in zip(net.parameters(), other.parameters()):
        assert torch.equal(a.full_tensor(), b.full_tensor())
    same_weights([p.full_tensor() for p in other.parameters()])


def dtensor() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, RowwiseParallel, parallelize_module,
    )  # fmt: skip

    mesh = init_device_mesh("cpu", (size,))
    whole = torch.arange(24.0 * size).view(6 * size, 4)
    sharded = distribute_tensor(whole, mesh, [Shard(0)])
    assert torch.equal(sharded.redistribute(mesh, [Replicate()]).to_local(), whole)
    assert torch.equal(sharded.redistribute(mesh, [Shard(1)]).full_tensor(), whole)
    assert float(sharded.sum().full_tensor()) == float(whole.sum())
    width = 12 * size
    net = nn.Sequential(nn.Linear(48, width), nn.GELU(), nn.Linear(width, 1))
    net = parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        x = torch.randn(8, 48, generator=torch.Generator().manual_seed(step))
        loss = (net(x) - x.square().mean(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"loss {float(loss.detach()).hex()}")
    same_weights([p.full_tensor() for p in net.parameters()])


def mesh_2d() -> None:
    """FSDP2 over one dimension of a mesh, replicas over the other."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("replica", "shard"))
    net = fully_shard(model(), mesh=mesh)
    train(net, adam(net))
    same_weights([p.full_tensor() for p in net.parameters()])


WAYS = {
    "ddp": ddp, "ddp_view": lambda: ddp(gradient_as_bucket_view=True),
    "ddp_unused": lambda: ddp(find_unused_parameters=True),
    "ddp_static": lambda: ddp(static_graph=True), "ddp_hook": ddp_hook,
    "ddp_buckets": ddp_buckets, "ddp_lazy": lambda: ddp_buckets(lazy_bucket_allocation=True),
    "compressed": compressed, "fsdp2": fsdp2,
    "fsdp2_memory": lambda: fsdp2(group_memory=backend == "lockstep"), "zero": zero, "checkpoint": checkpoint, "dtensor": dtensor, "mesh_2d": mesh_2d,
}  # fmt: skip
WAYS[way]()
if dist.is_initialized():
    dist.barrier()
    dist.destroy_process_group()
