#!/usr/bin/env python3
"""Reads a run's files with other programs: safetensors, tokenizers, TensorBoard.

    check_files.py RUN

Exits with 0 if all of them can read the files and the contents are consistent. Needs the Python
packages safetensors, tokenizers, tensorboard and numpy (`make check-peers` installs them into a
virtual environment).
"""
import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tokenizers import Tokenizer

run = Path(sys.argv[1])
checkpoint = run / "checkpoints" / "latest"
manifest = json.loads((checkpoint / "manifest.json").read_text())
model = manifest["model"]

weights = load_file(checkpoint / "model.safetensors")
moments = load_file(checkpoint / "optimizer.safetensors")
assert len(weights) == model["tensors"], len(weights)
assert sum(w.size for w in weights.values()) == model["parameters"]
assert len(moments) == 2 * len(weights), len(moments)
vocab, width = weights["wte.weight"].shape
assert weights["h.0.attn.c_attn.weight"].shape == (width, 3 * width)
assert all(np.isfinite(w).all() for w in weights.values())

tokenizer = Tokenizer.from_file(str(run / "tokenizer.json"))
assert tokenizer.get_vocab_size() == vocab
text = "In the beginning, 1 Noël\n\t "
assert tokenizer.decode(tokenizer.encode(text).ids) == text

events = EventAccumulator(str(run))
events.Reload()
logged = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
losses = {m["step"]: m["loss"] for m in logged if "loss" in m}
scalars = {e.step: e.value for e in events.Scalars("train/loss")}
assert scalars.keys() == losses.keys()
assert all(abs(scalars[s] - losses[s]) < 1e-5 for s in losses)
assert events.Scalars("val/bits_per_byte")
print(f"{run}: safetensors, tokenizers and TensorBoard read it")
