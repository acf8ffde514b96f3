"""Times torch.distributed over Lockstep and over Gloo, side by side: the same processes make the same
calls with both, in alternation.

    torchrun --standalone --nproc-per-node 2 torch_backends.py [all_reduce] [ddp[-SIZE]] [fsdp2[-SIZE]]

For all-reduces of f32 the least and the median of a size's rounds; for training those of the steps of a GPT of 0.3, 12
or 124 million parameters (SIZE: small, middle, large; all if none is given), whose losses must be equal. Communication
takes what a step takes beyond one of the same model alone.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from typing import NamedTuple

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import lockstep.torch  # noqa: F401

SIZES = [8, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20]
BACKENDS = ("lockstep", "gloo")


class Shape(NamedTuple):
    """Of a GPT, and how often it is trained for a time."""

    width: int
    layers: int
    heads: int
    vocabulary: int
    context: int
    batch: int
    steps: int


SHAPES = {
    "small": Shape(64, 4, 4, 512, 64, 2, 60),
    "middle": Shape(384, 6, 6, 2048, 128, 4, 12),
    "large": Shape(768, 12, 12, 50257, 128, 1, 6),
}

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.set_num_threads(1)
groups = {name: dist.new_group(backend=name) for name in BACKENDS}


def say(text: str) -> None:
    if rank == 0:
        print(text, flush=True)


def all_reduce() -> None:
    """Rounds of calls one after the other, in alternation: in a tensor of PyTorch, and in one of the
    group's memory."""
    say(f"\nall_reduce of f32, {size} workers: us a call, least and median of the rounds")
    say(f"{'bytes':>10} {'lockstep':>17} {'group memory':>17} {'gloo':>19}   times, of the least")
    for nbytes in SIZES:
        n, ours = nbytes // 4, groups["lockstep"]
        tensors = {"lockstep": torch.zeros(n), "gloo": torch.zeros(n)}
        tensors["memory"] = lockstep.torch.empty(n, group=ours)
        calls = max(2, min(200, (64 << 20) // nbytes))
        times: dict[str, list[float]] = {name: [] for name in tensors}
        for i in range(12 if nbytes < 16 << 20 else 6):
            for name, x in tensors.items():
                group = groups.get(name, ours)
                dist.barrier(groups["gloo"])
                begin = time.perf_counter()
                for _ in range(calls):
                    dist.all_reduce(x, group=group)
                if i:
                    times[name].append(1e6 * (time.perf_counter() - begin) / calls)
        least = {name: min(t) for name, t in times.items()}
        texts = {k: f"{least[k]:.1f} {statistics.median(t):.1f}" for k, t in times.items()}
        ratios = [least["gloo"] / least[name] for name in ("lockstep", "memory")]
        say(f"{nbytes:10} {texts['lockstep']:>17} {texts['memory']:>17} {texts['gloo']:>19}   "
            f"{ratios[0]:.1f}, {ratios[1]:.1f}")  # fmt: skip


class Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width, self.heads = shape.width, shape.heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, -1))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.token = nn.Embedding(shape.vocabulary, shape.width)
        self.place = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.token(tokens) + self.place.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.token.weight.T


def make(way: str, shape: Shape, group: dist.ProcessGroup | None) -> nn.Module:
    torch.manual_seed(0)
    model = GPT(shape)
    if group is None:
        return model
    if way == "ddp":
        return DistributedDataParallel(model, process_group=group, gradient_as_bucket_view=True)
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    mesh = DeviceMesh.from_group(group, "cpu")
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    if group is groups["lockstep"]:
        for part in [*model.blocks, model]:
            part.set_allocate_memory_from_process_group_for_comm(True)
    return model


def train(way: str, name: str) -> None:
    shape = SHAPES[name]
    ways = {"alone": None, **groups}
    models = {w: make(way, shape, group) for w, group in ways.items()}
    optimizers = {w: torch.optim.AdamW(models[w].parameters(), 3e-4) for w in ways}
    times: dict[str, list[float]] = {w: [] for w in ways}
    losses: dict[str, list[float]] = {w: [] for w in ways}
    for step in range(shape.steps + 2):
        g = torch.Generator().manual_seed(step * size + rank)
        tokens = torch.randint(shape.vocabulary, (shape.batch, shape.context + 1), generator=g)
        for w in ways:
            dist.barrier(groups["gloo"])
            begin = time.perf_counter()
            logits = models[w](tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            optimizers[w].zero_grad()
            loss.backward()
            optimizers[w].step()
            if step >= 2:  # DDP makes its buckets anew in the second step
                times[w].append(1e3 * (time.perf_counter() - begin))
            losses[w].append(float(loss.detach()))
    n = sum(p.numel() for p in models["alone"].parameters())
    say(f"\n{way}, {n / 1e6:.1f} million parameters, {size} workers: a step in ms, least and median")
    median = {w: statistics.median(times[w]) for w in ways}
    for w in ways:
        share = statistics.median(1 - a / t for a, t in zip(times["alone"], times[w]))
        say(f"{w:>9} {min(times[w]):9.1f} {median[w]:9.1f}   communication {100 * share:3.0f} %")
    say(f"{median['gloo'] / median['lockstep']:.2f} times as fast as gloo")
    same = losses["lockstep"] == losses["gloo"]
    close = all(math.isclose(*losses, rel_tol=1e-4)
                for losses in zip(losses["lockstep"], losses["gloo"]))  # fmt: skip
    say(f"losses {'equal' if same else 'close' if close else 'DIFFER'}: {losses['lockstep'][-1]}")
    if not close:
        sys.exit(1)


def run(part: str) -> None:
    way, _, name = part.partition("-")
    if way == "all_reduce":
        all_reduce()
        return
    for shape in [name] if name else SHAPES:
        train(way, shape)


for part in sys.argv[1:] or ["all_reduce", "ddp", "fsdp2"]:
    run(part)
dist.destroy_process_group()
