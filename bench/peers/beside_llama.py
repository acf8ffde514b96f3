"""What the comparisons with llama.cpp share: the arguments, the model's files, the results."""
import argparse
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def options(rounds, tokens, **own):
    """LOCKSTEP PYTHON MODEL.gguf OUT, the numbers --rounds and --tokens, and the texts `own`, with their defaults."""
    p = argparse.ArgumentParser()
    for name in ("lockstep", "python", "model", "out"):
        p.add_argument(name)
    for name, default in {"rounds": rounds, "tokens": tokens, **own}.items():
        p.add_argument(f"--{name}", type=type(default), default=default)
    o = p.parse_args()
    os.makedirs(o.out, exist_ok=True)
    return o


def file_of(o, weights):
    """The model in OUT with weights of this type, e.g. Q8_0."""
    file = os.path.join(o.out, weights.lower() + ".gguf")
    if not os.path.exists(file):
        subprocess.run([o.lockstep, "export", o.model, "--to", "gguf", "--type", weights.lower(), "-o", file],
                       check=True, stdout=subprocess.DEVNULL)
    return file


def write(o, name, samples, text):
    """OUT/NAME.json and OUT/NAME.md."""
    with open(os.path.join(o.out, name + ".json"), "w") as f:
        json.dump(samples, f, indent=1)
    with open(os.path.join(o.out, name + ".md"), "w") as f:
        f.write(text)
