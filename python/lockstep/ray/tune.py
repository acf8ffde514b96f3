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
from lockstep.config import read_config
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
        self._last = b""  # the line before them
        self._steps: dict[int, dict[str, Any]] = {}  # metrics of steps that are not reported
        self._reported = -1
        self._saved = -1  # the last checkpoint that was reported
        self._config: dict[str, dict[str, Any]] = {}

    def skip(self) -> None:
        """What is there was reported before."""
        self._read()
        self._reported = self._saved = max(self._checkpoints(), default=-1)

    def _read(self) -> None:
        """A run that continues may have replaced its last lines: then all are read again."""
        try:
            with open(os.path.join(self._folder, "metrics.jsonl"), "rb") as f:
                f.seek(self._at - len(self._last))
                if f.read(len(self._last)) != self._last:
                    self._at = 0
                    f.seek(0)
                data = f.read()
        except FileNotFoundError:
            return
        data = data[: data.rfind(b"\n") + 1]
        self._at += len(data)
        for line in data.splitlines(keepends=True):
            record = json.loads(line)
            numbers = {k: v for k, v in record.items() if isinstance(v, (int, float))}
            if record["step"] > self._reported:
                self._steps.setdefault(record["step"], {}).update(numbers)
            self._last = line

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

    def _interval(self, group: str, key: str) -> int:
        """A key of the resolved config: steps; 0: none."""
        if not self._config:
            self._config = read_config(os.path.join(self._folder, "config.yaml"))
        return int(self._config[group][key])

    def _due(self, step: int, checkpoints: list[int], over: bool) -> bool:
        """Is it to be reported? An evaluated step waits for its checkpoint."""
        newest = max(checkpoints, default=-1)
        if not any(key.startswith("val_") for key in self._steps[step]):
            return step in checkpoints and not self._interval("train", "eval_every")
        every = self._interval("checkpoint", "every")
        return over or not every or step % every != 0 or newest >= step

    def news(self, over: bool) -> list[tuple[dict[str, Any], int | None]]:
        """Metrics of steps that were evaluated, or, in a run that evaluates none, saved since the
        last call; and the steps of their checkpoints.

        over    the run has ended
        """
        checkpoints = self._checkpoints()  # before their metrics
        self._read()
        found: list[tuple[dict[str, Any], int | None]] = []
        for step in sorted(self._steps):
            evaluated = any(key.startswith("val_") for key in self._steps[step])
            if self._due(step, checkpoints, over):
                self._reported = step
                found.append((self._steps[step], step if step in checkpoints else None))
            elif evaluated:
                break  # in order
        self._saved = max([self._saved, *(s for _, s in found if s is not None)])
        newest = max(checkpoints, default=-1)
        if over and newest > self._saved and newest in self._steps:
            found.append((self._steps[newest], newest))
        for step in [s for s in self._steps if s < self._reported]:
            del self._steps[step]
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


def _train(line: list[str], folder: str, cwd: str, report: Callable[[_Run, bool], None]) -> None:
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
            report(run, False)
            time.sleep(_POLL_S)
        report(run, True)
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
    at each evaluation, with the checkpoint of the step if there is one (in a run without evaluations,
    at each checkpoint): `step`, `loss`, `val_loss` and whatever else the run records. Checkpoints continue a trial that was interrupted, or another one's, with other
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

        def report(run: _Run, over: bool) -> None:
            for metrics, step in run.news(over):
                if step is None:
                    tune.report(metrics)
                    continue
                with tempfile.TemporaryDirectory() as top:
                    run.copy(step, top)
                    tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(top))

        _train(line, folder, cwd, report)

    tune: Any = importlib.import_module("ray.tune")
    return tune.with_resources(lockstep_train, {"cpu": workers * cpus})
