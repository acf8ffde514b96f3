"""Starts the programs of this directory as workers of `lockstep run`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = os.environ.get("LOCKSTEP_PROGRAM", str(ROOT / "build/lockstep"))
LIMIT_S = 240  # below the group's own 300 s: a wait that hangs fails the test


def run(
    n: int, program: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program of this directory on n workers; its output is merged."""
    line = [
        PROGRAM,
        "run",
        "-n",
        str(n),
        "--no-bind",
        sys.executable,
        str(HERE / program),
        *arguments,
    ]
    return subprocess.run(
        line, env={**os.environ, **variables}, timeout=LIMIT_S, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
