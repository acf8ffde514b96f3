"""Ray Tune: each trial is a run of `lockstep train`, whose metrics and checkpoints it reports."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, Callable

from lockstep import _program
from lockstep.ray.cluster import die_with_parent

_POLL_S = 0.3
_LINES = 20  # of the output that an error shows


def _words(parameters: Mapping[str, Any], prefix: str = "") -> list[str]:
    """--set for each parameter: {"optim.lr": 1e-3}, or {"optim": {"lr": 1e-3}}."""
    words = []
    for key, value in parameters.items():
        if isinstance(value, Mapping):
            words += _words(value, f"{prefix}{key}.")
            continue
        text = value if isinstance(value, str) else json.dumps(_plain(value))
        words += ["--set", f"{prefix}{key}={text}"]
    return words


def _plain(value: Any) -> Any:
    """A NumPy number as Python's."""
    return value.item() if hasattr(value, "item") else value


class _Run:
    """The run directory of a trial, as far as it has been reported."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._at = 0  # bytes of metrics.jsonl that were read
        self._steps: dict[int, dict[str, Any]] = {}  # metrics that may be reported yet
        self._saved = -1  # step of the last checkpoint that was reported

    def skip(self) -> None:
        """What is there was reported before."""
        for _ in self._records():
            pass
        self._saved = max(self._checkpoints(), default=-1)

    def _records(self) -> Any:
        try:
            with open(os.path.join(self._folder, "metrics.jsonl"), "rb") as f:
                f.seek(self._at)
                data = f.read()
        except FileNotFoundError:
            return
        data = data[: data.rfind(b"\n") + 1]
        self._at += len(data)
        for line in data.splitlines():
            yield json.loads(line)

    def _checkpoints(self) -> list[int]:
        folder = os.path.join(self._folder, "checkpoints")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return [
            int(n[5:])
            for n in names
            if n.startswith("step-")
            and n[5:].isdigit()
            and os.path.exists(os.path.join(folder, n, "manifest.json"))
        ]

    def news(self) -> list[tuple[dict[str, Any], int | None]]:
        """Metrics of steps that were evaluated or saved since the last call, and the steps of their
        checkpoints."""
        due = set()
        for record in self._records():
            step = record["step"]
            numbers = {k: v for k, v in record.items() if isinstance(v, (int, float))}
            self._steps.setdefault(step, {}).update(numbers)
            if any(key.startswith("val_") for key in record):
                due.add(step)
        saved = max(self._checkpoints(), default=-1)
        if saved > self._saved and saved in self._steps:
            due.add(saved)
        found = []
        for step in sorted(due):
            found.append((dict(self._steps[step]), step if step == saved else None))
        self._saved = max(self._saved, saved if saved in due else -1)
        newest = max(self._steps, default=0)
        self._steps = {s: m for s, m in self._steps.items() if s > saved or s == newest}
        return found

    def copy(self, step: int, to: str) -> None:
        """What `lockstep train --resume` needs to go on from this step."""
        name = f"checkpoints/step-{step}"
        shutil.copytree(os.path.join(self._folder, name), os.path.join(to, name))
        for entry in list(os.scandir(self._folder)):
            if entry.is_file() and entry.name not in ("lock", "metrics.jsonl"):
                shutil.copy(entry.path, to)
        with open(os.path.join(self._folder, "metrics.jsonl"), "rb") as f:
            lines = [x for x in f if x.endswith(b"\n") and json.loads(x)["step"] <= step]
        with open(os.path.join(to, "metrics.jsonl"), "wb") as f:
            f.writelines(lines)


def _tail(path: str) -> str:
    with open(path, errors="replace") as f:
        return "\n".join(f.read().splitlines()[-_LINES:])


def _train(line: list[str], folder: str, cwd: str, report: Callable[[_Run], None]) -> None:
    run, output = _Run(folder), folder + ".txt"
    if "--resume" in line:
        run.skip()
    with open(output, "ab") as f:
        process = subprocess.Popen(
            line, cwd=cwd, stdin=subprocess.DEVNULL, stdout=f, stderr=f,
            preexec_fn=die_with_parent,
        )  # fmt: skip
    try:
        while process.poll() is None:
            report(run)
            time.sleep(_POLL_S)
        report(run)
    finally:  # Tune ends a trial by an exception in report()
        process.terminate()
        process.wait()
    if process.returncode:
        raise RuntimeError(
            f"lockstep train ended with exit code {process.returncode}:\n{_tail(output)}"
        )


def trainable(
    config: str | os.PathLike[str], *, workers: int = 1, cpus: float = 1,
    options: Sequence[str] = (),
) -> Any:  # fmt: skip
    """What tune.Tuner() takes: a function that trains a config with the parameters of a trial.

    config     a file of `lockstep train`, under the same path on all nodes
    workers    of a trial, all on one node
    cpus       of a worker
    options    more words of the command line: ["--set", "checkpoint.every=100"]

    Parameters are keys of the config: {"optim.lr": tune.loguniform(1e-4, 1e-2)}. Metrics are reported
    at each evaluation and each checkpoint: `step`, `loss`, `val_loss` and whatever else the run
    records. Their checkpoints continue a trial that was interrupted, or another one's, with other
    values of keys that may change (docs/guide/survival.md).
    """
    path, cwd = os.path.abspath(config), os.getcwd()
    rest = list(options)

    def lockstep_train(parameters: dict[str, Any]) -> None:
        tune: Any = importlib.import_module("ray.tune")
        folder = os.path.join(tune.get_context().get_trial_dir(), "run")
        line = [_program.path(), "train", path, "-n", str(workers), "-o", folder]
        line += [*rest, *_words(parameters)]
        checkpoint = tune.get_checkpoint()
        if checkpoint:
            shutil.rmtree(folder, ignore_errors=True)
            checkpoint.to_directory(folder)
            line.append("--resume")

        def report(run: _Run) -> None:
            for metrics, step in run.news():
                if step is None:
                    tune.report(metrics)
                    continue
                with tempfile.TemporaryDirectory() as top:
                    run.copy(step, top)
                    tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(top))

        _train(line, folder, cwd, report)

    tune: Any = importlib.import_module("ray.tune")
    return tune.with_resources(lockstep_train, {"cpu": workers * cpus})
