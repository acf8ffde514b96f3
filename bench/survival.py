#!/usr/bin/env python3
"""Trains while workers are killed or stopped, and compares with training without faults.

    bench/survival.py build/lockstep --config CONFIG -n 4 --kills 100 [--set KEY=VALUE ...]

Trains once without faults and once with faults at random times, in a temporary directory. Prints
whether the bits are the same, whether the ledger is clean, and how long it took from a fault until
it was logged (the view's line) and until the next step was complete (its line in metrics.jsonl).
With --every SECONDS there is a fault at that interval; prints the throughput as a share of that of
the run's steps without a fault, and of that of the run without faults.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))]


def spread(values):
    if not values:
        return "none"
    return "median %.3f s, p99 %.3f s, most %.3f s" % (
        statistics.median(values), percentile(values, 99), max(values))


class Run:
    def __init__(self, options, folder):
        self.folder = folder
        command = [options.lockstep, "train", options.config, "-n", str(options.n), "-o", folder]
        for s in options.set:
            command += ["--set", s]
        self.began = time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True)
        self.logged = []  # (time, line) of each view's end
        self.log = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.log.append(line)
            if re.match(r"lockstep: view \d+: (?!continuing)", line):
                self.logged.append((time.monotonic(), line.strip()))

    def workers(self):
        path = "/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)
        try:
            return [int(pid) for pid in open(path).read().split()]
        except OSError:
            return []

    def steps(self):
        """Returns the lines of the steps so far."""
        try:
            lines = open(os.path.join(self.folder, "metrics.jsonl")).read().split("\n")[:-1]
        except OSError:
            return []
        return [line for line in map(json.loads, lines) if "loss" in line]

    def watch(self):
        """Records when each step's line came, until the run ends."""
        self.came, at, path = [], 0, os.path.join(self.folder, "metrics.jsonl")
        while self.process.poll() is None:
            try:
                with open(path) as file:
                    file.seek(at)
                    new = file.read()
                whole = new[:new.rfind("\n") + 1]
                at += len(whole)
                self.came += [time.monotonic()] * sum('"loss"' in l for l in whole.splitlines())
            except OSError:
                pass
            time.sleep(0.01)

    def throughput(self, faults):
        """Returns the throughput from the first to the last step, as a share of that of its steps
        without a fault; None if there are too few."""
        pairs = list(zip(self.came, self.came[1:]))
        calm = [b - a for a, b in pairs if not any(a <= f <= b for f in faults)]
        if not calm or len(self.came) < 3:
            return None
        return statistics.mean(calm) * len(pairs) / (self.came[-1] - self.came[0])

    def end(self):
        code = self.process.wait()
        self.reader.join()
        self.seconds = time.monotonic() - self.began
        if code:
            sys.exit("exit code %d:\n%s" % (code, "".join(self.log[-20:])))


def wait_for_step(run, view, logged):
    """Waits until a step of a later view is complete. Returns the time, or None if no view ends:
    the run is over, or the process was not a worker but the writer of a checkpoint."""
    end = time.monotonic() + 5
    while run.process.poll() is None and (time.monotonic() < end or len(run.logged) > logged):
        steps = run.steps()
        if steps and steps[-1]["view"] > view:
            return time.monotonic()
        time.sleep(0.005)
    return None


def make_faults(run, options):
    """Kills or stops workers, each after the run has recovered from the previous fault."""
    kinds = [signal.SIGKILL] * options.kills + [signal.SIGSTOP] * options.stops
    random.shuffle(kinds)
    logged, recovered, happened = {}, [], {signal.SIGKILL: 0, signal.SIGSTOP: 0}
    faults = []
    watcher = threading.Thread(target=run.watch)
    watcher.start()
    while run.process.poll() is None and not run.steps():
        time.sleep(0.01)
    due = time.monotonic()
    for kind in kinds:
        due += options.every
        time.sleep(max(0, due - time.monotonic()) if options.every else
                   random.uniform(0, options.pause))
        steps, workers, before = run.steps(), run.workers(), len(run.logged)
        if run.process.poll() is not None:
            break
        if not workers:
            continue
        begin = time.monotonic()
        os.kill(random.choice(workers), kind)
        happened[kind] += 1
        faults.append(begin)
        if options.every:
            continue  # only the run's time is measured
        end = wait_for_step(run, steps[-1]["view"], before)
        if end is None:
            continue
        recovered.append(end - begin)
        if len(run.logged) > before:
            logged.setdefault(kind, []).append(run.logged[before][0] - begin)
    watcher.join()
    return logged, recovered, happened, run.throughput(faults)


def hash_of(options, folder):
    return subprocess.run([options.lockstep, "ckpt", "hash", folder], capture_output=True,
                          text=True).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("lockstep")
    parser.add_argument("--config", required=True)
    parser.add_argument("-n", type=int, default=4)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--stops", type=int, default=0)
    parser.add_argument("--pause", type=float, default=2, help="at most this many seconds before a fault")
    parser.add_argument("--every", type=float, default=0,
                        help="instead: seconds between faults; only throughput is measured")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hash", help="the hash of the run without faults, if it is known")
    options = parser.parse_args()
    random.seed(options.seed)
    top = tempfile.mkdtemp(prefix="lockstep-survival-")
    try:
        want = options.hash
        if not want:
            calm = Run(options, os.path.join(top, "calm"))
            calm.end()
            want = hash_of(options, calm.folder)
            print("without faults: %.1f s, a step %.3f s (median)" % (
                calm.seconds, statistics.median(s["seconds"] for s in calm.steps())))
        run = Run(options, os.path.join(top, "faults"))
        logged, recovered, happened, share = make_faults(run, options)
        run.end()
        got = hash_of(options, run.folder)
        ledger = subprocess.run([options.lockstep, "ckpt", "ledger", run.folder],
                                capture_output=True, text=True)
        print("with %d kills and %d stops: %.1f s, %d views" % (
            happened[signal.SIGKILL], happened[signal.SIGSTOP], run.seconds,
            run.steps()[-1]["view"]))
        if options.every and share:
            print("throughput: %.1f%% of that of its steps without a fault" % (100 * share))
        if options.every and not options.hash:
            print("throughput: %.1f%% of that without faults" % (100 * calm.seconds / run.seconds))
        print("bits: %s" % ("the same" if got.split() == want.split() else "DIFFERENT: " + got))
        print("ledger: %s" % ("clean" if ledger.returncode == 0 else ledger.stderr.strip()))
        for kind, values in logged.items():
            print("%s until it is logged: %s" % (kind.name, spread(values)))
        print("fault until the next step is complete: %s" % spread(recovered))
        if got.split() != want.split() or ledger.returncode:
            sys.exit(1)
    finally:
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    main()
