#!/usr/bin/env python3
"""Trains small runs with random models, data and settings while workers and hosts fail at random.

    scripts/random_faults.py build/lockstep --runs 200 [--hosts] [--async] [--replicas] [--meshes] [--seed 1]

Each run is trained twice: by one worker without faults, and by several workers, or by two or three
hosts with several workers each, which are killed, stopped, asked to leave, paused and scaled. The
bits must be the same and the ledger clean. With --async runs are asynchronous, or of bounded
staleness: their workers and servers are killed and stopped, and one worker must make the same bits
again (of asynchronous runs by lockstep replay). With --hosts too, any host may be lost, and another
one takes its place. With --meshes workers divide layers, slices, chunks and experts of a language model.
Prints one line for each run; if the run fails, also prints its logs, and its directory stays. A run's model (random_models.py) and settings depend on
its seed alone, which counts from --seed; when faults hit also depends on time. Needs
build/tests/libfaults.so (make build-tests), which delays the end of a run until all faults were
injected.
"""
import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import random_models


def some(*pairs):
    """Draws settings, each with its own probability."""
    return [setting for chance, setting in pairs if random.random() < chance]


# Optimizers that need whole parameters.
WHOLE = ["lamb", "lars", "adafactor", "muon", "soap"]
GROUPS = ["optimizer: sgd, momentum: 0.5, lr_scale: 3", "optimizer: lion, lr_scale: 0.25",
          "weight_decay: 0", "optimizer: adam", "optimizer: adamw, beta2: 0.99"]


def draw_optimizer(patterns):
    """Draws an optimizer and frozen parameters, all of whose settings change bits."""
    kind = random.choice(["adamw", "adam", "sgd", "lion"] if random.random() < 0.7 else WHOLE)
    schedule = random.choice(["cosine", "linear", "constant", "step", "wsd"])
    bits = ["optim.optimizer=" + kind, "optim.schedule=" + schedule, "optim.step_every=30",
            "optim.lr=%g" % {"lion": 3e-4, "sgd": 1e-2}.get(kind, 3e-3), "optim.min_lr=1e-4",
            "optim.warmup=5"]
    if kind == "sgd":
        bits += random.choice([[], ["optim.momentum=0.9"],
                               ["optim.momentum=0.9", "optim.nesterov=on"]])
    patterns = ["*.bias"] + patterns
    matches = random.sample(patterns, min(random.choice([0, 0, 1, 2, 3]), len(patterns)))
    if matches:
        bits += ["optim.groups=[%s]" % ", ".join(
            "{match: '%s', %s}" % (match, random.choice(GROUPS)) for match in matches)]
    if random.random() < 0.25:
        bits += ["train.freeze=[%s]" % ", ".join("'%s'" % p for p in random.sample(patterns, 1))]
    if random.random() < 0.4:
        bits += ["optim.ema=0.9"] + some((0.5, "train.eval_weights=ema"))
    return bits


def draw_compression():
    """Draws how gradients are compressed, which changes bits."""
    kind = random.choice(["topk", "onebit", "int8", "int4", "powersgd"])
    feedback = "error" if kind == "powersgd" else random.choice(["error", "error", "ef21", "none"])
    return ["train.reduce_dtype=f32", "compress.kind=" + kind, "compress.ratio=0.1",
            "compress.min_size=%d" % random.choice([0, 64, 1024]),
            "compress.warmup=%d" % random.choice([0, 0, 30]),
            "compress.feedback=" + feedback]


def draw_gossip(V):
    """Replicas that are mixed with their neighbours."""
    R = random.choice([r for r in range(2, V + 1) if V % r == 0])
    algorithm = random.choice(["dpsgd", "sgp"])
    graphs = ["ring", "random"]
    graphs += ["exponential"] if algorithm == "sgp" or R & (R - 1) == 0 else []
    graphs += ["torus"] if any(R % a == 0 for a in range(2, R)) else []
    return ["sync.mode=gossip", "sync.replicas=%d" % R, "sync.algorithm=" + algorithm,
            "sync.graph=" + random.choice(graphs), "sync.every=%d" % random.choice([1, 3, 8])]


def draw_local(V):
    """Replicas that are averaged, or brought together by an outer optimizer."""
    every, fragments = random.choice([2, 3, 5, 10, 30]), random.choice([1, 1, 2])
    apart = ["sync.every=%d" % every, "sync.fragments=%d" % fragments,
             "sync.replicas=%d" % random.choice([r for r in range(1, V + 1) if V % r == 0]),
             "sync.delay=%d" % random.randrange(every // fragments),
             "sync.mixing=%g" % random.choice([0, 0.5]),
             "sync.warmup=%d" % random.choice([0, 0, 7]),
             "sync.deltas=" + random.choice(["f32", "bf16", "int8", "int4"])]
    return apart + random.choice([["sync.mode=local"], ["sync.mode=diloco"],
                                  ["sync.mode=diloco", "sync.outer=adamw", "sync.outer_lr=0.01"]])


def draw_apart(V, bits):
    """Replicas that train apart, and what goes with them."""
    apart = draw_local(V) if random.random() < 0.5 else draw_gossip(V)
    wrong = ("optim.ema", "train.eval_weights", "train.reduce_dtype")
    bits = ["optim.optimizer=adamw" if b.startswith("optim.optimizer=") and b.split("=")[1] in WHOLE
            else b for b in bits if not b.startswith(wrong)]
    return bits + apart + ["train.reduce_dtype=f32"]


def draw_settings(hosts, model, replicas=False):
    """Returns (virtual workers, workers of each host, settings that change bits, others)."""
    V = random.choice([4, 5, 6, 7, 8, 9, 12])
    workers = [random.randint(1, 3 if hosts else 8) for _ in range(random.choice(hosts or [1]))]
    samples = random.choice([1, 2])
    bits = ["train.virtual_workers=%d" % V, "train.batch=%d" % (V * samples),
            "train.steps=120", "train.compute=" + random.choice(["f32", "bf16", "f16"]),
            "train.eval_every=%d" % random.choice([0, 17])]
    if model.has_batch_norm:
        bits += ["train.micro_batch=%d" % samples, "train.reduce_dtype=f32"]
    bits += draw_optimizer(model.patterns)
    apart = not model.has_batch_norm and (random.random() < 0.3 or replicas)
    compresses = not apart and random.random() < 0.25
    if compresses:
        bits += draw_compression()
    zero = random.choice([0, 1] if apart else [0, 1, 2, 3])
    if apart:
        bits = draw_apart(V, bits)
        zero *= "train.compute=f32" in bits
    pipe = random.choice([2, 3])
    piped = not apart and not compresses and not model.has_batch_norm and random.random() < 0.3
    if piped:  # the first workers must fill pipelines; later ones, and those of hosts, need not
        workers = workers if hosts else [pipe * random.randint(1, 2)]
        zero = min(zero, 2 if hosts or V % (workers[0] // pipe) else 3)
    free = ["log.every=1000", "parallel.zero=%d" % zero, "survival.min_workers=1",
            "checkpoint.every=%d" % random.choice([0, 7, 20]),
            "survival.heartbeat_s=%g" % random.choice([0.3, 0.6, 1]),
            "survival.balance=" + random.choice(["off", "auto"])]
    if piped and model.config["model"].get("kind") in ("gpt2", "llama") and random.random() < 0.5:
        bits += ["parallel.tensor_virtual=3"]
        free += ["parallel.mesh.tensor=%d" % pipe]
    elif piped:
        free += ["parallel.mesh.pipe=%d" % pipe] + random.choice(
            [[], ["parallel.schedule=gpipe"], ["parallel.schedule=zb-h1"], ["parallel.schedule=zb-v", "parallel.chunks=2"]]
            if pipe == 2 and model.config["model"].get("kind") in ("gpt2", "llama") else [[], ["parallel.schedule=gpipe"], ["parallel.schedule=zb-h1"]])
    if not apart and not piped:
        free += some((0.3, "survival.backup_workers=2"),
                     (0.3, "survival.audit=%d" % random.choice([3, 10])))
    free += some((0.3, "parallel.recompute=1"),
                 (0.2, "parallel.threads=2"),
                 (0.4, "parallel.bucket_mb=%g" % random.choice([0.01, 0.02, 0.05])))
    if compresses:
        free += some((0.4, "compress.send=codes"))
    if not model.has_batch_norm:
        free += some((0.4, "train.micro_batch=%d" % samples))
    if zero > 0 and not apart and not piped:
        free += some((0.3, "parallel.shard_group=%d" % random.randint(1, sum(workers))))
    if zero > 1 and not piped and "compress.kind=powersgd" not in bits:
        free += some((0.2, "parallel.accumulate=early"))
    if hosts:
        copies = 1 if apart else random.choice([1, 2])
        free += ["survival.copies=%d" % copies, "survival.rejoin_s=20"]
    else:
        free += some((0.3, "parallel.transport=tcp"))
    return V, workers, bits, free + model.free


def draw_mesh(hosts, model):
    """As draw_settings(), of a language model whose parts workers divide in all ways."""
    V, K, Q = random.choice([4, 8]), random.choice([1, 1, 2, 3, 4]), random.choice([1, 1, 2, 4])
    E = random.choice([1, 2, 2]) if model.config["model"].get("experts") else 1
    samples = E * random.choice([1, 2])
    bits = ["train.virtual_workers=%d" % V, "train.batch=%d" % (V * samples), "train.steps=120",
            "train.compute=" + random.choice(["f32", "f32", "bf16", "f16"]),
            "train.eval_every=%d" % random.choice([0, 17]), "parallel.tensor_virtual=%d" % K,
            "parallel.context_virtual=%d" % Q, "parallel.expert_virtual=%d" % E,
            "train.micro_batch=%d" % E] + some((0.3 * (K > 1), "parallel.sequence=on"))
    bits += draw_optimizer(model.patterns)
    degrees = {"pipe": random.choice([1, 1, 2, 3]), "tensor": random.randint(1, K),
               "context": random.randint(1, Q), "expert": random.randint(1, E)}
    ranks = degrees["pipe"] * degrees["tensor"] * degrees["context"] * degrees["expert"]
    n = ranks * random.choice([d for d in (1, 2, 3) if d == 1 or d * ranks <= 8])
    hosts = min(n, random.choice(hosts)) if hosts else 1
    ends = sorted(random.sample(range(1, n), hosts - 1)) + [n]
    workers = [end - begin for begin, end in zip([0] + ends, ends)]
    free = ["parallel.mesh.%s=%d" % d for d in degrees.items()]
    if degrees["pipe"] > 1:
        free += random.choice([[], ["parallel.schedule=gpipe"], ["parallel.schedule=zb-h1"], ["parallel.schedule=zb-v", "parallel.chunks=2"],
                               ["parallel.schedule=interleaved", "parallel.chunks=2"]])
    free += ["log.every=1000", "parallel.zero=%d" % random.choice([0, 1, 2, 3]), "survival.min_workers=1",
             "checkpoint.every=%d" % random.choice([0, 7, 20]), "train.micro_batch=%d" % random.choice([E, samples]),
             "survival.heartbeat_s=%g" % random.choice([0.3, 0.6, 1])]
    free += some((0.3, "parallel.recompute=%d" % random.choice([1, 2])), (0.2, "parallel.threads=2"),
                 (0.4, "parallel.bucket_mb=%g" % random.choice([0.01, 0.02, 0.05])))
    free += ["survival.rejoin_s=20"] + some((0.4, "survival.copies=2")) if len(workers) > 1 else some((0.3, "parallel.transport=tcp"))
    return V, workers, bits, free


REFUSED = ("parallel.mesh", "parallel.schedule", "parallel.chunks", "parallel.zero=", "parallel.shard_group=",
           "parallel.accumulate=", "parallel.transport=", "survival.audit=", "survival.backup_workers=", "survival.copies=", "compress.")


def make_async(bits, free, hosts):
    """The same settings for an asynchronous run, without those that it refuses."""
    bits = [s.replace("compute=f16", "compute=f32") for s in bits if not s.startswith(REFUSED)]
    free = [s for s in free if not s.startswith(REFUSED)]
    if random.random() < 0.5:
        most = random.choice([0, 1, 2, 5])
        return bits + ["sync.mode=ssp", "sync.staleness=%d" % most] + some((0.3, "sync.staleness_drawn=on")), free
    bits += ["sync.mode=async"] + some((0.3, "sync.delay_aware=on"))
    return bits, free + ["sync.servers=%d" % random.choice([0, 0, 1, 3])] + \
        (["sync.copies=%d" % random.choice([1, 2])] if hosts else [])


def children(pid):
    """The children of all threads of a process."""
    found = []
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, task)) as f:
            found += [int(x) for x in f.read().split()]
    return found


def free_addresses(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    addresses = ["127.0.0.1:%d" % s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return addresses


class FaultyRun:
    """A run with faults."""

    def __init__(self, options, folder, V, workers, settings):
        self.options, self.folder, self.V, self.settings = options, folder, V, settings
        self.run = os.path.join(folder, "faulty")
        self.done, self.logs, self.hangs, self.addresses = [], [], [], []
        self.pace = self.run + ".pace"
        with open(self.pace, "w") as f:
            f.write("20\n")
        if len(workers) > 1:
            self.addresses = free_addresses(len(workers))
        self.n = workers
        self.hosts = [self.start(i, n, i == 0) for i, n in enumerate(workers)]

    def start(self, i, n, first=False, how=()):
        how = list(how)
        if self.addresses and first:
            together = [] if self.options.asynchronous else ["--hosts", str(len(self.n))]
            how += ["--listen", self.addresses[i]] + together
        elif self.addresses and self.options.asynchronous:
            others = [a for k, a in enumerate(self.addresses) if k != i]
            how += ["--listen", self.addresses[i], "--join", ",".join(others)]
        elif self.addresses:
            how += ["--join", self.addresses[0]]
        self.logs.append(os.path.join(self.folder, "host-%d-%d.log" % (i, len(self.logs))))
        env = dict(os.environ, LD_PRELOAD=self.options.faults,
                   LOCKSTEP_KEY="the key of all hosts of the run")
        with open(self.logs[-1], "w") as log:
            return subprocess.Popen(command(self.options, n, self.run, self.settings) + how,
                                    stdout=log, stderr=log, env=env)

    def worker(self, i):
        pid = self.hosts[i].pid
        try:
            if self.options.asynchronous:
                own = children(pid)  # of a host that has joined: its workers; else what starts them
                return random.choice([x for child in own for x in children(child)] or own or [None])
            with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
                return random.choice(f.read().split() or [None])
        except OSError:
            return None

    def inject(self):
        """Injects a random fault, or none if it is not possible now."""
        i = random.randrange(len(self.hosts))
        host, worker = self.hosts[i], self.worker(i)
        kinds = ["kill"] * 5 + ["stop", "leave", "scale"]
        if self.options.asynchronous:
            kinds = ["kill"] * 5 + ["stop"]
        if self.addresses:
            kinds += ["pause"]
            kinds += ["lose"] if self.options.asynchronous else ["lose", "go"] * (i > 0)
        kind = random.choice(kinds)
        if host.poll() is not None:
            if i == 0 and not self.options.asynchronous:
                return
            kind = "return"
        if kind in ("kill", "stop", "leave"):
            number = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "leave": signal.SIGTERM}[kind]
            if not worker:
                return
            try:
                os.kill(int(worker), number)
            except ProcessLookupError:
                return
        elif kind == "scale":
            n = str(random.randint(1, self.V))
            subprocess.run([self.options.lockstep, "scale", self.run, n], capture_output=True)
            kind += " " + n
        elif kind == "pause":
            host.send_signal(signal.SIGSTOP)
            time.sleep(random.choice([0.2, 1.5, 4]))
            host.send_signal(signal.SIGCONT)
        elif kind == "go":
            host.terminate()
        else:
            host.kill()
            host.wait()
            time.sleep(random.uniform(0, 1))
            self.hosts[i] = self.start(i, random.randint(1, 2))
        self.done.append(kind + (" of host %d" % i if self.addresses else ""))

    def wait(self, host):
        """Returns the exit code, or "hangs" if nothing was added to the metrics for two minutes."""
        while True:
            before = self.nbytes()
            try:
                return host.wait(timeout=120)
            except subprocess.TimeoutExpired:
                if self.nbytes() == before:
                    self.hangs.append(where(host.pid))
                    return "hangs"

    def nbytes(self):
        try:
            return os.path.getsize(self.run + "/metrics.jsonl")
        except OSError:
            return 0

    def end(self):
        """Returns the exit codes."""
        os.unlink(self.pace)
        codes = [self.wait(host) for host in self.hosts]
        if self.options.asynchronous and self.addresses and "hangs" not in codes:
            # the last host to leave may have been lost when none knew enough to take its place
            self.hosts.append(self.start(0, 2, True, ["--resume"]))
            codes = [self.wait(self.hosts[-1])]
        for host in self.hosts:
            host.kill()
            host.wait()
        return codes


def where(pid):
    """Describes what the process and its children are waiting for."""
    lines = subprocess.run(["ps", "-o", "pid,ppid,stat,wchan:20,args", "--pid", str(pid), "--ppid",
                            str(pid)], capture_output=True, text=True).stdout
    stack = subprocess.run("eu-stack -p %d || gdb -batch -ex 'thread apply all bt' -p %d" %
                           (pid, pid), shell=True, capture_output=True, text=True).stdout
    return "\n".join(line[:200] for line in (lines + stack).splitlines())


def command(options, n, folder, settings):
    start = [options.lockstep, "train", config_of(folder), "-n", str(n), "-o", folder]
    return start + sets(settings)


def sets(settings):
    return [word for s in settings for word in ("--set", s)]


def config_of(run):
    return os.path.join(os.path.dirname(run), "model.yaml")


def ckpt(options, what, run):
    return subprocess.run([options.lockstep, "ckpt", what, run], capture_output=True, text=True)


def draw(options, folder):
    """Draws until the settings are compatible: (model, virtual workers, workers, bits, free)."""
    while True:
        model = random_models.draw_text(options.data, 0.5) if options.meshes else random_models.draw(options.data)
        hosts = [2, 2, 3] if options.hosts else None
        V, workers, bits, free = draw_mesh(hosts, model) if options.meshes else draw_settings(hosts, model, options.replicas)
        if options.replicas and model.has_batch_norm:
            continue
        if options.asynchronous:
            bits, free = make_async(bits, free, options.hosts)
        with open(config_of(folder + "/x"), "w") as f:
            json.dump(model.config, f)  # JSON is YAML as well
        plan = [options.lockstep, "plan", config_of(folder + "/x"), "-n", str(sum(workers))]
        done = subprocess.run(plan + sets(bits + free), capture_output=True, text=True)
        if done.returncode == 0:
            return model, V, workers, bits, free
        options.refused.append("%s: %s" % (model.name, done.stderr.strip()))


def once(options, seed):
    """Returns True if the run passed."""
    random.seed("%d %d" % (seed, options.hosts + 2 * options.asynchronous + 4 * options.meshes))
    folder = tempfile.mkdtemp(prefix="lockstep-faults-")
    model, V, workers, bits, free = draw(options, folder)
    drawn = "%d: %%s: %s; workers %s; %s" % (seed, model.name.replace("%", "%%"), workers,
                                             " ".join(bits + free).replace("%", "%%"))
    undisturbed = os.path.join(folder, "undisturbed")
    alone = subprocess.run(command(options, 1, undisturbed, bits + ["log.every=1000"]),
                           capture_output=True, text=True)
    if alone.returncode:
        print(drawn % "FAILED undisturbed", alone.stderr[-3000:], folder, sep="\n", flush=True)
        return False
    run = FaultyRun(options, folder, V, workers, bits + free)
    began = time.monotonic()
    while not os.path.exists(run.run + "/metrics.jsonl") and time.monotonic() - began < 20:
        time.sleep(0.02)
    for _ in range(random.choice([1, 3, 6, 10])):
        time.sleep(random.uniform(0, 0.4))
        run.inject()
    codes = run.end()
    want, got = ckpt(options, "hash", undisturbed).stdout, ckpt(options, "hash", run.run).stdout
    replays = "sync.mode=async" in bits
    if replays:
        again = subprocess.run([options.lockstep, "replay", run.run], capture_output=True, text=True)
        want = again.stdout.rpartition(run.run)[0] if again.returncode == 0 else again.stderr
    ledger = ckpt(options, "ledger", run.run)
    strange = set() if replays else strange_samples(undisturbed, run.run)
    good = (codes[0] == 0 and "hangs" not in codes and want == got and ledger.returncode == 0
            and not strange)
    used = ledger.stdout.partition(" by ")[2].partition("\n")[0]
    print(drawn % ("good" if good else "FAILED") + "; %s; %s" % (", ".join(run.done), used),
          flush=True)
    if good:
        shutil.rmtree(folder)
        return True
    print("exit codes %s\nhash %swanted %s%s" % (codes, got, want, ledger.stderr))
    print("".join(strange) + "\n".join(run.hangs))
    for log in run.logs:
        print("-- " + log)
        print(open(log).read()[-3000:])
    return False


def strange_samples(undisturbed, faulty):
    """The lines of the faulty run's samples.jsonl that the undisturbed run has not written."""
    def lines(run):
        path = os.path.join(run, "samples.jsonl")
        return set(open(path)) if os.path.exists(path) else set()
    return lines(faulty) - lines(undisturbed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lockstep")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--hosts", action="store_true", help="two or three hosts, with TCP between")
    parser.add_argument("--async", action="store_true", dest="asynchronous",
                        help="runs without common steps")
    parser.add_argument("--replicas", action="store_true", help="models of several replicas only")
    parser.add_argument("--meshes", action="store_true", help="language models that workers divide")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print why settings were refused")
    options = parser.parse_args()
    options.faults = os.path.join(os.path.dirname(os.path.abspath(options.lockstep)),
                                  "tests/libfaults.so")
    if not os.path.exists(options.faults):
        sys.exit("%s: is missing; make build-tests" % options.faults)
    options.refused = []
    with tempfile.TemporaryDirectory(prefix="lockstep-faults-data-") as options.data:
        random_models.make_data(options.data, os.path.abspath(options.lockstep))
        good = sum(once(options, options.seed + i) for i in range(options.runs))
    bad = options.runs - good
    print("%d good, %d failed; %d drawn settings were refused" % (good, bad, len(options.refused)))
    if options.verbose:
        print("\n".join(options.refused))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
