"""Compares training by lockstep and by PyTorch, on the same weights, samples and settings.

    compare_train.py LOCKSTEP PYTHON OUT [--rounds N] [--steps N] [--only NAME] [--no-compile]
                     [--model DIR]

LOCKSTEP is the program, PYTHON one that has torch, for published models also transformers and peft.
DIR is SmolLM2-135M-Instruct, imported; published models are left out if it is missing. Each way to
run either is measured in every round, one after the other; a figure is the median over rounds of a run's median step (the first two
steps left out). All runs train the same steps: the program ends with an error if losses or trained
weights differ by more than rounding explains. Memory is the largest sum of the proportional set
sizes (Pss) of a run's processes, in any round; PyTorch's is that of its steps. OUT/results.json has all samples, OUT/table.md the
table.
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
# The loss is a number near 10 at most. A ReLU whose input is nearly 0 may have another sign in
# another order of sums, and its sample another gradient; batch norm passes that on to other samples.
# After six steps the trained weights then differ by some hundredths of what training changed.
MOST_LOSS, MOST_WEIGHTS = 2e-3, 0.05
# In bf16 the two round other values: their losses agree to this part, and weights do not count, as
# AdamW's first steps have the size of the learning rate, whatever the gradient.
MOST_LOSS_BF16 = 0.03


def text_model(name, config, sets, batch, context, compute):
    sets = sets + [f"model.context={context}", f"train.batch={batch}", f"train.compute={compute}"]
    return {"name": f"{name}, {batch} x {context}, {compute}", "config": config, "sets": sets, "batch": batch,
            "is_image": False, "bf16": compute == "bf16"}


def gpt(name, shape, batch, context, compute):
    sets = [f"model.{k}={v}" for k, v in shape.items()]
    return text_model(name, "configs/gpt2-124m.yaml", sets, batch, context, compute)


def published(name, sets, context, compute, is_random=False):
    """SmolLM2, or random_llama.py's model, on random tokens instead of conversations."""
    sets = sets + ["data.format=auto", "data.path=corpus.txt", "data.val_path=", "data.packing=off", "train.sample_prompts="]
    model = text_model(name, "configs/smollm2-chat.yaml", sets, 4, context, compute)
    return {**model, "is_published": True, "is_random": is_random}


# The config is as it is shipped, but for the learning rate, which would be nearly 0 in its first
# steps.
VISION = {"name": "residual network of configs/fashion.yaml", "config": "configs/fashion.yaml",
          "sets": ["optim.warmup=0", "optim.lr=0.01"], "batch": None, "is_image": True, "bf16": False}
TYPES = ["f32", "bf16"]
MODELS = [gpt(*model, t) for model in [("GPT 12 M", SMALL, 8, 256), ("GPT-2 124 M", GPT2, 4, 64),
                                       ("GPT-2 124 M", GPT2, 4, 256), ("GPT-2 124 M", GPT2, 1, 1024)]
          for t in TYPES]
MODELS += [published("SmolLM2 135 M with LoRA", [], 512, t) for t in TYPES]
MODELS += [published("SmolLM2 135 M, all weights", ["lora.rank=0", "lora.targets="], 512, t) for t in TYPES]
MODELS += [published("Llama 1 B with LoRA", ["lora.targets=[q_proj, v_proj]"], 128, t, is_random=True) for t in TYPES]
MODELS += [VISION]


def processor():
    """Its name, family and model (virtual machines often have no more than a maker's name), and what
    decides how fast it multiplies."""
    with open("/proc/cpuinfo") as f:
        fields = dict(reversed([[x.strip() for x in line.split(":", 1)] for line in f if ":" in line]))
    flags = fields.get("flags", "").split()
    has = [name for name in ["avx2", "avx512f", "avx512_bf16", "amx_bf16"] if name in flags]
    numbers = f", family {fields['cpu family']}, model {fields['model']}" if "cpu family" in fields else ""
    return f"{fields.get('model name', platform.machine())}{numbers}, {' '.join(has) or 'no AVX2'}"


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
    """Returns (the JSON object that it prints, or None if it failed; its peak memory, in its steps
    if the object says when they were)."""
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    held, done = [(0, 0)], threading.Event()

    def watch():
        while not done.wait(0.25):
            held.append((time.time(), pss(p.pid)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    out = p.communicate()[0]
    done.set()
    watcher.join()
    lines = [line for line in out.splitlines() if line.startswith("{")]
    result = json.loads(lines[-1]) if p.returncode == 0 and lines else None
    begin, end = (result or {}).get("steps_between", (0, time.time()))
    return result, max(nbytes for t, nbytes in held if t == 0 or begin <= t <= end)


def random_model(a):
    """The directory of random_llama.py's model, which is written the first time."""
    model = f"{a.out}/llama-1b"
    if not os.path.isdir(model):
        subprocess.run([a.python, f"{HERE}/random_llama.py", a.model, model], check=True)
    return model


def ours(a, model, workers, threads, export=None):
    sets = model["sets"] + [f"parallel.threads={threads}"]
    if model.get("is_published"):
        sets.append(f"model.from={random_model(a) if model['is_random'] else a.model}")
    if not model["is_image"]:
        parts = workers if model["batch"] % workers == 0 else 1
        sets.append(f"train.virtual_workers={parts}")
        if not model.get("is_published") or model["is_random"]:
            sets.append(f"train.micro_batch={model['batch'] // parts}")
    argv = [a.lockstep, "bench", "train", model["config"], "-n", str(workers), "--steps", str(a.steps - 2), "--json"]
    for s in sets:
        argv += ["--set", s]
    return argv + (["--export", export] if export else [])


def peers(a, model, folder):
    """PyTorch's ways: a process of two threads or two processes, compiled or not, and for images
    both orders of their dimensions; all in f32, or all in bf16."""
    shapes = {"1 process, 2 threads": ["--threads", "2"]}
    if model["is_image"] or model["batch"] % 2 == 0:
        shapes["DDP, 2 workers"] = ["--workers", "2"]
    formats = {"": [], ", channels last": ["--channels-last"]} if model["is_image"] else {"": []}
    compiles = {"": [], ", compile": ["--compile"]} if a.compile else {"": []}
    argv = [a.python, "-W", "ignore", f"{HERE}/train.py", folder] + ["--bf16"] * model["bf16"]
    return {f"pytorch {s}{f}{c}": argv + shapes[s] + formats[f] + compiles[c]
            for s in shapes for f in formats for c in compiles}


def ways(a, model, folder):
    """Lockstep's default is a worker a core."""
    all_ways = {}
    if model["is_image"] or model["batch"] % 2 == 0:
        all_ways["lockstep 2 workers"] = ours(a, model, 2, 1)
    if not model["is_image"]:
        all_ways["lockstep 1 worker, 2 threads"] = ours(a, model, 1, 2)
    return {**all_ways, **peers(a, model, folder)}


def check(name, model, mine, theirs):
    """The program ends if PyTorch did not compute what Lockstep did. Returns the difference of the
    losses, and of the trained weights, as a part of what training changed."""
    loss = max(abs(x - y) for x, y in zip(mine["losses"], theirs["losses"]))
    weights = theirs["weights_differ_by"]
    good = loss <= MOST_LOSS and weights <= MOST_WEIGHTS
    if model["bf16"]:
        good = loss <= MOST_LOSS_BF16 * max(mine["losses"])
    if not good:
        sys.exit(f"{name} does not compute what lockstep does: losses differ by {loss:.1e}, trained weights by {weights:.1e}")
    return loss, weights


def measure(a, model, folder):
    """Returns the runs of each way, and the largest differences."""
    mine = run(ours(a, model, 1, 1, export=folder))[0]
    if mine is None:
        sys.exit("lockstep bench train --export failed")
    samples, most = {}, (0, 0)
    for _ in range(a.rounds):
        for name, argv in ways(a, model, folder).items():
            result, memory = run(argv)
            samples.setdefault(name, []).append({"result": result, "memory": memory})
            done = statistics.median(result["step_seconds"][2:]) if result else None
            print(f"    {name}: {f'{done:.3f} s' if done else 'failed'}, {memory / 1e6:.0f} MB", flush=True)
            if result and "weights_differ_by" in result:
                most = tuple(map(max, most, check(name, model, mine, result)))
    return samples, most


def summary(samples):
    """Of each way: units a second (tokens or samples), memory."""
    rate = next(r["result"] for runs in samples.values() for r in runs if r["result"] and "batch" in r["result"])
    units = rate["batch"] * rate.get("context", 1)
    rows = {}
    for name, runs in samples.items():
        good = [r for r in runs if r["result"]]
        if good:
            seconds = statistics.median(statistics.median(r["result"]["step_seconds"][2:]) for r in good)
            rows[name] = {"rate": units / seconds, "memory": max(r["memory"] for r in good)}
    return rows


def line(model, rows, differences):
    best = lambda system: max((n for n in rows if n.startswith(system)), key=lambda n: rows[n]["rate"])
    mine, theirs = best("lockstep"), best("pytorch")
    least = min(r["memory"] for n, r in rows.items() if n.startswith("pytorch"))
    memory = rows[mine]["memory"]
    return (f"| {model['name']} | {rows[mine]['rate']:.0f} ({mine[9:]}) | {rows[theirs]['rate']:.0f} ({theirs[8:]}) | "
            f"{rows[mine]['rate'] / rows[theirs]['rate']:.2f} | {memory / 1e6:.0f} MB | "
            f"{memory / rows[theirs]['memory']:.2f} | {memory / least:.2f} | {differences[0]:.0e}, {differences[1]:.0e} |")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("lockstep")
    p.add_argument("python")
    p.add_argument("out")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--steps", type=int, default=7)
    p.add_argument("--only")
    p.add_argument("--no-compile", dest="compile", action="store_false")
    p.add_argument("--model", default="models/smollm2")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    cpu, load = processor(), os.getloadavg()
    everything = {"commit": commit, "cpu": cpu, "cores": os.cpu_count(), "load": load,
                  "time": time.strftime("%Y-%m-%d %H:%M"), "models": []}
    lines = ["| model | lockstep, tokens or images/s | PyTorch's best | ratio | memory | of PyTorch's best way's | of its smallest's | losses, trained weights differ by |",
             "|---|---|---|---|---|---|---|---|"]
    version = "?"
    for model in MODELS:
        if a.only and a.only not in model["name"]:
            continue
        if model.get("is_published") and not os.path.isdir(a.model):
            print(f"{model['name']}: left out, there is no {a.model} (make demo-chat fetches it)", flush=True)
            continue
        print(model["name"], flush=True)
        folder = f"{a.out}/inputs"
        samples, differences = measure(a, model, folder)
        rows = summary(samples)
        version = next(r["result"]["version"] for n, runs in samples.items() if n.startswith("pytorch") for r in runs if r["result"])
        lines.append(line(model, rows, differences))
        everything["models"].append({"name": model["name"], "differences": differences, "samples": samples})
        print(lines[-1], flush=True)
    everything["pytorch"] = version
    head = f"commit {commit}, {cpu}, {os.cpu_count()} cores, load {load[0]:.1f} before; PyTorch {version}, {a.rounds} rounds of {a.steps} steps\n\n"
    with open(f"{a.out}/results.json", "w") as f:
        json.dump(everything, f, indent=1)
    with open(f"{a.out}/table.md", "w") as f:
        f.write(head + "\n".join(lines) + "\n")
    print("\n" + head + "\n".join(lines))


if __name__ == "__main__":
    main()
