"""The backend of torch.distributed: real processes under torchrun and other launchers."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from launching import HERE, LIMIT_S, ROOT, has_open_mpi, lockstep_run, mpirun, run, torchrun


def lines(output: str) -> list[str]:
    """What a training program prints for all workers alike."""
    return [s for s in output.splitlines() if s.startswith(("loss ", "weights "))]


class Workers(unittest.TestCase):
    maxDiff = None

    def check(self, launcher: list[str], n: int, program: str, *arguments: str, **variables: str):
        r = run(launcher, program, *arguments, **variables)
        self.assertEqual(r.returncode, 0, r.stdout)
        self.assertEqual(r.stdout.count("right\n"), n, r.stdout)


class Collectives(Workers):
    def test_alone(self) -> None:
        self.check(torchrun(1), 1, "worker_collectives.py")

    def test_two(self) -> None:
        self.check(torchrun(2), 2, "worker_collectives.py")

    def test_three(self) -> None:
        self.check(torchrun(3), 3, "worker_collectives.py")

    def test_tcp(self) -> None:
        self.check(torchrun(3), 3, "worker_collectives.py", LOCKSTEP_TRANSPORT="tcp")

    def test_two_hosts(self) -> None:
        """Connections between hosts are encrypted by a key from the store."""
        r = run(torchrun(2), "worker_two_hosts.py")
        self.assertEqual(r.returncode, 0, r.stdout)
        self.assertEqual(r.stdout.count("right\n"), 2, r.stdout)

    def test_arrays(self) -> None:
        self.check(lockstep_run(2), 2, "worker_arrays.py")

    def test_lockstep_run(self) -> None:
        self.check(lockstep_run(3), 3, "worker_collectives.py")

    @unittest.skipUnless(has_open_mpi(), "there is no mpirun of Open MPI")
    def test_mpirun(self) -> None:
        self.check(mpirun(2), 2, "worker_collectives.py")

    @unittest.skipUnless(has_open_mpi(), "there is no mpirun of Open MPI")
    def test_mpi(self) -> None:
        self.check(mpirun(2), 2, "worker_collectives.py", LOCKSTEP_TRANSPORT="mpi")


class Training(Workers):
    """Losses are those of Gloo: for two workers, whose sums have one order, to the bit."""

    def train(self, n: int, backend: str, way: str, **variables: str) -> list[str]:
        r = run(torchrun(n), "worker_training.py", backend, way, **variables)
        self.assertEqual(r.returncode, 0, r.stdout)
        found = lines(r.stdout)
        self.assertGreaterEqual(len(found), 3, r.stdout)
        return found

    def compare(self, way: str, tolerance: float = 2e-3) -> None:
        self.assertEqual(self.train(2, "lockstep", way), self.train(2, "gloo", way))
        ours, gloos = self.train(4, "lockstep", way), self.train(4, "gloo", way)
        for a, b in zip(ours, gloos):
            if a.startswith("loss"):
                x, y = (float.fromhex(s.split()[1]) for s in (a, b))
                self.assertAlmostEqual(x, y, delta=tolerance * abs(y), msg=f"{way}: {ours} {gloos}")

    def test_ddp(self) -> None:
        self.compare("ddp")

    def test_ddp_view(self) -> None:
        self.compare("ddp_view")

    def test_ddp_unused(self) -> None:
        self.compare("ddp_unused")

    def test_ddp_static(self) -> None:
        self.compare("ddp_static")

    def test_ddp_buckets(self) -> None:
        self.compare("ddp_buckets")
        ours = self.train(2, "lockstep", "ddp_buckets")
        for variables in ({"LOCKSTEP_TRANSPORT": "tcp"}, {"LOCKSTEP_TORCH_ARENA_MIB": "2"}):
            self.assertEqual(self.train(2, "lockstep", "ddp_buckets", **variables), ours)
        self.compare("ddp_lazy")

    def test_ddp_hook(self) -> None:
        self.compare("ddp_hook", 2e-2)  # in 16 bits, and of low rank

    def test_compressed(self) -> None:
        """Losses after 15 steps are about those without compression, and the same each time."""
        found = self.train(2, "lockstep", "compressed")
        self.assertEqual(self.train(2, "lockstep", "compressed"), found)
        losses = [float.fromhex(s.split()[1]) for s in found if s.startswith("loss")]
        self.assertEqual(len(losses), 5 * 15)
        ends = [sum(losses[15 * i + 10 : 15 * i + 15]) / 5 for i in range(5)]
        self.assertLess(ends[0], losses[0] / 3)
        for end, bound in zip(ends[1:], (1.1, 1.1, 2.0, 2.0)):
            self.assertLess(end, bound * ends[0], ends)

    def test_fsdp2(self) -> None:
        self.compare("fsdp2")

    def test_fsdp2_group_memory(self) -> None:
        self.compare("fsdp2_memory")

    def test_zero(self) -> None:
        self.compare("zero")

    def test_checkpoint(self) -> None:
        self.compare("checkpoint")

    def test_dtensor(self) -> None:
        self.compare("dtensor")

    def test_mesh(self) -> None:
        self.compare("mesh_2d")

    def test_same_bits(self) -> None:
        """Over shared memory, TCP and MPI, and each time."""
        ours = self.train(3, "lockstep", "ddp")
        self.assertEqual(self.train(3, "lockstep", "ddp"), ours)
        self.assertEqual(self.train(3, "lockstep", "ddp", LOCKSTEP_TRANSPORT="tcp"), ours)
        if has_open_mpi():
            r = run(
                mpirun(3), "worker_training.py", "lockstep", "ddp", LOCKSTEP_TRANSPORT="mpi"
            )
            self.assertEqual(lines(r.stdout), ours, r.stdout)


class Types(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_types(self) -> None:
        with tempfile.TemporaryDirectory() as top:  # not beside the sources of other packages
            copy = shutil.copytree(ROOT / "python/lockstep", os.path.join(top, "lockstep"))
            line = [sys.executable, "-m", "mypy", "--strict", copy]
            r = subprocess.run(
                line, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=top
            )
        self.assertEqual(r.returncode, 0, r.stdout)


class Starts(Workers):
    def test_start_methods(self) -> None:
        for method in ("fork", "spawn", "forkserver"):
            r = subprocess.run(
                [sys.executable, str(HERE / "start_methods.py"), method], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S,
            )  # fmt: skip
            self.assertEqual(r.returncode, 0, r.stdout)
            self.assertEqual(r.stdout.count("right\n"), 3, r.stdout)

    def test_many_groups(self) -> None:
        self.check(torchrun(2), 2, "worker_faults.py", "groups")

    def test_again(self) -> None:
        self.check(torchrun(3), 3, "worker_faults.py", "again")
        self.check(lockstep_run(3), 3, "worker_faults.py", "again")

    def test_forked(self) -> None:
        self.check(torchrun(3), 3, "worker_faults.py", "forked", LOCKSTEP_TRANSPORT="tcp")


class Faults(Workers):
    def test_killed(self) -> None:
        r = run(lockstep_run(3), "worker_faults.py", "killed")
        self.assertRegex(r.stdout, r"worker 0: Error after \d+\.\d+ s: .*worker 2 \(pid \d+")

    def test_killed_in_a_large_call(self) -> None:
        r = run(lockstep_run(3), "worker_faults.py", "killed_large")
        self.assertRegex(r.stdout, r"worker 0: Error after \d+\.\d+ s: .*worker 2 \(pid \d+")

    def test_disagreement(self) -> None:
        r = run(torchrun(2), "worker_faults.py", "disagree")
        self.assertRegex(
            r.stdout,
            r"workers disagree: worker 0 called all_reduce f32 sum, 3 elements as call \d+ at "
            r"worker_faults.py:\d+; worker 1 called broadcast f32, 3 elements, root 0 as call",
        )

    def test_late(self) -> None:
        self.check(torchrun(2), 2, "worker_faults.py", "late")

    def test_monitored_barrier(self) -> None:
        self.check(torchrun(3), 3, "worker_faults.py", "monitored")


if __name__ == "__main__":
    unittest.main()
