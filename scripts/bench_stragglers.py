#!/usr/bin/env python3
"""Compares synchronous and asynchronous runs, and those between, with one of four workers at a third of its speed.

    scripts/bench_stragglers.py [--rounds N] [BUILD]

All workers sleep in proportion to the processor time that they use (tests/cli/faults.c), so four of
them need little more than one core, and the slow one sleeps more. Prints the samples a second of
each kind of run, the median over the rounds, which take turns.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
FAST, SLOW = 4, 12  # multiples of the processor time
RUNS = {
    "synchronous": ["survival.balance=off", "survival.slow_limit=0"],
    "synchronous, balanced": ["survival.slow_limit=0"],
    "staleness 0": ["sync.mode=ssp", "sync.staleness=0"],
    "staleness 1": ["sync.mode=ssp", "sync.staleness=1"],
    "staleness 4": ["sync.mode=ssp", "sync.staleness=4"],
    "asynchronous": ["sync.mode=async"],
}
SETTINGS = ["model.width=96", "model.context=64", "train.steps=%d", "train.eval_every=0",
            "train.virtual_workers=16", "train.batch=32", "log.every=100000"]


def rate(build, kind, slow, steps):
    """Returns samples a second of the second half of a run."""
    with tempfile.TemporaryDirectory() as folder:
        pace = pathlib.Path(folder) / "slow"
        pace.write_text(f"0 {SLOW} -1 {FAST}" if slow else f"-1 {FAST}")
        env = dict(os.environ, LD_PRELOAD=str(build / "tests/libfaults.so"), LOCKSTEP_SLOW=str(pace), LOCKSTEP_WAIT_POLICY="passive")
        sets = [x % steps if "%" in x else x for x in SETTINGS + RUNS[kind]]
        run = folder + "/run"
        command = [build / "lockstep", "train", "configs/tiny.yaml", "-n", "4", "-o", run]
        for x in sets:
            command += ["--set", x]
        subprocess.run(command, cwd=TOP, env=env, check=True, capture_output=True)
        lines = [json.loads(x) for x in open(run + "/metrics.jsonl")]
        half = [x for x in lines if "loss" in x and x["step"] > steps // 2]
        return sum(x["samples"] for x in half) / sum(x["seconds"] for x in half)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build", nargs="?", default=str(TOP / "build"))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=60)
    a = p.parse_args()
    rates = {}
    for _ in range(a.rounds):
        for kind in RUNS:
            for slow in (False, True):
                rates.setdefault((kind, slow), []).append(rate(pathlib.Path(a.build), kind, slow, a.steps))
    print(f"{'samples a second':24} {'all alike':>12} {'one at 1/3':>12} {'left':>8}")
    for kind in RUNS:
        whole, hurt = (statistics.median(rates[kind, slow]) for slow in (False, True))
        print(f"{kind:24} {whole:12.1f} {hurt:12.1f} {hurt / whole:8.0%}")


if __name__ == "__main__":
    sys.exit(main())
