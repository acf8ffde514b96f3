"""Runs and checkpoints on disk (docs/reference/run-directory.md). Nothing here changes them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any, Union

from lockstep._program import ask
from lockstep.config import read_config
from lockstep.table import Table
from lockstep.timeline import Timeline
from lockstep.weights import Weights, files_of_model

Path = Union[str, "os.PathLike[str]"]
# Keys of lines that are no measurements: a start, changed keys, lost lines, an end.
_NOTES = {"started", "changed", "gap", "diverged", "ended"}


def _read_json(path: str) -> Any:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _lines(path: str) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines; an incomplete last line is left out."""
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def _flat(line: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Members of objects get their path as a name: noise/trace."""
    row: dict[str, Any] = {}
    for key, value in line.items():
        if isinstance(value, dict):
            row.update(_flat(value, f"{prefix}{key}/"))
        else:
            row[prefix + key] = value
    return row


class Checkpoint:
    """The state of a run after a step.

    path, step
    manifest    what it has: hashes of the weights and of the optimizer's state, sizes of files
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.manifest: dict[str, Any] = _read_json(os.path.join(path, "manifest.json"))
        self.step: int = self.manifest["step"]

    @property
    def hash(self) -> str:
        """Of the weights: equal for equal bits, whatever trained them."""
        text: str = self.manifest["weights_hash"]
        return text

    @property
    def config(self) -> dict[str, dict[str, Any]]:
        """All keys, by groups: config["train"]["batch"]."""
        return read_config(os.path.join(self.path, "config.yaml"))

    @property
    def weights(self) -> Weights:
        """The tensors of the model, frozen ones too."""
        names = ["model.safetensors", "frozen.safetensors"]
        paths = [os.path.join(self.path, name) for name in names]
        return Weights([p for p in paths if os.path.exists(p)])

    @property
    def optimizer(self) -> Weights:
        """The optimizer's state: NAME.exp_avg, NAME.ema, ..."""
        return Weights([os.path.join(self.path, "optimizer.safetensors")])

    def __repr__(self) -> str:
        return f"<Checkpoint {self.path!r}: step {self.step}>"


class Run:
    """A run directory of `lockstep train`. What is asked for is read anew each time, so that it is
    that of the moment if the run is still training."""

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def config(self) -> dict[str, dict[str, Any]]:
        """All keys, by groups: config["train"]["batch"]."""
        return read_config(os.path.join(self.path, "config.yaml"))

    @property
    def metrics(self) -> Table:
        """A row for each step with all that metrics.jsonl has of it: loss, lr, seconds, ..., and,
        in the rows of steps that were evaluated, val_loss and other metrics (NaN elsewhere)."""
        rows: dict[int, dict[str, Any]] = {}
        for line in _lines(os.path.join(self.path, "metrics.jsonl")):
            if not _NOTES & line.keys():
                rows.setdefault(line["step"], {}).update(_flat(line))
        return Table.of_rows(rows[step] for step in sorted(rows))

    @property
    def events(self) -> list[dict[str, Any]]:
        """The other lines of metrics.jsonl: starts, changed keys, lost lines, the end."""
        lines = _lines(os.path.join(self.path, "metrics.jsonl"))
        return [line for line in lines if _NOTES & line.keys()]

    @property
    def samples(self) -> list[dict[str, Any]]:
        """What the model wrote at evaluations (train.sample_prompts)."""
        return list(_lines(os.path.join(self.path, "samples.jsonl")))

    @property
    def log(self) -> str:
        """What the run printed: log.txt."""
        with open(os.path.join(self.path, "log.txt"), encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """Complete checkpoints, the oldest first."""
        folder = os.path.join(self.path, "checkpoints")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        steps = sorted(int(n[5:]) for n in names if re.fullmatch(r"step-\d+", n))
        paths = [os.path.join(folder, f"step-{step}") for step in steps]
        return [Checkpoint(p) for p in paths if os.path.exists(os.path.join(p, "manifest.json"))]

    @property
    def checkpoint(self) -> Checkpoint:
        """The newest checkpoint. Raises FileNotFoundError if there is none."""
        found = self.checkpoints
        if not found:
            raise FileNotFoundError(f"{self.path}: has no checkpoint")
        return found[-1]

    @property
    def best(self) -> Checkpoint:
        """The checkpoint with the best evaluation. Raises FileNotFoundError if none is saved."""
        path = os.path.join(self.path, "checkpoints", "best")
        if not os.path.exists(path):
            raise FileNotFoundError(f"{self.path}: has no best checkpoint (checkpoint.best)")
        name = os.path.basename(os.path.realpath(path))
        return Checkpoint(os.path.join(self.path, "checkpoints", name))

    @property
    def weights(self) -> Weights:
        """Those of the newest checkpoint."""
        return self.checkpoint.weights

    def status(self) -> dict[str, Any]:
        """What the run does now, as `lockstep status --json` says it."""
        return ask("status", self.path)[0]

    def ledger(self) -> dict[str, Any]:
        """Which samples were used, as `lockstep ckpt ledger --json` says it. Raises Error if a step
        has the wrong ones."""
        return ask("ckpt", "ledger", self.path)[0]

    def timelines(self) -> list[Timeline]:
        """Timelines in the run directory (`lockstep train --trace RUN/NAME.json`)."""
        found = []
        for name in sorted(os.listdir(self.path)):
            path = os.path.join(self.path, name)
            if name.endswith(".json") and _is_timeline(path):
                found.append(Timeline(path))
        return found

    def compare(self, *others: Run | Path) -> Comparison:
        """This run beside others."""
        return compare(self, *others)

    def __repr__(self) -> str:
        return f"<Run {self.path!r}>"


class Comparison:
    """Runs beside each other, as `lockstep compare --json` says it.

    runs      a dict for each, with its last loss, its best evaluation, and, for each after the
              first, "must_match", "same", and "parted": the step at which they parted, or None
    config    the keys that differ: "key", "values" of each run, "bits": may that change the bits?
    same      have all runs the same bits as the first, as far as both go?
    """

    def __init__(self, found: dict[str, Any]) -> None:
        self.runs: list[dict[str, Any]] = found["runs"]
        self.config: list[dict[str, Any]] = found["config"]
        self.same: bool = all(run["same"] for run in self.runs[1:])

    def _repr_html_(self) -> str | None:
        return Table.of_rows(self.runs)._repr_html_()

    def __repr__(self) -> str:
        words = "the same bits" if self.same else "different bits"
        return f"<Comparison of {len(self.runs)} runs: {words}; {len(self.config)} keys differ>"


def compare(*runs: Run | Path) -> Comparison:
    """Runs beside each other: two or more, or their paths."""
    if len(runs) < 2:
        raise ValueError("compare: two runs or more are needed")
    paths = [run.path if isinstance(run, Run) else os.fspath(run) for run in runs]
    return Comparison(ask("compare", *paths)[0])


def _is_timeline(path: str) -> bool:
    with open(path, "rb") as file:
        return b'"lockstep timeline"' in file.read(4096)


def _gguf(name: str) -> ValueError:
    return ValueError(
        f"{name}: has its weights as GGUF; `lockstep import {name} -o DIR --type f32` writes "
        "safetensors, which open() reads, and lockstep.load() loads the model as it is"
    )


def open_path(path: Path) -> Any:
    """What is at a path: a Run of its directory, a Checkpoint, the Weights of a published model's
    directory or of a safetensors file, or the Timeline of a file of `lockstep train --trace`."""
    name = os.fspath(path)
    if os.path.isdir(name):
        files = set(os.listdir(name))
        if "manifest.json" in files:
            return Checkpoint(name)
        if "config.yaml" in files:
            return Run(name)
        if files & {"model.safetensors", "model.safetensors.index.json"}:
            return Weights(files_of_model(name))
        if "model.gguf" in files:
            raise _gguf(name)
        raise ValueError(f"{name}: is neither a run, a checkpoint, nor a model")
    if name.endswith(".safetensors"):
        return Weights([name])
    if name.endswith(".gguf"):
        raise _gguf(name)
    if not name.endswith(".json") and os.path.exists(name):
        raise ValueError(f"{name}: is neither a run, a checkpoint, a model, nor a timeline")
    return Timeline(name)
