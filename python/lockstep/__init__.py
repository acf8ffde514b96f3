"""Lockstep in Python: collectives on NumPy arrays, with the same bits for any number of workers and
transport; runs on disk; trained models that write and predict.

    import lockstep, numpy as np

    with lockstep.Group.open() as g:
        total = g.all_reduce(np.ones(4, np.float32))  # the sum, [4], at all workers

Start it as several workers: `lockstep run -n 4 python program.py`, mpirun, srun or torchrun.

    run = lockstep.open("runs/mine")
    run.metrics["loss"], run.weights["wte.weight"], run.config["train"]["batch"]

    model = lockstep.load("runs/tuned")
    print(model.chat("Who are you?"))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lockstep.errors import Error, Status
from lockstep.ops import Op

if TYPE_CHECKING:
    from lockstep import data
    from lockstep.arrays import pair
    from lockstep.future import Future
    from lockstep.group import Counters, Group, Meeting
    from lockstep.model import LanguageModel, Network, load
    from lockstep.run import Checkpoint, Comparison, Run, compare
    from lockstep.run import open_path as open
    from lockstep.table import Table
    from lockstep.timeline import Timeline
    from lockstep.weights import Weights

    __version__: str

SUM, AVG, PROD, MIN, MAX = Op.SUM, Op.AVG, Op.PROD, Op.MIN, Op.MAX
LAND, LOR, LXOR, BAND, BOR, BXOR = Op.LAND, Op.LOR, Op.LXOR, Op.BAND, Op.BOR, Op.BXOR
MINLOC, MAXLOC = Op.MINLOC, Op.MAXLOC

__all__ = [
    "AVG", "BAND", "BOR", "BXOR", "LAND", "LOR", "LXOR", "MAX", "MAXLOC", "MIN", "MINLOC", "PROD",
    "SUM",
    "Checkpoint", "Comparison", "Counters", "Error", "Future", "Group", "LanguageModel",
    "Meeting", "Network", "Op", "Run", "Status", "Table", "Timeline", "Weights", "compare", "data", "load",
    "open", "pair",
]  # fmt: skip

# NumPy and the library are loaded when they are first needed: the program `lockstep` needs neither.
_LATER = {
    "Counters": "group", "Group": "group", "Meeting": "group", "Future": "future", "pair": "arrays", "Run": "run",
    "Checkpoint": "run", "Comparison": "run", "compare": "run", "open": "run:open_path",
    "LanguageModel": "model", "Network": "model", "load": "model", "Table": "table",
    "Timeline": "timeline", "Weights": "weights",
}  # fmt: skip


_MODULES = {"data"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"lockstep.{name}")
    if name == "__version__":
        return importlib.import_module("lockstep._c").library.ls_version().decode()
    if name not in _LATER:
        raise AttributeError(f"module 'lockstep' has no attribute {name!r}")
    module, _, attribute = _LATER[name].partition(":")
    value = getattr(importlib.import_module(f"lockstep.{module}"), attribute or name)
    globals()[name] = value
    return value
