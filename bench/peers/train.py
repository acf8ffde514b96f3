"""PyTorch on the same weights, samples and settings as `lockstep bench train --export DIR`.

Prints one JSON object: losses and seconds of each step, the times between which the steps ran, and
how far the trained weights are from Lockstep's: the norm of the difference divided by that of the
change in training. The models are those of models.py. PyTorch's fast paths are on: fused attention,
fused optimizers, gradients as views of DDP's buckets.

    train.py DIR [--workers N] [--threads N] [--compile] [--channels-last] [--bf16] [--device cuda]

N workers train with DistributedDataParallel over Gloo, each on its part of the batch. --bf16: the
forward pass runs under torch.autocast in bf16, and frozen parameters are bf16.
"""
import argparse
import json
import os
import sys
import time

import torch
from models import MODELS, read_weights
from torch import nn


def read_config(path):
    """{"group.key": value} of the config.yaml that Lockstep writes, whose values are JSON's, except
    for lists of maps, which stay texts."""
    config, group = {}, ""
    with open(path) as f:
        for line in f:
            key, _, value = line.strip().partition(": ")
            if not line.startswith(" "):
                group = line.strip(":\n")
                continue
            try:
                config[f"{group}.{key}"] = json.loads(value)
            except ValueError:
                config[f"{group}.{key}"] = value
    return config


def optimizer_of(model, c, decay):
    trained = {name: p for name, p in model.names.items() if p.requires_grad}
    decayed = [p for name, p in trained.items() if name in decay]
    plain = [p for name, p in trained.items() if name not in decay]
    groups = [{"params": decayed, "weight_decay": c["optim.weight_decay"]}, {"params": plain, "weight_decay": 0.0}]
    if c["optim.optimizer"] == "sgd":
        return torch.optim.SGD(groups, lr=0.0, momentum=c["optim.momentum"],
                               nesterov=c["optim.nesterov"] == "on", fused=True)
    if c["optim.optimizer"] != "adamw":
        sys.exit(f"optim.optimizer {c['optim.optimizer']}: only adamw and sgd are compared")
    return torch.optim.AdamW(groups, lr=0.0, betas=(c["optim.beta1"], c["optim.beta2"]),
                             eps=c["optim.eps"], fused=True)


def read_tokens(a, s, c):
    """Inputs and targets of each step: one token apart."""
    with open(f"{a.folder}/tokens.u32", "rb") as f:
        tokens = torch.frombuffer(bytearray(f.read()), dtype=torch.int32).long()
    tokens = tokens.view(s["steps"], s["batch"], c["model.context"] + 1)
    return tokens[:, :, :-1], tokens[:, :, 1:]


def read_images(a, s, c):
    """Images [steps, batch, channels, height, width] of bytes, and their labels."""
    with open(f"{a.folder}/samples.bin", "rb") as f:
        samples = torch.frombuffer(bytearray(f.read()), dtype=torch.uint8)
    samples = samples.view(s["steps"] * s["batch"], s["sample_bytes"])
    image, label = s["fields"]
    h, w, channels = image["shape"]
    images = samples[:, image["offset"] : image["offset"] + h * w * channels]
    images = images.reshape(-1, h, w, channels).permute(0, 3, 1, 2).contiguous(memory_format=a.format)
    labels = samples[:, label["offset"] : label["offset"] + 4].contiguous().view(torch.int32).long()
    return images.view(s["steps"], s["batch"], channels, h, w), labels.view(s["steps"], s["batch"])


def distance(model, folder):
    """Of the trained weights from Lockstep's."""
    initial, ours = (read_weights(f"{folder}/{name}.safetensors") for name in ("weights", "trained"))
    theirs = {name: w.cpu() for name, w in model.trained().items()}
    difference = sum(((theirs[n] - ours[n]).double() ** 2).sum() for n in ours)
    change = sum(((ours[n] - initial[n]).double() ** 2).sum() for n in ours)
    return (difference / change).sqrt().item()


def variant(a):
    parts = ["ddp"] * (a.workers > 1) + [f"{a.workers}x{a.threads}"]
    return ", ".join(parts + ["compile"] * a.compile + ["channels last"] * a.channels_last + ["bf16"] * a.bf16)


def train(rank, a, s, c):
    torch.set_num_threads(a.threads)
    n = a.workers
    a.format = torch.channels_last if a.channels_last else torch.contiguous_format
    model = MODELS[c["model.kind"]](c, read_weights(f"{a.folder}/weights.safetensors"))
    model.weights = None  # the model has copies: the file's mapping must not count as its memory
    inputs, targets = (read_images if c["model.kind"] == "resnet" else read_tokens)(a, s, c)
    for name in s["frozen"]:
        model.names[name].requires_grad_(False)
        if a.bf16:
            model.names[name].data = model.names[name].data.bfloat16()
    model, inputs, targets = model.to(a.device), inputs.to(a.device), targets.to(a.device)
    if a.channels_last:
        model = model.to(memory_format=torch.channels_last)
    mine = slice(s["batch"] * rank // n, s["batch"] * (rank + 1) // n)
    run = model
    if n > 1:
        run = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if a.compile:
        run = torch.compile(run)
    optimizer = optimizer_of(model, c, s["decay"])
    losses, seconds, steps_between = [], [], [time.time()]
    for step in range(s["steps"]):
        begin = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = s["lr"][step]
        with torch.autocast(a.device, dtype=torch.bfloat16, enabled=a.bf16):
            loss = run(inputs[step, mine], targets[step, mine])
        optimizer.zero_grad(set_to_none=n == 1)
        loss.backward()
        if c["optim.clip"] > 0:
            nn.utils.clip_grad_norm_(model.parameters(), c["optim.clip"])
        optimizer.step()
        value = loss.detach().clone()
        if n > 1:
            torch.distributed.all_reduce(value)
        losses.append(value.item() / n)
        seconds.append(time.perf_counter() - begin)
    steps_between.append(time.time())
    if rank == 0:
        print(json.dumps({"system": "pytorch", "version": torch.__version__, "variant": variant(a),
                          "step_seconds": seconds, "steps_between": steps_between, "losses": losses, "tokens": targets[0].numel(),
                          "weights_differ_by": distance(model, a.folder)}), flush=True)


def worker(rank, a, s, c):
    torch.distributed.init_process_group("gloo", rank=rank, world_size=a.workers)
    train(rank, a, s, c)
    torch.distributed.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--compile", action="store_true")
    p.add_argument("--channels-last", action="store_true")
    p.add_argument("--bf16", action="store_true")
    p.add_argument("--device", default="cpu")
    a = p.parse_args()
    with open(f"{a.folder}/settings.json") as f:
        s = json.load(f)
    c = read_config(f"{a.folder}/config.yaml")
    if s["batch"] % a.workers:
        sys.exit(f"{a.workers} workers do not divide a batch of {s['batch']}")
    if a.workers == 1:
        train(0, a, s, c)
        return
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29617")
    torch.multiprocessing.spawn(worker, (a, s, c), nprocs=a.workers)


if __name__ == "__main__":
    main()
