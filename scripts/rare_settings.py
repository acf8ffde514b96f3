"""Draws settings that users seldom combine: for random_faults.py.

BITS change the bits of a run; FREE change none. A row: a key, how often it is drawn, one of which
settings must be there so that it acts, the values. random_faults.py leaves out what does not go
with the rest.
"""
import random

F16, LOCAL = ["=f16"], ["sync.mode=local", "sync.mode=diloco"]
BLOCKS = ["kind=onebit", "kind=int", "optimizer=onebit"]
TEXT = ["model=gpt2", "model=llama"]
BITS = [
    ("optim.clip", 0.2, [], [0, 0.05, 0.5]),
    ("optim.weight_decay", 0.15, [], [0, 0.3]),
    ("optim.beta1", 0.1, ["=adam", "=lion"], [0.5]),
    ("optim.beta2", 0.1, ["=adam", "=lion"], [0.99]),
    ("optim.eps", 0.1, ["=adam"], [1e-5]),
    ("optim.warmup", 0.2, [], ["auto", "30 samples", "0.3 epochs", 0]),
    ("optim.scale_batch", 0.1, [], [4]),
    ("optim.scale_lr", 1, ["scale_batch"], ["linear", "sqrt"]),
    ("optim.decay_fraction", 0.3, ["=wsd"], [0.5]),
    ("optim.step_factor", 0.3, ["=step"], [0.5]),
    ("optim.lr_decay", 0.5, ["=adagrad", "=rowwise"], [0.01]),
    ("optim.loss_scale", 0.4, F16, [1e9, 1e7]),
    ("optim.loss_scale_window", 0.5, F16, [3, 7]),
    ("optim.loss_scale_hysteresis", 0.3, F16, [1, 3]),
    ("train.reduce_dtype", 0.2, ["compute=bf16", "compute=f16"], ["f32", "bf16", "f16"]),
    ("train.noise_scale", 0.1, [], ["on"]),
    ("train.eval_samples", 0.3, ["eval_every=17"], [1, 5, 100000]),
    ("train.patience", 0.1, ["eval_every=17"], [1, 2]),
    ("train.seed", 0.3, [], [2, 77, 2**62]),
    ("compress.block", 0.4, BLOCKS, [32, 64, 96]),
    ("compress.rank", 0.5, ["=powersgd"], [1, 2, 8]),
    ("compress.ratio", 0.4, ["=topk"], [1e-6, 0.01, 0.5, 1]),
    ("sync.outer_lr", 0.3, ["=diloco"], [0.3, 1]),
    ("sync.outer_momentum", 0.3, ["=diloco"], [0, 0.5]),
    ("parallel.context_virtual", 0.2, TEXT, [2, 4]),
    ("parallel.tensor_virtual", 0.2, TEXT, [2, 3]),
    ("parallel.sequence", 0.4, ["tensor_virtual"], ["on"]),
    ("parallel.expert_virtual", 0.4, ["experts"], [2]),
]
FREE = [
    ("parallel.bucket_mb", 0.5, [], [0.0005, 0.002, 0.01, 0.03]),
    ("parallel.overlap", 0.3, [], ["on", "off"]),
    ("parallel.bind", 0.05, [], ["on"]),
    ("parallel.threads", 0.1, [], [2, 3]),
    ("parallel.prefetch", 0.5, ["zero=3"], [0, 2, 5]),
    ("parallel.whole_kb", 0.5, ["zero=3"], [1, 2, 8]),
    ("parallel.recompute", 0.3, [], [1, 2, 3, "auto"]),
    ("parallel.recompute_layers", 0.4, ["recompute="], [1, 3]),
    ("parallel.memory_limit_mb", 0.1, [], [2000]),
    ("parallel.fit", 0.5, ["memory_limit"], ["auto"]),
    ("parallel.device", 0.06, [], ["c"]),
    ("checkpoint.keep", 0.3, [], [1, 5]),
    ("checkpoint.minutes", 0.2, ["checkpoint.every=7", "checkpoint.every=20"], [0]),
    ("checkpoint.best", 0.3, [], ["on", "off"]),
    ("survival.balance", 0.2, [], ["off", "auto"]),
    ("survival.slow_limit", 0.2, [], [0, 2, 4]),
    ("survival.max_workers", 0.1, [], [9]),
    ("survival.stop_s", 0.1, [], [0, 1]),
    ("survival.audit", 0.15, [], [1, 3, 10]),
    ("survival.backup_workers", 0.1, [], [1, 4]),
    ("compress.send", 0.5, ["compress.kind", "optimizer=onebit"], ["codes", "values"]),
    ("log.every", 0.1, [], [1]),
]
# Of a run that ends when a worker does.
ALONE = [("parallel.optimizer_state", 0.06, [], ["file"]),
         ("parallel.optimizer_state", 0.5, ["device=c"], ["device"])]
KEYS = {row[0] for row in BITS + FREE + ALONE} | {
    "parallel.accumulate", "parallel.shard_group", "survival.copies", "train.freeze", "optim.ema",
    "optim.groups"}
# Kernels of all processors, and of this one.
with open("/proc/cpuinfo") as cpus:
    KERNELS = ["", "", "", "portable"] + ["avx2"] * (" avx2 " in cpus.read())


def put(settings, key, value):
    """Sets a key anew."""
    settings[:] = [s for s in settings if not s.startswith(key + "=")] + ["%s=%s" % (key, value)]


def draw(rows, settings, known):
    for key, chance, needs, values in rows:
        words = " ".join(known + settings)
        if random.random() < chance and (not needs or any(need in words for need in needs)):
            put(settings, key, random.choice(values))


def widen(model):
    """Larger layers: messages of more than 64 KB go other ways."""
    m = model.config["model"]
    if random.random() > 0.2 or "from" in m:
        return
    if m["kind"] in ("gpt2", "llama"):
        m["width"] = 96
        m.update({"ffn": 160} if m.get("ffn") else {})
    elif m["kind"] == "mlp":
        m["hidden"] = [40 * n for n in m["hidden"]]


def draw_rare(model, V, samples, bits, free):
    """Adds settings that are drawn seldom to those that change bits, and to the others."""
    sections = model.config["model"]
    known = ["model=%s" % sections.get("kind", "published")] + ["experts"] * ("experts" in sections)
    grown = "[[0, %d], [17, %d]]" % (V * samples, 2 * V * samples)
    if random.random() < 0.12:
        put(bits, "train.batch", grown)
    if random.random() < 0.2 and "sync." not in " ".join(bits):
        draw_kind(bits, free)
    draw(BITS, bits, known)
    divide_experts(samples, bits, free)
    draw(FREE, free, known + bits)
    free[:] = [f for f in free if f.partition("=")[0] not in [b.partition("=")[0] for b in bits] or
               f.startswith("train.micro_batch")]


def divide_experts(samples, bits, free):
    """Micro-batches, also those of one worker, have samples for all groups of experts."""
    if "parallel.expert_virtual=2" not in bits:
        return
    if samples % 2:
        bits.remove("parallel.expert_virtual=2")
        return
    put(bits, "train.micro_batch", 2)
    free[:] = [f for f in free if not f.startswith("train.micro_batch")]


def draw_kind(bits, free):
    """An optimizer that goes with few settings."""
    kind = random.choice(["adagrad", "schedule-free", "onebit_adam", "onebit_lamb",
                          "rowwise_adagrad"])
    wrong = {"schedule-free": ("optim.ema", "train.eval_weights"),
             "onebit": ("compress.", "optim.groups")}.get(kind.partition("_")[0], ())
    bits[:] = [b for b in bits if not (wrong and b.startswith(wrong))]
    put(bits, "optim.optimizer", kind)
    if kind == "schedule-free":
        put(bits, "optim.schedule", "constant")
    elif kind.startswith("onebit"):
        put(bits, "optim.freeze_step", random.choice([3, 20]))
        put(bits, "train.reduce_dtype", "f32")
        put(bits, "compress.min_size", random.choice([0, 64, 1024]))
        put(free, "parallel.zero", 0)
        if "train.compute=f16" in bits:
            put(bits, "train.compute", "bf16")


def of_hosts(free):
    """Without what each host would find for its own workers alone."""
    return [f for f in free if not f.startswith(("parallel.memory_limit", "parallel.fit")) and
            f != "parallel.recompute=auto"]


def draw_schedule():
    """How a pipeline goes through its micro-batches."""
    return random.choice([[], ["parallel.schedule=gpipe"], ["parallel.schedule=zb-h1"],
                          ["parallel.schedule=zb-v", "parallel.chunks=2"],
                          ["parallel.schedule=interleaved", "parallel.chunks=2"]])


def draw_kernels():
    """A host's kernels: all have the same bits."""
    return random.choice(KERNELS)
