#!/usr/bin/env python3
"""Each optimizer against PyTorch in double precision: 20 steps from the same gradients.

usage: check_optimizers.py LOCKSTEP

Trains a small network on all its samples with each optimizer, with a checkpoint of every step, and
computes the gradient at each checkpoint's weights in double precision. torch.optim, or for what it
does not have the published formula, makes 20 steps of these gradients from the same weights. The
weights may differ by 1e-5, and soap's by 1e-4: with its states in single precision, the same formula
in torch differs by 4e-5. Needs torch with torch.optim.Muon, whose iteration is replaced by one in
double precision.
"""
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file

STEPS, CLIP, LIMIT, SOAP_LIMIT = 20, 0.5, 1e-5, 1e-4
CONFIG = """model: {kind: mlp, hidden: [24, 12]}
data: {path: data.csv, format: csv, val_path: val.csv}
train: {steps: 1, batch: 64, virtual_workers: 4, micro_batch: 16, eval_every: 0}
optim: {lr: 0, min_lr: 0, warmup: 0, schedule: constant, clip: %g}
checkpoint: {every: 1, keep: 100}
""" % CLIP


def make_data(path, samples, seed):
    draw = random.Random(seed)
    lines = ["a,b,c,d,e,label"]
    for _ in range(samples):
        x = [draw.gauss(0, 1) for _ in range(5)]
        label = 0 if x[0] + x[1] * x[2] > 0.3 else 1 if x[3] > 0 else 2
        lines.append(",".join("%.4f" % v for v in x) + ",%d" % label)
    path.write_text("\n".join(lines) + "\n")


def train(lockstep, where, run, sets):
    command = [lockstep, "train", "config.yaml", "-n", "2", "-o", run]
    command += ["--set", "parallel.transport=thread"]  # which skips no checkpoint
    for s in sets:
        command += ["--set", s]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(run + ": " + done.stderr + done.stdout)


def state(where, run, step):
    folder = where / run / "checkpoints" / ("step-%d" % step)
    weights = load_file(folder / "model.safetensors")
    weights = {k: v.double() for k, v in weights.items()}
    return weights, load_file(folder / "optimizer.safetensors")


def samples(where):
    rows = [line.split(",") for line in (where / "data.csv").read_text().split("\n")[1:] if line]
    x = torch.tensor([[float(v) for v in r[:5]] for r in rows], dtype=torch.float64)
    return x, torch.tensor([int(r[5]) for r in rows])


def gradients(weights, x, y):
    w = {k: v.clone().requires_grad_(True) for k, v in weights.items()}
    h = x
    for layer in ("hidden.0.linear", "hidden.1.linear"):
        h = torch.relu(h @ w[layer + ".weight"] + w[layer + ".bias"])
    loss = torch.nn.functional.cross_entropy(h @ w["head.weight"] + w["head.bias"], y)
    loss.backward()
    g = {k: v.grad for k, v in w.items()}
    norm = torch.sqrt(sum((v**2).sum() for v in g.values()))
    return {k: v * min(1.0, CLIP / norm.item()) for k, v in g.items()}


# ---- what torch.optim does not have ----


class Rule:
    """A rule of one parameter: step(w, g, s, t, decays) changes w and the state s in place."""

    def __init__(self, params, rule):
        self.params, self.rule, self.t = params, rule, 0
        self.states = {k: {} for k in params}

    def step(self):
        self.t += 1
        for k, p in self.params.items():
            self.rule(p.data, p.grad, self.states[k], self.t, 0.1 if p.ndim > 1 else 0.0)


def lion(w, g, s, _t, decay, lr=1e-2):
    m = s.setdefault("m", torch.zeros_like(w))
    w.mul_(1 - lr * decay).sub_(lr * torch.sign(0.9 * m + 0.1 * g))
    m.mul_(0.95).add_(0.05 * g)


def lars(w, g, s, _t, decay, lr=1e-2):
    if w.ndim > 1:
        g = 0.001 * w.norm() / (g.norm() + decay * w.norm() + 1e-8) * (g + decay * w)
    b = s.setdefault("b", torch.zeros_like(w))
    b.mul_(0.9).add_(g)
    w.sub_(lr * b)


def lamb(w, g, s, t, decay, lr=1e-2):
    m, v = s.setdefault("m", torch.zeros_like(w)), s.setdefault("v", torch.zeros_like(w))
    m.mul_(0.9).add_(0.1 * g)
    v.mul_(0.95).add_(0.05 * g * g)
    u = m / (1 - 0.9**t) / (torch.sqrt(v / (1 - 0.95**t)) + 1e-8) + decay * w
    w.sub_(lr * (w.norm() / u.norm() if decay else 1) * u)


def schedule_free(w, g, s, t, decay, lr=1e-2):
    z, v = s.setdefault("z", w.clone()), s.setdefault("v", torch.zeros_like(w))
    v.mul_(0.95).add_(0.05 * g * g)
    d = g / (torch.sqrt(v / (1 - 0.95**t)) + 1e-8) + decay * w
    w.add_((z - w) / t + lr * (0.9 * (1 - 1 / t) - 1) * d)
    z.sub_(lr * d)


def orthogonal(grad, ns_coefficients, ns_steps, eps):
    a, b, c = ns_coefficients
    x = grad.T if grad.size(0) > grad.size(1) else grad
    x = x / x.norm().clamp(min=eps)
    for _ in range(ns_steps):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if grad.size(0) > grad.size(1) else x


def soap(w, g, s, t, decay, lr=1e-2):
    """One-sided: the basis is that of the shorter side."""
    if w.size(0) > w.size(1):
        soap(w.T, g.T, s, t, decay, lr)
        return
    if t == 1:
        s["m"], s["v"], s["gg"] = torch.zeros_like(w), torch.zeros_like(w), 0.05 * g @ g.T
        s["q"] = torch.linalg.eigh(s["gg"])[1].flip(1)
        return
    t -= 1
    m, v, q = s["m"], s["v"], s["q"]
    m.mul_(0.9).add_(0.1 * g)
    v.mul_(0.95).add_(0.05 * (q.T @ g) ** 2)
    rate = lr * (1 - 0.95**t) ** 0.5 / (1 - 0.9**t)
    w.sub_(rate * q @ ((q.T @ m) / (v.sqrt() + 1e-8)))
    w.sub_(lr * decay * w)
    s["gg"].mul_(0.95).add_(0.05 * g @ g.T)
    if t % 10 == 0:
        order = torch.argsort(torch.diag(q.T @ s["gg"] @ q), descending=True)
        s["v"] = v[order]
        s["q"] = torch.linalg.qr(s["gg"] @ q[:, order])[0]


class Both:
    """A rule of the hidden matrices, AdamW of the rest."""

    def __init__(self, params, rule):
        torch.optim._muon._zeropower_via_newtonschulz = orthogonal
        hidden = {k: p for k, p in params.items() if k.startswith("hidden") and p.ndim > 1}
        if rule is None:
            self.hidden = torch.optim.Muon(list(hidden.values()), lr=1e-2, weight_decay=0.1,
                                           momentum=0.95, adjust_lr_fn="match_rms_adamw")
        else:
            self.hidden = Rule(hidden, rule)
        rest = {k: p for k, p in params.items() if k not in hidden}
        self.rest = torch.optim.AdamW(decayed(rest), lr=1e-2, betas=(0.9, 0.95))

    def step(self):
        self.hidden.step()
        self.rest.step()


def decayed(params):
    """Weight decay applies to matrices."""
    return [{"params": [p], "weight_decay": 0.1 if p.ndim > 1 else 0.0} for p in params.values()]


def adafactor(params):
    return torch.optim.Adafactor(decayed(params), lr=1e-2, eps=(2.0**-23, 1e-3))


OPTIMIZERS = {
    "adamw": lambda p: torch.optim.AdamW(decayed(p), lr=1e-2, betas=(0.9, 0.95)),
    "adam": lambda p: torch.optim.Adam(decayed(p), lr=1e-2, betas=(0.9, 0.95)),
    "sgd": lambda p: torch.optim.SGD(decayed(p), lr=1e-2),
    "sgd with momentum": lambda p: torch.optim.SGD(
        decayed(p), lr=1e-2, momentum=0.9, nesterov=True
    ),
    "lion": lambda p: Rule(p, lion),
    "adagrad": lambda p: torch.optim.Adagrad(decayed(p), lr=1e-2, eps=1e-8),
    "schedule-free": lambda p: Rule(p, schedule_free),
    "lars": lambda p: Rule(p, lars),
    "lamb": lambda p: Rule(p, lamb),
    "adafactor": adafactor,
    "muon": lambda p: Both(p, None),
    "soap": lambda p: Both(p, soap),
}


def check(lockstep, where, name):
    sets = ["optim.optimizer=" + name.split()[0], "optim.lr=0.01", "train.from=first"]
    sets.append("train.steps=%d" % STEPS)
    if "momentum" in name:
        sets += ["optim.momentum=0.9", "optim.nesterov=on"]
    train(lockstep, where, name, sets)
    x, y = samples(where)
    start, _ = state(where, "first", 1)
    params = {k: torch.nn.Parameter(v.clone()) for k, v in start.items()}
    optimizer = OPTIMIZERS[name](params)
    at = start
    for step in range(1, STEPS + 1):
        for k, g in gradients(at, x, y).items():
            params[k].grad = g
        optimizer.step()
        at, states = state(where, name, step)
        if name == "schedule-free":  # gradients are taken at y
            at = {k: states[k + ".y"].double() for k in at}
    return max((params[k].data - at[k]).abs().max().item() for k in params)


def check_all(lockstep, where):
    make_data(where / "data.csv", 64, 1)
    make_data(where / "val.csv", 16, 2)
    (where / "config.yaml").write_text(CONFIG)
    train(lockstep, where, "first", ["optim.optimizer=sgd"])
    failed = []
    for name in OPTIMIZERS:
        error = check(lockstep, where, name)
        if error > (SOAP_LIMIT if name == "soap" else LIMIT):
            failed.append(name)
        print("%-18s %.1e" % (name, error))
    if failed:
        sys.exit("differ from torch by more than they may: " + ", ".join(failed))


with tempfile.TemporaryDirectory() as directory:
    check_all(str(Path(sys.argv[1]).resolve()), Path(directory))
