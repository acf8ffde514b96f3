"""The program `lockstep` of the package: as the command that pip installs, and for what it knows of
runs, as JSON (docs/reference/json.md)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any, NoReturn

_INSIDE = os.path.join(os.path.dirname(__file__), "bin", "lockstep")


def path() -> str:
    """The program: in the package, else $LOCKSTEP_PROGRAM, else that beside $LOCKSTEP_LIBRARY or
    installed with it (PREFIX/bin for PREFIX/lib), else the one that the shell finds. Raises
    FileNotFoundError."""
    if os.path.exists(_INSIDE):
        return _INSIDE
    folder = os.path.dirname(os.environ.get("LOCKSTEP_LIBRARY", ""))
    near = [
        os.path.normpath(os.path.join(folder, *names, "lockstep"))
        for names in ((), ("..", "bin"), ("..", "..", "bin"))
        if folder
    ]
    found = os.environ.get("LOCKSTEP_PROGRAM") or next(
        filter(None, map(shutil.which, [*near, "lockstep"])), None
    )
    if not found:
        raise FileNotFoundError(
            "lockstep: the program is not found: install Lockstep (make install), or set "
            "LOCKSTEP_PROGRAM to its path"
        )
    return found


def ask(*arguments: str) -> list[dict[str, Any]]:
    """The JSON objects that a command prints. Raises Error with its message if it prints none."""
    from lockstep.errors import Error, Status

    line = [path(), *arguments, "--json"]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True)
    answers = [json.loads(text) for text in done.stdout.splitlines()]
    if not answers:
        text = done.stderr.decode(errors="replace").strip().split("\n")[-1]
        if text.startswith("lockstep: "):
            text = text[len("lockstep: ") :]
        raise Error(Status.EINVAL, text or f"lockstep {arguments[0]}: exit code {done.returncode}")
    return answers


def main() -> NoReturn:
    if not os.path.exists(_INSIDE):
        sys.exit(f"lockstep: {_INSIDE} is missing: install the package from its wheel")
    os.execv(_INSIDE, ["lockstep", *sys.argv[1:]])
