"""Compares tensor parallelism of two workers by lockstep and by torch.distributed.tensor.parallel.

    compare_tensor.py LOCKSTEP PYTHON OUT [--rounds N] [--steps N] [--batch N]

GPT of 12 million parameters, samples of 256 tokens: the same weights and samples. All ways run in
every round, one after the other; a figure is the median over rounds of a run's median step (the
first two steps left out). One worker of lockstep has the model in one piece.
"""
import argparse
import os
import statistics
import sys

from compare_pipeline import run

HERE = os.path.dirname(os.path.abspath(__file__))
WAYS = {"lockstep, one worker": ["1"],
        "lockstep, two slices, one worker": ["1", "parallel.tensor_virtual=2"],
        "lockstep, tensor 2": ["2", "parallel.tensor_virtual=2", "parallel.mesh.tensor=2"]}


def ours(a, way, export=None):
    n, *sets = WAYS[way]
    sets += ["model.context=256", f"train.batch={a.batch}", "train.virtual_workers=1", f"train.micro_batch={a.batch}"]
    argv = [a.lockstep, "bench", "train", "configs/gpt-12m.yaml", "-n", n, "--steps", str(a.steps), "--json"]
    for s in sets:
        argv += ["--set", s]
    return run(argv + (["--export", export] if export else []))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("lockstep")
    p.add_argument("python")
    p.add_argument("out")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--batch", type=int, default=1)
    a = p.parse_args()
    folder = f"{a.out}/tensor"
    os.makedirs(a.out, exist_ok=True)
    times, losses = {}, {}
    for _ in range(a.rounds):
        for way in WAYS:
            r = ours(a, way, None if losses else folder)
            times.setdefault(way, []).append(statistics.median(r["step_seconds"][2:]))
            losses.setdefault(way, r["losses"])
        r = run([a.python, "-W", "ignore", f"{HERE}/tensor.py", folder])
        times.setdefault("pytorch, tensor 2", []).append(statistics.median(r["step_seconds"][2:]))
        losses.setdefault("pytorch", r["losses"])
    worst = max(abs(x - y) for other in losses.values() for x, y in zip(losses["lockstep, tensor 2"], other))
    medians = {name: statistics.median(x) for name, x in times.items()}
    for name, x in medians.items():
        print(f"{name}: {x:.4f} s a step")
    two = medians["lockstep, tensor 2"]
    print(f"two workers beside one: {medians['lockstep, one worker'] / two:.2f}; "
          f"beside PyTorch's: {medians['pytorch, tensor 2'] / two:.2f}; losses differ by {worst:.1e}")
    if worst > 2e-3:
        sys.exit("the losses differ by more than rounding explains")


if __name__ == "__main__":
    main()
