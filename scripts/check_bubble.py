#!/usr/bin/env python3
"""Compares the part of a step in which the workers of a pipeline wait, as `lockstep plan` predicts it and
as `lockstep bench train` measures it, for each schedule.

    scripts/check_bubble.py build/lockstep [--machine FILE] [--rounds 5] [--steps 6]

Two workers, a thread each, so nothing else should run. Without a machine file the machine is measured
first. The schedules take turns; medians of the rounds count. Fails if one is off by more than a tenth.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

LIMIT = 0.1
WORKERS = 2
KEYS = {
    "model.kind": "llama", "model.head": "own", "model.layers": 8, "model.width": 256,
    "model.heads": 4, "model.context": 256, "train.batch": 6, "train.micro_batch": 1,
    "train.virtual_workers": 1, "parallel.mesh.pipe": WORKERS,
}
SCHEDULES = {
    "gpipe": {}, "1f1b": {}, "interleaved": {"parallel.chunks": 2}, "zb-h1": {},
    "zb-v": {"parallel.chunks": 2},
}


def run(line):
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


def settings(schedule):
    keys = {**KEYS, "parallel.schedule": schedule, **SCHEDULES[schedule]}
    out = ["configs/tiny.yaml", "-n", str(WORKERS), "--json"]
    for key, value in keys.items():
        out += ["--set", f"{key}={value}"]
    return out


def predict(lockstep, machine, schedule):
    for line in run([lockstep, "plan", *settings(schedule), "--machine", machine]).splitlines():
        item = json.loads(line)
        if "prediction" in item:
            x = item["prediction"]
            return x["step_s"], (x["least_wait"] + x["most_wait"]) / 2
    raise SystemExit("lockstep plan printed no prediction")


def measure(lockstep, schedule, steps):
    x = json.loads(run([lockstep, "bench", "train", *settings(schedule), "--steps", str(steps)]))
    seconds = statistics.median(x["step_seconds"][x["warmup"]:])
    return seconds, (x["least_wait"] + x["most_wait"]) / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lockstep")
    parser.add_argument("--machine")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6)
    o = parser.parse_args()
    worst = 0
    with tempfile.TemporaryDirectory() as top:
        machine = o.machine or os.path.join(top, "machine.yaml")
        if not o.machine:
            run([o.lockstep, "bench", "machine", "--save", machine])
        measured = {s: [] for s in SCHEDULES}
        for _ in range(o.rounds):
            for s in SCHEDULES:
                measured[s].append(measure(o.lockstep, s, o.steps))
        print(f"{'':12} {'step: predicted':>16} {'measured':>9} {'waiting: predicted':>19} "
              f"{'measured':>9} {'ratio':>6}")
        for s in SCHEDULES:
            seconds, wait = predict(o.lockstep, machine, s)
            took, waited = (statistics.median(x) for x in zip(*measured[s]))
            worst = max(worst, abs(wait / waited - 1))
            print(f"{s:12} {seconds:14.4f} s {took:7.4f} s {100 * wait:17.1f} % {100 * waited:7.1f} % "
                  f"{wait / waited:6.2f}")
    print(f"at worst off by {100 * worst:.1f} %")
    return worst > LIMIT


if __name__ == "__main__":
    sys.exit(main())
