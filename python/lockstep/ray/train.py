"""Ray Train: the workers of a TorchTrainer reduce their gradients by Lockstep."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

_torch: Any = importlib.import_module("ray.train.torch")
_Backend: Any = _torch.TorchConfig().backend_cls


def _register() -> None:
    """In each worker, before it makes its process group."""
    importlib.import_module("lockstep.torch")


class Backend(_Backend):  # type: ignore[misc]
    """What sets up the workers."""

    def on_start(self, worker_group: Any, backend_config: Any) -> None:
        worker_group.execute(_register)
        super().on_start(worker_group, backend_config)


@dataclass
class TorchConfig(_torch.TorchConfig):  # type: ignore[misc]
    """ray.train.torch.TorchConfig for the backend "lockstep", which it makes known to the workers."""

    backend: str | None = "lockstep"

    @property
    def backend_cls(self) -> Any:
        return Backend
