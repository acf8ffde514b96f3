#!/usr/bin/env python3
"""Compares adapters with the Python package peft: the same losses, and adapters that it loads.

    check_lora.py LOCKSTEP [MODEL] [KEY=VALUE...]

MODEL is a GGUF file or a directory; without it, a small model is trained first. Lockstep trains LoRA, rsLoRA
and DoRA adapters of the model for 20 steps (with these keys, too), each step on all of a short text. peft trains
the same model from the same A on the same samples, with PyTorch's AdamW: losses must agree to 1e-4. The exported
adapter must load in peft, with the logits of the merged model, and of the model that peft trained; and what peft saved must be a model.adapter with the same logits. Needs
torch, transformers, peft and safetensors (`make check-peers` installs them into a virtual environment).
"""
import json
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import peft
import torch
import transformers
from safetensors.torch import load_file

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
LOCKSTEP = sys.argv[1]
MODEL = [a for a in sys.argv[2:] if "=" not in a]
SETTINGS = [a for a in sys.argv[2:] if "=" in a]
TOP = Path(tempfile.mkdtemp(prefix="lockstep-lora-"))
STEPS, CONTEXT = 20, 32
KINDS = {
    "LoRA": (dict(rank=8, alpha=16, targets="all-linear"), {}),
    "rsLoRA": (dict(rank=16, alpha=8, rs="on"), dict(use_rslora=True)),
    "DoRA": (dict(rank=4, alpha=8, dora="on", targets="all-linear"), dict(use_dora=True)),
}
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, done
    return done.stdout + done.stderr


def train(kind, lora):
    """Trains; returns the run's directory, the initial weights, and the samples [N, CONTEXT + 1]."""
    sets = [f"model.from={BASE}", f"model.context={CONTEXT}", f"data.path={TOP}/short", "optim.lr=1e-3", "optim.warmup=0",
            "optim.schedule=constant", "optim.clip=0", "optim.weight_decay=0.01", "optim.beta2=0.999", "train.eval_every=0",
            "train.virtual_workers=1"]
    sets += [f"lora.{k}={v}" for k, v in lora.items()] + SETTINGS
    config, folder, notes = TOP / "empty.yaml", TOP / kind, TOP / f"{kind}-notes"
    config.write_text("")

    def words(*more):
        return [w for o in [*sets, *more] for w in ("--set", o)]

    first = TOP / f"{kind}-first"
    said = run(LOCKSTEP, "train", config, "-n", 1, "-o", first, *words("train.batch=1", "train.steps=1"))
    batch = int(re.search(r"(\d+) training samples", said)[1])
    samples = np.frombuffer((first / "tokens.bin").read_bytes()[64:], np.uint32).astype(np.int64)
    run(LOCKSTEP, "train", config, "-n", 1, "-o", folder, *words(f"train.batch={batch}", f"train.steps={STEPS}"))
    run(LOCKSTEP, "bench", "train", config, "-n", 1, "--steps", 1, "--export", notes, *words("train.batch=1"))
    samples = np.stack([samples[i * CONTEXT:(i + 1) * CONTEXT + 1] for i in range(batch)])
    return folder, notes, torch.from_numpy(samples)


def lora_of(model):
    return {n.replace("base_model.model.", "").replace(".default", ""): p for n, p in model.named_parameters()
            if ".lora_" in n}


def train_peft(lora, more, notes, x):
    """Trains with peft on these samples; returns the losses and the model."""
    model = transformers.AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32, attn_implementation="eager")
    targets = ALL if lora.get("targets") else ["q_proj", "v_proj"]
    model = peft.get_peft_model(model, peft.LoraConfig(r=lora["rank"], lora_alpha=lora["alpha"], target_modules=targets,
                                                       task_type="CAUSAL_LM", **more))
    first, own = load_file(notes / "weights.safetensors"), lora_of(model)
    settings = json.loads((notes / "settings.json").read_text())
    with torch.no_grad():
        for name, p in own.items():
            if "magnitude" not in name:
                p.copy_(first[name])
    decay = [p for n, p in own.items() if n in settings["decay"]]
    rest = [p for n, p in own.items() if n not in settings["decay"]]
    assert len(own) == len(decay) + len(rest) == sum(".lora_" in n for n in first)
    optimizer = torch.optim.AdamW([dict(params=decay, weight_decay=0.01), dict(params=rest, weight_decay=0.0)],
                                  lr=1e-3, betas=(0.9, 0.999), eps=1e-8)
    losses = []
    for _ in range(STEPS):
        logits = model(x[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), x[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


def check(kind):
    lora, more = KINDS[kind]
    folder, notes, x = train(kind, lora)
    ours = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    ours = [r["loss"] for r in ours if "loss" in r and "step" in r][:STEPS]
    theirs, model = train_peft(lora, more, notes, x)
    x = x[:1, :-1]
    off = max(abs(a - b) for a, b in zip(ours, theirs))
    print(f"{kind}: losses {ours[0]:.6f} .. {ours[-1]:.6f} and {theirs[0]:.6f} .. {theirs[-1]:.6f}, off by {off:.1e}")
    assert len(ours) == STEPS and off < 1e-4, (ours, theirs)
    adapter, merged = TOP / f"{kind}-adapter", TOP / f"{kind}-merged"
    run(LOCKSTEP, "export", folder, "--to", "peft", "-o", adapter)
    run(LOCKSTEP, "export", folder, "--to", "safetensors", "--merge", "-o", merged)
    base = transformers.AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32)
    loaded = peft.PeftModel.from_pretrained(base, adapter)
    whole = transformers.AutoModelForCausalLM.from_pretrained(merged, dtype=torch.float32)
    with torch.no_grad():
        a, b, c = loaded(x).logits, whole(x).logits, model(x).logits
    size = a.abs().max().item()
    print(f"{kind}: logits of the adapter and of the merged model differ by {(a - b).abs().max().item() / size:.1e} of the "
          f"greatest, from those that peft trained by {(a - c).abs().max().item() / size:.1e}")
    assert (a - b).abs().max().item() < 1e-4 * size and (a - c).abs().max().item() < 2e-3 * size
    go_on(kind, model, x, c)


def go_on(kind, model, x, wanted):
    """Begins a run with the adapter that peft saved, and takes no step away from it."""
    saved, folder, merged = TOP / f"{kind}-saved", TOP / f"{kind}-again", TOP / f"{kind}-again-merged"
    model.save_pretrained(saved)
    sets = [f"model.from={BASE}", f"model.adapter={saved}", f"model.context={CONTEXT}", f"data.path={TOP}/short", "optim.lr=0",
            "optim.min_lr=0", "optim.warmup=0", "train.steps=1", "train.batch=1", "train.virtual_workers=1", "train.eval_samples=1"]
    run(LOCKSTEP, "train", TOP / "empty.yaml", "-n", 1, "-o", folder, *[w for s in sets for w in ("--set", s)])
    run(LOCKSTEP, "export", folder, "--to", "safetensors", "--merge", "-o", merged)
    whole = transformers.AutoModelForCausalLM.from_pretrained(merged, dtype=torch.float32)
    with torch.no_grad():
        off = (whole(x).logits - wanted).abs().max().item() / wanted.abs().max().item()
    print(f"{kind}: logits of peft's adapter, read by model.adapter and merged, differ by {off:.1e} of the greatest")
    assert off < 1e-4


BASE = TOP / "base"
(TOP / "text").write_text("".join(p.read_text() for p in sorted(Path("docs").rglob("*.md"))))
(TOP / "short").write_text(Path("docs/reference/data.md").read_text()[:4000])
if MODEL:
    run(LOCKSTEP, "import", MODEL[0], "-o", BASE, "--type", "f32")  # which both read
else:
    own = ["model.kind=llama", "model.width=96", "model.heads=6", "model.kv_heads=2", "model.layers=3", "model.context=32",
           "model.vocab=600", f"data.path={TOP}/text", "train.steps=60"]
    run(LOCKSTEP, "train", "configs/tiny.yaml", "-n", 1, "-o", TOP / "own", *[w for o in own for w in ("--set", o)])
    run(LOCKSTEP, "export", TOP / "own", "--to", "safetensors", "-o", BASE)
torch.manual_seed(0)
for k in KINDS:
    check(k)
print(f"passed: {len(KINDS)} kinds of adapters like peft {peft.__version__}")
