#!/usr/bin/env python3
"""Trains small runs with random models, data and settings while workers and hosts fail at random.

    scripts/random_faults.py build/lockstep --runs 200 [--hosts [--elect]] [--async] [--again] [--disk]
        [--replicas] [--compressed] [--meshes] [--recommenders] [--device] [--rare] [--launched] [--seed 1]

Each run is trained twice: by one worker without faults, and by several workers, or by two or three
hosts with several workers each, which are killed, stopped, asked to leave, paused and scaled. The
bits must be the same and the ledger clean. With --async runs are asynchronous, or of bounded
staleness: their workers and servers are killed and stopped, and one worker must make the same bits
again (of asynchronous runs by lockstep replay). With --hosts too, any host may be lost, and another
one takes its place. With --meshes workers divide layers, slices, chunks and experts of a language
model.

With --rare settings that are seldom combined are drawn, too (rare_settings.py). With --launched each
part of a run is started by another launcher (mpirun of Open MPI and of MPICH, lockstep run, torchrun's
variables, hosts) with other numbers of workers and other settings, and ends by a signal, a kill, or
--until (launched_run.py).

With --again whole runs are killed, interrupted and continued with other numbers of workers, also
before the first step; several processes are killed at once; processes and hosts are stopped and
continued; a host is killed with all its processes, maybe twice, or all hosts are. With --disk (as
root) the directory is on a small file system that is full or read-only for a while, checkpoints are
damaged, and the directory is copied meanwhile: the copy must come to the same bits. With --elect
(etcd) hosts elect their leader, and any may be lost.

Prints one line for each run; if the run fails, also prints its logs, and its directory stays. A
run's model (random_models.py) and settings depend on the options and its seed alone, which counts
from --seed; when faults hit also depends on time (faulty_run.py). Nothing may be silent for a
minute, and no process and no hidden file may be left. Needs build/tests/libfaults.so (make
build-tests), which delays the end of most runs until all faults were injected.
"""
import argparse
import glob
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import launched_run
import random_models
import rare_settings
from faulty_run import STEPS, STOPPED, Etcd, FaultyRun, command, config_of
from possible_settings import draw_stages, possible, write_config


def some(*pairs):
    """Draws settings, each with its own probability."""
    return [setting for chance, setting in pairs if random.random() < chance]


# Keys that may change where a run continues, and then change its bits.
STEERED = ["optim.lr=2e-3", "optim.clip=0.3", "optim.weight_decay=0.2", "optim.warmup=0"]
# Draws of settings before there must be a possible one.
DRAWS = 300
# Optimizers that need whole parameters.
WHOLE = ["lamb", "lars", "adafactor", "muon", "soap"]
GROUPS = ["optimizer: sgd, momentum: 0.5, lr_scale: 3", "optimizer: lion, lr_scale: 0.25",
          "weight_decay: 0", "optimizer: adam", "optimizer: adamw, beta2: 0.99"]


def draw_optimizer(patterns):
    """Draws an optimizer and frozen parameters, all of whose settings change bits."""
    kind = random.choice(["adamw", "adam", "sgd", "lion"] if random.random() < 0.7 else WHOLE)
    schedule = random.choice(["cosine", "linear", "constant", "step", "wsd"])
    bits = ["optim.optimizer=" + kind, "optim.schedule=" + schedule, "optim.step_every=20",
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


def draw_compression(options):
    """Draws how gradients are compressed, which changes bits. What is chosen is known where a run
    has parts, of which the first decides."""
    kinds = ["topk", "onebit", "int8", "int4", "powersgd"]
    kind = random.choice(kinds + ["auto", "auto"] * (options.launched and options.rare))
    speeds = ["compress.%s=%s/%s.yaml" % (of, options.data, of) for of in ("machine", "links")]
    feedback = "error" if kind == "powersgd" else random.choice(["error", "error", "ef21", "none"])
    return ["train.reduce_dtype=f32", "compress.kind=" + kind, "compress.ratio=0.1",
            "compress.min_size=%d" % random.choice([0, 64, 1024]),
            "compress.warmup=%d" % random.choice([0, 0, 20]),
            "compress.feedback=" + feedback] + speeds * (kind == "auto")


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
    every, fragments = random.choice([2, 3, 5, 10, 20]), random.choice([1, 1, 2])
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


def draw_threads():
    """Mostly one: of a busy machine several threads that wait for each other get little."""
    return "parallel.threads=%d" % random.choice([1, 1, 1, 1, 2])


def draw_settings(options, hosts, model):
    """Returns (virtual workers, workers of each host, settings that change bits, others)."""
    V = random.choice([4, 5, 6, 7, 8, 9, 12])
    workers = [random.randint(1, 3 if hosts else 8) for _ in range(random.choice(hosts or [1]))]
    samples = random.choice([1, 2])
    bits = ["train.virtual_workers=%d" % V, "train.batch=%d" % (V * samples),
            "train.steps=%d" % STEPS, "train.compute=" + random.choice(["f32", "bf16", "f16"]),
            "train.eval_every=%d" % random.choice([0, 17])]
    if model.has_batch_norm:
        bits += ["train.micro_batch=%d" % samples, "train.reduce_dtype=f32"]
    bits += draw_optimizer(model.patterns)
    apart = not model.has_batch_norm and not options.compressed and (random.random() < 0.3 or options.replicas)
    compresses = options.compressed or not apart and random.random() < 0.25
    if compresses:
        bits += draw_compression(options)
    zero = random.choice([0, 1] if apart else [0, 1, 2, 3])
    if apart:
        bits = draw_apart(V, bits)
        zero *= "train.compute=f32" in bits
    pipe = random.choice([2, 3])
    piped = not apart and not compresses and not model.has_batch_norm and random.random() < 0.3
    if piped:  # the first workers must fill pipelines; later ones, and those of hosts, need not
        workers = workers if hosts else [pipe * random.randint(1, 2)]
        zero = min(zero, 2 if hosts or V % (workers[0] // pipe) else 3)
    free = ["log.every=1000", "parallel.zero=%d" % zero, "survival.min_workers=1", draw_threads(),
            "checkpoint.every=%d" % random.choice([0, 7, 20]),
            "survival.heartbeat_s=%g" % random.choice([0.3, 0.6, 1]),
            "survival.balance=" + random.choice(["off", "auto"])]
    if piped and model.config["model"].get("kind") in ("gpt2", "llama") and random.random() < 0.5:
        bits += ["parallel.tensor_virtual=3"]
        free += ["parallel.mesh.tensor=%d" % pipe]
    elif piped:
        free += ["parallel.mesh.pipe=%d" % pipe] + rare_settings.draw_schedule()
    if not apart and not piped:
        free += some((0.3, "survival.backup_workers=2"),
                     (0.3, "survival.audit=%d" % random.choice([3, 10])))
    free += some((0.3, "parallel.recompute=1"),
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
    bits = ["train.virtual_workers=%d" % V, "train.batch=%d" % (V * samples), "train.steps=%d" % STEPS,
            "train.compute=" + random.choice(["f32", "f32", "bf16", "f16"]),
            "train.eval_every=%d" % random.choice([0, 17]), "parallel.tensor_virtual=%d" % K,
            "parallel.context_virtual=%d" % Q, "parallel.expert_virtual=%d" % E,
            "train.micro_batch=%d" % E] + some((0.3 * (K > 1), "parallel.sequence=on"))
    bits += draw_optimizer(model.patterns)
    degrees = {"pipe": random.choice([1, 1, 2, 3]), "tensor": random.randint(1, K),
               "context": random.randint(1, Q), "expert": random.randint(1, E)}
    while math.prod(degrees.values()) > 8:
        degrees[random.choice([d for d in degrees if degrees[d] > 1])] -= 1
    ranks = degrees["pipe"] * degrees["tensor"] * degrees["context"] * degrees["expert"]
    n = ranks * random.choice([d for d in (1, 2, 3) if d == 1 or d * ranks <= 8])
    hosts = min(n, random.choice(hosts)) if hosts else 1
    ends = sorted(random.sample(range(1, n), hosts - 1)) + [n]
    workers = [end - begin for begin, end in zip([0] + ends, ends)]
    free = ["parallel.mesh.%s=%d" % d for d in degrees.items()]
    if len(workers) == 1 and random.random() < 0.15:
        free = ["parallel.mesh=auto"]
    elif degrees["pipe"] > 1:
        free += rare_settings.draw_schedule()
    free += ["log.every=1000", "parallel.zero=%d" % random.choice([0, 1, 2, 3]), "survival.min_workers=1", draw_threads(),
             "checkpoint.every=%d" % random.choice([0, 7, 20]), "train.micro_batch=%d" % random.choice([E, samples]),
             "survival.heartbeat_s=%g" % random.choice([0.3, 0.6, 1])]
    free += some((0.3, "parallel.recompute=%d" % random.choice([1, 2])), 
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


def ckpt(options, what, run):
    return subprocess.run([options.lockstep, "ckpt", what, run], capture_output=True, text=True)


def draw_model(options):
    if options.meshes:
        return random_models.draw_text(options.data, 0.5)
    if options.recommenders:
        return random_models.draw_recommender(options.data)
    return random_models.draw(options.data)


def draw(options, folder):
    """Draws until the settings are compatible: (model, virtual workers, workers, bits, free)."""
    for _ in range(DRAWS):
        model = draw_model(options)
        if options.rare and not options.disk:
            rare_settings.widen(model)
        hosts = [2, 2, 3] if options.hosts else None
        V, workers, bits, free = draw_mesh(hosts, model) if options.meshes else draw_settings(
            options, hosts, model)
        sparse = "sparse" in model.config["model"]
        if options.replicas and model.has_batch_norm or sparse and (options.replicas or options.asynchronous):
            continue
        if options.launched:
            rare_settings.put(bits, "train.steps", launched_run.STEPS)
        if options.rare:
            rare_settings.draw_rare(model, V, batch_of(bits) // V, bits, free)
        if options.rare and options.hosts:
            free = rare_settings.of_hosts(free)
        if options.asynchronous:
            bits, free = make_async(bits, free, options.hosts)
        if sparse:
            bits, free = of_sparse(bits, free)
        if options.device:
            free += draw_device(options.hosts)
        elif options.rare and options.again and not options.hosts and not options.asynchronous:
            rare_settings.draw(rare_settings.ALONE, free, bits)
        write_config(config_of(folder + "/x"), model.config)
        free += draw_stages(options, config_of(folder + "/x"), bits, free)
        if fits(options, folder, model, sum(workers), bits, free):
            return model, V, workers, bits, free
    sys.exit("none of %d drawn settings is possible; the last: %s" % (DRAWS, options.refused[-1]))


def batch_of(bits):
    return int(next(b for b in bits if b.startswith("train.batch=")).partition("=")[2])


def fits(options, folder, model, n, bits, free):
    """Is the run possible? Leaves out keys that do not act, and rare ones that do not go, with the others."""
    spare = rare_settings.KEYS if options.rare else ()
    why = possible(options, config_of(folder + "/x"), n, [bits, free], spare, model.config)
    if why:
        options.refused.append(why[-300:] + " ".join(bits + free))
    return not why


def of_sparse(bits, free):
    """The same settings for tables of which steps touch few rows, without those that they refuse."""
    wrong = ("optim.ema", "train.eval_weights", "train.freeze", "compress.", "train.reduce_dtype", "sync.")
    bits = ["optim.optimizer=adamw" if b in ["optim.optimizer=" + w for w in WHOLE] else
            "train.compute=f32" if b.startswith("train.compute") else b
            for b in bits if not b.startswith(wrong)]
    return bits, [f for f in free if not f.startswith("compress.")]


def ranks_of(free):
    """Workers that have a model together."""
    return math.prod(int(f.partition("=")[2]) for f in free if f.startswith("parallel.mesh."))


def draw_device(hosts):
    return ["parallel.device=c"] + some((0.3 * (not hosts), "parallel.optimizer_state=device"))


def draw_steering(options, bits):
    """(step, settings): a run of several parts continues from there with other values of keys that may change."""
    if not options.launched or not options.rare or random.random() > 0.3 or "=schedule-free" in " ".join(bits):
        return None
    return random.randint(3, 30), random.sample(STEERED, 2)


def train_alone(options, run, settings, steer):
    """One worker, without faults."""
    line = command(options, 1, run, settings)
    if not steer:
        return subprocess.run(line, capture_output=True, text=True)
    first = subprocess.run(line + ["--until", str(steer[0])], capture_output=True, text=True)
    if first.returncode not in (0, STOPPED):
        return first
    return subprocess.run(command(options, 1, run, settings + steer[1]) + ["--resume"], capture_output=True, text=True)


def begin_from(options, folder, model, bits, free):
    """The run begins with the weights of another one, if that is possible."""
    others = [b for b in bits if not b.startswith(("train.steps", "train.seed", "train.freeze", "train.batch"))]
    others += [b for b in bits if b.startswith("train.batch=") and "[" not in b]
    first = command(options, 1, folder + "/from", others + ["train.steps=3", "train.seed=5", "optim.warmup=0"])
    if subprocess.run(first, capture_output=True).returncode:
        return
    bits.append("train.from=" + folder + "/from")
    if not fits(options, folder, model, 1, bits, []):
        bits.pop()


def choose_code(options, folder, bits, whole):
    """Begins the run with some workers of a launcher; returns the settings of one with what is chosen."""
    run, n = os.path.join(folder, "faulty"), random.randint(1, 3)
    line = command(options, n, run, bits)
    line = [options.lockstep, "run", "-n", str(n), "--"] + line[:3] + line[5:]
    done = subprocess.run(line + ["--until", "1"], capture_output=True, text=True)
    if done.returncode not in (0, STOPPED):
        sys.exit("%s: %s\n%s" % (folder, " ".join(line), done.stderr))
    with open(run + "/config.yaml") as f:
        kind = re.search('\ncompress:\n  kind: "([a-z0-9]+)"', f.read())[1]
    chosen = [s for s in whole if not s.startswith(("compress.kind", "compress.machine", "compress.links"))]
    chosen += ["compress.kind=" + kind]
    possible(options, config_of(run), 1, [chosen], ())  # without the keys that this kind does not need
    return chosen


def once(options, seed):
    """Returns True if the run passed."""
    kind = options.hosts + 2 * options.asynchronous + 4 * options.meshes + 8 * options.again + 16 * options.disk
    kind += 32 * options.rare + 64 * options.launched + 128 * options.compressed
    random.seed("%d %d" % (seed, kind))
    folder = tempfile.mkdtemp(prefix="lockstep-faults-")
    model, V, workers, bits, free = draw(options, folder)
    if options.rare and "from" not in model.config["model"] and random.random() < 0.1:
        begin_from(options, folder, model, bits, free)
    drawn = "%d: %%s: %s; workers %s; %s" % (seed, model.name.replace("%", "%%"), workers,
                                             " ".join(bits + free).replace("%", "%%"))
    undisturbed = os.path.join(folder, "undisturbed")
    whole = bits + [f for f in free if f.startswith("checkpoint.every")]
    whole += ["log.every=1000", "parallel.threads=1", "checkpoint.keep=1000"]
    whole += ["parallel.zero=0"] * ("parallel.zero=0" in free)
    steer = draw_steering(options, bits)
    if "compress.kind=auto" in bits:
        whole = choose_code(options, folder, bits, whole)
    alone = train_alone(options, undisturbed, whole, steer)
    if "overflows in f16" in alone.stderr or "the gradient's norm" in alone.stderr:
        print(drawn % "diverges undisturbed", flush=True)
        shutil.rmtree(folder)
        return True
    if alone.returncode:
        print(drawn % "FAILED undisturbed", alone.stderr[-3000:], folder, sep="\n", flush=True)
        return False
    kind = launched_run.LaunchedRun if options.launched else FaultyRun
    run = kind(options, folder, V, workers, bits + free, ranks_of(free))
    run.steer = steer
    run.hurt()
    codes = run.end()
    want, got = ckpt(options, "hash", undisturbed).stdout, ckpt(options, "hash", run.run).stdout
    replays = "sync.mode=async" in bits
    if replays:
        again = subprocess.run([options.lockstep, "replay", run.run], capture_output=True, text=True)
        want = again.stdout.rpartition(run.run)[0] if again.returncode == 0 else again.stderr
    copy = None if replays else run.end_copy()
    ledger, loses = ckpt(options, "ledger", run.run), run.loses
    clean = ledger.returncode == 0 or loses and "have no lines" in ledger.stdout + ledger.stderr
    strange = set() if replays else strange_samples(undisturbed, run.run, loses)
    if not replays:
        run.wrong += strange_metrics(undisturbed, run.run) + strange_checkpoints(undisturbed, run)
    well = set(codes) <= {0, 1} if options.elect else codes[0] == 0
    good = (well and "hangs" not in codes and want == got and copy in (None, want) and clean
            and not strange and not run.wrong and not run.hangs)
    used = ledger.stdout.partition(" by ")[2].partition("\n")[0]
    print(drawn % ("good" if good else "FAILED") + "; %s; %s" % (", ".join(run.done), used),
          flush=True)
    if good:
        run.remove()
        return True
    print("%s\nexit codes %s\nhash %swanted %s%s" % (folder, codes, got, want, ledger.stderr))
    if copy not in (None, want):
        print("the copy has " + copy)
    print("".join(strange) + "\n".join(run.wrong + run.hangs))
    for log in run.logs:
        print("-- " + log)
        print(open(log, errors="replace").read()[-3000:])
    return False


def strange_samples(undisturbed, faulty, disk):
    """The lines of samples.jsonl that one of the runs has not written; a full disk may lose some."""
    def lines(run):
        path = os.path.join(run, "samples.jsonl")
        return set(open(path)) if os.path.exists(path) else set()
    return lines(faulty) - lines(undisturbed) if disk else lines(faulty) ^ lines(undisturbed)


# What lines of metrics.jsonl have that depends on workers and time.
TIMED = {"view", "workers", "seconds", "tokens_per_s", "samples_per_s", "memory_bytes", "mfu", "data_wait_s"}


def metrics_of(run):
    """({(step, field): value}, the steps whose lines were lost)"""
    found, lost, path = {}, set(), os.path.join(run, "metrics.jsonl")
    for line in open(path, errors="replace") if os.path.exists(path) else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if "gap" in row:
            lost.update(range(row["gap"][0], row["gap"][1] + 1))
        if "started" not in row:
            found.update({(row["step"], k): v for k, v in row.items() if k not in TIMED and k != "gap"})
    return found, lost


def strange_metrics(undisturbed, faulty):
    """Numbers that the faulty run's metrics have not, or differently."""
    (want, _), (got, lost) = metrics_of(undisturbed), metrics_of(faulty)
    wrong = ["metrics: step %d has %s %s, not %s" % (*key, got.get(key), want[key])
             for key in want if got.get(key, None) != want[key] and not (key not in got and key[0] in lost)]
    return wrong[:3]


def strange_checkpoints(undisturbed, run):
    """Checkpoints whose bits the undisturbed run has not written in that step. With gossip the model
    is the mean of an earlier step, if that was when a checkpoint or an evaluation was due."""
    wrong, names = [], ["optimizer.safetensors"]
    if "sync.mode=gossip" not in run.settings:
        names.append("model.safetensors")
    for path in glob.glob(run.run + "/checkpoints/step-*"):
        for name in names:
            own = os.path.join(undisturbed, "checkpoints", os.path.basename(path), name)
            if path in run.damaged or not os.path.exists(own) or not os.path.exists(path + "/" + name):
                continue
            with open(own, "rb") as a, open(path + "/" + name, "rb") as b:
                if a.read() != b.read():
                    wrong.append("%s/%s has other bits" % (os.path.basename(path), name))
    return wrong


def draw_only(options):
    """Settings of this version's keys are possible: else no run would begin."""
    options.refused = []
    with tempfile.TemporaryDirectory(prefix="lockstep-faults-data-") as options.data:
        random_models.make_data(options.data, os.path.abspath(options.lockstep))
        for i in range(options.draw):
            random.seed(options.seed + i)
            draw(options, options.data)
    print("%d drawn, %d were refused" % (options.draw, len(options.refused)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lockstep")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--hosts", action="store_true", help="two or three hosts, with TCP between")
    parser.add_argument("--async", action="store_true", dest="asynchronous",
                        help="runs without common steps")
    parser.add_argument("--replicas", action="store_true", help="models of several replicas only")
    parser.add_argument("--compressed", action="store_true", help="compressed gradients only")
    parser.add_argument("--meshes", action="store_true", help="language models that workers divide")
    parser.add_argument("--recommenders", action="store_true", help="tables of ids only")
    parser.add_argument("--device", action="store_true", help="parallel.device=c")
    parser.add_argument("--rare", action="store_true", help="settings that are seldom combined, too")
    parser.add_argument("--launched", action="store_true", help="parts of a run by several launchers")
    parser.add_argument("--again", action="store_true", help="whole runs are killed and continued")
    parser.add_argument("--disk", action="store_true", help="a disk that is full, and damage")
    parser.add_argument("--elect", action="store_true", help="hosts elect a leader by etcd")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draw", type=int, default=0, help="draw so many settings, and train none of them")
    parser.add_argument("--verbose", action="store_true", help="print why settings were refused")
    options = parser.parse_args()
    if options.disk and options.hosts or options.elect and (options.asynchronous or not options.hosts):
        sys.exit("--disk is for one host, --elect for several, with common steps")
    if options.launched and (options.hosts or options.asynchronous or options.disk or options.device):
        sys.exit("--launched goes with --meshes, --replicas, --recommenders and --rare")
    if options.draw:
        draw_only(options)
        return
    options.again = options.again or options.disk or options.elect
    options.shared = set(os.listdir("/dev/shm"))
    options.faults = os.path.join(os.path.dirname(os.path.abspath(options.lockstep)),
                                  "tests/libfaults.so")
    if not os.path.exists(options.faults):
        sys.exit("%s: is missing; make build-tests" % options.faults)
    options.refused = []
    if options.launched and launched_run.absent():
        print("skipped: not installed: " + ", ".join(launched_run.absent()))
    with tempfile.TemporaryDirectory(prefix="lockstep-faults-data-") as options.data:
        random_models.make_data(options.data, os.path.abspath(options.lockstep))
        options.etcd = Etcd(options.data) if options.elect else None
        try:
            good = sum(once(options, options.seed + i) for i in range(options.runs))
        finally:
            if options.etcd:
                options.etcd.close()
    bad = options.runs - good
    print("%d good, %d failed; %d drawn settings were refused" % (good, bad, len(options.refused)))
    if options.verbose:
        print("\n".join(options.refused))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
