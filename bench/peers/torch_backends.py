"""Times torch.distributed over Lockstep and over Gloo, side by side: the same processes make the same
calls with both, in alternation.

    torchrun --standalone --nproc-per-node 2 torch_backends.py [all_reduce] [ddp] [fsdp2]

For all-reduces of f32 the least and the median of a size's rounds; for training the median of the steps of a GPT of
12 million parameters, whose losses must be equal.
"""

from __future__ import annotations

import math
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import lockstep.torch  # noqa: F401

SIZES = [8, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20]
BACKENDS = ("lockstep", "gloo")
WIDTH, LAYERS, HEADS, VOCABULARY, CONTEXT, BATCH, STEPS = 384, 6, 6, 2048, 128, 4, 10

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
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, WIDTH)
        self.place = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.token(tokens) + self.place.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def make(way: str, group: dist.ProcessGroup) -> nn.Module:
    torch.manual_seed(0)
    model = GPT()
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


def train(way: str) -> None:
    models = {name: make(way, groups[name]) for name in BACKENDS}
    optimizers = {name: torch.optim.AdamW(models[name].parameters(), 3e-4) for name in BACKENDS}
    times: dict[str, list[float]] = {name: [] for name in BACKENDS}
    losses: dict[str, list[float]] = {name: [] for name in BACKENDS}
    for step in range(STEPS + 1):
        g = torch.Generator().manual_seed(step * size + rank)
        tokens = torch.randint(VOCABULARY, (BATCH, CONTEXT + 1), generator=g)
        for name in BACKENDS:
            dist.barrier(groups["gloo"])
            begin = time.perf_counter()
            logits = models[name](tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            optimizers[name].zero_grad()
            loss.backward()
            optimizers[name].step()
            if step:
                times[name].append(1e3 * (time.perf_counter() - begin))
            losses[name].append(float(loss.detach()))
    ours, gloos = (statistics.median(times[name]) for name in BACKENDS)
    n = sum(p.numel() for p in GPT().parameters())
    say(f"\n{way}, {n / 1e6:.1f} million parameters, {size} workers: median of a step, ms")
    say(f"lockstep {ours:.1f}, gloo {gloos:.1f}: {gloos / ours:.2f} times as fast")
    same = losses["lockstep"] == losses["gloo"]
    close = all(math.isclose(*pair, rel_tol=1e-4) for pair in zip(*losses.values()))
    say(f"losses {'equal' if same else 'close' if close else 'DIFFER'}: {losses['lockstep'][-1]}")
    if not close:
        sys.exit(1)


PARTS = {"all_reduce": all_reduce, "ddp": lambda: train("ddp"), "fsdp2": lambda: train("fsdp2")}
for part in sys.argv[1:] or PARTS:
    PARTS[part]()
dist.destroy_process_group()
