"""The package as a whole: its types, and the first example of docs/guide/python.md."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from launch import ROOT, run

import lockstep

FOLDER = os.path.dirname(lockstep.__file__)
PROGRAM = os.path.join(FOLDER, "bin/lockstep")


class Package(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_types(self) -> None:
        with tempfile.TemporaryDirectory() as top:  # not beside NumPy's sources
            copy = shutil.copytree(FOLDER, os.path.join(top, "lockstep"))
            shutil.rmtree(os.path.join(copy, "torch"))  # PyTorch is not there: tests/torch checks it
            line = [sys.executable, "-m", "mypy", "--strict", copy]
            r = subprocess.run(
                line, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=top
            )
        self.assertEqual(r.returncode, 0, r.stdout)

    def test_typed(self) -> None:
        self.assertTrue(os.path.exists(os.path.join(FOLDER, "py.typed")))

    def test_all(self) -> None:
        for name in lockstep.__all__:
            self.assertTrue(hasattr(lockstep, name), name)
        self.assertFalse(hasattr(lockstep, "no_such_name"))
        self.assertRegex(lockstep.__version__, r"^0\.1\.\d+$")

    def test_import_is_small(self) -> None:
        """The program `lockstep` of a wheel imports it, and needs neither NumPy nor the library."""
        text = (
            "import lockstep, sys; print([m for m in ('numpy', 'lockstep._c') if m in sys.modules])"
        )
        r = subprocess.run([sys.executable, "-c", text], text=True, stdout=subprocess.PIPE)
        self.assertEqual(r.stdout, "[]\n")

    @unittest.skipUnless(os.path.exists(PROGRAM), "not a wheel")
    def test_program_uses_its_own_library(self) -> None:
        """The program of a wheel has its code from the library beside it, never from another."""
        self.assertLess(os.path.getsize(PROGRAM), 1000000)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "liblockstep.so.0").write_text("another")
            environment = {**os.environ, "LD_LIBRARY_PATH": folder}
            r = subprocess.run(
                [PROGRAM, "--version"], text=True, stdout=subprocess.PIPE, env=environment
            )
        self.assertEqual((r.returncode, r.stdout), (0, f"lockstep {lockstep.__version__}\n"))

    @unittest.skipIf(importlib.util.find_spec("ray"), "Ray is installed")
    def test_without_ray(self) -> None:
        line = [sys.executable, "-m", "lockstep.ray", "train", "a.yaml", "-n", "2", "-o", "a"]
        r = subprocess.run(line, text=True, stderr=subprocess.PIPE)
        self.assertEqual(r.returncode, 1)
        self.assertEqual(r.stderr, "lockstep: Ray is not installed: pip install ray\n")

    def test_first_example(self) -> None:
        page = (ROOT / "docs/guide/python.md").read_text()
        program = re.search(r"```python\n(.*?)```", page, re.S)
        printed = re.search(r"```\n(worker 0.*?)```", page, re.S)
        assert program and printed
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "first.py"
            path.write_text(program[1])
            r = run(3, str(path))
        self.assertEqual(sorted(r.stdout.splitlines()), printed[1].splitlines())


if __name__ == "__main__":
    unittest.main()
