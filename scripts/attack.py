#!/usr/bin/env python3
"""Attacks the program as strangers, careless users and broken disks would.

    scripts/attack.py build/asan/lockstep [--only starts,user,flood,files,models,words,outputs] [--rounds 40] [--seed 1]

    starts   starts one run two or three times at once, at random intervals
    user     another user of this machine (nobody; needs root) reads, locks and queries the run
    flood    thousands of strangers connect to the port where workers or hosts meet
    files    damages every input file at random: the command must end by itself, with a message
    models   damages published models, adapters, conversations, pairs, and runs on pairs
    words    random command lines and environments
    outputs  each option that names a file to write, with each kind of target at that name

Each attack is drawn from the seed, which is printed with each failure. Build the program with the
address and undefined-behaviour sanitizers, whose reports count as failures. All traffic goes to
127.0.0.1. Prints one line for each class and, at the end, how many attacks passed and failed.
"""
import argparse
import glob
import json
import os
import random
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

LIMIT_S = 120
SMALL = ["--set", "model.width=12", "--set", "model.context=16", "--set", "log.every=1000"]
SANITIZER = re.compile(rb"AddressSanitizer|LeakSanitizer|runtime error:|stack smashing")
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")


class Attack:
    """Common to all classes: the program, a directory, counts."""

    def __init__(self, options):
        self.program = os.path.abspath(options.program)
        self.rounds = options.rounds
        self.folder = tempfile.mkdtemp(prefix="lockstep-attack-")
        os.chmod(self.folder, 0o755)  # another user must be able to reach the run in it
        for name in ("configs", "LICENSE"):
            os.symlink(os.path.abspath(name), os.path.join(self.folder, name))
        self.passed = self.failed = 0
        self.env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0", UBSAN_OPTIONS="print_stacktrace=1")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def start(self, words, env=None, **how):
        """Starts in the attack's own directory, since a random word may become a file name."""
        return subprocess.Popen([self.program] + words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, env=dict(self.env, **(env or {})),
                                start_new_session=True, cwd=self.folder, **how)

    def end(self, process, limit=LIMIT_S):
        """Returns (exit code, output); -1000: the program had to be killed."""
        try:
            output, _ = process.communicate(timeout=limit)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return -1000, output

    def run(self, words, env=None, limit=LIMIT_S, **how):
        return self.end(self.start(words, env, **how), limit)

    def check(self, good, what, output=b""):
        if good:
            self.passed += 1
            return True
        self.failed += 1
        print("failed: %s" % what)
        print(output[-3000:].decode("utf-8", "replace"))
        return False

    def is_sane(self, code, output, allowed=(0, 1, 2, 75)):
        """True if it ended by itself, no sanitizer reported an error, and a failure has a message."""
        return code in allowed and not SANITIZER.search(output) and (code == 0 or output.strip())

    def clean_ledger(self, run):
        code, output = self.run(["ckpt", "ledger", run])
        return code == 0, output

    def all_run(self, commands):
        """Returns True if all succeeded, in their order."""
        for words in commands:
            code, output = self.run(words)
            if not self.check(code == 0, " ".join(words), output):
                return False
        return True

    def hash_of(self, run):
        code, output = self.run(["ckpt", "hash", run])
        return output if code == 0 else None


# ---- starts ----

def attack_starts(a):
    text = a.path("text")
    with open(text, "w") as f:  # tokenizing takes a moment
        f.write("".join("%s %d\n" % (random.choice(["alpha", "beta", "gamma", "delta"]), i * 7919 % 10007)
                        for i in range(120000)))
    words = ["train", "configs/tiny.yaml", "-n", "1", "--set", "data.path=" + text, "--set", "train.steps=4",
             "--set", "optim.warmup=1", "--set", "train.eval_samples=1", "--set", "data.val_fraction=0.001"]
    for i in range(max(4, a.rounds // 4)):
        run = a.path("race-%d" % i)
        resume = random.random() < 0.5
        precious = random.random() < 0.5
        starts = []
        for _ in range(random.choice([2, 2, 3])):
            starts.append(a.start(words + SMALL + ["-o", run] + (["--resume"] if resume else [])))
            time.sleep(random.choice([0, 0, 0.02, 0.15, 0.5]))
        if precious and os.path.isdir(run):
            open(os.path.join(run, "precious.txt"), "w").close()
        else:
            precious = False
        ends = [a.end(s) for s in starts]
        codes = [code for code, _ in ends]
        output = b"\n---\n".join(o for _, o in ends)
        done = codes.count(0)
        good = all(a.is_sane(c, o) for c, o in ends) and done >= 1 and (done == 1 or resume)
        clean, said = a.clean_ledger(run)
        intact = not precious or os.path.exists(os.path.join(run, "precious.txt"))
        a.check(good and clean and intact, "start race %d (resume %s): exit codes %s, ledger %s, stranger's file %s"
                % (i, resume, codes, said.strip(), "there" if intact else "gone"), output)
        shutil.rmtree(run, ignore_errors=True)


# ---- another user ----

def attack_user(a):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        print("skipped: another user: it takes root and setpriv")
        return
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    run = a.path("mine")
    pace = run + ".pace"
    with open(pace, "w") as f:
        f.write("3\n")
    faults = os.path.join(os.path.dirname(a.program), "tests", "libfaults.so")
    env = {"LD_PRELOAD": faults, "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}
    if not os.path.exists(faults):
        print("skipped: another user: %s is not built" % faults)
        return
    os.umask(0)  # no protection may depend on it
    words = ["train", "configs/tiny.yaml", "-n", "2", "-o", run] + SMALL
    p = a.start(words + ["--set", "train.steps=200"], env=env)
    until(lambda: lines_of(run) > 3)
    program = ["env"] + ["%s=%s" % kv for kv in a.env.items() if kv[0].endswith("SAN_OPTIONS")] + [a.program]

    def as_nobody(command, seconds=20):
        return subprocess.run(nobody + command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds,
                              stdin=subprocess.DEVNULL)

    got = as_nobody(program + ["scale", run, "1"])
    a.check(got.returncode == 1 and b"ermission denied" in got.stdout, "another user's scale", got.stdout)
    holders = [subprocess.Popen(nobody + ["flock", path, "sleep", "60"], stderr=subprocess.DEVNULL)
               for path in [run] + [f for f in glob.glob(run + "/*") + glob.glob(run + "/.*") if os.path.isfile(f)]]
    time.sleep(0.5)
    code, output = a.run(["scale", run, "3"])
    a.check(code == 0, "scale while another user holds locks", output)
    for path in sorted(glob.glob(run + "/**", recursive=True)):
        for how in ("w", "r+"):
            got = as_nobody([sys.executable, "-c", "open(%r, %r)" % (path, how)]) if os.path.isfile(path) else None
            a.check(got is None or got.returncode != 0, "another user opened %s for writing" % path)
    got = as_nobody(["rm", "-rf", run])
    a.check(os.path.exists(os.path.join(run, "tokens.bin")), "another user removed the run", got.stdout)
    for pid in children_of(p.pid):
        got = as_nobody(["kill", "-9", str(pid)])
        a.check(got.returncode != 0, "another user killed worker process %d" % pid, got.stdout)
    kill_one = children_of(p.pid)
    if kill_one:
        os.kill(kill_one[0], signal.SIGKILL)  # starts a new view, which must not wait for the other user's locks
    os.unlink(pace)
    code, output = a.end(p)
    for h in holders:
        h.kill()
        h.wait()
    clean, said = a.clean_ledger(run)
    a.check(code == 0 and clean and a.is_sane(code, output), "the run under another user's attacks: %s" % said, output)
    os.umask(0o022)


def children_of(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


def lines_of(run):
    try:
        with open(os.path.join(run, "metrics.jsonl"), "rb") as f:
            return f.read().count(b"\n")
    except OSError:
        return 0


def until(condition, limit=LIMIT_S):
    end = time.time() + limit
    while not condition() and time.time() < end:
        time.sleep(0.02)
    return condition()


# ---- floods ----

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def rss_mb(pid):
    try:
        with open("/proc/%d/status" % pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) / 1024
    except (OSError, AttributeError):
        return 0


class Flood(threading.Thread):
    """Keeps up to `most` strangers connected, each sending its own bytes, until stopped."""

    def __init__(self, port, most):
        super().__init__(daemon=True)
        self.port, self.most, self.stops, self.sent = port, most, False, 0
        self.random = random.Random(random.random())

    def bytes(self):
        r = self.random
        kind = r.randrange(4)
        if kind == 0:  # the beginning of a TLS hello, whose rest never comes
            return b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + r.randbytes(r.randrange(200))
        if kind == 1:
            return r.randbytes(r.randrange(2000))
        return b"" if kind == 2 else b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"

    def run(self):
        held = []
        while not self.stops and self.sent < 20000:
            try:
                s = socket.create_connection(("127.0.0.1", self.port), timeout=0.5)
                s.setblocking(False)
                s.send(self.bytes() or b"\0")
                held.append(s)
                self.sent += 1
            except OSError:
                time.sleep(0.01)
            if len(held) > self.most:
                held.pop(self.random.randrange(len(held))).close()
        for s in held:
            s.close()


def attack_flood(a):
    most = 1500
    key = {"LOCKSTEP_KEY": "%064x" % random.getrandbits(256)}
    words = ["train", "configs/tiny.yaml", "-n", "1", "--set", "train.steps=30"] + SMALL
    for i, kind in enumerate(["workers that form a group", "hosts that train together"]):
        port, run = free_port(), a.path("flooded-%d" % i)
        if i == 0:
            env = dict(key, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), LOCKSTEP_HOST="a")
            first = a.start([w for w in words if w not in ("-n", "1")] + ["-o", run], env=dict(env, RANK="0"))
        else:
            first = a.start(words + ["-o", run, "--listen", "127.0.0.1:%d" % port, "--hosts", "2"], env=key)
        time.sleep(1)
        before = rss_mb(first.pid)
        flood = Flood(port, most)
        flood.start()
        until(lambda: flood.sent > 2 * most, 40)
        during = rss_mb(first.pid)
        if i == 0:
            env["LOCKSTEP_HOST"] = "b"
            second = a.start([w for w in words if w not in ("-n", "1")] + ["-o", run], env=dict(env, RANK="1"))
        else:
            second = a.start(words + ["-o", run, "--join", "127.0.0.1:%d" % port], env=key)
        ends = [a.end(first), a.end(second)]
        flood.stops = True
        flood.join()
        output = b"\n---\n".join(o for _, o in ends)
        clean, said = a.clean_ledger(run)
        good = all(code == 0 and a.is_sane(code, o) for code, o in ends) and clean
        lines = output.count(b"\n")
        a.check(good and lines < 400, "%s under %d strangers: exit codes %s, %d lines, ledger %s"
                % (kind, flood.sent, [c for c, _ in ends], lines, said.strip()), output)
        a.check(during - before < 200, "memory for strangers at %s: %.0f MB, then %.0f" % (kind, before, during))
        print("flood: %s: %d strangers, %.0f to %.0f MB, %d lines of output"
              % (kind, flood.sent, before, during, lines))


# ---- hostile files ----

def damage(data):
    """Damages a file as disks, editors and attackers do."""
    data = bytearray(data)
    n = len(data)
    kind = random.randrange(9)
    at = random.randrange(n) if n else 0
    if kind == 0:
        data = data[:at]
    elif kind == 1 and n:
        data[at] ^= 1 << random.randrange(8)
    elif kind == 2:
        data[at:at + random.randrange(1, 64)] = bytes(random.randrange(64))
    elif kind == 3:
        data[at:at] = random.randbytes(random.randrange(1, 64))
    elif kind == 4 and n > 8:
        to = random.randrange(n - 8)
        data[to:to + 8] = random.choice([b"\xff" * 8, b"\0" * 8, (1 << 62).to_bytes(8, "little"), b"-9999999"])
    elif kind == 5:
        data[at:at] = b"\x1b]0;title\x07\x1b[31m"
    elif kind == 6:
        numbers = list(re.finditer(rb"-?\d+(\.\d+)?", bytes(data[:100000])))
        if numbers:
            m = random.choice(numbers)
            data[m.start():m.end()] = random.choice([b"-1", b"1e999", b"9223372036854775807", b"18446744073709551616",
                                                     b"4611686018427387904", b"nan", b'"x"', b"[]"])
    elif kind == 7:
        lines = bytes(data).split(b"\n")
        random.shuffle(lines)
        data = bytearray(b"\n".join(lines))
    else:
        data = bytearray(b"") if random.random() < 0.5 else data + data
    return bytes(data)


def attack_files(a):
    base = a.path("base")
    words = ["train", "configs/tiny.yaml", "-n", "1", "-o", base, "--set", "train.steps=6", "--set", "optim.warmup=1",
             "--set", "checkpoint.every=2", "--set", "train.eval_every=3"] + SMALL
    code, output = a.run(words + ["--trace", base + ".json"])
    if not a.check(code == 0, "the run that is damaged", output):
        return
    more = ["--set", "train.steps=9"]
    run, newest = a.path("damaged"), "checkpoints/step-6/"
    resume = [["train", "--resume", run, "-n", "1"] + more]
    reads = {
        "config.yaml": resume + [["ckpt", "ledger", run], ["eval", run]],
        "tokenizer.json": resume + [["eval", run]],
        "tokens.bin": resume + [["eval", run]],
        "corpus.json": resume + [["eval", run]],
        "metrics.jsonl": resume + [["ckpt", "ledger", run]],
        newest + "manifest.json": resume + [["ckpt", "show", run], ["ckpt", "verify", run], ["ckpt", "list", run]],
        newest + "model.safetensors": resume + [["eval", run], ["generate", run, "--tokens", "3"], ["ckpt", "hash", run],
                                                ["ckpt", "show", run]],
        newest + "optimizer.safetensors": resume + [["ckpt", "verify", run]],
        newest + "tokenizer.json": [["generate", run + "/checkpoints/step-6", "--tokens", "3"]],
        newest + "config.yaml": [["generate", run + "/checkpoints/step-6", "--tokens", "3"]],
    }
    for i in range(a.rounds):
        name = random.choice(sorted(reads))
        command = random.choice(reads[name])
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(base, run, symlinks=True)
        path = os.path.join(run, name)
        with open(path, "rb") as f:
            bad = damage(f.read())
        with open(path, "wb") as f:
            f.write(bad)
        code, output = a.run(command)
        raw = CONTROL.search(output) if command[0] != "generate" else None
        ok = a.is_sane(code, output) and not raw
        if not a.check(ok, "%s after %s was damaged: exit code %d%s"
                       % (" ".join(command), name, code, ", raw control characters" if raw else ""), output):
            saved = a.path("saved-%d" % i)
            shutil.copytree(run, saved, symlinks=True)
            print("saved: %s" % saved)
    singles = [(f, ["plan", "configs/tiny.yaml", "-n", "2,4", "--machine"]) for f in glob.glob("configs/machines/*")]
    singles += [(base + ".json", ["plan", "--diff", base + ".json"])]
    singles += [(f, ["plan"]) for f in glob.glob("configs/*.yaml")]
    for i in range(a.rounds):
        source, command = random.choice(singles)
        bad = a.path("bad" + os.path.splitext(source)[1])
        with open(source, "rb") as f:
            data = damage(f.read())
        with open(bad, "wb") as f:
            f.write(data)
        # values in range may be large: memory and time are then the user's choice
        small = ["--set", "model.layers=2", "--set", "model.width=24", "--set", "model.heads=3", "--set", "model.vocab=300",
                 "--set", "train.batch=16", "--set", "train.virtual_workers=8", "--set", "train.micro_batch=1"]
        code, output = a.run(command + [bad] + (small if command == ["plan"] else []))
        a.check(a.is_sane(code, output) and not CONTROL.search(output), "%s %s, damaged: exit code %d"
                % (" ".join(command), source, code), output)


# ---- published models, adapters, conversations, pairs ----

TEMPLATE = ("{% for m in messages %}<{{ m.role }}>{{ m.content|trim }};{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}")
PAIRS = """model: {from: pub, context: 40}
data: {path: pairs.jsonl, format: chat, val_fraction: 0.2}
train: {loss: dpo, steps: 6, batch: 4, virtual_workers: 4, eval_every: 3, sample_prompts: [hello], sample_tokens: 4}
lora: {rank: 2, targets: all-linear}
optim: {lr: 0.01, schedule: constant, warmup: 0}
checkpoint: {every: 2}
log: {every: 1000}
"""


def write_lines(path, lines):
    with open(path, "w") as f:
        f.write("".join(json.dumps(line) + "\n" for line in lines))


def make_models(a):
    """Writes a published model in both forms, adapters, conversations, pairs and a run on pairs; returns whether all
    commands succeeded."""
    turns = [([{"role": "user", "content": "%d?" % i}], [{"role": "assistant", "content": "yes it is"[:1 + i % 9]}],
              [{"role": "assistant", "content": "never"[:1 + i % 5]}]) for i in range(24)]
    write_lines(a.path("pairs.jsonl"), [{"prompt": p, "chosen": c, "rejected": r} for p, c, r in turns])
    write_lines(a.path("chats.jsonl"), [{"messages": p + c} for p, c, _ in turns])
    with open(a.path("pairs.yaml"), "w") as f:
        f.write(PAIRS)
    small = ["-n", "1", "--set", "model.kind=llama", "--set", "model.width=12", "--set", "model.context=64", "--set",
             "train.steps=2", "--set", "optim.warmup=1"]
    good = a.all_run([["train", "configs/tiny.yaml", "-o", "own"] + small, ["export", "own", "--to", "safetensors", "-o", "pub"]])
    if not good:
        return False
    with open(a.path("pub", "chat_template.jinja"), "w") as f:
        f.write(TEMPLATE)
    return a.all_run([["export", "pub", "--to", "gguf", "-o", "pub.gguf"], ["train", "pairs.yaml", "-n", "1", "-o", "pairs"],
                      ["export", "pairs", "--to", "peft", "-o", "adapter"],
                      ["train", "pairs.yaml", "-n", "1", "-o", "half", "--set", "train.steps=4"]])


def attack_models(a):
    if not make_models(a):
        return
    whole = a.hash_of("pairs")
    train = ["train", "pairs.yaml", "-n", "1", "-o", "out", "--set"]
    of_model = [["weights", "X"], ["import", "X", "-o", "out"], ["generate", "X", "--prompt", "hello", "--tokens", "3"],
                ["eval", "X", "--chat", "chats.jsonl"], ["tokens", "X", "hello"], ["tokens", "X", "--chat", "chats.jsonl"],
                ["export", "X", "--to", "gguf", "-o", "out"]]
    of_files = [["tokens", "pub", "--chat", "X"], ["eval", "pub", "--chat", "X"], ["eval", "pub", "--chat", "X", "--reference", "pub"],
                train + ["data.path=X"], train + ["data.path=X", "--set", "train.loss=auto"]]
    resume = ["train", "--resume", "X", "-n", "1", "--set", "train.steps=6"]
    of_run = [resume, resume, ["eval", "X"], ["eval", "X", "--chat", "pairs.jsonl"], ["ckpt", "verify", "X"],
              ["generate", "X", "--prompt", "hello", "--tokens", "3"], ["export", "X", "--to", "peft", "-o", "out"],
              ["export", "X", "--merge", "--to", "gguf", "-o", "out"]]
    of_checkpoint = [["eval", "X"], ["export", "X", "--to", "peft", "-o", "out"], ["ckpt", "verify", "X"],
                     ["generate", "X", "--prompt", "hello", "--tokens", "3"]]
    newest = "checkpoints/step-4/"
    targets = [("pub", name, of_model + [train + ["model.from=X"]]) for name in sorted(os.listdir(a.path("pub")))]
    targets += [("pub.gguf", "", of_model + [["weights", "X", "--keys"]])] * 3
    targets += [(name, "", of_files) for name in ("pairs.jsonl", "chats.jsonl")]
    targets += [("adapter", name, [train + ["model.adapter=X"]]) for name in sorted(os.listdir(a.path("adapter")))]
    names = ["tokenizer.json", "tokens.bin", "corpus.json", "published.json", "reference.json", "frozen.safetensors", "samples.jsonl"]
    targets += [("half", name, of_run) for name in names]
    targets += [("half", newest + name, of_run) for name in sorted(os.listdir(a.path("half", newest)))]
    targets += [("half/checkpoints/step-4", name, of_checkpoint) for name in ("published.json", "frozen.safetensors", "manifest.json")]
    for i in range(2 * a.rounds):
        source, name, commands = random.choice(targets)
        bad = "bad" + os.path.splitext(source)[1]
        for old in (bad, "out"):
            shutil.rmtree(a.path(old), ignore_errors=True)
            if os.path.exists(a.path(old)):
                os.unlink(a.path(old))
        shutil.copytree(a.path(source), a.path(bad), symlinks=True) if name else shutil.copy(a.path(source), a.path(bad))
        path = os.path.join(a.path(bad), name) if name else a.path(bad)
        with open(path, "rb") as f:
            data = damage(f.read())
        with open(path, "wb") as f:
            f.write(data)
        command = [word.replace("X", bad) for word in random.choice(commands)]
        code, output = a.run(command)
        raw = CONTROL.search(output) if command[0] != "generate" else None
        same = code != 0 or "--resume" not in command or name.endswith("config.yaml") or a.hash_of(bad) == whole
        if not a.check(a.is_sane(code, output) and not raw and same,
                       "%s after %s/%s was damaged: exit code %d%s%s" % (" ".join(command), source, name, code, ", raw control "
                       "characters" if raw else "", "" if same else ", other bits"), output):
            saved = a.path("saved-models-%d" % i)
            (shutil.copytree if name else shutil.copy)(a.path(bad), saved)
            print("saved: %s" % saved)


# ---- random command lines and environments ----

def attack_words(a):
    run = a.path("words-run")
    a.run(["train", "configs/tiny.yaml", "-n", "1", "-o", run, "--set", "train.steps=2", "--set", "optim.warmup=1"] + SMALL)
    commands = ["train", "eval", "generate", "plan", "run", "ckpt", "scale", "help", "--version", "--help", "", "nonsense"]
    words = ["configs/tiny.yaml", "configs/demo.yaml", run, "/", "/dev/null", "LICENSE", "-n", "2", "0", "-1", "x", "-o",
             a.path("words-out"), "--resume", "--set", "train.steps=2", "optim.warmup=1", "train.steps", "=", "model.width=12",
             "train.batch=0", "--json", "show", "hash", "ledger", "list", "verify", "config", "optim", "--prompt", "\x1b[31m",
             "\xff", "--tokens", "3", "--top-p", "0.5", "--seed", "99999999999999999999", "--diff", "--machine",
             "configs/machines/p100.yaml", "--link", "1Gb/s,3us", "--", "-", "--transport", "--workers=2", "--workers=", "true"]
    names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "LOCKSTEP_RANK", "LOCKSTEP_SIZE", "LOCKSTEP_ADDR",
             "LOCKSTEP_KEY", "LOCKSTEP_KEY_FILE", "LOCKSTEP_CPU", "LOCKSTEP_TRANSPORT", "LOCKSTEP_ALGORITHM", "LOCKSTEP_FD",
             "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID", "SLURM_STEP_NODELIST", "OMPI_COMM_WORLD_RANK",
             "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "COLUMNS", "TERM", "LOCKSTEP_LINKS", "LOCKSTEP_HOST"]
    values = ["", "0", "1", "2", "-1", "99999999999999999999", "x", "127.0.0.1", "127.0.0.1:1", "node[1-", "\x1b[31m", "a" * 5000,
              "portable", "tcp", "ring", "/dev/null", " 1"]
    whole = [["train", "configs/tiny.yaml", "-n", "2", "-o", a.path("words-out"), "--set", "train.steps=2", "--set",
              "optim.warmup=1"], ["eval", run], ["generate", run, "--tokens", "3"], ["ckpt", "show", run], ["ckpt", "ledger", run],
             ["plan", "configs/tiny.yaml", "-n", "3", "--json"], ["train", "--resume", run, "-n", "1"], ["help", "config", "optim"],
             ["run", "-n", "2", "true"], ["plan", "configs/tiny.yaml", "--machine", "configs/machines/p100.yaml", "-n", "2,4"]]
    for _ in range(a.rounds):
        line = [random.choice(commands)] + random.choices(words, k=random.randrange(6))
        if random.random() < 0.7:  # a valid one, slightly changed
            line = list(random.choice(whole))
            for _ in range(random.randrange(3)):
                at = random.randrange(len(line))
                line[at:at + random.randrange(2)] = [random.choice(words)]
        env = {random.choice(names): random.choice(values) for _ in range(random.choice([0, 0, 1, 2, 3]))}
        shutil.rmtree(a.path("words-out"), ignore_errors=True)
        # A worker may wait for peers that never come until its time limit: that is not a failure.
        code, output = a.run(line, env=env, limit=30)
        waits = code == -1000 and any(k in env for k in names[:10] + names[14:22])
        ok = waits or a.is_sane(code, output, allowed=tuple(range(0, 128)))
        ok = ok and not SANITIZER.search(output) and (line[0] in ("generate", "run") or not CONTROL.search(output))
        a.check(ok, ("lockstep %r with %r: exit code %d" % (line, env, code))[:600], output)


# Where an output may be told to go; "victim" is what a link leads to.
TARGETS = ["nothing", "file", "read-only file", "directory", "pipe", "device", "link to a file", "link to a directory",
           "link to nothing", "in no directory"]


def make_target(a, kind, name):
    """Makes a directory with the target at `name` and a user's own file beside it; returns it, or None."""
    folder = a.path("outputs", "at")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    at, victim = os.path.join(folder, name), os.path.join(folder, "victim")
    for path in [at + ".new", victim]:
        with open(path, "w") as f:
            f.write("a user's own")
    if kind in ("file", "read-only file"):
        shutil.copy(victim, at)
        os.chmod(at, 0o444 if kind == "read-only file" else 0o640)
    elif kind == "directory":
        os.mkdir(at)
    elif kind == "pipe":
        os.mkfifo(at)
    elif kind == "device":  # of our own: the null device
        try:
            os.mknod(at, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            return None
    elif kind.startswith("link"):
        if kind == "link to a directory":
            os.unlink(victim)
            os.mkdir(victim)
        if kind == "link to nothing":
            os.unlink(victim)
        os.symlink("victim", at)
    return folder


def look(path):
    """What is at a path: its kind, permissions and content."""
    try:
        st = os.lstat(path)
    except OSError:
        return None
    content = None
    if stat.S_ISLNK(st.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(st.st_mode):
        with open(path, "rb") as f:
            content = f.read()
    elif stat.S_ISDIR(st.st_mode):
        content = sorted(os.listdir(path))
    return (stat.S_IFMT(st.st_mode), st.st_mode & 0o777, st.st_rdev, content)


def read_pipe(path, got):
    with open(path, "rb") as f:
        got.append(f.read())


def outputs_of(a):
    """Options that write: (name of the file, the command line up to it, whether what is there is replaced)."""
    run, other, own = a.path("outputs", "a"), a.path("outputs", "b"), a.path("outputs", "own")
    small = ["-n", "1", "--set", "train.steps=3", "--set", "optim.warmup=1"] + SMALL
    train = ["train", "configs/tiny.yaml", "-o", a.path("outputs", "new")] + small
    images = a.path("outputs", "images")
    os.makedirs(os.path.join(images, "one"))
    picture = (b"\x89PNG\r\n\x1a\n", (b"IHDR", b"\0\0\0\2\0\0\0\2\x08\0\0\0\0"),
               (b"IDAT", zlib.compress(b"\0\1\2\0\3\4")), (b"IEND", b""))
    with open(os.path.join(images, "one", "1.png"), "wb") as f:
        f.write(picture[0])
        for kind, data in picture[1:]:
            f.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))
    a.all_run([["train", "configs/tiny.yaml", "-o", run] + small, ["train", "configs/tiny.yaml", "-o", other] + small,
               ["train", "configs/tiny.yaml", "-o", own, "--set", "model.kind=llama"] + small])
    machine = ["--machine", "configs/machines/p100.yaml"]
    return [("x.json", ["plan", "configs/tiny.yaml", "-n", "2"] + machine + ["--trace"], True),
            ("x.svg", ["plan", "configs/tiny.yaml", "-n", "2"] + machine + ["--trace"], True),
            ("x.svg", ["plan", "configs/tiny.yaml", "-n", "2", "--svg"], True),
            ("x.svg", ["compare", run, other, "--svg"], True),
            ("x.svg", ["report", "configs/tiny.yaml", "--scaling", "-n", "1", "--steps", "1"] + machine + ["--svg"], True),
            ("x.svg", ["data", images, "--sheet"], True),
            ("x.svg", train + ["--trace"], True),
            ("x.json", ["bench", "train", "configs/tiny.yaml", "-n", "1", "--steps", "2"] + SMALL[:4] + ["--trace"], True),
            ("x.mllog", train + ["--target", "val_loss<=1", "--mllog"], False),
            ("x.safetensors", ["ckpt", "export", run, "--to"], False),
            ("x", ["export", own, "--to", "safetensors", "-o"], False),
            ("x.gguf", ["export", own, "--to", "gguf", "-o"], False),
            ("x", ["import", a.path("outputs", "published"), "-o"], False),
            ("x.json", ["tokens", run, "--save"], False)]


def check_output(a, kind, folder, name, before, replaces, code, got):
    """What must hold afterwards; returns what does not."""
    at, victim, now = os.path.join(folder, name), os.path.join(folder, "victim"), {}
    for entry in os.listdir(folder):
        now[entry] = look(os.path.join(folder, entry))
    more = set(now) - set(before) - {name, "victim"}
    if more:
        return "left %s" % more
    if now[name + ".new"] != before[name + ".new"]:
        return "changed a user's own file"
    if name in before and (now.get(name) or [0])[0] != before[name][0]:
        return "replaced the %s" % kind
    if kind == "device" and now[name][2] != before[name][2]:
        return "replaced the device"
    end = "victim" if kind.startswith("link") else name
    if code != 0:
        return "failed, and changed what is there" if now != before else None
    if kind == "pipe":
        return None if got and got[0] else "wrote nothing into the pipe"
    if kind == "device":
        return None
    if not now.get(end) or not now[end][3] or now[end][3] == b"a user's own":
        return "wrote nothing"
    if not replaces and end in before:
        return "replaced what is there, which it must not"
    if end in before and now[end][1] != before[end][1]:
        return "changed the permissions"
    return None


def attack_outputs(a):
    os.makedirs(a.path("outputs"))
    outputs = outputs_of(a)
    a.all_run([["export", a.path("outputs", "own"), "--to", "safetensors", "-o", a.path("outputs", "published")]])
    for name, words, replaces in outputs:
        for kind in TARGETS:
            folder = make_target(a, kind, name)
            if not folder:
                continue
            before = {entry: look(os.path.join(folder, entry)) for entry in os.listdir(folder)}
            at, got = os.path.join(folder, "none" if kind == "in no directory" else "", name), []
            reader = threading.Thread(target=read_pipe, args=(at, got), daemon=True)
            if kind == "pipe":
                reader.start()
            shutil.rmtree(a.path("outputs", "new"), ignore_errors=True)
            code, output = a.run(words + [at])
            if kind == "pipe":
                os.close(os.open(at, os.O_RDWR | os.O_NONBLOCK))  # ends a reader that nobody wrote to
                reader.join(10)
            ok = code == -1000 or code < 0 or code > 2
            wrong = "exit code %d" % code if ok else None
            if kind != "in no directory":
                wrong = wrong or check_output(a, kind, folder, name, before, replaces, code, got)
            if code != 0 and not wrong and name.encode() not in output:
                wrong = "does not name the file"
            writes = replaces and kind not in ("directory", "link to a directory", "in no directory")
            if (writes or kind == "nothing") and code != 0 and not wrong:
                wrong = "refused"
            a.check(not wrong and not SANITIZER.search(output), "lockstep %s: %s: %s" % (" ".join(words), kind, wrong), output)


CLASSES = {"starts": attack_starts, "user": attack_user, "flood": attack_flood, "files": attack_files,
           "models": attack_models, "words": attack_words, "outputs": attack_outputs}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--only", default=",".join(CLASSES))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    a = Attack(options)
    for name in options.only.split(","):
        random.seed("%d %s" % (options.seed, name))
        passed, failed, began = a.passed, a.failed, time.time()
        CLASSES[name](a)
        print("%s: %d passed, %d failed, %.0f s (seed %d)"
              % (name, a.passed - passed, a.failed - failed, time.time() - began, options.seed), flush=True)
    if a.failed == 0:
        shutil.rmtree(a.folder, ignore_errors=True)
    print("%d passed, %d failed" % (a.passed, a.failed))
    sys.exit(a.failed > 0)


if __name__ == "__main__":
    main()
