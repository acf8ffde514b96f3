"""measure_quietly.py step|cpu|memory COMMAND... - for check_sim.sh.

step: runs the command while the machine is idle, and prints the seconds of its line "step". Runs
it again, a few times, if other processes used more than a twentieth of the cores meanwhile.
cpu: for a machine that is never idle. The command must end with "--steps N"; runs it with N and
with N + 4 steps, and prints the processor time of one of the four.
memory: runs the command and prints the most MB that each of its workers used; pages that workers
share are divided among them (Pss).
"""
import os
import resource
import subprocess
import sys
import time

TICK = os.sysconf("SC_CLK_TCK")


def busy_seconds():
    with open("/proc/stat") as f:
        x = [int(v) for v in f.readline().split()[1:]]
    return (sum(x[:8]) - x[3] - x[4]) / TICK


def own_seconds():
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def wait_until_quiet(limit=60):
    end = time.time() + limit
    while time.time() < end:
        before = busy_seconds()
        time.sleep(0.4)
        if busy_seconds() - before < 0.04 * os.cpu_count():
            return


def run_step(command):
    tries = []
    for _ in range(4):
        wait_until_quiet()
        busy, own, begin = busy_seconds(), own_seconds(), time.time()
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        foreign = busy_seconds() - busy - (own_seconds() - own)
        share = foreign / (time.time() - begin) / os.cpu_count()
        step = [line.split()[1] for line in text.splitlines() if line.split()[:1] == ["step"]]
        tries.append((share, float(step[0])))
        if share < 0.05:
            break
    print("%.6f" % min(tries)[1])


def run_cpu(command):
    seconds = []
    for more in (0, 4):
        before = own_seconds()
        steps = [str(int(command[-1]) + more)]
        subprocess.run(command[:-1] + steps, check=True, capture_output=True)
        seconds.append(own_seconds() - before)
    workers = int(command[command.index("-n") + 1])
    print("%.6f" % ((seconds[1] - seconds[0]) / 4 / workers))


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(x) for x in f.read().split()]


def pss(pid):
    with open("/proc/%d/smaps_rollup" % pid) as f:
        return sum(int(line.split()[1]) for line in f if line.startswith("Pss:")) * 1024


def run_memory(command):
    most = 0
    p = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while p.poll() is None:
        try:
            workers = children(p.pid) or [p.pid]
            most = max(most, sum(pss(w) for w in workers) / len(workers))
        except (OSError, ValueError):
            pass
        time.sleep(0.01)
    if p.returncode:
        sys.exit("%s: exit code %d" % (command, p.returncode))
    print("%.3f" % (most / 1e6))


if sys.argv[1] == "step":
    run_step(sys.argv[2:])
elif sys.argv[1] == "cpu":
    run_cpu(sys.argv[2:])
else:
    run_memory(sys.argv[2:])
