"""Draws small models and the data that they are trained on: for random_faults.py.

A drawn model is a config's `model` and `data` of any kind and format that Lockstep has: language
models of text and tokens, a published one tuned on conversations or pairs, the usual networks, lists of layers with branches, several inputs and
losses; files that are plain or packed, damaged, mixed, augmented. All is a function of the state of
the module `random`. tests/source/write_sets.py writes the files.
"""
import collections
import gzip
import json
import os
import random
import subprocess
import sys

from random_layers import BINARY, MSE, chance, draw_layers

# Files of a format, and what a sample has: an image, numbers that a model can read (their dims), a
# list of ids, numbers to predict (a loss each), a weight, codes (how many). `bad`: the same with
# damaged records, which can be skipped.
Set = collections.namedtuple("Set", "format path classes labels bad image numbers ids targets "
                             "weight codes", defaults=[None, None, None, {}, None, {}, None, {}])
SMALL = [2, 3, 3]
SETS = [
    Set("idx", "x-idx3-ubyte", 10, "y-idx1-ubyte", image=("image", [2, 3, 1])),
    Set("cifar", "data_batch_1.bin", 10, image=("image", [32, 32, 3])),
    Set("images", "tree", 2, bad="badtree", image=("image", SMALL)),
    Set("webdataset", "all.tar", 10, bad="bad.tar", image=("image", SMALL), numbers={"n": []},
        targets={"w": MSE}, weight="w"),
    Set("tfrecord", "images.tfrecord", 10, bad="badimages.tfrecord", image=("image", SMALL)),
    Set("tfrecord", "all.tfrecord", 10, bad="bad.tfrecord", numbers={"floats": [2]}),
    Set("mds", "mds", 2, image=("png", SMALL), numbers={"big": [], "free": [2]},
        targets={"ratio": MSE}, weight="ratio"),
    Set("mds", "mdsphotos", 40, bad="badphotos", image=("photo", SMALL)),
    Set("csv", "table.csv", 3, bad="bad.csv", numbers={"id": []}, targets={"value": MSE},
        weight="value", codes={"note": 5}),
    Set("jsonl", "lines.jsonl", 2, numbers={"b": [2, 2]}, targets={"on": BINARY, "a": MSE},
        weight="a"),
    Set("npy", "x.npy", 3, "y.npy", numbers={"x": [2]}),
    Set("csv", "lists.csv", 3, numbers={"id": []}, ids="words"),
    Set("jsonl", "lists.jsonl", 3, ids="words", codes={"id": 40}),
    Set("tfrecord", "lists.tfrecord", 3, numbers={"id": []}, ids="words"),
    Set("mds", "lists", 3, ids="words", codes={"id": 40}),
]
DIRECTORIES = ("images", "mds")

# A drawn model: its name; the config's sections; settings that change no bits; whether
# micro-batches must be whole virtual workers; patterns of the names of parameters.
Model = collections.namedtuple("Model", "name config free has_batch_norm patterns")
PATTERNS = {
    "gpt2": ["wte.*", "wpe.*", "h.1.*", "ln_f.*", "h.0.*"],
    "llama": ["model.embed_tokens.*", "model.layers.0.*", "*norm.weight", "*.mlp.*"],
    "mlp": ["hidden.0.*", "head.*"], "cnn": ["stage.0.*", "head.*"],
    "resnet": ["stem.*", "stage.0.0.*", "*norm*"], "vit": ["block.0.*", "patch.*"],
}


def make_data(folder, lockstep):
    """Writes all files of SETS, plain and packed by gzip and zstd, conversations, pairs, and a small
    published model that `lockstep` writes."""
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    subprocess.run([sys.executable, source + "/tests/source/write_sets.py", folder], check=True)
    make_chats(folder)
    make_rows(folder)
    make_speeds(folder)
    make_published(folder, lockstep)
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".png", ".mds", ".json", ".gz")):
                continue
            path = os.path.join(place, name)
            with open(path, "rb") as f, gzip.open(path + ".gz", "wb") as out:
                out.write(f.read())
            subprocess.run(["zstd", "-q", "-f", path], check=True)


def make_chats(folder):
    with open(folder + "/chats.jsonl", "w") as chats, open(folder + "/pairs.jsonl", "w") as pairs:
        for i in range(60):
            prompt = [{"role": "user", "content": "%d?" % i}]
            chosen, rejected = [[{"role": "assistant", "content": text}]
                                for text in ("yes it is"[:1 + i % 9], "never"[:1 + i % 5])]
            json.dump({"messages": (prompt + chosen) * (1 + i % 3)}, chats)
            json.dump({"prompt": prompt, "chosen": chosen, "rejected": rejected}, pairs)
            chats.write("\n")
            pairs.write("\n")


def make_published(folder, lockstep):
    settings = ["model.kind=llama", "model.width=12", "model.context=64", "model.kv_heads=1",
                "train.steps=2", "optim.warmup=1"]
    train = [lockstep, "train", "configs/tiny.yaml", "-n", "1", "-o", folder + "/own"]
    for s in settings:
        train += ["--set", s]
    export = [lockstep, "export", folder + "/own", "--to", "safetensors", "-o", folder + "/published"]
    for command in (train, export):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(folder + "/published/chat_template.jinja", "w") as f:
        f.write("{% for m in messages %}<{{ m.role }}>{{ m.content|trim }};{% endfor %}"
                "{% if add_generation_prompt %}<assistant>{% endif %}")


# ---- the usual networks, and language models ----

def draw_network(s):
    """A usual network, or a list of layers, for the set; and whether it has batch norm."""
    kinds = ["layers", "layers", "mlp"] + (["cnn", "resnet", "vit"] if s.image else [])
    kind = random.choice(kinds)
    if kind == "layers" or s.ids:
        return draw_layers(s)
    norm = random.choice(["group", "batch"])
    model = {"kind": kind}
    if s.image:
        model["input"] = {s.image[0]: {"type": "u8", "dims": s.image[1]}}
    else:
        model["input"] = dict(s.numbers)
    if kind == "mlp":
        model.update(hidden=random.choice([[5], [6, 4]]))
    elif kind == "vit":
        model.update(patch=8 if s.image[1][0] > 2 else 1, width=8, heads=2,
                     layers=random.choice([1, 2]))
    else:
        model.update(channels=random.choice([[3], [2, 4]]), norm=norm)
        if kind == "resnet":
            model.update(blocks=random.choice([1, 2]))
    if kind != "resnet" and chance(0.3):
        model["dropout"] = 0.2
    return model, norm == "batch" and kind in ("cnn", "resnet")


def draw_language_model(experts):
    model = {"kind": random.choice(["gpt2", "llama"]), "layers": 2, "width": 24, "heads": 3,
             "context": 16, "vocab": 300}
    if model["kind"] == "llama":
        model.update(width=16, heads=4, kv_heads=random.choice([1, 2, 4]),
                     ffn=random.choice([0, 24]), window=random.choice([0, 5]),
                     bias=random.choice(["none", "qkv", "attention", "mlp", "all"]),
                     head=random.choice(["tied", "own"]), qk_norm=random.choice(["on", "off"]))
        model.update(random.choice([{}, {"rope": "linear", "rope_factor": 2},
                                    {"rope": "llama3", "rope_factor": 8, "rope_original": 8},
                                    {"rope": "longrope", "rope_factor": 2, "rope_original": random.choice([8, 16]), "rope_dims": 4,
                                     "rope_short": [1, 1.5], "rope_long": [1.25, 6]},
                                    {"rope": "yarn", "rope_factor": 4, "rope_original": 8, "rope_high": 32}]))
        if model["window"] and chance(0.5):
            model.update(full_attention_every=random.choice([2, 3]))
        if chance(0.3):
            model.update(no_rope_every=random.choice([2, 3]))
        if chance(0.3) and "rope_dims" not in model:
            model.update(rope_dims=2)
        if chance(0.3):
            model.update(block="gemma3", query_scalar=random.choice([0, 5]))
        elif chance(experts):
            model.update(experts=random.randint(3, 6), experts_per_token=random.randint(1, 3), ffn=24,
                         bias=random.choice(["none", "qkv", "attention"]),
                         shared_experts=random.choice([0, 1]),
                         expert_capacity=random.choice([0, 0.8]),
                         router_bias_rate=random.choice([0, 0.01]))
    return model


def draw_adapters():
    """Keys of `lora`, and patterns of the names of what is trained."""
    lora = {"rank": random.choice([1, 2, 4]), "targets": random.choice(["all-linear", ["q_proj", "v_proj"]]),
            "rs": random.choice(["on", "off"]), "dora": random.choice(["on", "off", "off"])}
    if chance(0.3):
        lora["dropout"] = 0.1
    if chance(0.3):
        lora["train"] = "*norm.weight"
    return lora, ["*lora_A*", "*layers.0.*lora_B*"]


def draw_tuned(folder):
    """A published model, tuned on conversations or on pairs."""
    pairs = chance(0.6)
    config = {"model": {"from": folder + "/published", "context": random.choice([24, 40])},
              "data": {"path": folder + ("/pairs.jsonl" if pairs else "/chats.jsonl"), "format": "chat",
                       "val_fraction": 0.2}, "train": {}}
    patterns = PATTERNS["llama"]
    if pairs:
        loss = random.choice(["sigmoid", "ipo", "hinge"])
        config["train"]["loss"] = "dpo"
        config["dpo"] = {"loss": loss, "beta": random.choice([0.1, 0.5])}
        if loss == "sigmoid" and chance(0.3):
            config["dpo"]["label_smoothing"] = 0.1
    else:
        config["data"].update(packing=random.choice(["on", "off"]), loss=random.choice(["assistant", "completion", "all"]))
    if chance(0.7):
        config["lora"], patterns = draw_adapters()
    if chance(0.5):
        config["train"].update(sample_prompts=["1?", "hello"], sample_tokens=5,
                               sample_temperature=random.choice([0, 0.8]))
    name = "%s of %s" % ("adapters" if "lora" in config else "published", "pairs" if pairs else "chats")
    return Model(name, config, [], False, patterns)


# ---- data ----

def draw_augment(s):
    """Changes of images of the set that retain their size."""
    h, w, _ = s.image[1]
    steps = random.sample([{"flip": 0.5}, {"cutout": 1}], random.choice([0, 1, 2]))
    if chance(0.5):
        steps += [{"pad": 1}, {"crop": "%dx%d" % (h, w)}]
    return steps


def draw_files(s, folder):
    """The files of a set: (settings of `data`, settings that are free)."""
    bad = s.bad and chance(0.25)
    path, labels = folder + "/" + (s.bad if bad else s.path), s.labels and folder + "/" + s.labels
    data = {"path": path, "format": random.choice(["auto", s.format])}
    if labels:
        data["labels"] = labels
    threads = random.choice(["auto", "1", "2", "3"])
    free = ["data.cache=%s/cache" % folder, "data.threads=" + threads]
    if bad:
        data["damaged"] = "skip"
    if s.format in DIRECTORIES:
        return data, free
    packed = random.choice(["", ".gz", ".zst"])
    if chance(0.2):
        del data["path"]
        one = {"labels": labels} if labels else {}
        data.pop("labels", None)
        data["mix"] = [dict(one, path=path, weight=random.choice([1, 2])),
                       dict(one, path=path + packed, weight=random.choice([0.5, 1.5]))]
    else:
        free += ["data.path=" + path + packed] * (packed != "")
    return data, free


def draw_samples(folder):
    """A model of samples of files."""
    s = random.choice(SETS)
    data, free = draw_files(s, folder)
    if s.image and chance(0.3):
        data["augment"] = draw_augment(s)
    data.update(random.choice([{"val_fraction": 0.2}, {"folds": 4, "fold": 1}]))
    blocks = {"order": "blocks", "block": 4, "window": 2}
    data.update(random.choice([{}, {"order": "global"}, blocks]))
    model, has_batch_norm = draw_network(s)
    name = "%s of %s%s" % (model["kind"], s.path, ", mixed" * ("mix" in data))
    return Model(name, {"model": model, "data": data}, free, has_batch_norm, patterns_of(model))


def patterns_of(model):
    """Patterns that match parameters; those of a list's layers, which also have names."""
    if model["kind"] != "layers":
        return PATTERNS[model["kind"]]
    found = []
    for layer in model["layers"]:
        for kind in layer if isinstance(layer, dict) else []:
            if kind in ("conv2d", "linear", "embedding", "embedding_sum", "repeat"):
                options = layer[kind] if isinstance(layer[kind], dict) else {}
                found.append(options.get("name", kind) + ".*")
    return sorted(set(found))


def make_speeds(folder):
    """The speeds of a slow network and of fast workers, for compress.kind: auto."""
    with open(folder + "/links.yaml", "w") as f:
        f.write("links:\n  latency_us: 100\n  byte_ns: 1000\n  busy_message_us: 100\n"
                "  busy_byte_ns: 1000\n  reduce_ns: 0.1\n")
    with open("configs/machines/v100.yaml") as machine, open(folder + "/machine.yaml", "w") as f:
        f.write(machine.read() + "".join("product%s_bf16:\n  1024x1024x1024: 8000 8000\n" % of
                                         for of in ("", "_dx", "_dw")))


def make_rows(folder):
    """Ratings, and rows of ids, numbers and a click."""
    with open(folder + "/ratings.csv", "w") as ratings, open(folder + "/clicks.csv", "w") as clicks:
        ratings.write("u,i,r\n")
        clicks.write("shop,city,price,age,bought\n")
        for k in range(900):
            user, item = k % 90, (17 * k + 31 * (k // 90)) % 160
            ratings.write("%d,i%d,%g\n" % (user, item, 1 + k * 7 % 5))
            clicks.write("s%d,%d,%g,%d,%d\n" % (k % 37, k * k % 61, k % 13 / 2, 18 + k % 50, k % 3 == 0))


def draw_recommender(folder):
    """Factors or towers of ratings, or a model of clicks; with tables that are updated by rows, or whole."""
    kind, sparse = random.choice(["factors", "two_towers", "dlrm", "wide_deep"]), chance(0.7)
    model = {"kind": kind, "width": random.choice([4, 12])}
    if kind in ("factors", "two_towers"):
        rates = chance(0.3)
        model["loss"] = {"mean_squared_error": {"target": "rating"}} if rates else {"bpr": {"target": "clicked"}}
        if not rates:
            model["metrics"] = [{"hr": 5}]
        data = {"path": folder + "/ratings.csv", "ratings": {"user": "u", "item": "i", "rating": "r"}}
        if not rates:
            data["ratings"].update(negatives=2, split=random.choice(["leave_one_out", "ratio"]))
        if data["ratings"].get("split") != "leave_one_out":
            data["val_fraction"] = 0.2
        if kind == "two_towers":
            model["hidden"] = [6]
    else:
        model.update(hidden=[8, 4], loss={"binary_cross_entropy": {"target": "clicked"}})
        if kind == "dlrm":
            model["bottom"] = [6]
        data = {"path": folder + "/clicks.csv", "val_fraction": 0.2, "clicks":
                {"clicked": "bought", "ids": ["shop", "city"], "numbers": ["price", "age"], "scale": "standard"}}
    if sparse:
        model["sparse"] = "on"
    return Model("%s%s" % (kind, ", sparse" * sparse), {"model": model, "data": data}, [], False, ["*"])


def draw(folder):
    """Draws a model; make_data() wrote the files of `folder`."""
    if chance(0.25):
        return draw_tuned(folder)
    if chance(0.7):
        return draw_samples(folder)
    return draw_text(folder, 0.3)


def draw_text(folder, experts):
    """A model of text, of kind llama with that chance of experts."""
    model, free = draw_language_model(experts), []
    data = {"path": "LICENSE", "val_fraction": 0.1}
    if chance(0.5):
        path = folder + "/" + random.choice(["nano/train.bin", "gpt2.bin", "llama3.bin"])
        data.update(path=path, format="tokens")
        packed = random.choice(["", ".gz", ".zst"])
        free = ["data.path=" + path + packed] * (packed != "")
    name = "%s of %s" % (model["kind"], os.path.basename(data["path"]))
    return Model(name, {"model": model, "data": data}, free, False, patterns_of(model))
