"""Small runs for tests, each trained once in a process by the program `lockstep`."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from launch import LIMIT_S, PROGRAM, ROOT

TOP = Path(tempfile.mkdtemp(prefix="lockstep-runs-"))
atexit.register(shutil.rmtree, TOP, ignore_errors=True)


def lockstep(*arguments: str, code: int = 0) -> str:
    """Runs a command; returns its standard output."""
    line = [PROGRAM, *arguments]
    done = subprocess.run(
        line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(TOP / "cache")},
    )  # fmt: skip
    assert done.returncode == code, f"{' '.join(line)}: {done.returncode}: {done.stderr}"
    return done.stdout


@functools.lru_cache(None)
def text_run(kind: str = "gpt2", workers: int = 2) -> Path:
    """A language model of a thousand parameters, with a timeline of three steps."""
    folder = TOP / f"{kind}-{workers}"
    lockstep(
        "train", "configs/tiny.yaml", "-n", str(workers), "-o", str(folder), "--trace",
        str(folder / "trace.json"), "--set", "train.steps=20", "--set", "train.eval_every=10", "--set",
        f"model.kind={kind}", "--set", "optim.ema=0.9", "--set", "checkpoint.every=10",
    )  # fmt: skip
    return folder


@functools.lru_cache(None)
def network_run() -> Path:
    """A classifier of rows, whose config has lists of layers and a text with quotes."""
    folder, data = TOP / "network", TOP / "rows.jsonl"
    with open(data, "w") as file:
        for i in range(60):
            kind, city = ("ant", "bee")[i % 2], ("Bonn", "Ulm", "Jena")[i % 3]
            file.write(f'{{"x": [{i / 60}, {i % 2}], "city": "{city}", "label": "{kind}"}}\n')
    config = TOP / "network.yaml"
    config.write_text(
        """
model:
  kind: layers
  input: {x: [2], city: {type: i32, dims: []}}
  layers:
    - embedding: {of: city, rows: 3, width: 2, name: city_row}
    - concat: [x, city_row]
    - linear: 8
    - relu
    - linear: {out: 2, name: 'the "logits"'}
  loss: {cross_entropy: {of: 'the "logits"', target: label}}
train: {steps: 30, batch: 20, virtual_workers: 2}
optim: {lr: 0.05}
"""
    )
    lockstep("train", str(config), "-o", str(folder), "--set", f"data.path={data}")
    return folder
