#!/usr/bin/env python3
"""watch.py LOCKSTEP [--peers FOLDER] [--runs 1,50] [--steps 100000] [--big 1000000] - how long until the curves of all runs are
there, beside TensorBoard, MLflow and Aim; and one run of many steps with 20 series: how long it is read, how long a zoom takes, and
whether a spike of each series is seen.

The same five curves are written as each program reads them: metrics.jsonl, events files; MLflow's SQLite store and Aim's
directories have the loss alone, which is what is asked for. Each server is started anew, with its files in the page cache, and asked over HTTP until it gives the
loss of every run up to its last step: "until all" is the time from its start, "processor" the processor time of all of its processes
until then, and "memory" their resident memory, what they share counted in parts. FOLDER has a virtual environment `tb` with tensorboard,
one `ml` with mlflow and one `aim` with aim; what is missing is left out. Prints rows of a table.
"""
import argparse
import json
import os
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

LIMIT = 300  # seconds until a program is given up
SPIKE = 71234
CURVES = {"loss": lambda i: 97.25 if i == SPIKE else 3 + 2 / (1 + i / 50) + i * 7919 % 9973 * 1e-4, "lr": lambda i: 6e-4 * (1 - i / 1e7),
          "grad_norm": lambda i: 1.5 + i * 7919 % 9973 * 1e-4, "seconds": lambda i: 0.01 + i * 31 % 97 * 1e-5, "tokens_per_s": lambda i: 51200 + i * 17 % 97}


# ---- the same run in each form ----

def write_lockstep(folder, steps):
    os.makedirs(folder)
    open(os.path.join(folder, "config.yaml"), "w").write(f"train:\n  steps: {steps}\n")
    open(os.path.join(folder, "lock"), "w").close()
    with open(os.path.join(folder, "metrics.jsonl"), "w") as f:
        for i in range(1, steps + 1):
            values = ", ".join(f'"{k}": {v(i):.9g}' for k, v in CURVES.items())
            f.write(f'{{"step": {i}, "epoch": 0, "first": {8 * i - 8}, "samples": 8, "view": 1, "workers": 2, {values}, "data_wait_s": 0}}\n')


TABLE = []
for n in range(256):
    for _ in range(8):
        n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def masked_crc(data):
    c = 0xFFFFFFFF
    for b in data:
        c = (c >> 8) ^ TABLE[(c ^ b) & 255]
    c ^= 0xFFFFFFFF
    return ((c >> 15 | c << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF


def varint(x):
    out = b""
    while x > 127:
        out += bytes([x & 127 | 128])
        x >>= 7
    return out + bytes([x])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def write_events(folder, steps):
    os.makedirs(folder)
    with open(os.path.join(folder, "events.out.tfevents.1700000000.host"), "wb") as f:
        def put(event):
            head = struct.pack("<Q", len(event))
            f.write(head + struct.pack("<I", masked_crc(head)) + event + struct.pack("<I", masked_crc(event)))
        put(b"\x09" + struct.pack("<d", 1.7e9) + field(3, b"brain.Event:2"))
        for i in range(1, steps + 1):
            summary = b"".join(field(1, field(1, k.encode()) + b"\x15" + struct.pack("<f", v(i))) for k, v in CURVES.items())
            put(b"\x09" + struct.pack("<d", 1.7e9 + i) + b"\x10" + varint(i) + field(5, summary))


def copy_runs(write, folder, nruns, steps):
    write(os.path.join(folder, "run000"), steps)
    for i in range(1, nruns):
        shutil.copytree(os.path.join(folder, "run000"), os.path.join(folder, f"run{i:03d}"))


def write_mlflow(python, folder, nruns, steps):
    """MLflow makes the store and the runs; the values go into its tables at once, since its own calls take hours."""
    os.makedirs(folder)
    db = os.path.join(folder, "store.db")
    subprocess.run([python, "-c", "import sys, mlflow\nmlflow.set_tracking_uri('sqlite:///' + sys.argv[1])\n"
                    "for i in range(int(sys.argv[2])):\n  with mlflow.start_run(run_name=f'run{i:03d}'): mlflow.log_metric('loss', 5, step=0)",
                    db, str(nruns)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    d = sqlite3.connect(db)
    ids = [x[0] for x in d.execute("select run_uuid from runs")]
    d.execute("pragma synchronous = off")
    for run in ids:
        d.executemany("insert into metrics (key, value, timestamp, run_uuid, step, is_nan) values ('loss', ?, ?, ?, ?, 0)",
                      ((CURVES["loss"](i), 1700000000000 + i, run, i) for i in range(1, steps + 1)))
        d.execute("update latest_metrics set value = ?, step = ? where run_uuid = ?", (CURVES["loss"](steps), steps, run))
    d.commit()
    return db, ids


# Aim takes a minute to write 100,000 values: it writes one run and the names of the others, whose values are the first one's, in
# its own database.
AIM = """
import os, sys, aimrocks
from aim import Run
folder, nruns, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
first = None
for i in range(nruns):
    run = Run(repo=folder, system_tracking_interval=None, log_system_params=False, capture_terminal_logs=False)
    run.name = f"run{i:03d}"
    for step, line in enumerate(open(sys.argv[4]) if not first else ["5"], 1):
        run.track(float(line), name="loss", step=step)
    mine = run.hash
    run.close()
    del run
    first = first or mine
    for kind in ("meta", "seqs") if mine != first else ():
        chunks = os.path.join(folder, ".aim", kind, "chunks")
        source = aimrocks.DB(os.path.join(chunks, first), aimrocks.Options(create_if_missing=False), read_only=True)
        copy = aimrocks.DB(os.path.join(chunks, mine), aimrocks.Options(create_if_missing=True))
        all = source.iteritems()
        all.seek_to_first()
        for key, value in all:
            copy.put(key.replace(first.encode(), mine.encode()), value.replace(first.encode(), mine.encode()))
"""


def write_aim(folder, venv, nruns, steps):
    os.makedirs(folder)
    values = os.path.join(folder, "values")
    with open(values, "w") as f:
        f.writelines(f"{CURVES['loss'](i)!r}\n" for i in range(1, steps + 1))
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([os.path.join(venv, "bin/python"), "-c", AIM, folder, str(nruns), str(steps), values], **quiet)
    subprocess.run([os.path.join(venv, "bin/aim"), "storage", "--repo", folder, "reindex", "-y"], **quiet)


# ---- servers ----

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def tree(pid):
    """The process and all below it."""
    try:
        children = open(f"/proc/{pid}/task/{pid}/children").read().split()
    except OSError:
        return []
    return [pid] + [p for c in children for p in tree(int(c))]


def usage(pid):
    cpu = memory = 0
    for p in tree(pid):
        try:
            cpu += sum(map(int, open(f"/proc/{p}/stat").read().rsplit(")")[-1].split()[11:13])) / os.sysconf("SC_CLK_TCK")
            memory += int(next(x for x in open(f"/proc/{p}/smaps_rollup") if x.startswith("Pss:")).split()[1]) * 1024
        except (OSError, StopIteration):
            pass
    return cpu, memory


def get(url):
    with urllib.request.urlopen(url, timeout=LIMIT) as answer:
        return json.load(answer)


def ask_lockstep(url, nruns, steps):
    have = set()

    def look():
        for i in range(nruns):
            if i in have:
                continue
            w = get(f"{url}series?run={i}&columns=1000&names=loss")
            if w.get("rows") == steps:
                have.add(i)
            else:
                break
        return len(have) == nruns
    return look


def ask_tensorboard(url, nruns, steps):
    def look():
        tags = get(url + "data/plugin/scalars/tags")
        if len(tags) < nruns:
            return False
        return all(get(f"{url}data/plugin/scalars/scalars?" + urllib.parse.urlencode({"run": r, "tag": "loss"}))[-1][1] == steps
                   for r in sorted(tags))
    return look


def ask_mlflow(url, ids, steps):
    def look():
        for i in range(0, len(ids), 50):
            q = urllib.parse.urlencode([("run_ids", x) for x in ids[i:i + 50]] + [("metric_key", "loss"), ("max_results", 320)])
            points = get(f"{url}ajax-api/2.0/mlflow/metrics/get-history-bulk-interval?{q}")["metrics"]
            if len({p["run_id"] for p in points if p["step"] == steps}) < len(ids[i:i + 50]):
                return False
        return True
    return look


def ask_aim(url, nruns, steps):
    """500 points of each run, the most that its page asks for."""
    q = urllib.parse.urlencode({"q": 'metric.name == "loss"', "p": 500, "report_progress": "false"})

    def look():
        with urllib.request.urlopen(f"{url}api/runs/search/metric/?{q}", timeout=LIMIT) as answer:
            return answer.read().count(struct.pack("<d", steps)) >= nruns
    return look


def measure(name, words, url, look, nruns):
    began = time.monotonic()
    listens = None
    p = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        while time.monotonic() - began < LIMIT:
            try:
                if listens is None:
                    urllib.request.urlopen(url, timeout=LIMIT).close()
                    listens = time.monotonic() - began
                if look():
                    break
            except (OSError, ValueError, IndexError, KeyError):
                pass
            time.sleep(0.01)
        else:
            print(f"| {name} | {nruns} | not in {LIMIT} s | | | |", flush=True)
            return
        took = time.monotonic() - began
        cpu, memory = usage(p.pid)
        print(f"| {name} | {nruns} | {listens:.2f} | {took:.2f} | {cpu:.2f} | {memory / 1e6:.0f} |", flush=True)
    finally:
        all = tree(p.pid)
        for sign in (signal.SIGTERM, signal.SIGKILL):
            for pid in all:  # some begin groups of their own
                try:
                    os.kill(pid, sign)
                except ProcessLookupError:
                    pass
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                pass


# ---- one run of many steps and series ----

def big_spike(series, steps):
    return (7919 * series + SPIKE) % steps + 1


def write_big(folder, steps, nseries):
    os.makedirs(folder)
    open(os.path.join(folder, "config.yaml"), "w").write(f"train:\n  steps: {steps}\n")
    open(os.path.join(folder, "lock"), "w").close()
    spikes = {big_spike(k, steps): k for k in range(nseries)}
    form = '{"step": %d, "epoch": 0, "first": %d, "samples": 8, "view": 1, "workers": 2, "loss": %.9g, "seconds": 0.01, ' \
           '"tokens_per_s": 51200, ' + ", ".join(f'"router/load/{k}": %.9g' for k in range(nseries - 3)) + "}\n"
    with open(os.path.join(folder, "metrics.jsonl"), "w") as f:
        for i in range(1, steps + 1):
            values = [3 + (i * (7919 + 2 * k) % 9973) * 1.0001e-4 for k in range(nseries - 2)]
            if spikes.get(i, nseries) < nseries - 2:
                values[spikes[i]] = 97.25
            f.write(form % (i, 8 * i - 8, *values))


def measure_big(lockstep, folder, steps, nseries):
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    p = subprocess.Popen([lockstep, "watch", folder, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    began = time.monotonic()
    try:
        while time.monotonic() - began < LIMIT:
            try:
                if get(url + "runs")["runs"][0]["rows"] == steps:
                    break
            except OSError:
                pass
            time.sleep(0.01)
        took = time.monotonic() - began
        cpu, memory = usage(p.pid)
        print(f"one run of {steps} steps and {nseries} series, {os.path.getsize(os.path.join(folder, 'metrics.jsonl')) / 1e6:.0f} MB: "
              f"read in {took:.2f} s ({cpu:.2f} s of processor time), {memory / 1e6:.0f} MB")
        whole = get(url + "series?run=0&columns=1000")["series"]
        seen = sum(max(x["high"]) == 97.25 for x in whole.values())
        zooms, spikes = [], 0
        for i in range(400):
            length = steps // 4 ** (i % 8)
            begin = min(max(big_spike(i % (nseries - 2), steps) - length // 2, 1), steps - length + 1)
            asked = time.monotonic()
            w = get(f"{url}series?run=0&columns=1000&from={begin}&to={begin + length - 1}")["series"]
            zooms.append(time.monotonic() - asked)
            x = w["loss" if i % (nseries - 2) == 0 else f"router/load/{i % (nseries - 2) - 1}"]
            spikes += 97.25 in (x["high"] if isinstance(x, dict) else x)
        zooms.sort()
        print(f"a spike is seen in the whole run in {seen} of {nseries - 2} series that have one, and in {spikes} of {len(zooms)} zooms; "
              f"a zoom of all series: median {zooms[len(zooms) // 2] * 1000:.0f} ms, 99% within {zooms[len(zooms) * 99 // 100] * 1000:.0f} ms")
    finally:
        p.terminate()
        p.wait()


# ---- all programs ----

def compare(a, folder, nruns):
    own = os.path.join(folder, "lockstep")
    copy_runs(write_lockstep, own, nruns, a.steps)
    tb, ml, aim = (os.path.join(a.peers, x) for x in ("tb/bin/tensorboard", "ml/bin/mlflow", "aim/bin/aim"))
    events, repo, db, ids = os.path.join(folder, "events"), os.path.join(folder, "aim"), "", []
    if os.path.exists(tb):
        copy_runs(write_events, events, nruns, a.steps)
    if os.path.exists(ml):
        db, ids = write_mlflow(os.path.join(a.peers, "ml/bin/python"), os.path.join(folder, "ml"), nruns, a.steps)
    if os.path.exists(aim):
        write_aim(repo, os.path.join(a.peers, "aim"), nruns, a.steps)

    def one(name, words, ask, *what):
        port = free_port()
        url = f"http://127.0.0.1:{port}/"
        if os.path.exists(words[0]):
            measure(name, words + ["--port", str(port)], url, ask(url, *what, a.steps), nruns)

    for _ in range(a.rounds):
        one("lockstep watch", [a.lockstep, "watch", own], ask_lockstep, nruns)
        for fast in ("true", "false") if nruns == 1 else ("true",):  # without its fast reader a run takes a minute and more
            one(f"TensorBoard, load_fast {fast}", [tb, "--logdir", events, "--load_fast", fast], ask_tensorboard, nruns)
        one("MLflow, the loss alone", [ml, "server", "--backend-store-uri", "sqlite:///" + db, "--workers", "1"], ask_mlflow, ids)
        one("Aim, the loss alone", [aim, "up", "--repo", repo], ask_aim, nruns)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("lockstep", type=os.path.abspath)
    p.add_argument("--peers", type=os.path.abspath, default="build/watch-peers")
    p.add_argument("--runs", default="1,50,250")
    p.add_argument("--steps", type=int, default=100000)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--big", type=int, default=1000000, help="steps of the one run with 20 series; 0: none")
    a = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # servers are ended, too
    print(f"{a.steps} steps; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if a.big:
        with tempfile.TemporaryDirectory() as folder:
            run = os.path.join(folder, "run")
            write_big(run, a.big, 20)
            measure_big(a.lockstep, run, a.big, 20)
    print("| program | runs | listens, s | until all, s | processor, s | memory, MB |\n|---|---|---|---|---|---|")
    for nruns in map(int, filter(None, a.runs.split(","))):
        with tempfile.TemporaryDirectory() as folder:
            compare(a, folder, nruns)


main()
