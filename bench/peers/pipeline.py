"""PyTorch's pipeline of two workers (torch.distributed.pipelining over Gloo), on the weights, samples
and settings of `lockstep bench train --export DIR`.

    pipeline.py DIR [--schedule 1f1b|gpipe] [--cut BLOCK] [--micro N]

The first worker has the embedding and the blocks before BLOCK, the second the rest and the head.
Each has the tied embedding, whose gradients are summed, as Megatron-LM does. Prints one JSON object:
losses and seconds of each step.
"""
import argparse
import json
import os
import time

import torch
import torch.nn.functional as F
from models import GPT, read_weights
from torch import nn
from torch.distributed import pipelining
from train import optimizer_of, read_config, read_tokens


class Stage(nn.Module):
    """A part of a GPT. names: its own parameters."""

    def __init__(self, gpt, rank, cut):
        super().__init__()
        self.rank, self.wte = rank, gpt.wte
        self.blocks = gpt.blocks[:cut] if rank == 0 else gpt.blocks[cut:]
        self.rest = nn.ParameterList([gpt.wpe] if rank == 0 else list(gpt.ln_f))
        own = {id(p) for p in self.parameters()}
        self.names = {name: p for name, p in gpt.names.items() if id(p) in own}

    def forward(self, x):
        if self.rank == 0:
            x = F.embedding(x, self.wte) + self.rest[0]
        for block in self.blocks:
            x = block(x)
        if self.rank == 0:
            return x
        return F.linear(F.layer_norm(x, x.shape[-1:], self.rest[0], self.rest[1]), self.wte)


def cross_entropy(logits, targets):
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def clip(stage, most):
    """By the norm over both stages; the tied embedding counts once."""
    own = [p.grad for p in stage.parameters() if stage.rank == 0 or p is not stage.wte]
    square = sum((g.double() ** 2).sum() for g in own)
    torch.distributed.all_reduce(square)
    scale = min(1.0, most / (square.sqrt().item() + 1e-6))
    if scale < 1:
        for p in stage.parameters():
            p.grad.mul_(scale)


def train(rank, a, s, c):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    model = Stage(GPT(c, read_weights(f"{a.folder}/weights.safetensors")), rank, a.cut)
    inputs, targets = read_tokens(a, s, c)
    micros = s["batch"] // a.micro
    stage = pipelining.PipelineStage(model, rank, 2, torch.device("cpu"))
    kind = pipelining.Schedule1F1B if a.schedule == "1f1b" else pipelining.ScheduleGPipe
    schedule = kind(stage, micros, loss_fn=cross_entropy)
    optimizer = optimizer_of(model, c, s["decay"])
    losses, seconds = [], []
    for step in range(s["steps"]):
        torch.distributed.barrier()
        begin = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = s["lr"][step]
        optimizer.zero_grad(set_to_none=True)
        found = []
        if rank == 0:
            schedule.step(inputs[step])
        else:
            schedule.step(target=targets[step], losses=found)
        torch.distributed.all_reduce(model.wte.grad)
        if c["optim.clip"] > 0:
            clip(model, c["optim.clip"])
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
        losses.append(sum(x.item() for x in found) / micros if found else 0.0)
    if rank == 1:
        print(json.dumps({"system": "pytorch", "version": torch.__version__, "variant": f"{a.schedule}, cut {a.cut}",
                          "step_seconds": seconds, "losses": losses}), flush=True)
    torch.distributed.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--schedule", default="1f1b")
    p.add_argument("--cut", type=int, required=True)
    p.add_argument("--micro", type=int, default=1)
    a = p.parse_args()
    with open(f"{a.folder}/settings.json") as f:
        s = json.load(f)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29618")
    torch.multiprocessing.spawn(train, (a, s, read_config(f"{a.folder}/config.yaml")), nprocs=2)


if __name__ == "__main__":
    main()
