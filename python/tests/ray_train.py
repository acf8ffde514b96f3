"""Training on a Ray cluster of this machine, whose raylets are its nodes. Needs the package ray, so
it is no part of test_*.py: scripts/check_ray.sh runs it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from typing import Any

import trained
from launch import LIMIT_S, ROOT
from ray.cluster_utils import Cluster  # type: ignore[import-not-found,unused-ignore]

STEPS, MANY_STEPS = 600, 3000
SETS = ["checkpoint.every=50", "train.eval_every=0", "optim.warmup=5"]


def sets(steps: int) -> list[str]:
    return [word for value in [f"train.steps={steps}", *SETS] for word in ("--set", value)]


def hash_of(run: Path) -> str:
    found: dict[str, Any] = json.loads(trained.lockstep("ckpt", "hash", str(run), "--json"))
    return str(found["weights"])


class Nodes(unittest.TestCase):
    """A head without CPUs, and two nodes of two workers each."""

    def setUp(self) -> None:
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self.nodes = [self.cluster.add_node(num_cpus=2) for _ in range(2)]
        self.run_folder = trained.TOP / self.id().split(".")[-1]
        self.output = trained.TOP / "ray.log"

    def tearDown(self) -> None:
        self.cluster.shutdown()

    def start(self, steps: int = STEPS) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-m", "lockstep.ray", "train", "configs/tiny.yaml", "-n", "4", "-o",
                str(self.run_folder), *sets(steps)]  # fmt: skip
        environment = {**os.environ, "RAY_ADDRESS": self.cluster.address}
        with open(self.output, "wb") as file:
            return subprocess.Popen(line, cwd=ROOT, env=environment, stdout=file, stderr=file)

    def steps(self) -> int:
        try:
            lines = (self.run_folder / "metrics.jsonl").read_text().splitlines()
            return max((json.loads(x)["step"] for x in lines if x.endswith("}")), default=0)
        except (FileNotFoundError, json.JSONDecodeError):
            return 0

    def wait_for_step(self, step: int, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + LIMIT_S
        while self.steps() < step:
            self.assertIsNone(process.poll(), self.output.read_text())
            self.assertLess(time.monotonic(), end, self.output.read_text())
            time.sleep(0.05)

    def ends(self, process: subprocess.Popen[bytes]) -> str:
        code = process.wait(LIMIT_S)
        text = self.output.read_text()
        self.assertEqual(code, 0, text)
        return text

    def same_as_one_worker(self, steps: int = STEPS) -> None:
        alone = trained.TOP / f"alone-{steps}"
        if not alone.exists():
            trained.lockstep("train", "configs/tiny.yaml", "-n", "1", "-o", str(alone), *sets(steps))
        self.assertEqual(hash_of(self.run_folder), hash_of(alone))

    def leader(self, text: str) -> Any:
        """The node whose `lockstep train` listens: it is the parent's parent of that process."""
        for node in self.nodes:
            pid = node.all_processes["raylet"][0].process.pid
            tree = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True)
            rows = [r.split(None, 2) for r in tree.stdout.splitlines()[1:]]
            children = {int(p) for p, parent, _ in rows if int(parent) == pid}
            for _, parent, words in rows:
                if int(parent) in children and text in words and str(self.run_folder) in words:
                    return node
        raise AssertionError(f"no node runs {text}")

    def test_undisturbed(self) -> None:
        self.assertIn("4 workers on 2 nodes", self.ends(self.start()))
        self.same_as_one_worker()
        self.assertIn('"workers": 4', (self.run_folder / "metrics.jsonl").read_text())

    def test_a_lost_node(self) -> None:
        process = self.start()
        self.wait_for_step(60, process)
        self.cluster.remove_node(self.leader("--join"), allow_graceful=False)
        self.assertIn("with 2 workers is lost", self.ends(process))
        self.same_as_one_worker()
        self.assertIn('"workers": 2', (self.run_folder / "metrics.jsonl").read_text())

    def test_a_new_node(self) -> None:
        """Workers that are lost get places on a node that comes later, which takes Ray seconds."""
        process = self.start(MANY_STEPS)
        self.wait_for_step(30, process)
        self.cluster.remove_node(self.leader("--join"), allow_graceful=False)
        self.cluster.add_node(num_cpus=2)
        self.assertIn("2 workers join on another node", self.ends(process))
        self.same_as_one_worker(MANY_STEPS)

    def test_the_first_node_lost(self) -> None:
        process = self.start()
        self.wait_for_step(120, process)
        self.cluster.remove_node(self.leader("--listen"), allow_graceful=False)
        self.cluster.add_node(num_cpus=2)
        self.assertIn("all start again from the newest checkpoint", self.ends(process))
        self.same_as_one_worker()

    def test_stopped(self) -> None:
        process = self.start(1_000_000)  # it is not complete before the signal comes
        self.wait_for_step(20, process)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(LIMIT_S), 75, self.output.read_text())
        shutil.rmtree(self.run_folder)


class NoRoom(unittest.TestCase):
    def test_refused(self) -> None:
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        try:
            line = [sys.executable, "-m", "lockstep.ray", "train", "configs/tiny.yaml", "-n", "3",
                    "-o", "none", "--wait", "1"]  # fmt: skip
            environment = {**os.environ, "RAY_ADDRESS": cluster.address}
            done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True)
            self.assertIn("no room for 3 workers of 1 CPUs within 1 s", done.stderr)
            self.assertEqual(done.returncode, 1)
        finally:
            cluster.shutdown()


if __name__ == "__main__":
    unittest.main()
