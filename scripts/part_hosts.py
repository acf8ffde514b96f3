#!/usr/bin/env python3
"""Trains on hosts of which some can't reach each other: network namespaces on one bridge, packets
dropped between pairs of them.

    scripts/part_hosts.py build/lockstep [NAME ...]

Each case trains, cuts, waits until the log says which host is left out, mends what was cut, waits
until all hosts train again, stops the run, and compares its bits with those of one worker. Needs
root, iptables and the kernel's namespaces; what they do not support is skipped. Prints "passed",
"failed" or "skipped" for each case; exit code 1: one has failed.
"""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

KEY = "0123456789abcdef" * 4
SETS = ["train.eval_every=0", "checkpoint.every=100", "log.every=100000", "optim.lr=1e-3", "optim.min_lr=1e-3",
        "survival.balance=off", "train.steps=1000000"]
PATIENCE_S = 180


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def run(*words, needed=False):
    done = subprocess.run(words, capture_output=True, text=True)
    if needed and done.returncode:
        raise Skipped("%s: %s" % (" ".join(words), done.stderr.strip().splitlines()[:1]))
    return done


class Net:
    """n namespaces with a card each on one bridge: 10.231.0.(i + 1), or fd31::(i + 1). second: host 0
    has another address, 10.232.0.1, on a bridge of its own with the last host."""

    def __init__(self, n, v6=False, second=False):
        self.tag, self.n, self.v6 = "lp%d" % os.getpid(), n, v6
        try:
            self.make(second)
        except Skipped:
            self.remove()
            raise

    def make(self, second):
        self.bridge(self.tag)
        for i in range(self.n):
            run("ip", "netns", "add", self.name(i), needed=True)
            run("ip", "-n", self.name(i), "link", "set", "lo", "up", needed=True)
            self.card(i, self.tag, "%s-%d" % (self.tag, i), "eth0", self.ip(i))
        if second:
            self.bridge(self.tag + "b")
            for i in (0, self.n - 1):
                self.card(i, self.tag + "b", "%sb%d" % (self.tag, i), "eth1", "10.232.0.%d" % (i + 1))

    def bridge(self, name):
        run("ip", "link", "add", name, "type", "bridge", needed=True)
        run("ip", "link", "set", name, "up", needed=True)

    def card(self, i, bridge, outside, inside, address):
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", self.name(i), needed=True)
        run("ip", "link", "set", outside, "master", bridge, "up", needed=True)
        words = ["nodad"] if ":" in address else []
        size = "64" if ":" in address else "24"
        if self.v6:
            run("ip", "netns", "exec", self.name(i), "sysctl", "-qw", "net.ipv6.conf.%s.disable_ipv6=0" % inside)
        run("ip", "-n", self.name(i), "addr", "add", "%s/%s" % (address, size), "dev", inside, *words, needed=True)
        run("ip", "-n", self.name(i), "link", "set", inside, "up", needed=True)

    def name(self, i):
        return "%s-%d" % (self.tag, i)

    def ip(self, i):
        return "fd31::%d" % (i + 1) if self.v6 else "10.231.0.%d" % (i + 1)

    def at(self, i):
        return ("[%s]" if self.v6 else "%s") % self.ip(i)

    def rule(self, i, *words):
        tables = "ip6tables" if self.v6 else "iptables"
        run("ip", "netns", "exec", self.name(i), tables, "-w", *words, needed=True)

    def cut(self, i, j, one_way=False):
        """No packet from i arrives at j, nor one from j at i."""
        self.rule(j, "-A", "INPUT", "-s", self.ip(i), "-j", "DROP")
        if not one_way:
            self.rule(j, "-A", "OUTPUT", "-d", self.ip(i), "-j", "DROP")

    def mend(self):
        for i in range(self.n):
            self.rule(i, "-F")

    def remove(self):
        for i in range(self.n):
            run("ip", "netns", "del", self.name(i))
            shutil.rmtree("/etc/netns/" + self.name(i), ignore_errors=True)
        run("ip", "link", "del", self.tag)
        run("ip", "link", "del", self.tag + "b")


class Run:
    def __init__(self, lockstep, net, hosts=None, sets=(), etcd=None):
        self.lockstep, self.net, self.etcd = lockstep, net, etcd
        self.dir = tempfile.mkdtemp()
        self.hosts, self.first = {}, hosts or net.n
        self.sets = [word for s in SETS + list(sets) for word in ("--set", s)]

    def log(self, i):
        try:
            return open("%s/log.%d" % (self.dir, i)).read()
        except OSError:
            return ""

    def start(self, i, how=None, env=None):
        listen = "%s:7000" % self.net.at(i)
        if self.etcd:
            how = ["--listen", listen, "--hosts", str(self.first), "--membership", self.etcd]
        elif how is None:
            how = ["--join", "%s:7000" % self.net.at(0)] if i else ["--listen", listen, "--hosts", str(self.first)]
        self.hosts[i] = subprocess.Popen(
            ["ip", "netns", "exec", self.net.name(i), self.lockstep, "train", "configs/tiny.yaml", "-n", "2",
             "-o", self.dir + "/many"] + self.sets + how,
            stdout=open("%s/log.%d" % (self.dir, i), "w"), stderr=subprocess.STDOUT,
            env=dict(os.environ, LOCKSTEP_KEY=KEY, **(env or {})), start_new_session=True)

    def start_all(self):
        for i in range(self.first):
            self.start(i)
        self.await_log(0, r"on %d hosts" % self.first)
        self.await_steps()

    def steps(self):
        try:
            found = re.findall(r'"step": (\d+)', open(self.dir + "/many/metrics.jsonl").read())
        except OSError:
            found = []
        return int(found[-1]) if found else 0

    def wait(self, what, is_true):
        end = time.monotonic() + PATIENCE_S
        while not is_true():
            if time.monotonic() > end:
                raise Failed("not within %d s: %s" % (PATIENCE_S, what))
            time.sleep(0.1)

    def await_steps(self, n=20):
        """Until steps are made."""
        before = self.steps()
        self.wait("steps", lambda: self.steps() >= before + n)

    def await_log(self, i, expression, times=1):
        """Until the log has matches; the last one."""
        self.wait("host %d: %s" % (i, expression), lambda: len(re.findall(expression, self.log(i))) >= times)
        return re.findall(expression, self.log(i))[-1]

    def leader(self):
        """With etcd any host may lead."""
        self.wait("a leader", lambda: any("here\n" in self.log(i) and "leads now" in self.log(i) for i in self.hosts))
        return [i for i in self.hosts if "this host leads now" in self.log(i)][-1]

    def stop(self, leader=0):
        """Stops the run; its bits are those of one worker."""
        alive = [i for i in self.hosts if self.hosts[i].poll() is None]
        self.hosts[leader].send_signal(signal.SIGTERM)
        for i in alive:
            try:
                code = self.hosts[i].wait(60)
            except subprocess.TimeoutExpired:
                raise Failed("host %d does not stop" % i)
            if code != 75:
                raise Failed("host %d: exit code %d" % (i, code))
        steps = int(re.search(r"stopped after step (\d+)", self.log(leader)).group(1))
        one = run(self.lockstep, "train", "configs/tiny.yaml", "-n", "1", "-o", self.dir + "/one", *self.sets,
                  "--set", "train.steps=%d" % steps)
        hashes = [run(self.lockstep, "ckpt", "hash", self.dir + "/" + x).stdout for x in ("one", "many")]
        ledger = run(self.lockstep, "ckpt", "ledger", self.dir + "/many")
        if one.returncode or hashes[0] != hashes[1] or not hashes[0] or ledger.returncode:
            raise Failed("other bits after %d steps: %s %s" % (steps, hashes, ledger.stderr))
        return "%d steps, %s" % (steps, re.findall(r"\w+", hashes[0])[-1][:12])

    def end(self):
        for h in self.hosts.values():
            if h.poll() is None:
                os.killpg(h.pid, signal.SIGKILL)
            h.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


@contextlib.contextmanager
def cluster(lockstep, n, how=None, **options):
    """The network of n hosts and their run; how: of the network, options: of the run."""
    net = Net(n, **(how or {}))
    x = Run(lockstep, net, **options)
    try:
        yield net, x
    except Failed:
        show(x)
        raise
    finally:
        x.end()
        net.remove()


def heals(lockstep, n, cut, sets=(), left=1):
    """cut(net) cuts; then `left` hosts are left out, and the others train; then it heals."""
    with cluster(lockstep, n, sets=sets) as (net, x):
        x.start_all()
        cut(net)
        x.await_log(0, r"is left out until", left)
        x.wait("the host says so", lambda: sum("this host is left out until" in x.log(i) for i in range(n)) == left)
        x.await_steps()
        before = len(re.findall(r"view \d+: continuing", x.log(0)))
        time.sleep(12)
        if len(re.findall(r"view \d+: continuing", x.log(0))) > before:
            raise Failed("a good view has ended for nothing")
        net.mend()
        x.await_log(0, r"can do so again", left)
        x.await_log(0, r"workers on %d hosts" % n, 2)
        x.await_steps()
        return x.stop()


def show(x):
    for i in x.hosts:
        lines = [line[:400] for line in x.log(i).splitlines() if "waited" not in line and not line.startswith("  worker")]
        print("---- host %d (exit code %s)\n%s" % (i, x.hosts[i].poll(), "\n".join(lines[-16:])), file=sys.stderr)


COPIES = ["parallel.zero=0"]


def followers(lockstep):
    return heals(lockstep, 3, lambda net: net.cut(1, 2), COPIES)


def followers_sharded(lockstep):
    return heals(lockstep, 3, lambda net: net.cut(1, 2), ["parallel.zero=1", "survival.copies=2"])


def one_way(lockstep):
    return heals(lockstep, 3, lambda net: net.cut(1, 2, one_way=True), COPIES)


def five(lockstep):
    return heals(lockstep, 5, lambda net: (net.cut(1, 3), net.cut(2, 4)), COPIES, 2)


def ports(net, i, j):
    """Host j drops what host i sends to any port but 7000, and new connections to them."""
    net.rule(j, "-A", "INPUT", "-s", net.ip(i), "-p", "tcp", "--sport", "7000", "-j", "ACCEPT")
    net.rule(j, "-A", "INPUT", "-s", net.ip(i), "-p", "tcp", "--dport", "7000", "-j", "ACCEPT")
    net.rule(j, "-A", "INPUT", "-s", net.ip(i), "-p", "tcp", "-j", "DROP")


def leader_ports(lockstep):
    return heals(lockstep, 3, lambda net: ports(net, 2, 0), COPIES)


def from_the_start(lockstep, reject=False):
    """Only the leader's port is open: it trains alone, and says why, twice."""
    with cluster(lockstep, 3, sets=COPIES) as (net, x):
        for i in (1, 2):
            net.rule(0, "-A", "INPUT", "-s", net.ip(i), "-p", "tcp", "--dport", "7000", "-j", "ACCEPT")
            net.rule(0, "-A", "INPUT", "-s", net.ip(i), "-p", "tcp", "--syn", "-j",
                     *(("REJECT", "--reject-with", "tcp-reset") if reject else ("DROP",)))
        for i in range(3):
            x.start(i)
        x.await_log(0, r"is left out until", 2)
        x.await_steps()
        for i in (1, 2):
            x.await_log(i, r"left out until .* the leading host .*: worker \d can't reach worker 0 at 10.231.0.1:\d+")
        net.mend()
        x.await_log(0, r"with 6 workers on 3 hosts", 2)
        x.await_steps()
        return x.stop()


def rejected(lockstep):
    return from_the_start(lockstep, True)


def joins(lockstep):
    """A host joins that can't reach one of those that train."""
    with cluster(lockstep, 3, hosts=2, sets=COPIES) as (net, x):
        net.cut(1, 2)
        x.start_all()
        x.start(2)
        x.await_log(2, "this host is left out until")
        x.await_steps()
        net.mend()
        x.await_log(0, r"with 6 workers on 3 hosts", 2)
        x.await_steps()
        return x.stop()


def address_family(lockstep):
    """IPv6 alone; then two hosts are cut."""
    with cluster(lockstep, 3, {"v6": True}, sets=COPIES) as (net, x):
        for i in range(3):
            run("ip", "netns", "exec", net.name(i), "ip6tables", "-L", needed=True)
        x.start_all()
        net.cut(1, 2)
        x.await_log(0, r"is left out until .*\[fd31::")
        x.await_steps()
        net.mend()
        x.await_log(0, r"with 6 workers on 3 hosts", 2)
        return x.stop()


def two_addresses(lockstep):
    """The leader's name means one of its addresses on host 1, the other one on host 2, which are
    then seen at addresses that the other one can't reach; the last host names another one of its
    own."""
    with cluster(lockstep, 3, {"second": True}, sets=COPIES) as (net, x):
        for i, at in ((0, "0.0.0.0"), (1, "10.231.0.1"), (2, "10.232.0.1")):
            os.makedirs("/etc/netns/" + net.name(i), exist_ok=True)
            with open("/etc/netns/%s/hosts" % net.name(i), "w") as f:
                f.write("127.0.0.1 localhost\n%s leader\n" % at)
        x.start(0, ["--listen", ":7000", "--hosts", "3"])
        for i in (1, 2):
            x.start(i, ["--join", "leader:7000"])
        x.await_log(0, r"on \d hosts")
        x.await_log(0, r"is left out until")
        x.await_steps()
        x.hosts[2].send_signal(signal.SIGTERM)
        x.hosts[2].wait(60)
        x.start(2, ["--join", "leader:7000"], {"LOCKSTEP_LISTEN": "10.231.0.3"})
        x.await_log(2, r"on 3 hosts")
        x.await_steps()
        return x.stop()


def elected(lockstep):
    """With etcd; the leader is killed while two others are cut."""
    if not shutil.which("etcd"):
        raise Skipped("etcd is not installed")
    net = Net(4)
    run("ip", "addr", "add", "10.231.0.100/24", "dev", net.tag, needed=True)
    folder = tempfile.mkdtemp()
    etcd = subprocess.Popen(["etcd", "--data-dir", folder, "--listen-client-urls", "http://10.231.0.100:2379",
                             "--advertise-client-urls", "http://10.231.0.100:2379", "--listen-peer-urls",
                             "http://10.231.0.100:2380", "--initial-advertise-peer-urls", "http://10.231.0.100:2380",
                             "--initial-cluster", "default=http://10.231.0.100:2380"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    x = Run(lockstep, net, sets=COPIES, etcd="etcd://10.231.0.100:2379")
    try:
        for i in range(4):
            x.start(i)
        x.wait("a view of 4 hosts", lambda: any("on 4 hosts" in x.log(i) for i in range(4)))
        leader = x.leader()
        x.await_steps()
        a, b = [i for i in range(4) if i != leader][:2]
        net.cut(a, b)
        x.await_log(leader, "is left out until")
        x.await_steps()
        os.killpg(x.hosts[leader].pid, signal.SIGKILL)
        x.hosts[leader].wait()
        dead = leader
        x.wait("another leader", lambda: any("this host leads now" in x.log(i) for i in range(4) if i != dead))
        leader = [i for i in range(4) if i != dead and "this host leads now" in x.log(i)][-1]
        x.await_steps()
        seen = len(re.findall("on 3 hosts", x.log(leader)))
        net.mend()
        # A host that is cut from the leader itself joins now; else it would lead when this one stops.
        x.await_log(leader, "on 3 hosts", max(1, seen + (leader in (a, b))))
        x.await_steps()
        return x.stop(leader)
    except Failed:
        show(x)
        raise
    finally:
        x.end()
        etcd.kill()
        etcd.wait()
        net.remove()
        shutil.rmtree(folder, ignore_errors=True)


CASES = {"followers": followers, "followers, two copies": followers_sharded, "one way": one_way,
         "five hosts, two cuts": five, "the leader's other ports": leader_ports,
         "the leader's port alone, dropped": from_the_start, "the leader's port alone, rejected": rejected,
         "a host that joins": joins, "IPv6": address_family, "two addresses": two_addresses, "etcd": elected}


def main():
    lockstep, names = os.path.abspath(sys.argv[1]), sys.argv[2:] or list(CASES)
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    failed = 0
    for name in names:
        began = time.monotonic()
        try:
            print("passed: %s: %s, %.0f s" % (name, CASES[name](lockstep), time.monotonic() - began), flush=True)
        except Skipped as why:
            print("skipped: %s: %s" % (name, why), flush=True)
        except Failed as why:
            failed += 1
            print("failed: %s: %s" % (name, why), flush=True)
    sys.exit(failed > 0)


main()
