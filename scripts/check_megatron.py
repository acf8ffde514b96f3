#!/usr/bin/env python3
"""Compares predicted steps with those that Megatron-LM took on A100 GPUs (Korthikanti et al., "Reducing
Activation Recomputation in Large Transformer Models", arXiv 2205.05198, table 5): with full
recomputation, and with sequence parallelism and selective recomputation.

    scripts/check_megatron.py build/lockstep [22B 175B 530B 1T]

All have tensor 8 within a host. A step of many micro-batches repeats itself in the middle: steps of few and
of 8 more micro-batches are simulated, and extended by what one more takes. Pipelines of more than 8 workers
are simulated as 8, with the same blocks in each stage; each further worker adds what a micro-batch takes,
over the chunks (the bubble). Takes about six minutes of processor time; 175B needs 4 GB of memory.
"""
import json
import subprocess
import sys

# blocks, width, heads, batch, micro-batch, workers in the pipeline, chunks; the published seconds
MODELS = {
    "22B": (48, 6144, 64, 4, 4, 1, 1, (1.42, 1.10)),
    "175B": (96, 12288, 96, 64, 1, 8, 3, (18.13, 13.75)),
    "530B": (105, 20480, 128, 280, 1, 35, 3, (49.05, 37.83)),
    "1T": (128, 25600, 160, 512, 1, 64, 1, (94.42, 71.49)),
}
# The columns of the table: keys, and micro-batches of the shorter step. Attention never retains scores,
# so without recomputation it is as with selective recomputation.
COLUMNS = (
    ("full recomputation", {"parallel.recompute": 2}, 16),
    ("sequence parallel, selective", {"parallel.sequence": "on"}, 8),
)
TENSOR, MOST_PIPE, FURTHER = 8, 8, 8
LIMIT = 0.15


def predict(lockstep, model, column, pipe, blocks, batch):
    _, width, heads, _, micro, _, chunks, _ = model
    keys = {
        "model.layers": blocks, "model.width": width, "model.heads": heads, "model.context": 2048,
        "model.vocab": 51200, "train.batch": batch, "train.micro_batch": micro,
        "train.virtual_workers": 1, "train.compute": "bf16",
        "parallel.bucket_mb": 1000, "parallel.tensor_virtual": TENSOR,
        "parallel.mesh.tensor": TENSOR, "parallel.mesh.pipe": pipe,
    }
    keys.update(column[1])
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


def step_of(lockstep, model, column):
    blocks, _, _, batch, micro, pipe, chunks, _ = model
    if batch == micro:
        return predict(lockstep, model, column, pipe, blocks, batch)
    planned, few = min(pipe, MOST_PIPE), column[2]
    short, longer = (predict(lockstep, model, column, planned, blocks * planned // pipe, n * micro)
                     for n in (few, few + FURTHER))
    each = (longer - short) / FURTHER
    return longer + each * (batch // micro - few - FURTHER + (pipe - planned) / chunks)


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    worst = 0
    for i, column in enumerate(COLUMNS):
        print(column[0])
        print(f"{'model':>6} {'measured s':>10} {'predicted s':>11} {'ratio':>6}")
        for name in sys.argv[2:] or MODELS:
            measured = MODELS[name][-1][i]
            predicted = step_of(sys.argv[1], MODELS[name], column)
            off = abs(predicted / measured - 1)
            worst = max(worst, off)
            print(f"{name:>6} {measured:10.2f} {predicted:11.2f} {predicted / measured:6.2f}",
                  flush=True)
    print(f"at worst off by {100 * worst:.1f} %")
    return worst > LIMIT


if __name__ == "__main__":
    sys.exit(main())
