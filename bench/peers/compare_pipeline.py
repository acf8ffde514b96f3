"""Compares a pipeline of two workers by lockstep and by torch.distributed.pipelining.

    compare_pipeline.py LOCKSTEP PYTHON OUT [--rounds N] [--steps N] [--context N]

GPT of 12 million parameters, 8 samples, micro-batches of one: the same weights and samples. Both ways
run in every round, one after the other; a figure is the median over rounds of a run's median step
(the first two steps left out). PyTorch is measured with each schedule and two cuts, and the best
counts.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = [(schedule, cut) for schedule in ("1f1b", "gpipe") for cut in (3, 4)]


def run(argv):
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines = [line for line in p.stdout.splitlines() if line.startswith("{")]
    if p.returncode or not lines:
        sys.exit(f"failed: {' '.join(argv)}")
    return json.loads(lines[-1])


def ours(a, schedule, export=None):
    sets = ["parallel.mesh.pipe=2", f"parallel.schedule={schedule}", f"model.context={a.context}", "train.batch=8",
            "train.virtual_workers=1", "train.micro_batch=1"]
    argv = [a.lockstep, "bench", "train", "configs/gpt-12m.yaml", "-n", "2", "--steps", str(a.steps), "--json"]
    for s in sets:
        argv += ["--set", s]
    return run(argv + (["--export", export] if export else []))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("lockstep")
    p.add_argument("python")
    p.add_argument("out")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--context", type=int, default=256)
    a = p.parse_args()
    folder = f"{a.out}/pipeline"
    os.makedirs(a.out, exist_ok=True)
    times, losses = {}, {}
    for _ in range(a.rounds):
        for schedule in ("1f1b", "gpipe"):
            r = ours(a, schedule, None if losses else folder)
            times.setdefault(f"lockstep {schedule}", []).append(statistics.median(r["step_seconds"][2:] or r["step_seconds"]))
            losses.setdefault("lockstep", r["losses"])
        for schedule, cut in WAYS:
            r = run([a.python, "-W", "ignore", f"{HERE}/pipeline.py", folder, "--schedule", schedule, "--cut", str(cut)])
            times.setdefault(f"pytorch {r['variant']}", []).append(statistics.median(r["step_seconds"][2:]))
            losses.setdefault("pytorch", r["losses"])
    worst = max(abs(x - y) for x, y in zip(losses["lockstep"], losses["pytorch"]))
    medians = {name: statistics.median(x) for name, x in times.items()}
    for name, x in medians.items():
        print(f"{name}: {x:.3f} s a step")
    best = {who: min(x for name, x in medians.items() if name.startswith(who)) for who in ("lockstep", "pytorch")}
    print(f"ratio {best['pytorch'] / best['lockstep']:.2f}; losses differ by {worst:.1e}")
    if worst > 2e-3:
        sys.exit("the losses differ by more than rounding explains")


if __name__ == "__main__":
    main()
