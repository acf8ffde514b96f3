"""Compares generating by lockstep and by llama.cpp, with the same weights as stored.

    compare_generate.py LOCKSTEP PYTHON MODEL.gguf OUT [--rounds N] [--tokens N]

LOCKSTEP is the program, PYTHON one that has xllamacpp, MODEL.gguf a model, which is also written with
weights in Q8_0. Both programs are limited to the same cores, one and two, and generate with as many threads,
after a prompt of 8 tokens and one of 512. Lockstep with activations in f32, Lockstep with activations in int8, as
llama.cpp has them, and llama.cpp alternate; a figure is the median over
rounds, a token's time in a round the median of its tokens. Lockstep draws its tokens, llama.cpp takes
the likeliest. OUT/generate.json has all samples, OUT/generate.md the table.
"""
import json
import os
import statistics
import subprocess

from beside_llama import HERE, file_of, options, write

SHORT, LONG = 8, 512
OURS = {"lockstep": "float", "lockstep, int8": "int8"}  # infer.activations
SYSTEMS = (*OURS, "llama.cpp")


def run(command, cores):
    text = subprocess.run(["taskset", "-c", cores] + command, check=True, capture_output=True, text=True).stdout
    return json.loads(text.splitlines()[-1])


def prepare(o):
    """The model as it is and in Q8_0: for each a file of GGUF and an imported directory."""
    models = {}
    for name in ("as published", "Q8_0"):
        file = o.model if name == "as published" else file_of(o, name)
        folder = os.path.join(o.out, "model-" + name.replace(" ", "-"))
        if not os.path.exists(folder):
            subprocess.run([o.lockstep, "import", file, "-o", folder], check=True, stdout=subprocess.DEVNULL)
        models[name] = (file, folder)
    return models


def measure(o, file, folder, threads, prompt):
    cores = ",".join(str(c) for c in sorted(os.sched_getaffinity(0))[-threads:])
    times = {system: run([o.lockstep, "bench", "generate", folder, "--prompt", str(prompt), "--tokens", str(o.tokens),
                          "--set", f"infer.activations={activations}", "--json"], cores)
             for system, activations in OURS.items()}
    times["llama.cpp"] = run([o.python, os.path.join(HERE, "llama.py"), file, str(threads), str(prompt),
                              str(o.tokens)], cores)
    return times


def median(samples, system, key):
    return statistics.median(s[system][key] for s in samples)


def row(name, what, threads, times, unit):
    """times: seconds of each of SYSTEMS."""
    speeds = " | ".join(f"{unit / t:.1f}" for t in times)
    ratios = " | ".join(f"{times[-1] / t:.2f}" for t in times[:-1])
    return f"| {name} | {what} | {threads} | {speeds} | {ratios} |"


def best_rows(name, what, key, unit, by_threads):
    """A row for each number of threads, and one for the better of each program."""
    times = {t: [median(s, system, key) for system in SYSTEMS] for t, s in by_threads.items()}
    lines = [row(name, what, t, each, unit) for t, each in times.items()]
    return lines + [row(name, what, "best", [min(of) for of in zip(*times.values())], unit)]


def table(samples):
    speeds = " | ".join(f"{system}, tokens/s" for system in SYSTEMS)
    lines = [f"| weights | | threads | {speeds} | ratio | ratio, int8 |", "|---" * (5 + len(SYSTEMS)) + "|"]
    for name, cases in samples.items():
        lines += best_rows(name, f"token after {SHORT}", "token_seconds", 1, cases[SHORT])
        lines += best_rows(name, f"token after {LONG}", "token_seconds", 1, cases[LONG])
        lines += best_rows(name, f"prompt of {LONG}", "prompt_seconds", LONG, cases[LONG])
    lines += ["", "| lockstep, weights | after tokens | threads | of memory's speed | choosing a token |",
              "|---|---|---|---|---|"]
    for name, cases in samples.items():
        for prompt, by_threads in cases.items():
            for threads, s in by_threads.items():
                runs = [x["lockstep"] for x in s]
                share = statistics.median(r["read_bytes_per_s"] / r["memory_bytes_per_s"] for r in runs)
                chosen = statistics.median(1 - r["decode_seconds"] / r["token_seconds"] for r in runs)
                lines.append(f"| {name} | {prompt} | {threads} | {share:.0%} | {chosen:.1%} |")
    return "\n".join(lines) + "\n"


def main():
    o = options(5, 48)
    models = prepare(o)
    threads = [t for t in (1, 2) if t <= len(os.sched_getaffinity(0))]
    samples = {name: {p: {t: [] for t in threads} for p in (SHORT, LONG)} for name in models}
    for _ in range(o.rounds):
        for name, (file, folder) in models.items():
            for prompt in (SHORT, LONG):
                for t in threads:
                    samples[name][prompt][t].append(measure(o, file, folder, t, prompt))
    text = table(samples)
    write(o, "generate", samples, text)
    print(text, end="")


main()
