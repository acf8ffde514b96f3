"""Collectives, futures, errors and interrupts: real processes under `lockstep run`."""

from __future__ import annotations

import importlib.util
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from launch import HERE, LIMIT_S, run


class Workers(unittest.TestCase):
    def check(self, n: int, program: str, *arguments: str, **variables: str) -> str:
        r = run(n, program, *arguments, **variables)
        self.assertEqual(r.returncode, 0, r.stdout)
        self.assertEqual(r.stdout.count("right\n"), n, r.stdout)
        return r.stdout


class Collectives(Workers):
    def test_alone(self) -> None:
        self.check(1, "worker_collectives.py")

    def test_shared_memory(self) -> None:
        self.check(3, "worker_collectives.py")

    def test_tcp(self) -> None:
        self.check(2, "worker_collectives.py", LOCKSTEP_TRANSPORT="tcp", LOCKSTEP_INSECURE="1")

    @unittest.skipUnless(importlib.util.find_spec("ml_dtypes"), "ml_dtypes is not installed")
    def test_bfloat16(self) -> None:
        from references import cases

        self.assertIn("bfloat16", [dtype.name for dtype, _ in cases()])


class Calls(Workers):
    def test_inputs(self) -> None:
        self.check(2, "worker_calls.py", "inputs")

    def test_dlpack(self) -> None:
        self.check(2, "worker_calls.py", "dlpack")

    def test_outputs(self) -> None:
        self.check(2, "worker_calls.py", "outputs")

    def test_virtual(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for n in (1, 2, 3):
                self.check(n, "worker_calls.py", "virtual", folder)
            bits = {(Path(folder) / f"{n}.bits").read_bytes() for n in (1, 2, 3)}
        self.assertEqual(len(bits), 1)
        self.assertEqual(len(bits.pop()), 4004)

    def test_futures(self) -> None:
        self.check(3, "worker_calls.py", "futures")

    def test_divided(self) -> None:
        self.check(3, "worker_calls.py", "divided")

    def test_leaks(self) -> None:
        self.check(2, "worker_calls.py", "leaks")

    def test_opened(self) -> None:
        line = [sys.executable, str(HERE / "worker_calls.py"), "opened"]
        r = subprocess.run(line, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual((r.returncode, r.stdout), (0, "right\n"))

    def meet(self, hosts: list[str]) -> None:
        """Workers, each of one of these hosts, or of this one: no launcher has started them."""
        with socket.create_server(("127.0.0.1", 0)) as s:
            address = "127.0.0.1:%d" % s.getsockname()[1]
            line = [sys.executable, str(HERE / "worker_calls.py"), "met"]
            place = [str(len(hosts)), address, secrets.token_hex(16)]
            running = [
                subprocess.Popen(
                    [*line, str(r), *place, *([str(s.fileno())] if r == 0 else [])],
                    env={**os.environ, **({"LOCKSTEP_HOST": host} if host else {})},
                    pass_fds=[s.fileno()] if r == 0 else [],
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                )
                for r, host in enumerate(hosts)
            ]
        for p in running:
            self.assertEqual(p.communicate(timeout=LIMIT_S)[0], "right\n")

    def test_met_on_one_host(self) -> None:
        self.meet(["", "", ""])

    def test_met_on_two_hosts(self) -> None:
        self.meet(["a", "a", "b", "b"])

    def test_unmet(self) -> None:
        line = [sys.executable, str(HERE / "worker_calls.py"), "unmet"]
        r = subprocess.run(line, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual((r.returncode, r.stdout), (0, "right\n"))

    def test_memory(self) -> None:
        self.check(2, "worker_calls.py", "memory")

    def test_interrupted(self) -> None:
        self.check(3, "worker_calls.py", "interrupted")

    def test_interrupted_start(self) -> None:
        r = run(2, "worker_calls.py", "interrupted_start")
        self.assertNotEqual(r.returncode, 0)
        self.assertEqual(r.stdout, "lockstep: worker 0 was killed by signal 2 (Interrupt)\n")

    def test_too_late(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.check(2, "worker_calls.py", "too_late", folder)

    def test_shapes_differ(self) -> None:
        said = self.check(3, "worker_calls.py", "shapes_differ")
        lines = [
            line
            for line in said.splitlines()
            if line.startswith("workers disagree: worker 0 called")
        ]
        self.assertTrue(lines, said)
        for line in lines:
            self.assertIn("all_reduce f32 sum, 3 elements as call 0 at worker_calls.py:", line)
            self.assertRegex(line, "; worker [12] called all_reduce f32 sum, [45] elements")


if __name__ == "__main__":
    unittest.main()
