"""Compares training by lockstep and by PyTorch, on the same weights, samples and settings.

    compare_train.py LOCKSTEP PYTHON OUT [--rounds N] [--steps N] [--only NAME] [--no-compile]

LOCKSTEP is the program, PYTHON one that has torch. Each way to run either is measured in every
round, one after the other; a figure is the median over rounds of a run's median step (the first two
steps left out). Memory is the largest sum of the proportional set sizes (Pss) of a run's processes.
OUT/results.json has all samples, OUT/table.md the table.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GPT2 = {"layers": 12, "width": 768, "heads": 12, "vocab": 50257}
SMALL = {"layers": 6, "width": 384, "heads": 6, "vocab": 4096}
MODELS = [
    ("GPT 12 M", SMALL, 8, 256),
    ("GPT-2 124 M", GPT2, 4, 64),
    ("GPT-2 124 M", GPT2, 4, 256),
    ("GPT-2 124 M", GPT2, 1, 1024),
]


def tree(pid):
    """Returns the process and all its descendants."""
    found, todo = [], [pid]
    while todo:
        p = todo.pop()
        found.append(p)
        try:
            for task in os.listdir(f"/proc/{p}/task"):
                with open(f"/proc/{p}/task/{task}/children") as f:
                    todo += [int(c) for c in f.read().split()]
        except OSError:
            pass
    return found


def pss(pid):
    total = 0
    for p in tree(pid):
        try:
            with open(f"/proc/{p}/smaps_rollup") as f:
                total += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
        except OSError:
            pass
    return total * 1024


def run(argv):
    """Returns (the JSON object that it prints, or None if it failed; its peak memory)."""
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    peak, done = [0], threading.Event()

    def watch():
        while not done.wait(0.25):
            peak[0] = max(peak[0], pss(p.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    out = p.communicate()[0]
    done.set()
    watcher.join()
    lines = [line for line in out.splitlines() if line.startswith("{")]
    return (json.loads(lines[-1]), peak[0]) if p.returncode == 0 and lines else (None, peak[0])


def ours(a, shape, batch, context, workers, threads, steps, export=None):
    parts = workers if batch % workers == 0 else 1
    sets = [f"model.{k}={v}" for k, v in shape.items()]
    sets += [f"model.context={context}", f"train.batch={batch}", f"train.virtual_workers={parts}",
             f"train.micro_batch={batch // parts}", f"parallel.threads={threads}"]
    argv = [a.lockstep, "bench", "train", "configs/gpt2-124m.yaml", "-n", str(workers), "--steps",
            str(steps - 2), "--json"]
    for s in sets:
        argv += ["--set", s]
    return argv + (["--export", export] if export else [])


def ways(a, shape, batch, context, steps, folder):
    two = batch % 2 == 0
    peer = [a.python, "-W", "ignore", f"{HERE}/train.py", folder]
    all_ways = {}
    if two:
        all_ways["lockstep 2 workers"] = ours(a, shape, batch, context, 2, 1, steps)
    all_ways["lockstep 1 worker, 2 threads"] = ours(a, shape, batch, context, 1, 2, steps)
    if two:
        all_ways["pytorch DDP, 2 workers"] = peer + ["--workers", "2"]
    all_ways["pytorch 1 process, 2 threads"] = peer + ["--threads", "2"]
    if a.compile:
        if two:
            all_ways["pytorch DDP, 2 workers, compile"] = peer + ["--workers", "2", "--compile"]
        all_ways["pytorch 1 process, 2 threads, compile"] = peer + ["--threads", "2", "--compile"]
    return all_ways


def measure(a, shape, batch, context, folder):
    steps = a.steps
    if run(ours(a, shape, batch, context, 1, 1, steps, export=folder))[0] is None:
        sys.exit("lockstep bench train --export failed")
    samples = {}
    for _ in range(a.rounds):
        for name, argv in ways(a, shape, batch, context, steps, folder).items():
            result, memory = run(argv)
            samples.setdefault(name, []).append({"result": result, "memory": memory})
            done = statistics.median(result["step_seconds"][2:]) if result else None
            print(f"    {name}: {f'{done:.3f} s' if done else 'failed'}, {memory / 1e6:.0f} MB", flush=True)
    return samples


def summary(samples, tokens):
    rows = {}
    for name, runs in samples.items():
        good = [r for r in runs if r["result"]]
        if not good:
            continue
        seconds = statistics.median(statistics.median(r["result"]["step_seconds"][2:]) for r in good)
        rows[name] = {"tokens_per_s": tokens / seconds, "memory": max(r["memory"] for r in good),
                      "losses": good[0]["result"]["losses"]}
    return rows


def worst_difference(rows):
    reference = next(r["losses"] for n, r in rows.items() if n.startswith("lockstep"))
    return max(abs(x - y) for r in rows.values() for x, y in zip(reference, r["losses"]))


def line(name, batch, context, rows):
    best = lambda system: max((n for n in rows if n.startswith(system)), key=lambda n: rows[n]["tokens_per_s"])
    mine, theirs = best("lockstep"), best("pytorch")
    ddp = [r["memory"] for n, r in rows.items() if n.startswith("pytorch DDP")]
    memory = rows[mine]["memory"] / (min(ddp) if ddp else rows[theirs]["memory"])
    return (f"| {name} | {batch} x {context} | {rows[mine]['tokens_per_s']:.0f} ({mine[9:]}) | "
            f"{rows[theirs]['tokens_per_s']:.0f} ({theirs[8:]}) | "
            f"{rows[mine]['tokens_per_s'] / rows[theirs]['tokens_per_s']:.2f} | "
            f"{rows[mine]['memory'] / 1e6:.0f} MB | {memory:.2f} | {worst_difference(rows):.1e} |")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("lockstep")
    p.add_argument("python")
    p.add_argument("out")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", type=int, default=7)
    p.add_argument("--only")
    p.add_argument("--no-compile", dest="compile", action="store_false")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    with open("/proc/cpuinfo") as f:
        cpu = next((x.split(":")[1].strip() for x in f if x.startswith("model name")), platform.machine())
    everything = {"commit": commit, "cpu": cpu, "cores": os.cpu_count(), "load": os.getloadavg(),
                  "time": time.strftime("%Y-%m-%d %H:%M"), "models": []}
    lines = ["| model | batch x context | lockstep, tokens/s | PyTorch's best | ratio | memory | of PyTorch DDP's | losses differ by |",
             "|---|---|---|---|---|---|---|---|"]
    version = "?"
    for name, shape, batch, context in MODELS:
        if a.only and a.only not in f"{name} {batch}x{context}":
            continue
        print(f"{name}, {batch} x {context}", flush=True)
        samples = measure(a, shape, batch, context, f"{a.out}/inputs")
        rows = summary(samples, batch * context)
        version = next(r["result"]["version"] for n, runs in samples.items() if n.startswith("pytorch") for r in runs if r["result"])
        lines.append(line(name, batch, context, rows))
        everything["models"].append({"name": name, "batch": batch, "context": context, "samples": samples})
        print(lines[-1], flush=True)
    everything["pytorch"] = version
    head = f"commit {commit}, {cpu}, {os.cpu_count()} cores, PyTorch {version}, {a.rounds} rounds of {a.steps} steps, f32\n\n"
    with open(f"{a.out}/results.json", "w") as f:
        json.dump(everything, f, indent=1)
    with open(f"{a.out}/table.md", "w") as f:
        f.write(head + "\n".join(lines) + "\n")
    print("\n" + head + "\n".join(lines))


if __name__ == "__main__":
    main()
