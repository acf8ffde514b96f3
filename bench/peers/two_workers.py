"""What the comparisons of two workers share: the arguments, running a way, and the table.

compare_pipeline.py and compare_tensor.py run all ways in every round, one after the other; a figure is
the median over rounds of a run's median step (the first two steps left out).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def arguments(steps, **own):
    """LOCKSTEP PYTHON OUT, and the numbers --rounds, --steps and `own` with their defaults."""
    p = argparse.ArgumentParser()
    for name in ("lockstep", "python", "out"):
        p.add_argument(name)
    for name, default in {"rounds": 3, "steps": steps, **own}.items():
        p.add_argument(f"--{name}", type=int, default=default)
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    return a


def run(argv):
    p = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines = [line for line in p.stdout.splitlines() if line.startswith("{")]
    if p.returncode or not lines:
        sys.exit(f"failed: {' '.join(argv)}")
    return json.loads(lines[-1])


def run_lockstep(a, n, sets, export):
    argv = [a.lockstep, "bench", "train", "configs/gpt-12m.yaml", "-n", str(n), "--steps", str(a.steps), "--json"]
    for s in sets:
        argv += ["--set", s]
    return run(argv + (["--export", export] if export else []))


def run_pytorch(a, script, folder, *options):
    return run([a.python, "-W", "ignore", f"{HERE}/{script}", folder, *options])


class Table:
    """Times of each way, and the losses, which are compared with those of the first way."""

    def __init__(self):
        self.times, self.losses = {}, {}

    def add(self, name, system, result):
        seconds = result["step_seconds"]
        self.times.setdefault(name, []).append(statistics.median(seconds[2:] or seconds))
        self.losses.setdefault(system, result["losses"])

    def medians(self, digits):
        found = {name: statistics.median(x) for name, x in self.times.items()}
        for name, x in found.items():
            print(f"{name}: {x:.{digits}f} s a step")
        return found

    def end(self, says):
        """Prints what `says` and by how much losses differ; fails where that is no rounding."""
        first, *others = self.losses.values()
        worst = max(abs(x - y) for other in others for x, y in zip(first, other))
        print(f"{says}; losses differ by {worst:.1e}")
        if worst > 2e-3:
            sys.exit("the losses differ by more than rounding explains")
