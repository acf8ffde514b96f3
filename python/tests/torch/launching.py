"""Starts the programs of this directory as workers, by torchrun or another launcher."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PROGRAM = os.environ.get("LOCKSTEP_PROGRAM", str(ROOT / "build/lockstep"))
LIMIT_S = 240


def torchrun(n: int) -> list[str]:
    return [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n),
    ]  # fmt: skip


def lockstep_run(n: int) -> list[str]:
    return [PROGRAM, "run", "-n", str(n), "--no-bind", sys.executable]


def mpirun(n: int) -> list[str]:
    options = ["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
    return ["mpirun", *options, "-n", str(n), sys.executable]


def has_open_mpi() -> bool:
    if not shutil.which("mpirun"):
        return False
    r = subprocess.run(["mpirun", "--version"], text=True, stdout=subprocess.PIPE)
    return "Open MPI" in r.stdout


def run(
    launcher: list[str], program: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program of this directory; its output is merged."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run(
        [*launcher, str(HERE / program), *arguments], env=environment, timeout=LIMIT_S, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
