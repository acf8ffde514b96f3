#!/usr/bin/env python3
"""Exports networks as ONNX, and compares what onnxruntime computes of samples with what Lockstep does.

    check_onnx.py LOCKSTEP NETWORK_PREDICTIONS [DRAWN [FIRST]]

NETWORK_PREDICTIONS is the program of tests/infer/predictions.c. All layers that ONNX can express, one
network after the other, all kinds of networks, language models with any number of tokens, and DRAWN
random networks of random_models.py (40). A difference is at most 1e-5 of the largest number. Needs
the Python packages onnx, onnxruntime and numpy.
"""
import collections
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

import random_models

LOCKSTEP, PREDICTIONS = (os.path.abspath(p) for p in sys.argv[1:3])
DRAWN = int(sys.argv[3]) if len(sys.argv) > 3 else 40
FIRST = int(sys.argv[4]) if len(sys.argv) > 4 else 1
SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WITHIN = 1e-5
TYPES = {"u8": np.uint8, "i32": np.int32, "u32": np.int32, "f32": np.float32}
rng = np.random.default_rng(0)
worst, checked, kinds, operators = 0.0, 0, collections.Counter(), collections.Counter()


def run(*command, **more):
    r = subprocess.run([str(c) for c in command], capture_output=True, **more)
    if r.returncode:
        sys.exit("%s\n%s" % (" ".join(map(str, command)), r.stderr.decode(errors="replace")))
    return r.stdout


# ---- samples ----

def texts(n, count):
    """The places of tokens in several texts, one after the other."""
    rows = np.zeros((n, count), np.int32)
    for row in rows:
        at = 0
        while at < count:
            length = min(int(rng.integers(1, count + 1)), count - at)
            row[at:at + length] = np.arange(length)
            at += length
    return rows


def numbers_of(n, field, rows):
    name, kind, count, classes, padded = field
    count = rows or count
    if name.endswith("positions"):
        return texts(n, count)
    if kind == "u8":
        return rng.integers(0, 2 if name.endswith("mask") else 256, (n, count), dtype=np.uint8)
    if kind == "f32":
        return rng.standard_normal((n, count), dtype=np.float32)
    return rng.integers(-1 if padded else 0, classes or 9, (n, count)).astype(np.int32)


def fields_of(run_dir):
    lines = [line.split() for line in run(PREDICTIONS, run_dir).decode().splitlines()]
    fields = [(name, kind, int(count), int(classes), int(padded))
              for name, kind, count, classes, padded in lines[:-1]]
    return fields, int(lines[-1][1])


# ---- comparing ----

def compare(name, run_dir, rows=None):
    """rows: of a language model; None: other ones, too, if they are free."""
    global worst, checked
    path = "%s.onnx" % run_dir
    if not os.path.exists(path):
        said = json.loads(run(LOCKSTEP, "export", run_dir, "--to", "onnx", "-o", path, "--json"))
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        operators.update(node.op_type for node in model.graph.node)
        assert [end["name"] for end in said["inputs"]] == [x.name for x in model.graph.input]
        assert [end["name"] for end in said["outputs"]] == [x.name for x in model.graph.output]
        assert said["nodes"] == len(model.graph.node) and said["bytes"] == os.path.getsize(path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    fields, most = fields_of(run_dir)
    free = any("T" in x.shape for x in session.get_inputs())
    n = int(rng.integers(1, 6))
    feed, data = {}, b""
    for field, end in zip(fields, session.get_inputs(), strict=True):
        assert field[0] == end.name
        x = numbers_of(n, field, rows or (most if free else None))
        data += x.tobytes()
        shape = [n] + ([x.shape[1]] if free else end.shape[1:])
        feed[field[0]] = x.reshape(shape)
    told = [rows or most] if free else []
    ours = np.frombuffer(run(PREDICTIONS, run_dir, n, *told, input=data), np.float32)
    at = 0
    for end, theirs in zip(session.get_outputs(), session.run(None, feed), strict=True):
        if end.name.endswith("_probability"):
            assert np.all(theirs >= 0) and np.all(theirs <= 1.000001), name
            continue
        want = ours[at:at + theirs.size].reshape(theirs.shape)
        at += theirs.size
        error = np.abs(want - theirs).max() / max(np.abs(want).max(), 1e-30)
        worst, checked = max(worst, error), checked + 1
        if not error <= WITHIN or not np.isfinite(want).all():
            sys.exit("%s: output %s differs by %.3g of its largest number" % (name, end.name, error))
    assert at == ours.size, name
    if free and rows is None:
        compare(name, run_dir, 1)
        compare(name, run_dir, max(1, most // 2))


def train(name, config, *sets):
    with open(name + ".yaml", "w") as f:
        json.dump(config, f)
    run(LOCKSTEP, "train", name + ".yaml", "-n", "1", "-o", name, *sets)
    return name


# ---- lists of layers ----

def write_lines(name, fields, n=16):
    """A file of samples: of each field a type, dims, and the number of classes."""
    with open(name + ".jsonl", "w") as f:
        for i in range(n):
            sample = {}
            for field, (kind, dims, classes) in fields.items():
                count = int(np.prod(dims, dtype=int))
                full = field if kind != "mask" else "mask"
                x = numbers_of(1, (full, kind, count, classes, False), None)[0]
                sample[field] = x.reshape(dims).tolist()
            json.dump(sample, f)
            f.write("\n")
    return name + ".jsonl"


def check_layers(name, fields, layers, loss):
    inputs = {k: {"type": kind, "dims": dims} for k, (kind, dims, classes) in fields.items()}
    labels = [x[2] for k, x in fields.items() if k in ("label", "kinds")]
    model = {"kind": "layers", "input": inputs, "layers": layers, "loss": loss}
    if labels:
        model["classes"] = labels[0]
    path = write_lines(name, fields)
    config = {"model": model, "data": {"format": "jsonl", "path": path},
              "train": {"steps": 2, "batch": 8, "virtual_workers": 2, "micro_batch": 4},
              "optim": {"warmup": 0, "lr": 0.05}}
    compare(name, train(name, config))
    for layer in layers:
        kinds[layer if isinstance(layer, str) else next(iter(layer))] += 1


LABEL = {"label": ("i32", [], 3)}
TARGET = {"y": ("f32", [2], 0)}
IMAGE = {"image": ("u8", [9, 8, 4], 0)}
CLASSES = {"cross_entropy": {"target": "label"}}
NUMBERS = {"mean_squared_error": {"target": "y"}}
PIXELS = {"affine": {"scale": 0.01, "shift": -1}}
END = [{"linear": 3}]


def image_layers():
    """Networks of an image: what stands between its pixels and the classes."""
    conv = lambda **more: {"conv2d": dict({"channels": 6, "kernel": 3}, **more)}
    up = lambda **more: {"conv2d_transposed": dict({"channels": 6, "kernel": 3}, **more)}
    for more in ({}, {"stride": 2}, {"pad": -1}, {"pad": 2, "stride": 3}, {"kernel": 1}, {"kernel_w": 5},
                 {"kernel": 2, "stride": 2, "pad": -1}, {"groups": 2}, {"channels": 4, "groups": 4},
                 {"no_bias": True}):
        yield "conv", [PIXELS, conv(**more), "relu", conv(), "flatten"]
    for more in ({}, {"stride": 2}, {"stride": 3}, {"kernel": 2, "stride": 2}, {"kernel": 4, "stride": 3},
                 {"kernel": 2, "stride": 3}, {"pad": -1}, {"pad": 1, "stride": 2}, {"groups": 2, "stride": 2},
                 {"no_bias": True, "kernel_w": 5}):
        yield "up", [PIXELS, up(**more), "tanh", "mean_pool"]
    for kind in ("max_pool", "average_pool"):
        for more in ({"kernel": 2}, {"kernel": 3, "stride": 2, "pad": 1}, {"kernel": 3, "stride": 1},
                     {"kernel": 2, "kernel_w": 3}, {"kernel": 3, "pad": 2, "count_pad": True}):
            yield "pool", [PIXELS, conv(), {kind: more}, conv(), "flatten"]
        yield "pool", [PIXELS, {kind: 2}, "flatten"]
    for norm in ({"group_norm": {}}, {"group_norm": {"groups": 2, "relu": True}}, {"batch_norm": {}},
                 {"group_norm": {"groups": 1, "eps": 0.01}}, {"batch_norm": {"relu": True, "eps": 0.1}},
                 "layer_norm", "rms_norm", {"rms_norm": {"eps": 0.1}}, {"scale": 0.5}, "softmax", "gelu"):
        yield "norm", [PIXELS, conv(), norm, conv(), "flatten"]
        yield "norm", [PIXELS, norm, "flatten"]
        yield "norm", [PIXELS, "flatten", norm]
        yield "norm", [PIXELS, {"reshape": [6, 48]}, norm, "flatten"]
    for act in ("relu", "gelu", "silu", "sigmoid", "tanh", {"dropout": 0.5}):
        yield "act", [PIXELS, conv(), act, {"residual": [conv(), act]}, "mean_pool"]
    a, b = {"conv2d": {"channels": 6, "kernel": 3, "of": "x", "name": "a"}}, None
    for kind in ("concat", "add", "multiply", "add_relu", "silu_gate"):
        for act in ("relu", "layer_norm"):
            b = {act: {"of": "x", "name": "b"}}
            yield "join", [PIXELS, conv(name="x"), a, b, {kind: ["a", "b"]}, conv(), "mean_pool"]
    yield "join", [PIXELS, conv(name="x"), a, {"concat": {"of": ["a", "x"], "dim": 0}}, "mean_pool"]
    yield "join", [PIXELS, {"flatten": {"name": "x"}}, {"slice": {"first": 3, "count": 40, "name": "s"}},
                   {"concat": ["x", "s", "x"]}]
    for dim in (0, 1, 2, -1):
        yield "dims", [PIXELS, conv(), {"mean": dim}, "flatten"]
        yield "dims", [PIXELS, conv(), {"slice": {"dim": dim, "first": 1, "count": 3}}, conv(), "flatten"]
        yield "dims", [PIXELS, {"slice": {"dim": dim, "first": 2}}, "mean_pool"]
    yield "patches", [PIXELS, {"slice": {"dim": 0, "first": 1}}, {"patches": 4}, {"linear": 5}, {"mean": 0}]
    yield "patches", [PIXELS, conv(), {"slice": {"dim": 0, "count": 8}}, {"patches": 2}, "flatten"]
    each = {"mean": [99, 100, 0, 9], "deviation": [60, 1, 2, 0.5]}
    yield "fields", [{"normalize": each}, conv(), "mean_pool"]
    yield "fields", [PIXELS, {"normalize": each}, "flatten"]
    yield "fields", [conv(), {"affine": {"scale": 2}}, {"affine": {"shift": 2}}, "flatten"]
    yield "fields", [{"affine": {}}, "mean_pool"]
    yield "one", ["mean_pool", {"linear": {"out": 4, "no_bias": True}}, {"reshape": [2, 2]}, {"linear": 5}, "flatten"]


def check_images():
    for i, (name, layers) in enumerate(image_layers()):
        check_layers("%s-%d" % (name, i), {**IMAGE, **LABEL}, layers + END, CLASSES)
    # classes and numbers of each pixel; a target that is the input
    labels, kinds_of = {"kinds": ("i32", [9, 8], 3)}, {"cross_entropy": {"target": "kinds"}}
    conv = {"conv2d": {"channels": 3, "kernel": 3}}
    check_layers("pixels", {**IMAGE, **labels}, [PIXELS, conv], kinds_of)
    check_layers("pixels-view", {**IMAGE, "kinds": ("i32", [72], 3)}, [PIXELS, conv, {"reshape": [72, 3]}], kinds_of)
    same = {"image": ("f32", [4, 4, 2], 0)}
    back = {"conv2d": {"channels": 2, "kernel": 3}}
    check_layers("same", same, [back], {"mean_squared_error": {"target": "image"}})


def row_layers():
    """Networks of rows x [6, 8], of others z [5, 8], a mask of these, and places."""
    linear = lambda out, **more: {"linear": dict({"out": out}, **more)}
    for more in ({}, {"causal": True}, {"causal": True, "window": 2}):
        yield [linear(24), {"attention": dict(heads=2, **more)}]
        yield [linear(16), {"attention": dict(heads=4, kv_heads=2, **more)}]
        yield [linear(12), {"attention": dict(heads=4, kv_heads=1, **more)}]
    yield [linear(24), {"attention": {"heads": 2, "causal": True, "positions": "positions"}}]
    yield [linear(16), {"attention": {"heads": 4, "kv_heads": 2, "window": 2, "causal": True, "positions": "positions"}}]
    kv = linear(16, of="z", name="kv")
    yield [kv, linear(8, of="x"), {"attention": {"heads": 2, "keys": "kv"}}]
    yield [kv, linear(8, of="x"), {"attention": {"heads": 2, "keys": "kv", "mask": "mask"}}]
    kv = [linear(4, of="z", name="k"), linear(4, of="z", name="v"), linear(8, of="x")]
    yield kv + [{"attention": {"heads": 4, "kv_heads": 2, "keys": "k", "values": "v", "mask": "mask"}}]
    kv = [linear(8, of="x", name="k"), linear(8, of="x", name="v"), linear(8, of="x")]
    yield kv + [{"attention": {"heads": 4, "keys": "k", "values": "v", "causal": True}}]
    for more in ({"heads": 2}, {"heads": 1, "base": 500}, {"heads": 2, "factor": 3}, {"heads": 2, "positions": "positions"},
                 {"heads": 2, "factor": 8, "original": 4, "low": 1, "high": 4}):
        yield [linear(12), {"rope": more}, {"rope": more}]
    moe = {"experts": 4, "per_token": 2, "width": 5}
    for more in ({}, {"normalize": True}, {"shared": 2, "balance": 0.1}, {"bias_rate": 0.1, "normalize": True},
                 {"per_token": 1, "capacity": 1}, {"bias_rate": 0.5}):
        yield [{"moe": dict(moe, **more)}, "layer_norm"]
        yield [{"mean": 0}, {"moe": dict(moe, **more)}]
    yield [{"learned": {"dims": [6, 8], "name": "p"}}, {"add": ["x", "p"]}, linear(4)]
    yield [{"learned": {"dims": [1, 8], "name": "p"}}, {"concat": {"of": ["p", "x"], "dim": 0}}, linear(4)]
    yield [{"interaction": {"of": "x"}}]
    yield [{"mean": {"of": "z", "dim": 0, "name": "v"}}, {"dot": ["v", "x"]}]
    yield [{"mean": {"of": "z", "dim": 0, "name": "v"}}, {"mean": {"of": "x", "dim": 0, "name": "u"}}, {"dot": ["v", "u"]}]


def check_rows():
    fields = {"x": ("f32", [6, 8], 0), "z": ("f32", [5, 8], 0), "mask": ("u8", [5], 2), "positions": ("i32", [6], 6)}
    for i, layers in enumerate(row_layers()):
        first = [] if "of" in json.dumps(layers[0]) or "learned" in layers[0] else [{"affine": {"of": "x", "scale": 2}}]
        text = json.dumps(layers)
        used = {k: v for k, v in fields.items() if '"%s"' % k in text or (k == "x" and first)}
        check_layers("rows-%d" % i, {**used, **TARGET}, first + layers + ["flatten", {"linear": 2}], NUMBERS)


def check_tables():
    ids = {"words": ("i32", [5], 7), "one": ("i32", [], 4), "grid": ("i32", [2, 3], 9), "n": ("i32", [], 0), "v": ("f32", [], 0)}
    layers = [{"embedding_sum": {"of": "words", "rows": 7, "width": 4, "name": "a"}},
              {"embedding_sum": {"of": "words", "rows": 7, "width": 4, "mean": True, "name": "b"}},
              {"embedding": {"of": "one", "rows": 4, "width": 3, "name": "c"}},
              {"embedding": {"of": "grid", "rows": 9, "width": 2, "name": "d0"}}, {"flatten": {"name": "d"}},
              {"embedding": {"of": "words", "rows": 7, "width": 2, "positions": True, "name": "e0"}}, {"flatten": {"name": "e"}},
              {"concat": ["a", "b", "c", "d", "e", "n", "v"]}, "tanh", {"linear": {"out": 4, "name": "h"}},
              {"linear": {"of": "h", "out": 1, "name": "cost"}}, {"linear": {"of": "h", "out": 3, "name": "chance"}},
              {"linear": {"of": "h", "out": 3, "name": "head"}}]
    targets = {**LABEL, "price": ("f32", [], 0), "on": ("u8", [3], 2)}
    loss = [{"mean_squared_error": {"of": "cost", "target": "price"}}, {"binary_cross_entropy": {"of": "chance", "target": "on"}},
            {"cross_entropy": {"of": "head", "target": "label"}}]
    targets["on"] = ("f32", [3], 0)
    loss[1] = {"mean_squared_error": {"of": "chance", "target": "on"}}
    check_layers("tables", {**ids, **targets}, layers, loss)
    positions = [{"embedding": {"of": "grid", "rows": 9, "width": 2, "positions": True}}, "flatten", {"linear": 2}]
    check_layers("grid", {"grid": ids["grid"], **TARGET}, positions, NUMBERS)
    check_layers("bare", {"v": ids["v"], **TARGET}, ["sigmoid", {"linear": 2}, "softmax"], NUMBERS)
    check_layers("softmax", {"v": ids["v"], **TARGET}, ["softmax", {"linear": 2}], NUMBERS)


# ---- language models ----

LANGUAGE = {
    "gpt2": [], "gpt2-one": ["model.heads=1", "model.layers=1"],
    "llama": ["model.kind=llama", "model.width=48", "model.kv_heads=2", "model.heads=4"],
    "llama-window": ["model.kind=llama", "model.width=48", "model.heads=4", "model.window=5", "model.head=own"],
    "llama-norms": ["model.kind=llama", "model.width=48", "model.heads=4", "model.qk_norm=on", "model.bias=all"],
    "llama-gemma3": ["model.kind=llama", "model.width=48", "model.heads=4", "model.qk_norm=on", "model.block=gemma3",
                     "model.window=5", "model.full_attention_every=2", "model.query_scalar=20"],
    "llama-experts": ["model.kind=llama", "model.width=48", "model.heads=4", "model.experts=4", "model.experts_per_token=2"],
    "llama-lora": ["model.kind=llama", "model.width=48", "model.heads=4", "lora.rank=4", "lora.targets=[all-linear]"],
    "llama-dora": ["model.kind=llama", "model.width=48", "model.heads=4", "lora.rank=4", "lora.dora=on"],
    "llama-bf16": ["model.kind=llama", "model.width=48", "model.heads=4", "train.compute=bf16", "train.reduce_dtype=f32"],
    "gpt2-frozen": ["train.freeze=[wte.*, h.0.*]"],
}


def check_language():
    for name, sets in LANGUAGE.items():
        command = [LOCKSTEP, "train", SOURCE + "/configs/tiny.yaml", "-n", "1", "-o", name]
        for s in sets + ["data.path=%s/LICENSE" % SOURCE, "train.steps=6", "optim.lr=0.02", "train.batch=8"]:
            command += ["--set", s]
        run(*command)
        compare(name, name)


# ---- recommenders ----

def check_recommenders():
    """Models of ratings and of clicks, whose tables have a batch's rows alone, or all rows."""
    with open("ratings.csv", "w") as f:
        f.write("u,i,r,t\n")
        for k in range(400):
            f.write("u%d,i%d,%d,%d\n" % (rng.integers(20), rng.integers(30), rng.integers(1, 6), k))
    common = {"train": {"steps": 4, "batch": 8, "virtual_workers": 2, "micro_batch": 4},
              "optim": {"optimizer": "adam", "warmup": 0, "lr": 0.02, "weight_decay": 0}}
    ratings = {"path": "ratings.csv", "ratings": {"user": "u", "item": "i", "rating": "r", "time": "t", "at_least": 2,
                                                  "negatives": 3, "split": "leave_one_out"}}
    clicks = {"path": "ratings.csv", "val_fraction": 0.1, "clicks": {"clicked": "r", "positive": "5", "ids": ["u", "i"],
                                                                     "numbers": ["t"], "scale": "log"}}
    bpr, binary = {"bpr": {"target": "clicked"}}, {"binary_cross_entropy": {"target": "clicked"}}
    for kind, data, more in (("factors", ratings, {"loss": bpr}), ("two_towers", ratings, {"loss": bpr, "hidden": [6]}),
                             ("dlrm", clicks, {"loss": binary, "hidden": [8], "bottom": [6]}),
                             ("wide_deep", clicks, {"loss": binary, "hidden": [8]})):
        for sparse in ("on", "off"):
            model = dict({"kind": kind, "width": 4, "sparse": sparse}, **more)
            if sparse == "on":
                common["optim"]["optimizer"] = "sgd"
            name = "%s-%s" % (kind, sparse)
            compare(name, train(name, dict(common, model=model, data=data)))


def make_drawn():
    os.makedirs("drawn", exist_ok=True)
    cwd = os.getcwd()
    os.chdir(SOURCE)
    random_models.make_data(cwd + "/drawn", LOCKSTEP)
    os.chdir(cwd)


def check_tuned():
    """A published model, and that tuned on conversations or on pairs, with and without adapters."""
    compare("published", "drawn/published")
    for seed in range(FIRST, FIRST + DRAWN // 5):
        random.seed(seed)
        config = random_models.draw_tuned("drawn").config
        config["train"] = {"steps": 2, "batch": 4, "virtual_workers": 2, "micro_batch": 2, "loss": config["train"].get("loss", "auto")}
        config["optim"] = {"warmup": 0, "lr": 0.01}
        name = "tuned-%d" % seed
        compare(name, train(name, config))


def check_drawn():
    for seed in range(FIRST, FIRST + DRAWN):
        random.seed(seed)
        s = random.choice(random_models.SETS)
        model, has_batch_norm = random_models.draw_network(s)
        data = {"format": s.format, "path": "drawn/" + s.path}
        if s.labels:
            data["labels"] = "drawn/" + s.labels
        name = "drawn-%d" % seed
        config = {"model": model, "data": data, "optim": {"warmup": 0, "lr": 0.01},
                  "train": {"steps": 2, "batch": 4, "virtual_workers": 2, "micro_batch": 2}}
        compare(name, train(name, config))


def main():
    with tempfile.TemporaryDirectory(prefix="lockstep-onnx-") as folder:
        os.chdir(folder)
        for check in (check_language, check_recommenders, check_tables, check_rows, check_images, make_drawn, check_tuned, check_drawn):
            check()
    print("%d predictions of ONNX files are as ours: within %.2g of their largest number" % (checked, worst))
    print("operators: " + ", ".join(sorted(operators)))


main()
