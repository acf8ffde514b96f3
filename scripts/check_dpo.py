#!/usr/bin/env python3
"""Compares training on preferences with the Python packages trl and peft: the same losses and rewards.

    check_dpo.py LOCKSTEP [MODEL] [KEY=VALUE...]

MODEL is a GGUF file or a directory; without it, a small model is trained first. Lockstep trains it on pairs of a
chosen and a rejected answer for 20 steps, each on all pairs, with adapters and without, for each dpo.loss (with these
keys, too). trl's DPOTrainer trains the same model, from the same A, on the same tokens: losses must agree to 1e-4 (above 1, of
their size), and what is logged of the rewards to 1e-3 of their size. Needs torch, transformers, peft, trl, datasets and safetensors
(`make check-peers` installs them into a virtual environment).
"""
import json
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import datasets
import numpy as np
import peft
import torch
import transformers
import trl
from safetensors.torch import load_file

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
datasets.disable_progress_bars()
LOCKSTEP = sys.argv[1]
MODEL = [a for a in sys.argv[2:] if "=" not in a]
SETTINGS = [a for a in sys.argv[2:] if "=" in a]
TOP = Path(tempfile.mkdtemp(prefix="lockstep-dpo-"))
STEPS, CONTEXT, PAIRS = 20, 32, 8 if MODEL else 16
LORA = dict(rank=8, alpha=16, targets="all-linear")
# name: keys of dpo, adapters, learning rate
KINDS = {
    "sigmoid": (dict(), LORA, 1e-3),
    "sigmoid, beta 0.5": (dict(beta=0.5), LORA, 1e-3),
    "ipo": (dict(loss="ipo"), LORA, 1e-3),
    "hinge": (dict(loss="hinge"), LORA, 1e-3),
    "sigmoid, all weights": (dict(), None, 1e-4),
}
REWARDS = ["rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies", "logps/chosen", "logps/rejected"]


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, done
    return done.stdout + done.stderr


def write_pairs():
    text = re.sub(r"\s+", " ", Path("docs/reference/data.md").read_text())
    parts = [text[i * 60:i * 60 + 60] for i in range(PAIRS + 2)]
    lines = [json.dumps(dict(prompt=p[:24], chosen=p[24:24 + 8 + i % 24], rejected=p[60:24:-1][:6 + i * 7 % 20])) + "\n"
             for i, p in enumerate(parts)]
    (TOP / "pairs.jsonl").write_text("".join(lines[:PAIRS]))
    (TOP / "val.jsonl").write_text("".join(lines[PAIRS:]))


def read_pairs(path, vocab):
    """The training pairs of tokens.bin: lists of prompt_ids, chosen_ids, rejected_ids."""
    numbers = np.frombuffer(path.read_bytes()[64:], np.uint32).astype(np.int64)
    texts = []
    for x in numbers:
        if x // vocab == 3:
            break  # of data.val_path
        if x // vocab == 2:
            texts.append(([], []))
        texts[-1][int(x // vocab == 1)].append(int(x % vocab))
    pairs = [dict(prompt_ids=a[0], chosen_ids=a[1], rejected_ids=b[1]) for a, b in zip(texts[::2], texts[1::2])]
    assert len(pairs) == PAIRS and all(a[0] == b[0] for a, b in zip(texts[::2], texts[1::2]))
    return pairs


def train(name, dpo, lora, lr):
    """Trains; returns the lines of steps, the initial weights of adapters, and the pairs."""
    sets = [f"model.from={BASE}", f"model.context={CONTEXT}", f"data.path={TOP}/pairs.jsonl", f"data.val_path={TOP}/val.jsonl",
            "data.format=chat", "train.loss=dpo", f"optim.lr={lr}", "optim.warmup=0", "optim.schedule=constant", "optim.clip=0",
            "optim.weight_decay=0", "optim.beta2=0.999", "train.eval_every=0", "train.virtual_workers=1"]
    sets += [f"dpo.{k}={v}" for k, v in dpo.items()] + [f"lora.{k}={v}" for k, v in (lora or {}).items()] + SETTINGS
    config, folder, notes = TOP / "empty.yaml", TOP / re.sub(r"\W+", "-", name), TOP / f"{name}-notes"
    config.write_text("")

    def words(*more):
        return [w for o in [*sets, *more] for w in ("--set", o)]

    run(LOCKSTEP, "train", config, "-n", 1, "-o", folder, *words(f"train.batch={PAIRS}", f"train.steps={STEPS}"))
    run(LOCKSTEP, "bench", "train", config, "-n", 1, "--steps", 1, "--export", notes, *words("train.batch=1"))
    vocab = int(re.search(r"^  vocab: (\d+)", (folder / "config.yaml").read_text(), re.M)[1])
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [r for r in lines if "loss" in r], load_file(notes / "weights.safetensors"), read_pairs(folder / "tokens.bin", vocab)


class Trainer(trl.DPOTrainer):
    """Takes pairs that are tokens already, and keeps each step's loss with all its digits."""

    def _prepare_dataset(self, dataset, *arguments):
        return dataset

    def compute_loss(self, *arguments, **named):
        loss = super().compute_loss(*arguments, **named)
        self.losses.append((loss[0] if isinstance(loss, tuple) else loss).item())
        return loss


def train_trl(dpo, lora, lr, first, pairs):
    """Trains with trl; returns the losses, and what it logged of each step."""
    model = transformers.AutoModelForCausalLM.from_pretrained(BASE, dtype=torch.float32, attn_implementation="eager")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(BASE / "tokenizer.json"))
    tokenizer.pad_token = tokenizer.eos_token = tokenizer.convert_ids_to_tokens(0)
    adapters = lora and peft.LoraConfig(r=lora["rank"], lora_alpha=lora["alpha"], target_modules="all-linear", task_type="CAUSAL_LM")
    how = trl.DPOConfig(output_dir=str(TOP / "trl"), per_device_train_batch_size=PAIRS, max_steps=STEPS, learning_rate=lr,
                        lr_scheduler_type="constant", weight_decay=0.0, max_grad_norm=0.0, logging_steps=1, save_strategy="no",
                        report_to="none", use_cpu=True, bf16=False, gradient_checkpointing=False, max_length=None,
                        beta=dpo.get("beta", 0.1), loss_type=[dpo.get("loss", "sigmoid")], disable_tqdm=True, optim="adamw_torch")
    trainer = Trainer(model=model, args=how, train_dataset=datasets.Dataset.from_list(pairs), processing_class=tokenizer,
                      peft_config=adapters)
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.losses = []
    own = {n.replace("base_model.model.", "").replace(".default", ""): p for n, p in trainer.model.named_parameters() if ".lora_" in n}
    assert len(own) == sum(".lora_" in n for n in first), "other adapters"
    with torch.no_grad():
        for name, p in own.items():
            p.copy_(first[name])
    trainer.train()
    return trainer.losses, [r for r in trainer.state.log_history if "loss" in r]


def check(name):
    dpo, lora, lr = KINDS[name]
    lines, first, pairs = train(name, dpo, lora, lr)
    losses, logged = train_trl(dpo, lora, lr, first, pairs)
    ours = [r["loss"] for r in lines]
    off = max(abs(a - b) / max(1, abs(b)) for a, b in zip(ours, losses))
    apart = max(abs(a[k] - b[k]) / (1 + abs(b[k])) for a, b in zip(lines, logged) for k in REWARDS)
    print(f"{name}: losses {ours[0]:.6f} .. {ours[-1]:.6f} and {losses[0]:.6f} .. {losses[-1]:.6f}, off by {off:.1e}; rewards off by "
          f"{apart:.1e}; margin {lines[-1]['rewards/margins']:.3f}")
    assert len(ours) == len(losses) == len(logged) == STEPS and off < 1e-4 and apart < 1e-3, (ours, losses)
    assert ours[-1] < ours[0] and lines[-1]["rewards/margins"] > 0.01


BASE = TOP / "base"
write_pairs()
if MODEL:
    run(LOCKSTEP, "import", MODEL[0], "-o", BASE, "--type", "f32")  # which both read
else:
    (TOP / "text").write_text("".join(p.read_text() for p in sorted(Path("docs").rglob("*.md"))))
    words = ["model.kind=llama", "model.width=96", "model.heads=6", "model.kv_heads=2", "model.layers=3", "model.context=32",
             "model.vocab=600", f"data.path={TOP}/text", "train.steps=60"]
    run(LOCKSTEP, "train", "configs/tiny.yaml", "-n", 1, "-o", TOP / "own", *[w for o in words for w in ("--set", o)])
    run(LOCKSTEP, "export", TOP / "own", "--to", "safetensors", "-o", BASE)
torch.manual_seed(0)
torch.set_num_threads(1)  # on a busy machine, threads that wait for each other take minutes
kinds = list(KINDS)[:1] if MODEL else list(KINDS)
for k in kinds:
    check(k)
print(f"passed: {len(kinds)} kinds of preference losses like trl {trl.__version__}")
