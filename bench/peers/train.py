"""PyTorch on the same weights, samples and settings as `lockstep bench train --export DIR`.

Prints one JSON object: losses and seconds of each step. The model is GPT-2 as in Lockstep.
PyTorch's fast paths are on: fused attention, fused AdamW, gradients as views of DDP's buckets.

    train.py DIR [--workers N] [--threads N] [--compile]

N workers train with DistributedDataParallel over Gloo, each on its part of the batch.
"""
import argparse
import json
import os
import struct
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


def read_weights(path):
    """Reads a file of https://huggingface.co/docs/safetensors."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(bytes(data[8 : 8 + n]))
    tensors = {}
    for name, t in header.items():
        if name == "__metadata__":
            continue
        begin, end = t["data_offsets"]
        flat = torch.frombuffer(data, dtype=torch.float32, count=(end - begin) // 4, offset=8 + n + begin)
        tensors[name] = flat.reshape(t["shape"]).clone()
    return tensors


class Block(nn.Module):
    def __init__(self, heads, take):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.ParameterList([take("ln_1.weight"), take("ln_1.bias")])
        self.qkv = nn.ParameterList([take("attn.c_attn.weight"), take("attn.c_attn.bias")])
        self.proj = nn.ParameterList([take("attn.c_proj.weight"), take("attn.c_proj.bias")])
        self.ln_2 = nn.ParameterList([take("ln_2.weight"), take("ln_2.bias")])
        self.fc = nn.ParameterList([take("mlp.c_fc.weight"), take("mlp.c_fc.bias")])
        self.out = nn.ParameterList([take("mlp.c_proj.weight"), take("mlp.c_proj.bias")])

    def forward(self, x):
        B, T, C = x.shape
        h = F.layer_norm(x, (C,), self.ln_1[0], self.ln_1[1])
        q, k, v = torch.addmm(self.qkv[1], h.view(-1, C), self.qkv[0]).view(B, T, 3 * C).split(C, 2)
        q, k, v = (y.view(B, T, self.heads, C // self.heads).transpose(1, 2) for y in (q, k, v))
        att = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        att = att.transpose(1, 2).reshape(-1, C)
        x = x + torch.addmm(self.proj[1], att, self.proj[0]).view(B, T, C)
        h = F.layer_norm(x, (C,), self.ln_2[0], self.ln_2[1])
        u = F.gelu(torch.addmm(self.fc[1], h.view(-1, C), self.fc[0]), approximate="tanh")
        return x + torch.addmm(self.out[1], u, self.out[0]).view(B, T, C)


class GPT(nn.Module):
    def __init__(self, shape, weights):
        super().__init__()
        take = lambda name: nn.Parameter(weights[name])
        self.wte, self.wpe = take("wte.weight"), take("wpe.weight")
        self.blocks = nn.ModuleList(
            Block(shape["heads"], lambda name, i=i: take(f"h.{i}.{name}")) for i in range(shape["layers"])
        )
        self.ln_f = nn.ParameterList([take("ln_f.weight"), take("ln_f.bias")])

    def forward(self, tokens):
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        x = F.embedding(inputs, self.wte) + self.wpe
        for block in self.blocks:
            x = block(x)
        x = F.layer_norm(x, x.shape[-1:], self.ln_f[0], self.ln_f[1])
        logits = F.linear(x, self.wte)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def optimizer_of(model, s):
    decayed = [p for p in model.parameters() if p.dim() == 2]
    plain = [p for p in model.parameters() if p.dim() != 2]
    groups = [{"params": decayed, "weight_decay": s["weight_decay"]}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.0, betas=(s["beta1"], s["beta2"]), eps=s["eps"], fused=True)


def train(rank, a, s, folder):
    torch.set_num_threads(a.threads)
    shape, n = s["model"], a.workers
    model = GPT(shape, read_weights(f"{folder}/weights.safetensors"))
    with open(f"{folder}/tokens.u32", "rb") as f:
        tokens = torch.frombuffer(bytearray(f.read()), dtype=torch.int32).long()
    tokens = tokens.view(s["steps"], s["batch"], shape["context"] + 1)
    mine = slice(s["batch"] * rank // n, s["batch"] * (rank + 1) // n)
    run = model
    if n > 1:
        run = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if a.compile:
        run = torch.compile(run)
    optimizer = optimizer_of(model, s)
    losses, seconds = [], []
    for step in range(s["steps"]):
        begin = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = s["lr"][step]
        loss = run(tokens[step, mine])
        optimizer.zero_grad(set_to_none=n == 1)
        loss.backward()
        if s["clip"] > 0:
            nn.utils.clip_grad_norm_(model.parameters(), s["clip"])
        optimizer.step()
        value = loss.detach().clone()
        if n > 1:
            torch.distributed.all_reduce(value)
        losses.append(value.item() / n)
        seconds.append(time.perf_counter() - begin)
    if rank == 0:
        variant = ("ddp, " if n > 1 else "") + f"{n}x{a.threads}" + (", compile" if a.compile else "")
        print(json.dumps({"system": "pytorch", "version": torch.__version__, "variant": variant,
                          "step_seconds": seconds, "losses": losses}), flush=True)


def worker(rank, a, s, folder):
    torch.distributed.init_process_group("gloo", rank=rank, world_size=a.workers)
    train(rank, a, s, folder)
    torch.distributed.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--compile", action="store_true")
    a = p.parse_args()
    with open(f"{a.folder}/settings.json") as f:
        s = json.load(f)
    if s["batch"] % a.workers:
        sys.exit(f"{a.workers} workers do not divide a batch of {s['batch']}")
    if a.workers == 1:
        train(0, a, s, a.folder)
        return
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29617")
    torch.multiprocessing.spawn(worker, (a, s, a.folder), nprocs=a.workers)


if __name__ == "__main__":
    main()
