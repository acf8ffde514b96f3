"""document_examples.py - checks what documents show: outputs, and examples in YAML (check_documents.py).

What stands below a command line that begins with $ must be what it prints, with the shipped files;
LOCKSTEP_UPDATE=1 writes it anew. Examples in YAML are planned: blocks of a config's sections, and in the
text a layer's item, a loss, and `section.key: value`. Data and models that they name are small ones.
"""
import gzip
import os
import re
import shlex
import subprocess


def shown(path, commands):
    """Returns (number of the command's line, command, first and end of its output) of a document's lines
    that begin with $."""
    lines = open(path, encoding="utf-8").read().split("\n")
    found = []
    for number, text in commands:
        if not text.startswith("$ "):
            continue
        first = number  # the line after the command's last one
        while lines[first - 1].endswith("\\"):
            first += 1
        end = first
        while end < len(lines) and (lines[end].startswith("    ") or (
                not lines[end] and lines[end + 1:end + 2] and lines[end + 1].startswith("    "))):
            end += 1
        found.append((number, text[2:], first, end))
    return lines, found


def check_shown(program, root, name, commands):
    """commands: of check_documents.py. Returns how many failed, and of how many."""
    path = os.path.join(root, name)
    lines, found = shown(path, commands)
    failed = 0
    for number, command, first, end in reversed(found):
        args = [program] + shlex.split(command)[1:]
        r = subprocess.run(args, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120)
        want = lines[first:end]
        got = [("    " + line).rstrip() for line in r.stdout.rstrip("\n").split("\n")]
        if want and want[-1].strip() == "...":
            got = got[:len(want) - 1] + [want[-1]]
        if got != want and os.environ.get("LOCKSTEP_UPDATE"):
            lines[first:end] = got
            open(path, "w", encoding="utf-8").write("\n".join(lines))
        elif got != want:
            failed += 1
            print(f"FAILED: {name}:{number}: prints otherwise now (LOCKSTEP_UPDATE=1 writes it anew)")
            print("\n".join(line for line in got if line not in want))
    return failed, len(found)


SECTIONS = ("model", "data", "train", "optim", "parallel", "lora", "sync", "compress", "log", "survival")
PATHS = [  # what examples name, and what is there instead
    (r"\S*/?train-(images-idx3|labels-idx1)-ubyte\.gz", lambda m: m[1].split("-")[0] + ".gz"),
    (r"models/\w+", "models/smollm2"),
    (r"context: 512", "context: 64"),
    (r"tokens\.bin, format: tokens", "LICENSE"),
    (r"\{path: (\"photos/.*?\"|drawings.tar|x-idx3-ubyte, labels: x-idx1-ubyte)",
     "{path: images.gz, labels: labels.gz"),
    (r", adapter: \S+,", ","),
    (r"path: photographs", "path: images.gz, labels: labels.gz"),
    (r"^data:\n  augment", "data:\n  path: images.gz\n  labels: labels.gz\n  augment"),
]
RATINGS = "data: {path: ratings.csv, ratings: {user: userId, item: movieId, negatives: 4}}\n"
OTHERS = [  # (what an example has, what it has not, sections that it needs)
    (r"item\.weight", r"^model:", "model: {kind: factors, width: 8, loss: {bpr: {target: clicked}}}\n" + RATINGS),
    (r"kind: factors", r"^data:", RATINGS),
    (r"(context|expert)_virtual", r"^model:", "model: {kind: llama, width: 32, heads: 4, kv_heads: 4, "
     "layers: 2, context: 16, vocab: 300, experts: 4, ffn: 32}\ntrain: {batch: 8, virtual_workers: 2, micro_batch: 4}\n"),
    (r"images\.gz", r"^model:", "model: {kind: mlp}\n"),
    (r"", r"^model:", "model: {width: 32, heads: 4, layers: 4, context: 16, vocab: 300}\n"),
    (r"kind: (?!llama)", r"^data:", "data: {path: none}\n"),
    (r"", r"^data:", "data: {path: LICENSE}\n"),
]
LABEL = "label: {type: i32, dims: []}"
ITEM = """model:
  kind: layers
  input: {words: {type: i32, dims: [8]}, %s}
  layers:
    - embedding: {of: words, rows: 50, width: 16}
    %s
    - mean: 0
    - linear: %d
  loss: %s
"""


def examples(path):
    """Returns the examples in YAML of a document: (line number, text of a config)."""
    lines = open(path, encoding="utf-8").read().split("\n")
    found, i, fence = [], 0, None
    while i < len(lines):
        start, block = i, []
        if lines[i].startswith("```"):
            fence, i = lines[i][3:], i + 1
            while not lines[i].startswith("```"):
                block.append(lines[i])
                i += 1
            block = block if fence == "yaml" else []
        elif re.match(r"    (%s):( |$)" % "|".join(SECTIONS), lines[i]):
            while i < len(lines) and lines[i].startswith("    "):
                block.append(lines[i][4:])
                i += 1
            i -= 1
        i += 1
        if block and re.match(r"(%s):" % "|".join(SECTIONS), block[0]):
            found.append((start + 1, "\n".join(block) + "\n"))
    for number, line in enumerate(lines, 1):
        for code in re.findall(r"`([^`]+)`", line):
            if re.match(r"- \w+: \{.*\}$", code) and "..." not in code:
                found.append((number, ITEM % (LABEL, code, 9, "{cross_entropy: {target: label}}")))
            if re.match(r"\{(\w*cross_entropy|mean_squared_error): \{.*\}\}$", code):
                is_number = "binary" in code or "squared" in code
                target = re.search(r"target: (\w+)", code)[1]
                field = target + ": []" if is_number else LABEL.replace("label", target)
                found.append((number, ITEM % (field, "", 1 if is_number else 9, code)))
    return found


def keys(path):
    """Returns (line number, KEY=VALUE) of what a document writes as `section.key: value`."""
    found = []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        for code in re.findall(r"`([^`]+)`", line):
            m = re.match(r"((?:%s)\.[a-z_.]+): ([\w.+-]+)$" % "|".join(SECTIONS), code)
            if m and (len(m[2]) > 1 or m[2].isdigit()):  # not a letter that stands for a number
                found.append((number, f"{m[1]}={m[2]}"))
    return found


def plan_example(run, top, text):
    for pattern, other in PATHS:
        text = re.sub(pattern, other, text)
    for has, lacks, more in OTHERS:
        if re.search(has, text) and not re.search(lacks, text, flags=re.M):
            text += more
    workers = 4 if "mesh:" in text else 1
    open(os.path.join(top, "example.yaml"), "w", encoding="utf-8").write(text)
    return run(top, f"lockstep plan example.yaml -n {workers}")


def check_examples(run, root, name, scratch):
    """run: runs a line in a directory. Returns how many failed, and of how many."""
    failed = checked = 0
    path = os.path.join(root, name)
    for number, text in examples(path):
        good, said = plan_example(run, scratch, text)
        checked += 1
        failed += not good
        print(f"{'ok' if good else 'FAILED'}: {name}:{number}: example in YAML" + ("" if good else "\n    " + said))
    for number, key in keys(path):
        good, said = run(scratch, f"lockstep plan configs/tiny.yaml --set {key}")
        bad = re.search(r"not one of|is not a |out of range|no key|did you mean|unknown", said)
        checked += 1
        failed += not good and bool(bad)
        if not good and bad:
            print(f"FAILED: {name}:{number}: {key}\n    {said}")
    return failed, checked


def add_samples(top):
    """Files that the examples name."""
    pixels = bytes((i * 7 + i // 784) % 256 for i in range(40 * 784))
    for file, head, rest in (("images", bytes([0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 28, 0, 0, 0, 28]), pixels),
                             ("labels", bytes([0, 0, 8, 1, 0, 0, 0, 40]), bytes(i % 10 for i in range(40)))):
        with gzip.open(os.path.join(top, file + ".gz"), "wb") as out:
            out.write(head + rest)
    with open(os.path.join(top, "ratings.csv"), "w", encoding="utf-8") as out:
        out.write("userId,movieId,rating,timestamp\n")
        out.writelines(f"{i % 9},{i * 7 % 23},{1 + i % 5},{i}\n" for i in range(120))
    os.makedirs(os.path.join(top, "ml-1m"))
    with open(os.path.join(top, "ml-1m/ratings.dat"), "w", encoding="utf-8") as out:
        out.writelines(f"{i % 9}::{i * 7 % 23}::{1 + i % 5}::{i}\n" for i in range(120))
    with open(os.path.join(top, "adult.csv"), "w", encoding="utf-8") as out:
        out.write("age,workclass,occupation,relationship,capital-gain,income\n")
        out.writelines(f"{20 + i % 50},a{i % 3},b{i % 5},c{i % 2},{i * 10},{'>' if i % 3 else '<='}50K\n" for i in range(90))
