#!/usr/bin/env python3
"""Compares predicted steps with those that Megatron-LM took on A100 GPUs (Korthikanti et al., "Reducing
Activation Recomputation in Large Transformer Models", arXiv 2205.05198, table 5, full recomputation).

    scripts/check_megatron.py build/lockstep [22B 175B 530B 1T]

All have tensor 8 within a host. A step of many micro-batches repeats itself in the middle: steps of 16 and
24 micro-batches are simulated, and extended by what one more takes. Pipelines of more than 8 workers are
simulated as 8, with the same blocks in each stage; each further worker adds what a micro-batch takes, over
the chunks (the bubble). Takes about two minutes of processor time; 175B needs 4 GB of memory.
"""
import json
import subprocess
import sys

# blocks, width, heads, batch, micro-batch, workers in the pipeline, chunks; the published seconds
MODELS = {
    "22B": (48, 6144, 64, 4, 4, 1, 1, 1.42),
    "175B": (96, 12288, 96, 64, 1, 8, 3, 18.13),
    "530B": (105, 20480, 128, 280, 1, 35, 3, 49.05),
    "1T": (128, 25600, 160, 512, 1, 64, 1, 94.42),
}
TENSOR, MOST_PIPE, FEW, MORE = 8, 8, 16, 24
LIMIT = 0.15


def predict(lockstep, model, pipe, blocks, batch):
    _, width, heads, _, micro, _, chunks, _ = model
    keys = {
        "model.layers": blocks, "model.width": width, "model.heads": heads, "model.context": 2048,
        "model.vocab": 51200, "train.batch": batch, "train.micro_batch": micro,
        "train.virtual_workers": 1, "train.compute": "bf16", "parallel.recompute": 2,
        "parallel.bucket_mb": 1000, "parallel.tensor_virtual": TENSOR,
        "parallel.mesh.tensor": TENSOR, "parallel.mesh.pipe": pipe,
    }
    if chunks > 1:
        keys.update({"parallel.schedule": "interleaved", "parallel.chunks": chunks})
    line = [lockstep, "plan", "configs/gpt2-124m.yaml", "-n", str(TENSOR * pipe), "--json",
            "--machine", "configs/machines/a100.yaml", "--link", "1600Gb/s,2us",
            "--host-workers", str(TENSOR)]
    for key, value in keys.items():
        line += ["--set", f"{key}={value}"]
    out = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    for item in map(json.loads, out.splitlines()):
        if "prediction" in item:
            return item["prediction"]["step_s"]
    raise SystemExit("lockstep plan printed no prediction")


def step_of(lockstep, model):
    blocks, _, _, batch, micro, pipe, chunks, _ = model
    if batch == micro:
        return predict(lockstep, model, pipe, blocks, batch)
    planned = min(pipe, MOST_PIPE)
    few, more = (predict(lockstep, model, planned, blocks * planned // pipe, n * micro)
                 for n in (FEW, MORE))
    each = (more - few) / (MORE - FEW)
    return more + each * (batch // micro - MORE + (pipe - planned) / chunks)


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    worst = 0
    print(f"{'model':>6} {'measured s':>10} {'predicted s':>11} {'ratio':>6}")
    for name in sys.argv[2:] or MODELS:
        measured, predicted = MODELS[name][-1], step_of(sys.argv[1], MODELS[name])
        worst = max(worst, abs(predicted / measured - 1))
        print(f"{name:>6} {measured:10.2f} {predicted:11.2f} {predicted / measured:6.2f}", flush=True)
    print(f"at worst off by {100 * worst:.1f} %")
    return worst > LIMIT


if __name__ == "__main__":
    sys.exit(main())
