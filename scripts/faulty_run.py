"""A training that is hurt: for random_faults.py.

FaultyRun starts the hosts of a run, injects faults, starts again what was ended, and looks for
processes and files that were left behind. Only settings and kinds of faults are drawn; when a fault
hits depends on time, too.
"""
import glob
import os
import random
import shutil
import signal
import socket
import subprocess
import time

import rare_settings

MARK = "LOCKSTEP_RANDOM_FAULTS"  # the variable by which a run's processes are found
STOPPED = 75
STEPS = 60  # of a run
# All workers at once, some of them, or anything that the run has started (writers, too).
CROWDS = ["all", "some", "any"]
# Files that a killed process was writing; a later start removes those that are a minute old.
FRESH = ".lockstep-"
# Where the file systems of --disk are: this many bytes, of which a run needs at most a third.
DISK = 24 << 20


def command(options, n, folder, settings):
    start = [options.lockstep, "train", config_of(folder), "-n", str(n), "-o", folder]
    return start + sets(settings)


def sets(settings):
    return [word for s in settings for word in ("--set", s)]


def config_of(run):
    """Runs of one case are in one folder, or in folders of it, which has their config."""
    folder = os.path.dirname(run)
    return os.path.join(os.path.dirname(folder) if folder.endswith("/disk") else folder, "model.yaml")


# ---- processes ----

def children(pid):
    """The children of all threads of a process; none if it has ended."""
    found = []
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, task)) as f:
                found += [int(x) for x in f.read().split()]
    except OSError:
        pass
    return found


def descendants(pid):
    below = children(pid)
    return below + [x for child in below for x in descendants(child)]


def marked(folder):
    """The processes with this mark in their environment that are not zombies."""
    mark, found = ("%s=%s" % (MARK, folder)).encode(), []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if mark in f.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def wait_until_gone(folder, seconds):
    """The marked processes that are still there after that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and marked(folder):
        time.sleep(0.2)
    return marked(folder)


def send(pid, number):
    """False: the process has ended."""
    try:
        os.kill(int(pid), number)
    except (OSError, TypeError):
        return False
    return True


def where(pid):
    """Describes what the process and its children are waiting for."""
    lines = subprocess.run(["ps", "-o", "pid,ppid,stat,wchan:20,args", "--pid", str(pid), "--ppid",
                            str(pid)], capture_output=True, text=True).stdout
    stack = ""
    for one in [pid] + descendants(pid):
        stack += "-- %d\n" % one
        stack += subprocess.run("eu-stack -p %d || gdb -batch -ex 'thread apply all bt' -p %d" %
                                (one, one), shell=True, capture_output=True, text=True).stdout
    return "\n".join(line[:200] for line in (lines + stack).splitlines())


def free_addresses(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    addresses = ["127.0.0.1:%d" % s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return addresses


class Etcd:
    """One server of etcd, for all runs; it forgets nothing and writes to memory."""

    def __init__(self, folder):
        client, peer = ["http://" + a for a in free_addresses(2)]
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self.membership = "etcd://" + client.partition("//")[2]
        self.process = subprocess.Popen(
            ["etcd", "--name=one", "--data-dir=%s/etcd" % folder, "--listen-client-urls=" + client,
             "--advertise-client-urls=" + client, "--listen-peer-urls=" + peer,
             "--initial-advertise-peer-urls=" + peer, "--initial-cluster=one=" + peer,
             "--heartbeat-interval=50", "--election-timeout=300", "--unsafe-no-fsync",
             "--log-level=error"], env=dict(env, GOMAXPROCS="1"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def close(self):
        self.process.kill()
        self.process.wait()


# ---- a run ----

class FaultyRun:
    """A run with faults. `most`: it may have this many workers; `step`: and multiples of this only."""

    def __init__(self, options, folder, V, workers, settings, step=1):
        self.options, self.folder, self.V, self.settings = options, folder, V, settings
        self.step = step
        self.place = self.mount() if options.disk else folder
        self.run = os.path.join(self.place, "faulty")
        self.done, self.logs, self.hangs, self.addresses = [], [], [], []
        self.wrong = []  # what was found wrong on the way
        self.loses = options.disk  # lines of metrics, as the disk may be full
        self.damaged = set()  # checkpoints; one that is written again is seen as damaged still
        self.fills = False  # the disk is full, or can't be written
        self.pace, self.slow = self.run + ".pace", self.run + ".slow"
        self.log_of = {}
        if random.random() < 0.8:
            with open(self.pace, "w") as f:
                f.write("%d\n" % random.choice([0, 10, 10, 10, 20, 33, 50] + [STEPS - i for i in (3, 2, 1)]))
        if len(workers) > 1:
            self.addresses = free_addresses(len(workers))
        self.n = workers
        self.began = time.monotonic()
        self.hosts = [self.start(i, n, i == 0) for i, n in enumerate(workers)]

    # ---- starting ----

    def addressed(self, i, first):
        """The words for a host among several."""
        own, others = self.addresses[i], [a for k, a in enumerate(self.addresses) if k != i]
        if self.options.elect:
            return ["--hosts", str(len(self.n)), "--listen", own, "--membership",
                    self.options.etcd.membership, "--set", "survival.etcd_run=" +
                    self.folder.rpartition("/")[2]]
        if first:
            together = [] if self.options.asynchronous else ["--hosts", str(len(self.n))]
            return ["--listen", own] + together
        if self.options.asynchronous:
            return ["--listen", own, "--join", ",".join(others)]
        return ["--join", self.addresses[0]]

    def start(self, i, n, first=False, how=()):
        how = list(how) + (self.addressed(i, first) if self.addresses else [])
        self.logs.append(os.path.join(self.folder, "host-%d-%d.log" % (i, len(self.logs))))
        env = dict(os.environ, LD_PRELOAD=self.options.faults, **{MARK: self.folder},
                   LOCKSTEP_KEY="the key of all hosts of the run", LOCKSTEP_WAIT_POLICY="passive")
        if self.options.rare:
            env.update(LOCKSTEP_SLOW=self.slow, LOCKSTEP_CPU=rare_settings.draw_kernels())
        with open(self.logs[-1], "w") as log:
            host = subprocess.Popen(command(self.options, n, self.run, self.settings) + how,
                                    stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env)
        self.log_of[host.pid] = self.logs[-1]
        return host

    def worker(self, i):
        pid = self.hosts[i].pid
        if self.options.asynchronous:
            own = children(pid)  # of a host that has joined: its workers; else what starts them
            return random.choice([x for child in own for x in children(child)] or own or [None])
        return random.choice(children(pid) or [None])

    # ---- faults ----

    def ends_with_worker(self):
        """Does a lost worker end the run? What its device had is lost with it."""
        return any(s.startswith("parallel.optimizer_state=") for s in self.settings)

    def kinds(self, i):
        o = self.options
        kinds = ["kill"] * 5 + ["stop"] * (not self.ends_with_worker()) + ["slow"] * o.rare
        if not o.asynchronous:
            kinds += ["leave", "scale"]
        if self.addresses:
            kinds += ["pause"]
            kinds += ["lose"] if o.asynchronous or o.elect else ["lose", "go"] * (i > 0)
        if o.again and self.addresses:
            kinds += ["crowd", "crowd", "suspend", "freeze", "freeze", "destroy", "destroy", "crash"]
        elif o.again:
            kinds += ["crowd"] * 2 + ["suspend", "pause", "freeze", "crash", "crash", "interrupt", "interrupt", "twice"]
        if o.disk:
            kinds += ["fill", "fill", "readonly", "damage", "damage", "copy"]
        return kinds

    def hurt(self):
        """Injects faults, one after the other."""
        begins = self.run + "/metrics.jsonl"
        early = self.options.again and random.random() < 0.3
        while not early and not os.path.exists(begins) and time.monotonic() - self.began < 20:
            time.sleep(0.02)
        for _ in range(random.choice([1, 3, 6, 10])):
            most = random.choice([0, 0.05, 0.4, 1.5]) if self.options.again else 0.4
            time.sleep(random.uniform(0, most))
            self.inject()

    def inject(self):
        """Injects a random fault, or none if it is not possible now."""
        i = random.randrange(len(self.hosts))
        kind = random.choice(self.kinds(i))
        if self.hosts[i].poll() is not None:
            if i == 0 and self.addresses and not self.options.asynchronous and not self.options.elect:
                return
            kind = "return"
        said = getattr(self, "do_" + kind)(i)
        if said:
            self.done.append(said + (" of host %d" % i if self.addresses else "") + " @%.1f" % (time.monotonic() - self.began))

    def do_kill(self, i):
        return send(self.worker(i), signal.SIGKILL) and "kill"

    def do_stop(self, i):
        return send(self.worker(i), signal.SIGSTOP) and "stop"

    def do_slow(self, i):
        """A worker computes slowly from now on, or no more."""
        rank, factor = random.randrange(max(self.n)), random.choice([1, 3, 20])
        with open(self.slow, "w") as f:
            f.write("%d %d\n" % (rank, factor))
        return "worker %d slow %d" % (rank, factor)

    def do_leave(self, i):
        return send(self.worker(i), signal.SIGTERM) and "leave"

    def do_crowd(self, i):
        """Several processes are killed at once."""
        how = random.choice(CROWDS)
        pids = descendants(self.hosts[i].pid) if how == "any" else children(self.hosts[i].pid)
        if how != "all" and pids:
            pids = random.sample(pids, random.randint(1, len(pids)))
        return sum(send(pid, signal.SIGKILL) for pid in pids) > 0 and "kill %s" % how

    def do_suspend(self, i):
        """A worker is stopped, and continued."""
        pid, seconds = self.worker(i), random.choice([0.1, 0.5, 1.5, 4])
        if not send(pid, signal.SIGSTOP):
            return None
        time.sleep(seconds)
        send(pid, signal.SIGCONT)
        return "suspend %g" % seconds

    def do_scale(self, i):
        n = str(random.randint(1, self.V))
        subprocess.run([self.options.lockstep, "scale", self.run, n], capture_output=True)
        return "scale " + n

    def do_pause(self, i):
        """The process that starts workers is stopped, and continued."""
        seconds = random.choice([0.2, 1.5, 4] + [8] * self.options.again)
        self.hosts[i].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.hosts[i].send_signal(signal.SIGCONT)
        return "pause %g" % seconds

    def do_freeze(self, i):
        """All processes of a host are stopped, and continued."""
        pids, seconds = [self.hosts[i].pid] + descendants(self.hosts[i].pid), random.choice([0.5, 2, 5, 8])
        for pid in pids:
            send(pid, signal.SIGSTOP)
        time.sleep(seconds)
        for pid in reversed(pids) if random.random() < 0.5 else pids:
            send(pid, signal.SIGCONT)
        return "freeze %g" % seconds

    def do_go(self, i):
        self.hosts[i].terminate()
        return "go"

    def do_lose(self, i):
        self.hosts[i].kill()
        return self.come_back(i, "lose")

    def do_destroy(self, i):
        """All processes of a host are killed, and maybe it comes back twice."""
        if i == 0 and not self.options.asynchronous and not self.options.elect:
            return None
        for pid in [self.hosts[i].pid] + descendants(self.hosts[i].pid):
            send(pid, signal.SIGKILL)
        self.come_back(i, "destroy")
        if random.random() < 0.3:
            time.sleep(random.uniform(0, 1))
            self.hosts[i].kill()
            self.come_back(i, "destroy")
            return "destroy twice"
        return "destroy"

    def do_return(self, i):
        if not self.addresses:
            return self.again("return")
        return self.come_back(i, "return")

    def come_back(self, i, kind):
        self.hosts[i].wait()
        time.sleep(random.uniform(0, 1))
        resume = ["--resume"] if self.options.elect else []
        self.hosts[i] = self.start(i, random.randint(1, 2), False, resume)
        return kind

    # ---- one host that is started again ----

    def do_crash(self, i):
        """The process that starts workers is killed, with or without them; of several hosts all."""
        whole = random.random() < 0.3
        for host in self.hosts:
            for pid in [host.pid] + (descendants(host.pid) if whole else []):
                send(pid, signal.SIGKILL)
        if not self.addresses:
            return self.again("crash all" if whole else "crash")
        for host in self.hosts:
            host.wait()
        self.gone("a crash")
        self.hosts = [self.start(k, n, k == 0, ["--resume"]) for k, n in enumerate(self.n)]
        return "crash of all hosts"

    def do_interrupt(self, i):
        number = random.choice([signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP])
        self.hosts[i].send_signal(number)
        self.free()
        return self.again("interrupt %d" % number, {STOPPED, 0, 1})

    def do_twice(self, i):
        for _ in range(2):
            self.hosts[i].send_signal(signal.SIGINT)
            time.sleep(random.uniform(0, 0.1))
        self.free()
        return self.again("interrupt twice", {STOPPED, 0, 1})

    def draw_workers(self):
        """A number of workers that can have the run."""
        for _ in range(20):
            n = self.step * random.randint(1, max(1, min(self.V, 7 // self.step)))
            plan = [self.options.lockstep, "plan", config_of(self.run), "-n", str(n)]
            if subprocess.run(plan + sets(self.settings), capture_output=True).returncode == 0:
                return n
        return sum(self.n)

    def gone(self, after):
        """Workers end with the process that has started them."""
        left = wait_until_gone(self.folder, 30)
        if left:
            self.wrong.append("30 s after %s there are %s\n%s" % (after, left, "\n".join(map(where, left))))
            for pid in left:
                send(pid, signal.SIGKILL)

    def again(self, kind, codes=(-signal.SIGKILL, 0)):
        """Waits for the end of the run, and continues it."""
        host = self.hosts[0]
        try:
            code = host.wait(timeout=90)
        except subprocess.TimeoutExpired:
            self.hangs.append(kind + ":\n" + where(host.pid))
            host.kill()
            code = host.wait()
        self.look_at_end(host, code, kind, codes)
        if random.random() < 0.7 or self.options.disk:
            self.gone(kind)
        if random.random() < 0.2:
            time.sleep(random.uniform(0, 0.5))
        if self.options.disk:
            self.free()
        n = self.draw_workers()
        self.hosts[0] = self.start(0, n, True, ["--resume"])
        return "%s, resume -n %d" % (kind, n)

    def look_at_end(self, host, code, kind, codes):
        """One that has not been killed says why it has ended, and its code is one of these."""
        if self.options.disk or self.options.asynchronous or self.ends_with_worker():
            codes = set(codes) | {1}  # a killed worker, or the process that starts them, ends such a run
        with open(self.log_of[host.pid], errors="replace") as f:
            lines = f.read().splitlines()
        if code in (-signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGUSR1) and not lines:
            return  # the process had just begun
        if code not in codes and not (kind == "return" and code in (STOPPED, 0)):
            self.wrong.append("%s: exit code %s\n%s" % (kind, code, "\n".join(lines[-12:])))
        elif code not in (0, -signal.SIGKILL) and not (lines and lines[-1].startswith("lockstep: ")):
            self.wrong.append("%s: exit code %s, but its last line is\n%s" % (kind, code, "\n".join(lines[-3:])))

    # ---- a disk ----

    def mount(self):
        place = os.path.join(self.folder, "disk")
        os.mkdir(place)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % DISK, "none", place], check=True)
        return place

    def remount(self, how):
        return subprocess.run(["mount", "-o", "remount," + how, self.place], capture_output=True).returncode == 0

    def free(self):
        """The disk is as it should be again."""
        if not self.fills:
            return
        self.remount("rw")
        for path in glob.glob(self.place + "/filler*"):
            os.unlink(path)
        self.fills = False

    def do_fill(self, i):
        """The disk is full, to the last byte or nearly, for some time."""
        left = random.choice([0, 0, 4096, 20000, 100000])
        room = os.statvfs(self.place)
        with open(self.place + "/filler", "wb") as f:
            try:
                f.write(b"\0" * max(0, room.f_bavail * room.f_frsize - left))
            except OSError:
                pass
        self.fills = True
        seconds = random.uniform(0, 2)
        time.sleep(seconds)
        if random.random() < 0.6:
            self.free()
        return "%d bytes left for %.1f s" % (left, seconds)

    def do_readonly(self, i):
        """A file system with files that are open for writing can't be made read-only by hand."""
        if not self.remount("ro"):
            return None
        self.fills = True
        time.sleep(random.uniform(0, 2))
        self.free()
        return "read-only"

    def checkpoints(self, run=None):
        found = glob.glob((run or self.run) + "/checkpoints/step-*")
        return sorted(found, key=lambda path: int(path.rpartition("-")[2]))

    def do_damage(self, i):
        """The run is killed, and a file of its newest checkpoint is damaged."""
        self.hosts[0].kill()
        self.hosts[0].wait()
        self.gone("damage")
        self.free()
        found = self.checkpoints()
        good = [path for path in found if path not in self.damaged]
        if len(good) < 2:  # a run without a good one is refused
            return self.again("crash")
        said = damage(found[-1])
        self.damaged.add(found[-1])
        return self.again("%s damaged" % said, {-signal.SIGKILL, 0, STOPPED, 1})

    def do_copy(self, i):
        """The directory is copied while the run trains, and the copy is trained to the end."""
        to = self.folder + "/copy"
        if os.path.exists(to) or not os.path.exists(self.run + "/config.yaml"):
            return None
        subprocess.run(["cp", "-r", self.run, to], capture_output=True)
        return "copy"

    # ---- the end ----

    def wait(self, host):
        """Returns the exit code, or "hangs" if nothing was added to the metrics for a minute."""
        while True:
            before = self.nbytes()
            try:
                return host.wait(timeout=60)
            except subprocess.TimeoutExpired:
                if self.nbytes() == before:
                    self.hangs.append(where(host.pid))
                    return "hangs"

    def nbytes(self):
        """Of what the run adds to as long as it does something."""
        paths = [self.run + "/metrics.jsonl"] + [self.log_of[h.pid] for h in self.hosts]
        return sum(os.path.getsize(path) for path in paths if os.path.exists(path))

    def end(self):
        """Returns the exit codes."""
        for path in (self.pace, self.slow):
            if os.path.exists(path):
                os.unlink(path)
        self.free()
        if self.addresses and not self.options.asynchronous:
            self.complete()
        codes = [self.wait(host) for host in self.hosts]
        ends = self.options.again or self.options.disk or self.ends_with_worker()
        for _ in range(3):  # a run that was asked to stop, met a full disk, or lost a worker has been continued
            if self.addresses or codes[0] in (0, "hangs") or not ends:
                break
            self.do_return(0)
            codes = [self.wait(self.hosts[0])]
        if self.options.elect and "hangs" not in codes and self.wants_more():
            self.hosts = [self.start(k, n, k == 0, ["--resume"]) for k, n in enumerate(self.n)]
            codes = [self.wait(host) for host in self.hosts]
        if self.options.asynchronous and self.addresses and "hangs" not in codes:
            # the last host to leave may have been lost when none knew enough to take its place
            self.hosts.append(self.start(0, 2, True, ["--resume"]))
            codes = [self.wait(self.hosts[-1])]
        for host in self.hosts:
            host.kill()
            host.wait()
        self.look_for_remains()
        return codes

    def complete(self):
        """While the first host waits for others, those that left before they were counted come back."""
        end = time.monotonic() + 30
        while self.hosts[0].poll() is None and time.monotonic() < end:
            with open(self.log_of[self.hosts[0].pid], errors="replace") as f:
                if "view 1" in f.read():
                    return
            for i in range(1, len(self.hosts)):
                if self.hosts[i].poll() is not None:
                    self.come_back(i, "return")
            time.sleep(0.2)

    def wants_more(self):
        """Have all hosts ended before the last step?"""
        return not glob.glob(self.run + "/checkpoints/step-%d" % STEPS)

    def look_for_remains(self):
        """Nothing is left of a run but what is in its directory."""
        left = wait_until_gone(self.folder, 15)
        if left:
            self.wrong.append("processes are left: %s\n%s" % (left, "\n".join(map(where, left))))
            for pid in left:
                send(pid, signal.SIGKILL)
        hidden = [path for path in glob.glob(self.run + "/**/.*", recursive=True)
                  if not os.path.basename(path).startswith(FRESH)]
        if hidden:
            self.wrong.append("files are left: %s" % " ".join(hidden))
        shared = set(os.listdir("/dev/shm")) - self.options.shared
        if [name for name in shared if name.startswith("lockstep") and "test" not in name]:
            self.wrong.append("files are left in /dev/shm: %s" % " ".join(shared))

    def end_copy(self):
        """Trains the copy, and returns what `ckpt hash` prints of it; None: there is no copy."""
        to = self.folder + "/copy"
        if not os.path.exists(to):
            return None
        line = [self.options.lockstep, "train", "--resume", to, "-n", str(self.step)] + sets(["checkpoint.keep=2"])
        done = subprocess.run(line, capture_output=True, text=True)
        if done.returncode == 1 and not self.checkpoints(to):
            return None  # what was copied may have no beginning
        if done.returncode:
            self.wrong.append("the copy: exit code %d\n%s" % (done.returncode, done.stderr[-1000:]))
        hashed = subprocess.run([self.options.lockstep, "ckpt", "hash", to], capture_output=True, text=True)
        return hashed.stdout

    def remove(self):
        if self.options.disk:
            subprocess.run(["umount", "-l", self.place], check=True)
        shutil.rmtree(self.folder)


def damage(checkpoint):
    """Truncates a file of it, flips a bit, or removes it; returns what was done."""
    name = random.choice(sorted(os.listdir(checkpoint)))
    path, how = os.path.join(checkpoint, name), random.choice(["cut", "bit", "bit", "remove", "empty"])
    size = os.path.getsize(path)
    if how == "remove" or size == 0:
        os.unlink(path)
        return "%s removed" % name
    # frozen.safetensors is a link to that of other checkpoints: a file of its own is damaged
    shutil.copyfile(path, path + "~")
    os.rename(path + "~", path)
    if how == "empty" or how == "cut":
        os.truncate(path, 0 if how == "empty" else random.randrange(size))
        return "%s cut" % name
    with open(path, "r+b") as f:
        at = random.randrange(size)
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1 << random.randrange(8)]))
    return "bit of %s" % name
