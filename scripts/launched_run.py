"""A run whose parts are started by several launchers: for random_faults.py --launched.

Each part has a launcher, a number of workers, and settings that change no bits of its own. It ends
by itself, at a step (--until), by a signal to the launcher or to a worker, or because one of them
is killed; the next part continues from the newest checkpoint. Some parts have a disk that fails or
is full for some calls (tests/cli/faults.c), and between parts files of checkpoints are damaged: the
next part goes on from another checkpoint, or is refused if there is none.
"""
import os
import random
import re
import shutil
import signal
import subprocess
import time

import rare_settings
from faulty_run import (MARK, STOPPED, FaultyRun, command, config_of, damage, free_addresses,
                        marked, send)
from possible_settings import draw_stages, possible

WAYS = ["openmpi", "mpich", "run", "restarts", "variables", "torchrun", "local", "hosts"]
TRANSPORTS = {"openmpi": ["auto", "mpi", "tcp"], "mpich": ["auto", "mpi", "tcp"],
              "run": ["auto", "shm", "tcp"], "restarts": ["auto", "shm", "tcp"],
              "variables": ["auto", "tcp"], "torchrun": ["auto", "tcp"],
              "local": ["shm", "thread", "tcp"], "hosts": ["auto"]}
PARTS, MOST_PARTS = 3, 12
STEPS = 40  # of a run
SIGNALS = {"TERM": signal.SIGTERM, "USR1": signal.SIGUSR1, "INT": signal.SIGINT}
# Makes some of the workers of a machine seem to be on another host.
APART = ["sh", "-c", "r=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${RANK:-0}}}; "
         "export LOCKSTEP_HOST=h$((r %% %d)); exec \"$@\"", "sh"]
# What `lockstep plan` can't know, hosts that join when the first one finds nothing left to do, and
# how torchrun prints that its workers stopped.
REFUSALS = "without a launcher|share no memory|not know compressed|is complete: step|exitcode *: %d" % STOPPED
DEGREES = ("pipe", "tensor", "context", "expert")
# What a draw of one launcher has that may not go with another one.
MINE = ("parallel.transport=", "parallel.mesh.", "parallel.schedule=", "parallel.chunks=",
        "survival.copies=", "parallel.shard_group=", "parallel.zero=", "parallel.accumulate=",
        "parallel.optimizer_state=", "parallel.device=", "checkpoint.every=",
        "checkpoint.minutes=", "train.micro_batch=")


PROGRAMS = {"openmpi": "mpirun.openmpi", "mpich": "mpirun.mpich", "torchrun": "torchrun"}
# What a disk does (tests/cli/faults.c): in which calls, and with which of the run's files.
CALLS = ["any", "write", "pwrite", "fsync", "rename"]
PATHS = ["checkpoints", "safetensors", "metrics.jsonl", "latest", "state", "faulty"]
FAILURES = ["ENOSPC", "ENOSPC", "EIO", "EROFS", "KILL", "TERM"]


def program_of(way):
    """Where the launcher is: torchrun may be beside PYTHON, or where make check-torch puts it."""
    own = os.path.dirname(os.environ.get("PYTHON", "build/torch-venv/bin/python"))
    return shutil.which(PROGRAMS[way]) or shutil.which(PROGRAMS[way], path=own)


def absent():
    """The launchers of which no part can be."""
    return [way for way in PROGRAMS if not program_of(way)]


class LaunchedRun(FaultyRun):
    """`settings` are those that change bits, and others, of which each part has some."""

    def __init__(self, options, folder, V, workers, settings, step=1):
        self.options, self.folder, self.V = options, folder, V
        self.all, self.step = settings, step
        self.place, self.run = folder, os.path.join(folder, "faulty")
        self.done, self.logs, self.hangs, self.wrong, self.addresses = [], [], [], [], []
        self.damaged, self.log_of, self.fills, self.codes = set(), {}, False, [1]
        self.settings = settings
        self.slow, self.steered = self.run + ".slow", False
        self.rule, self.loses = "", False  # how the disk fails, and whether it has failed

    # ---- what a part is ----

    def draw_settings(self):
        """(launcher, workers, settings) that are possible together."""
        text, ways = " ".join(self.all), [w for w in WAYS if w not in absent()]
        for _ in range(60):
            own = [s for s in self.all if not s.startswith(MINE)]
            way = random.choice(ways)
            ranks, mesh = self.draw_mesh(way, text)
            n = ranks * random.randint(1, max(1, min(self.V, 6 // ranks)))
            n = max(n, 2 * ranks) if way == "hosts" else n
            free = self.draw_free(way, n, text, own) + mesh
            path, spare = config_of(self.run), [f.partition("=")[0] for f in free]
            free += draw_stages(self.options, path, own, free)
            if not possible(self.options, path, n, [own, free], spare):
                return way, n, own + free
        return "local", self.step, [s for s in self.all if "optimizer_state=" not in s]

    def draw_free(self, way, n, text, own):
        """Settings of a part that change no bits, without its mesh."""
        zero = 0 if "optimizer=onebit" in text else random.choice([0, 1, 2, 3, 3])
        micro = [s for s in self.all if s.startswith("train.micro_batch=")]
        micro *= "expert_virtual=2" in text or random.random() < 0.5
        free = ["parallel.transport=" + random.choice(TRANSPORTS[way]), "parallel.zero=%d" % zero,
                "parallel.timeout_s=40", "survival.rejoin_s=10"] + micro
        rare_settings.draw(rare_settings.FREE, free, own + free)
        if way != "hosts":
            rare_settings.draw(rare_settings.ALONE, free, own + free)
        group = "parallel.shard_group=%d" % random.randint(1, n)
        for chance, setting in ((0.2 * (way == "local"), "parallel.executor=sequential"),
                                (0.3, "parallel.accumulate=early"), (0.3, group),
                                (0.4 * (way == "hosts"), "survival.copies=2")):
            free += [setting] * (random.random() < chance)
        return rare_settings.of_hosts(free) if way == "hosts" else free

    def draw_mesh(self, way, text):
        """(workers that have a model together, settings)"""
        if way != "hosts" and "sync.mode" not in text and random.random() < 0.15:
            return 1, ["parallel.mesh=auto"]
        found = {d: re.search("parallel.%s_virtual=(\\d+)" % d, text) for d in DEGREES}
        limits = {d: int(found[d][1]) if found[d] else 1 for d in DEGREES}
        limits["pipe"] = random.choice([1, 1, 2, 3])
        if "sync.mode" in text or "compress.kind" in text or "onebit" in text:
            return 1, []
        degrees = {d: random.randint(1, most) for d, most in limits.items()}
        ranks = 1
        for d in DEGREES:
            degrees[d] = degrees[d] if ranks * degrees[d] <= 6 else 1
            ranks *= degrees[d]
        mesh = ["parallel.mesh.%s=%d" % d for d in degrees.items()]
        if degrees["pipe"] > 1:
            mesh += rare_settings.draw_schedule()
        return ranks, mesh

    # ---- starting ----

    def launch(self, way, n, settings, until):
        """Starts the processes of a part; the first is the one whose exit code counts."""
        line = command(self.options, n, self.run, settings)
        line.remove("-n")
        line.remove(str(n))
        line += ["--resume"] + (["--until", str(until)] if until else [])
        apart = []
        if way not in ("local", "hosts", "restarts", "run") and random.random() < 0.4:
            apart = [word % random.randint(2, 3) if "%" in word else word for word in APART]
        line = apart + line
        self.said = way + " apart" * bool(apart)
        self.address = address = free_addresses(1)[0]
        if way == "local":
            return [self.begin(line + ["-n", str(n)])]
        if way == "openmpi":
            return [self.begin(["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe",
                                "--bind-to", "none", "-n", str(n)] + line)]
        if way == "mpich":
            return [self.begin(["mpirun.mpich", "-bind-to", "none", "-n", str(n)] + line)]
        if way in ("run", "restarts"):
            again = ["--restarts", "3"] * (way == "restarts")
            run = [self.options.lockstep, "run", "-n", str(n)]
            return [self.begin(run + again + ["--"] + line)]
        if way == "torchrun":
            again = random.choice([[], ["--max-restarts", "2", "--monitor-interval", "0.1"]])
            self.address = free_addresses(1)[0]  # torchrun itself has the other port
            return [self.begin([program_of(way), "--no-python", "--nproc-per-node", str(n)] + again +
                               ["--master-port", address.rpartition(":")[2]] + line)]
        if way == "hosts":
            first = random.randint(1, n - 1)
            return [self.begin(line + ["-n", str(first), "--listen", address, "--hosts", "2"]),
                    self.begin(line + ["-n", str(n - first), "--join", address])]
        return [self.begin(line, RANK=str(i), WORLD_SIZE=str(n), MASTER_ADDR="127.0.0.1",
                           MASTER_PORT=address.rpartition(":")[2]) for i in range(n)]

    def begin(self, line, **variables):
        self.logs.append(os.path.join(self.folder, "part-%d.log" % len(self.logs)))
        env = dict(os.environ, LD_PRELOAD=self.options.faults, **{MARK: self.folder}, **variables,
                   LOCKSTEP_KEY="the key of all hosts of the run", LOCKSTEP_WAIT_POLICY="passive",
                   LOCKSTEP_CPU=rare_settings.draw_kernels(), LOCKSTEP_SLOW=self.slow,
                   LOCKSTEP_ADDR=self.address, LOCKSTEP_FAULTS=self.rule)
        with open(self.logs[-1], "w") as log:
            process = subprocess.Popen(line, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                       env=env)
        self.log_of[process.pid] = self.logs[-1]
        return process

    # ---- faults ----

    def workers_of(self, processes):
        """The processes of `lockstep train` that take part in steps."""
        started = [p.pid for p in processes]
        own = started if len(processes) > 2 else []
        return [pid for pid in marked(self.folder)
                if pid in own or pid not in started and is_training(pid)] or started

    def hurt(self):
        pass  # each part is hurt by itself

    def hurt_part(self, processes, way):
        """Returns what was done, and whether it may end the part with any exit code."""
        began = time.monotonic()
        while (way == "hosts" or random.random() < 0.97) and not self.has_stepped():
            if time.monotonic() - began > 20 or processes[0].poll() is not None:
                break
            time.sleep(0.01)
        time.sleep(random.uniform(0, random.choice([0.01, 0.1, 0.5])))
        how = random.choice(["kill", "kill", "kill launcher", "kill all", "TERM", "USR1", "INT",
                             "suspend"])
        pids = self.workers_of(processes)
        if how == "kill":
            send(random.choice(pids), signal.SIGKILL)
        elif how == "kill launcher":
            processes[0].kill()
        elif how == "kill all":
            for pid in marked(self.folder):
                send(pid, signal.SIGKILL)
        elif how == "suspend":
            pid = random.choice(pids)
            send(pid, signal.SIGSTOP)
            time.sleep(random.choice([0.1, 1.5]))
            send(pid, signal.SIGCONT)
        else:
            number = SIGNALS["USR1" if way == "openmpi" else how]
            to_worker = random.random() < 0.5
            send(random.choice(pids) if to_worker else processes[0].pid, number)
            how += " to a worker" * to_worker
        return how

    def has_stepped(self):
        """Has this part written lines of steps?"""
        path = self.run + "/metrics.jsonl"
        return os.path.exists(path) and os.path.getsize(path) > self.nbytes_before + 300

    # ---- parts ----

    def part(self, last):
        way, n, settings = self.draw_settings()
        until = random.randint(1, STEPS - 1) if not last and random.random() < 0.25 else 0
        steers = self.steer and os.path.exists(self.run + "/checkpoints/step-%d" % self.steer[0])
        if self.steer and not steers and not self.steered:
            until = self.steer[0]
        elif self.steer:
            settings, self.steered = settings + self.steer[1], True
        settings = [s for s in settings if not s.startswith("checkpoint.every=")] + \
            ["checkpoint.every=%d" % random.choice([3, 7, 20])]
        path = self.run + "/metrics.jsonl"
        self.nbytes_before = os.path.getsize(path) if os.path.exists(path) else 0
        if random.random() < 0.3:
            with open(self.slow, "w") as f:
                f.write("%d %d\n" % (random.randrange(n), random.choice([3, 20])))
        elif os.path.exists(self.slow):
            os.unlink(self.slow)
        self.rule = draw_rule() if not last and not until and random.random() < 0.3 else ""
        began = time.monotonic()
        self.hosts = processes = self.launch(way, n, settings, until)
        how = "until %d" % until if until else self.rule and "disk: " + self.rule
        self.loses = self.loses or bool(self.rule)
        if not how and not last and random.random() < 0.8:
            how = self.hurt_part(processes, way)
        codes = [self.wait(p) for p in processes]
        if "hangs" in codes:
            for pid in marked(self.folder):
                send(pid, signal.SIGKILL)
        self.gone("part")
        self.done.append("%s -n %d {%s} %s -> %s, %.0f s" % (self.said, n, " ".join(
            s for s in settings if s not in self.all), how, codes,
            time.monotonic() - began))
        self.look_at_part(codes, how, len(processes))
        return codes, how

    def look_at_part(self, codes, how, nlogs):
        text = "".join(open(path, errors="replace").read() for path in self.logs[-nlogs:])
        crashed = re.search("AddressSanitizer|Segmentation|ssertion .* fail|signal (11|6)", text)
        if crashed or {-11, -6, 139, 134} & set(codes):
            self.wrong.append("crash: %s\n%s" % (codes, text[-3000:]))
        lines = text.strip().splitlines()
        if self.said == "local" and codes[0] == 1 and not (lines and lines[-1].startswith("lockstep: ")):
            self.wrong.append("no reason: %s\n%s" % (self.done[-1], text[-3000:]))
        unhurt = not how or how.startswith("until") or how == "suspend"
        if unhurt and not set(codes) <= {0, STOPPED} and "hangs" not in codes:
            if re.search(REFUSALS, text):
                self.done[-1] += " refused"
            else:
                self.wrong.append("exit codes %s: %s\n%s" % (codes, self.done[-1], text[-3000:]))

    def end(self):
        """Trains all parts; returns the exit codes of the last."""
        for i in range(MOST_PARTS):
            codes, how = self.part(i >= PARTS or random.random() < 0.2)
            if "hangs" in codes or self.wrong:
                return codes
            if 0 in codes and self.is_complete():
                break
            if not self.steer and random.random() < 0.3:
                self.damage_part()
        if not self.is_complete():
            self.wrong.append("the run is not complete after %d parts" % MOST_PARTS)
        self.look_for_remains()
        return [0] if self.is_complete() else codes

    def damage_part(self):
        """A file of the newest checkpoint is damaged. Without another checkpoint the run is refused
        in one line, and has the file again."""
        found = self.checkpoints()
        if not found:
            return
        newest_one, saved = found[-1], self.folder + "/saved"
        alone = not [path for path in found[:-1] if path not in self.damaged]
        if alone:
            shutil.copytree(newest_one, saved)
        self.damaged.add(newest_one)
        self.done.append("%s of %s" % (damage(newest_one), os.path.basename(newest_one)))
        if not alone:
            return
        self.rule, self.address = "", free_addresses(1)[0]
        line = command(self.options, 1, self.run, [s for s in self.all if not s.startswith(MINE)])
        self.hosts = [self.begin(line + ["--resume", "--until", str(STEPS)])]
        code = self.wait(self.hosts[0])
        self.done.append("alone -> %s" % code)
        said = open(self.logs[-1], errors="replace").read().splitlines()
        if code not in (0, 1, STOPPED) or code == 1 and not (said and said[-1].startswith("lockstep: ")):
            self.wrong.append("%s: exit code %s\n%s" % (self.done[-2], code, "\n".join(said[-12:])))
        if code == 1:
            shutil.rmtree(newest_one, ignore_errors=True)
            shutil.move(saved, newest_one)
            self.damaged.discard(newest_one)
        shutil.rmtree(saved, ignore_errors=True)

    def is_complete(self):
        return newest(self.run) == newest(os.path.join(self.folder, "undisturbed"))

    def end_copy(self):
        return None

    def remove(self):
        shutil.rmtree(self.folder)


def draw_rule():
    first = random.choice([0, 0, 1, 2, 5])
    end = random.choice(["", "-%d" % (first + random.randint(1, 3))])
    return "%s %s %s %d%s" % (random.choice(CALLS), random.choice(PATHS), random.choice(FAILURES),
                              first, end)


def newest(run):
    """The name of the newest checkpoint."""
    try:
        return os.readlink(run + "/checkpoints/latest")
    except OSError:
        return None


def is_training(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            words = f.read().split(b"\0")
    except OSError:
        return False
    return words[0].endswith(b"lockstep") and words[1] == b"train"
