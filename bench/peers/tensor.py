"""PyTorch's tensor parallelism of two workers (torch.distributed.tensor.parallel over Gloo), on the
weights and samples of `lockstep bench train --export DIR`.

    tensor.py DIR [--steps N]

As Megatron-LM divides a GPT: queries, keys, values and the first product of an MLP by columns, the
second ones by rows, the tied embedding and the logits by the vocabulary, with a parallel
cross-entropy. Prints one JSON object: losses and seconds of each step.
"""
import argparse
import json
import os
import time

import torch
import torch.nn.functional as F
from models import read_weights
from torch import nn
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, loss_parallel, parallelize_module
from train import read_config, read_tokens


def linear(weight, bias):
    """A product as PyTorch has it, of GPT-2's [in, out]."""
    layer = nn.Linear(weight.shape[0], weight.shape[1])
    layer.weight = nn.Parameter(weight.T.contiguous())
    layer.bias = nn.Parameter(bias.clone())
    return layer


def norm(w, name):
    layer = nn.LayerNorm(w[name + ".weight"].shape[0])
    layer.weight, layer.bias = nn.Parameter(w[name + ".weight"]), nn.Parameter(w[name + ".bias"])
    return layer


class Block(nn.Module):
    def __init__(self, w, head_size):
        super().__init__()
        self.head_size = head_size
        weight, bias = w["attn.c_attn.weight"].chunk(3, 1), w["attn.c_attn.bias"].chunk(3)
        self.ln_1, self.ln_2 = norm(w, "ln_1"), norm(w, "ln_2")
        self.q, self.k, self.v = (linear(weight[i], bias[i]) for i in range(3))
        self.proj = linear(w["attn.c_proj.weight"], w["attn.c_proj.bias"])
        self.fc = linear(w["mlp.c_fc.weight"], w["mlp.c_fc.bias"])
        self.out = linear(w["mlp.c_proj.weight"], w["mlp.c_proj.bias"])

    def forward(self, x):
        B, T, _ = x.shape
        h = self.ln_1(x)
        q, k, v = (y(h).view(B, T, -1, self.head_size).transpose(1, 2) for y in (self.q, self.k, self.v))
        att = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(att.transpose(1, 2).reshape(B, T, -1))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, c, w):
        super().__init__()
        V, C = w["wte.weight"].shape
        self.wte, self.wpe = nn.Embedding(V, C, _weight=w["wte.weight"]), nn.Parameter(w["wpe.weight"])
        parts = lambda i: {n[len(f"h.{i}."):]: t for n, t in w.items() if n.startswith(f"h.{i}.")}
        self.blocks = nn.ModuleList(Block(parts(i), C // c["model.heads"]) for i in range(c["model.layers"]))
        self.ln_f = norm(w, "ln_f")
        self.head = nn.Linear(C, V, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x))


def divide(model, mesh):
    for block in model.blocks:
        plan = {name: ColwiseParallel() for name in ("q", "k", "v", "fc")}
        parallelize_module(block, mesh, {**plan, "proj": RowwiseParallel(), "out": RowwiseParallel()})
    parallelize_module(model, mesh, {"wte": RowwiseParallel(input_layouts=Replicate()),
                                     "head": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)})
    model.head.weight = model.wte.weight


def clip(model, most):
    """By the norm over both workers; what both have counts once."""
    square = torch.zeros((), dtype=torch.float64)
    whole = torch.zeros((), dtype=torch.float64)
    grads = [p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad for p in model.parameters()]
    for p, g in zip(model.parameters(), grads):
        shared = not isinstance(p, DTensor) or p.placements[0].is_replicate()
        (whole if shared else square).add_((g.double() ** 2).sum())
    torch.distributed.all_reduce(square)
    scale = min(1.0, most / ((square + whole).sqrt().item() + 1e-6))
    for g in grads if scale < 1 else []:
        g.mul_(scale)


def train(rank, a, s, c):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    model = GPT(c, read_weights(f"{a.folder}/weights.safetensors"))
    divide(model, mesh)
    inputs, targets = read_tokens(a, s, c)
    groups = {}  # a group of foreach has either kind of tensor
    for p in model.parameters():
        groups.setdefault((p.ndim > 1, isinstance(p, DTensor)), []).append(p)
    optimizer = torch.optim.AdamW([{"params": x, "weight_decay": c["optim.weight_decay"] if matrices else 0.0}
                                   for (matrices, _), x in groups.items()],
                                  lr=0.0, betas=(c["optim.beta1"], c["optim.beta2"]), eps=c["optim.eps"], foreach=True)
    losses, seconds = [], []
    for step in range(s["steps"]):
        torch.distributed.barrier()
        begin = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = s["lr"][step]
        optimizer.zero_grad(set_to_none=True)
        with loss_parallel():
            logits = model(inputs[step])
            loss = F.cross_entropy(logits.flatten(0, 1), targets[step].reshape(-1))
            loss.backward()
        if c["optim.clip"] > 0:
            clip(model, c["optim.clip"])
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
        losses.append((loss.full_tensor() if isinstance(loss, DTensor) else loss).item())
    if rank == 0:
        print(json.dumps({"system": "pytorch", "version": torch.__version__, "variant": "tensor 2",
                          "step_seconds": seconds, "losses": losses}), flush=True)
    torch.distributed.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    a = p.parse_args()
    with open(f"{a.folder}/settings.json") as f:
        s = json.load(f)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29619")
    torch.multiprocessing.spawn(train, (a, s, read_config(f"{a.folder}/config.yaml")), nprocs=2)


if __name__ == "__main__":
    main()
