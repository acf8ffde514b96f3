#!/usr/bin/env python3
"""Trains on the three namespaces of scripts/netns.sh while links are cut and workers are killed.

    scripts/cut_links.py build/lockstep TAG FOLDER --cuts 20 [--config CONFIG] [--set KEY=VALUE ...]

Stops the run after the last cut, trains the same number of steps undisturbed, and compares hash and
ledger. The learning rate is constant, so that the bits do not depend on the configured length of
the run. Prints the time to the next complete step, from the beginning of each cut and from its end.
Failures are printed on standard error, with the hosts' logs.
"""
import argparse
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

SETS = ["train.eval_every=0", "checkpoint.every=200", "log.every=100000", "optim.lr=1e-3",
        "optim.min_lr=1e-3", "survival.heartbeat_s=0.5", "survival.balance=off"]


def spread(values):
    if not values:
        return "none"
    return "median %.1f s, most %.1f s" % (statistics.median(values), max(values))


class Metrics:
    """The lines of steps: (when seen, step, workers)."""

    def __init__(self, path):
        self.path, self.seen, self.ends = path, [], False
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        offset = 0
        while not self.ends:
            try:
                size = os.path.getsize(self.path)
                if size < offset:  # the file was truncated: these steps are repeated
                    offset = 0
                with open(self.path, "rb") as f:
                    f.seek(offset)
                    data = f.read()
            except OSError:
                data = b""
            end = data.rfind(b"\n") + 1
            offset += end
            found = re.findall(rb'"step": (\d+).*"view": \d+, "workers": (\d+)', data[:end])
            if found:
                self.seen.append((time.monotonic(), int(found[-1][0]), int(found[-1][1])))
            time.sleep(0.01)

    def after(self, moment, workers=0):
        """When the first step after that moment was seen; None: not yet."""
        found = [at for at, _, n in self.seen if at > moment and n >= workers]
        return found[0] if found else None


def run(*words):
    return subprocess.run(words, capture_output=True, text=True)


class Link:
    """A host's link, which goes down, or stays up and loses all packets. If the kernel has no
    netem, the link is detached from the bridge instead."""

    def __init__(self, tag, host, loses):
        self.bridge, self.outside, self.loses = tag, "%s-%d" % (tag, host), loses
        self.netem = False

    def lose(self, verb):
        """Loses packets in both directions."""
        extra = ["netem", "loss", "100%"] if verb == "add" else []
        ends = [["tc"], ["ip", "netns", "exec", self.outside, "tc"]]
        return all([run(*end, "qdisc", verb, "dev", dev, "root", *extra).returncode == 0
                    for end, dev in zip(ends, [self.outside, "eth0"])])

    def set(self, *words):
        if run("ip", "link", "set", self.outside, *words).returncode:
            sys.exit("ip link set %s %s fails" % (self.outside, " ".join(words)))

    def cut(self):
        self.netem = self.loses and self.lose("add")
        if not self.loses:
            self.set("down")
        elif not self.netem:
            self.lose("del")
            self.set("nomaster")

    def restore(self):
        if not self.loses:
            self.set("up")
        elif not self.netem:
            self.set("master", self.bridge)
        else:
            self.lose("del")


def workers_of(process):
    try:
        return [int(p) for p in
                open("/proc/%d/task/%d/children" % (process.pid, process.pid)).read().split()]
    except OSError:
        return []


def kill_one(hosts):
    pids = [pid for h in hosts for pid in workers_of(h)]
    if not pids:
        return 0
    try:
        os.kill(random.choice(pids), signal.SIGKILL)
    except OSError:
        return 0
    return 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lockstep")
    parser.add_argument("tag")
    parser.add_argument("folder")
    parser.add_argument("--config", default="configs/tiny.yaml")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2, help="of each host")
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[])
    o = parser.parse_args()
    random.seed(o.seed)
    many, undisturbed = os.path.join(o.folder, "many"), os.path.join(o.folder, "undisturbed")
    for path in (many, undisturbed):
        shutil.rmtree(path, ignore_errors=True)
    sets = [word for s in SETS + o.set for word in ("--set", s)]
    train = [o.lockstep, "train", o.config] + sets
    hosts, logs = [], [os.path.join(o.folder, "log.%d" % i) for i in range(o.hosts)]
    for i in range(o.hosts):
        how = ["--join", "10.231.0.1:7000"] if i else ["--listen", "10.231.0.1:7000", "--hosts", str(o.hosts)]
        hosts.append(subprocess.Popen(
            ["ip", "netns", "exec", "%s-%d" % (o.tag, i)] + train +
            ["-n", str(o.workers), "-o", many, "--set", "train.steps=1000000"] + how,
            stdout=open(logs[i], "w"), stderr=subprocess.STDOUT))

    def give_up(why):
        print("%s; exit codes %s" % (why, [h.poll() for h in hosts]), file=sys.stderr)
        for path in logs:
            print("---- %s\n%s" % (path, "".join(open(path).readlines()[-25:])), file=sys.stderr)
        for h in hosts:
            h.kill()
        sys.exit(1)

    metrics = Metrics(os.path.join(many, "metrics.jsonl"))

    def wait(moment, workers=0):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            at = metrics.after(moment, workers)
            if at:
                return at
            if any(h.poll() is not None for h in hosts):
                give_up("a host has ended")
            time.sleep(0.01)
        give_up("no step for 60 s")

    def steps_back():
        return open(logs[0]).read().count("from the newest checkpoint")

    wait(time.monotonic(), o.hosts * o.workers)
    from_cut, from_end, whole, kills, silent = [], [], [], 0, 0
    for i in range(o.cuts):
        time.sleep(random.uniform(0, 1))
        host, before = random.randrange(o.hosts), steps_back()
        link = Link(o.tag, host, random.random() < 0.5)
        seconds = random.uniform(1, 6)
        link.cut()
        silent += link.loses
        cut = time.monotonic()
        if random.random() < 0.5:
            time.sleep(seconds / 2)
            kills += kill_one(hosts)
        time.sleep(max(0, cut + seconds - time.monotonic()))
        link.restore()
        end = time.monotonic()
        # A step that was nearly complete when the link was cut finishes within 0.3 s.
        from_cut.append(wait(cut + 0.3) - cut)
        from_end.append(wait(end) - end)
        whole.append(wait(end, o.hosts * o.workers) - end)
        # The leader loses all other hosts at once, which is more than two copies can make up for.
        if host != 0 and steps_back() > before:
            give_up("steps were lost with host %d" % host)
    hosts[0].send_signal(signal.SIGTERM)
    for h in hosts:
        try:
            if h.wait(60) != 75:
                give_up("a host did not stop when asked to")
        except subprocess.TimeoutExpired:
            give_up("a host does not stop")
    metrics.ends = True
    steps = int(re.search(r"stopped after step (\d+)", open(logs[0]).read()).group(1))
    whole_mesh = str(o.hosts * o.workers)
    if run(*train, "-n", whole_mesh, "-o", undisturbed, "--set", "train.steps=%d" % steps).returncode:
        give_up("the undisturbed run failed")
    want, got = (run(o.lockstep, "ckpt", "hash", path).stdout for path in (undisturbed, many))
    ledger = run(o.lockstep, "ckpt", "ledger", many)
    views = len(re.findall(r"view \d+: (?:continuing|beginning)", open(logs[0]).read()))
    print("  %d steps, %d cuts (%d links down, %d lost all packets), %d workers killed, %d views, "
          "%d of them from a checkpoint" % (
              steps, o.cuts, o.cuts - silent, silent, kills, views, steps_back()))
    print("  until the next step: from the cut %s; from its end %s; until all train: %s" % (
        spread(from_cut), spread(from_end), spread(whole)))
    if want != got or not got:
        give_up("other bits: %s, undisturbed: %s" % (got, want))
    if ledger.returncode:
        give_up(ledger.stderr)


main()
