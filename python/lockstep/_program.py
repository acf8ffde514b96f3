"""The program `lockstep` of the package, as the command that pip installs."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    program = os.path.join(os.path.dirname(__file__), "bin", "lockstep")
    if not os.path.exists(program):
        sys.exit(f"lockstep: {program} is missing: install the package from its wheel")
    os.execv(program, ["lockstep", *sys.argv[1:]])
