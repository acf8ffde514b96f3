"""Training on a Ray cluster: the workers of `lockstep train` on nodes that Ray chooses.

    python -m lockstep.ray train CONFIG -n 4 -o RUN [OPTION...]

A placement group has a bundle for each worker. Each node with bundles runs one `lockstep train` as a
host of the run (docs/guide/hosts.md): the first one listens, the others join. A node that is lost
takes its workers with it, and the others continue without a lost step; where Ray finds new places for
the bundles, workers join there. If the first node is lost, all start again from the newest
checkpoint. The weights have the bits of one worker.

Nodes need this package, and the run directory and the data under the same paths.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import Any

from lockstep import _program

_POLL_S = 0.3
_STOPPED = 75  # exit code of a run that was stopped
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Host:
    """An actor: `lockstep train` on one node."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: list[str] = []
        self._lock = threading.Lock()
        self._reader: threading.Thread | None = None

    def address(self) -> str:
        """Where this node can listen."""
        ip: str = importlib.import_module("ray").util.get_node_ip_address()
        with socket.socket() as s:
            s.bind((ip, 0))
            return f"{ip}:{s.getsockname()[1]}"

    def start(self, arguments: list[str], variables: dict[str, str], folder: str) -> None:
        self._process = subprocess.Popen(
            [_program.path(), *arguments], env={**os.environ, **variables}, cwd=folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process and self._process.stdout
        for line in self._process.stdout:
            with self._lock:
                self._lines.append(line.decode(errors="replace").rstrip("\n"))

    def poll(self) -> tuple[list[str], int | None]:
        """Lines since the last call, and the exit code once it has ended."""
        assert self._process and self._reader
        code = self._process.poll()
        if code is not None:
            self._reader.join(5)
        with self._lock:
            lines, self._lines = self._lines, []
        return lines, code

    def stop(self) -> None:
        if self._process:
            self._process.terminate()


class _Place:
    """A host of the run, as the driver sees it."""

    def __init__(self, node: str, actor: Any, workers: int, leads: bool) -> None:
        self.node, self.actor, self.workers, self.leads = node, actor, workers, leads
        self.code: int | None = None
        self.lost = False

    @property
    def runs(self) -> bool:
        return self.code is None and not self.lost


class Job:
    """A run on the cluster: places workers, watches them, and replaces those that are lost."""

    def __init__(self, options: argparse.Namespace, rest: list[str]) -> None:
        self._ray = importlib.import_module("ray")
        self._groups = importlib.import_module("ray.util.placement_group")
        self._strategies = importlib.import_module("ray.util.scheduling_strategies")
        self._options = options
        self._resumes = "--resume" in rest
        rest = [word for word in rest if word != "--resume"]
        self._line = ["train", options.config, "-o", os.path.abspath(options.run), *rest]
        key = os.environ.get("LOCKSTEP_KEY") or secrets.token_hex(32)
        self._variables = {"LOCKSTEP_KEY": key}
        self._places: list[_Place] = []
        self._address = ""
        self._stopping = False
        self._group: Any = None

    def _say(self, text: str) -> None:
        print(f"lockstep.ray: {text}", file=sys.stderr, flush=True)

    # ---- placing ----

    def _reserve(self) -> None:
        o = self._options
        bundles = [{"CPU": o.cpus}] * o.workers
        self._group = self._groups.placement_group(bundles, strategy=o.strategy)
        try:
            self._ray.get(self._group.ready(), timeout=o.wait)
        except self._ray.exceptions.GetTimeoutError:
            raise SystemExit(
                f"lockstep.ray: the cluster has no room for {o.workers} workers of {o.cpus} CPUs "
                f"within {o.wait:g} s"
            ) from None

    def _bundles(self) -> dict[int, str]:
        """The node of each bundle that is placed, of nodes that are alive."""
        table = self._groups.placement_group_table(self._group)
        alive = {n["NodeID"] for n in self._ray.nodes() if n["Alive"]}
        placed = table.get("bundles_to_node_id", {})
        return {int(i): node for i, node in placed.items() if node in alive}

    def _host_on(self, node: str, bundles: dict[int, str], leads: bool) -> _Place:
        mine = [i for i, n in bundles.items() if n == node]
        where = self._strategies.PlacementGroupSchedulingStrategy(
            self._group, placement_group_bundle_index=mine[0]
        )
        actor = self._ray.remote(Host).options(
            num_cpus=self._options.cpus, max_restarts=0, max_concurrency=2,
            scheduling_strategy=where,
        ).remote()  # fmt: skip
        return _Place(node, actor, len(mine), leads)

    def _start(self, place: _Place, more: list[str]) -> None:
        line = [*self._line, "-n", str(place.workers), *more]
        variables = self._variables
        self._ray.get(place.actor.start.remote(line, variables, os.getcwd()))

    def _start_all(self, resume: bool) -> None:
        bundles = self._bundles()
        nodes = Counter(bundles.values())
        first = bundles[min(bundles)]
        order = [first, *(node for node in nodes if node != first)]
        self._places = [self._host_on(node, bundles, node == first) for node in order]
        self._address = self._ray.get(self._places[0].actor.address.remote())
        more = ["--resume"] if resume else []
        self._start(self._places[0], ["--listen", self._address, "--hosts", str(len(order)), *more])
        for place in self._places[1:]:
            self._start(place, ["--join", self._address, *more])
        self._say(f"{sum(nodes.values())} workers on {len(order)} nodes")

    def _join_new_nodes(self) -> None:
        """Bundles that Ray has moved from lost nodes to others. Ray may still take a node for alive
        whose actor is lost; one that comes back has another number."""
        bundles = self._bundles()
        taken = {place.node for place in self._places}
        for node, count in Counter(bundles.values()).items():
            if node in taken:
                continue
            place = self._host_on(node, bundles, False)
            self._places.append(place)
            try:
                self._start(place, ["--join", self._address])
                self._say(f"{count} workers join on another node")
            except self._ray.exceptions.RayActorError:
                self._lose(place)

    # ---- watching ----

    def _lose(self, place: _Place) -> None:
        place.lost = True
        self._say(f"the node {place.node[:8]} with {place.workers} workers is lost")

    def _poll(self, place: _Place) -> None:
        try:
            lines, place.code = self._ray.get(place.actor.poll.remote(), timeout=60)
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError):
            self._lose(place)
            return
        for line in lines:
            print(line if place.leads else f"[{place.node[:8]}] {line}", flush=True)

    def _stop(self, *_: object) -> None:
        self._stopping = True
        for place in self._places:
            if place.runs and place.leads:
                place.actor.stop.remote()

    def _watch(self) -> int | None:
        """The run's exit code, once it has ended; None: its first node is lost."""
        leader = self._places[0]
        while leader.runs:
            for place in [p for p in self._places if p.runs]:
                self._poll(place)
            if any(place.lost for place in self._places) and not self._stopping and leader.runs:
                self._join_new_nodes()
            time.sleep(_POLL_S)
        for place in self._places[1:]:  # they end by themselves
            while place.runs:
                self._poll(place)
                time.sleep(_POLL_S)
        return None if leader.lost else leader.code

    def run(self) -> int:
        """Exit codes are those of `lockstep train`."""
        self._ray.init(log_to_driver=False, ignore_reinit_error=True)
        self._reserve()
        previous = {s: signal.signal(s, self._stop) for s in (signal.SIGTERM, signal.SIGINT)}
        try:
            self._start_all(self._resumes)
            for _ in range(self._options.restarts):
                code = self._watch()
                if code is not None or self._stopping:
                    return _STOPPED if code is None else code
                self._say("the first node is lost: all start again from the newest checkpoint")
                self._ray.get(self._group.ready(), timeout=self._options.wait)
                self._start_all(True)
            code = self._watch()
            return 1 if code is None else code
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
            self._groups.remove_placement_group(self._group)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "python -m lockstep.ray", description="Trains on a Ray cluster.",
        epilog="Other options are passed on to `lockstep train`.",
    )  # fmt: skip
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", epilog=parser.epilog)
    train.add_argument("config")
    train.add_argument("-n", dest="workers", type=int, required=True, help="workers in all")
    train.add_argument("-o", dest="run", required=True, help="the run directory, on shared storage")
    train.add_argument("--cpus", type=float, default=1, help="CPUs of a worker (default: 1)")
    train.add_argument("--strategy", default="PACK", help="of the placement group (default: PACK)")
    train.add_argument("--wait", type=float, default=60, help="seconds for room on the cluster")
    train.add_argument("--restarts", type=int, default=3, help="after the first node is lost")
    options, rest = parser.parse_known_args(words)
    if options.workers < 1:
        parser.error("-n: at least one worker is needed")
    if importlib.util.find_spec("ray") is None:
        print("lockstep: Ray is not installed: pip install ray", file=sys.stderr)
        return 1
    return Job(options, rest).run()
