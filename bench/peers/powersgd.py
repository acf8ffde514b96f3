"""PyTorch's DistributedDataParallel with its PowerSGD hook, on the shapes of a Lockstep config.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=... MASTER_PORT=... powersgd.py CONFIG STEPS

Weights and tokens are random: only the time of a step counts. Rank 0 prints the median of the steps
whose gradients are compressed, as JSON. One thread; rank 4, error feedback and warm start, as with
Lockstep's `compress.kind: powersgd`.
"""
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import yaml
from models import GPT
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

START = 2  # the hook compresses from this step on


def weights_of(m):
    C = m["width"]
    shapes = {"wte.weight": (m["vocab"], C), "wpe.weight": (m["context"], C)}
    for i in range(m["layers"]):
        for name, shape in (
            ("ln_1", (C,)), ("attn.c_attn", (C, 3 * C)), ("attn.c_proj", (C, C)),
            ("ln_2", (C,)), ("mlp.c_fc", (C, 4 * C)), ("mlp.c_proj", (4 * C, C)),
        ):
            shapes[f"h.{i}.{name}.weight"] = shape
            shapes[f"h.{i}.{name}.bias"] = shape[-1:]
    shapes["ln_f.weight"] = shapes["ln_f.bias"] = (C,)
    return {name: 0.02 * torch.randn(shape) for name, shape in shapes.items()}


def main():
    with open(sys.argv[1]) as f:
        config = yaml.safe_load(f)
    m, steps, rank = config["model"], int(sys.argv[2]), int(os.environ["RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(
        GPT({"model.heads": m["heads"], "model.layers": m["layers"]}, weights_of(m)),
        gradient_as_bucket_view=True, bucket_cap_mb=1000)
    state = powerSGD_hook.PowerSGDState(
        process_group=None, matrix_approximation_rank=4, start_powerSGD_iter=START)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    batch, seconds = config["train"]["batch"] // dist.get_world_size(), []
    tokens = torch.randint(m["vocab"], (batch, m["context"] + 1))
    for _ in range(START + 2 + steps):
        begin = time.perf_counter()
        loss = model(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    dist.barrier()
    if rank == 0:
        print(json.dumps({"seconds": statistics.median(seconds[START + 2:])}))


main()
