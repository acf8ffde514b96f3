#!/usr/bin/env python3
"""Our collectives beside other systems', measured alternately.

    compare_comm.py LOCKSTEP openmpi,mpich,gloo,floor [OPTIONS OF lockstep bench comm]

In each of three passes every system runs once on all sizes, in processes of its own, so that a change of
the machine's load affects all systems. A size's figure is the median of the passes' medians. Peers are
measured in place, but for operations that move blocks between two buffers. Their programs (mpi.c,
gloo.cc, ../floor.c) are in the directory bench/ beside LOCKSTEP. A peer that fails, or takes longer than
120 s, does not make the comparison fail.
"""
import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys

PASSES, LEAST_ROUNDS, LIMIT_S = 3, 5, 120
PEERS = ("openmpi", "mpich", "gloo", "floor")
MOVES = ("gather", "scatter", "all_to_all", "gather_v", "scatter_v", "all_to_all_v")
REDUCES = ("all_reduce", "reduce_scatter", "reduce", "scan", "exscan")
ONLY_TCP = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]  # else Open MPI uses shared memory
running = None


def read_arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("lockstep")
    p.add_argument("peers", type=lambda text: text.split(","))
    p.add_argument("-n", "--workers", type=int, default=max(2, len(os.sched_getaffinity(0))))
    p.add_argument("--op", default="all_reduce")
    p.add_argument("--dtype", default="f32")
    p.add_argument("--redop", default="sum")
    p.add_argument("--transport", default="shm")
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--busy", type=int, default=0, help="processes that compute meanwhile")
    p.add_argument("--json", action="store_true")
    a, a.more = p.parse_known_args()
    for peer in a.peers:
        if peer not in PEERS:
            p.error(f"'{peer}' is not one of {', '.join(PEERS)}")
        if a.peers.count(peer) > 1:
            p.error(f"'{peer}' occurs twice")
    a.place = "out" if a.op in MOVES else "in"
    a.rounds = max(a.rounds // PASSES, LEAST_ROUNDS)
    return a


class System:
    def __init__(self, name):
        self.name, self.version, self.why, self.wrong = name, "", "", 0
        self.variant, self.nbytes, self.times = {}, {}, {}  # by the place of a size in the list

    def median(self, i):
        return statistics.median(self.times[i]) if not self.why and i in self.times else 0


def run(argv):
    """Returns the exit code and the output; None: it took too long. It leads a process group, which ends."""
    global running
    running = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors="replace", start_new_session=True)
    try:
        out, err = running.communicate(timeout=LIMIT_S)
        return running.returncode, out, err
    except subprocess.TimeoutExpired:
        return None, "", ""
    finally:
        kill(signal.SIGKILL)


def kill(number):
    try:
        os.killpg(running.pid, number)
    except (AttributeError, ProcessLookupError):
        pass


def end(number, frame):
    """A signal ends the system that runs, and this program."""
    kill(signal.SIGKILL)
    os._exit(128 + number)


def measure(system, argv, a, sizes):
    """Runs it once; sizes [n], or empty: those of the lines that it prints."""
    code, out, err = run(argv)
    if code is None:
        system.why = f"it did not finish within {LIMIT_S} s"
    elif code:
        said = err.lstrip("-= \t\r\n").splitlines()
        system.why = f"exit code {code}" + (f": {said[0][:200]}" if said else "")
    if system.why:
        return
    taken = set()
    for line in (json.loads(x) for x in out.splitlines() if x.startswith("{")):
        # Over TCP the floor's exchange has two buffers, and counts as an all-reduce nevertheless.
        if line.get("op") != a.op or (line.get("place") != a.place and not system.name.startswith("floor")):
            continue
        if system.name == "lockstep" and len(taken) == len(sizes):
            sizes.append(line["asked"])
        i = next((i for i, size in enumerate(sizes) if size == line["asked"] and i not in taken), None)
        if i is None:
            continue
        taken.add(i)
        system.times.setdefault(i, []).append(line["median_s"])
        system.nbytes[i] = line["nbytes"]
        system.wrong += line["wrong"]
        system.variant[i] = line.get("variant", "")
        system.name, system.version = line.get("system", system.name), line.get("version", "")
    if not taken:
        system.why = "it printed no result"


def our_words(a):
    words = [a.lockstep, "bench", "comm", "--json", "--op", a.op, "--dtype", a.dtype, "--place", a.place,
             "--transport", a.transport, "--workers", str(a.workers), "--rounds", str(a.rounds)]
    return words + (["--redop", a.redop] if a.op in REDUCES else []) + a.more


def peer_words(a, peer, program, sizes):
    n, list_ = str(a.workers), ",".join(map(str, sizes))
    if peer == "floor":
        return [program, "tcp" if a.transport == "tcp" else "shm", list_, str(a.rounds)]
    start = {"gloo": [program, "-n", n],
             "mpich": ["mpirun.mpich", "-n", n, program],
             "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe",
                         *(ONLY_TCP if a.transport == "tcp" else []), "-n", n, program]}[peer]
    return [*start, a.op, a.dtype, str(a.rounds), list_, a.redop]


def run_peer(system, peer, a, sizes):
    folder = os.path.join(os.path.dirname(os.path.abspath(a.lockstep)), "bench")
    program = os.path.join(folder, peer if peer == "floor" else f"peer-{peer}")
    if peer == "floor" and (a.workers, a.op, a.dtype, a.redop) != (2, "all_reduce", "f32", "sum"):
        system.why = "it only measures all_reduce of f32 sum with 2 workers"
    elif not os.access(program, os.X_OK):
        system.why = f"{program} does not exist; `make bench` builds it"
    elif not system.why:
        measure(system, peer_words(a, peer, program, sizes), a, sizes)


def gb_per_s(system, i):
    return system.nbytes[i] / system.median(i) / 1e9 if system.median(i) else 0


def print_table(a, systems, sizes):
    ours, redop = systems[0], f" {a.redop}" if a.op in REDUCES else ""
    print(f"# {a.op} {a.dtype}{redop}, {a.workers} workers, transport {a.transport}, host {platform.node()}")
    if a.busy:
        print(f"# beside {a.busy} busy processes")
    print(f"# systems alternate, {PASSES} passes of {a.rounds} rounds; median of the passes' medians")
    print("# x: that system's bandwidth / ours; below 1, ours is faster\n#")
    there = [s for s in systems if not s.why]
    print(f"# {'size':>10}" + "".join(f"{'  | ' if s is not ours else '  '}"
                                      f"{s.name + ' ' + s.version:>{27 if s is not ours else 19}}" for s in there))
    print(f"# {'(B)':>10}" + "".join(f"{'  | ' if s is not ours else '  '}{'time(us)':>10} {'GB/s':>8}"
                                     + (f" {'x':>7}" if s is not ours else "") for s in there))
    for i in range(len(sizes)):
        line = f"{ours.nbytes[i]:>12}"
        for s in there:
            seconds = s.median(i)
            cells = (f"{seconds * 1e6:>10.2f} {gb_per_s(s, i):>8.4g}" if seconds else f"{'-':>10} {'-':>8}")
            if s is not ours:
                cells += f" {ours.median(i) / seconds:>7.3g}" if seconds else f" {'-':>7}"
            line += ("  | " if s is not ours else "  ") + cells
        print(line)
    print("#")
    for s in systems:
        if s.why:
            print(f"# {s.name}: {s.why}")
        elif s.wrong:
            print(f"# {s.name}: {s.wrong:.0f} wrong elements")


def json_of(system, ours, i):
    if system.why:
        return {"system": system.name, "failed": system.why}
    seconds = system.median(i)
    o = {"system": system.name, "version": system.version, "variant": system.variant.get(i, ""),
         "median_s": seconds or None, "algbw": gb_per_s(system, i) or None}
    if system is not ours:
        o["x"] = ours.median(i) / seconds if seconds else None
    return o | {"passes": len(system.times.get(i, [])), "wrong": system.wrong}


def print_json(a, systems, sizes):
    ours = systems[0]
    for i, asked in enumerate(sizes):
        print(json.dumps({"op": a.op, "dtype": a.dtype, "redop": a.redop if a.op in REDUCES else "none",
                          "workers": a.workers, "place": a.place, "asked": asked, "nbytes": ours.nbytes[i],
                          "rounds": a.rounds, "ours": json_of(ours, ours, i),
                          "peers": [json_of(s, ours, i) for s in systems[1:]]}))


def main():
    a = read_arguments()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    busy = [subprocess.Popen([sys.executable, "-c", "import os\nparent = os.getppid()\n"
                              "while os.getppid() == parent: pass"]) for _ in range(a.busy)]
    systems, sizes = [System("lockstep"), *map(System, a.peers)], []
    for _ in range(PASSES):
        measure(systems[0], our_words(a), a, sizes)
        if systems[0].why:
            break
        for peer, system in zip(a.peers, systems[1:]):
            run_peer(system, peer, a, sizes)
    for p in busy:
        p.kill()
    if systems[0].why:
        sys.exit(f"compare_comm.py: lockstep: {systems[0].why}")
    (print_json if a.json else print_table)(a, systems, sizes)
    return 1 if systems[0].wrong else 0


sys.exit(main())
