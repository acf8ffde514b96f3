"""Lockstep on a Ray cluster (docs/guide/ray.md).

    python -m lockstep.ray train CONFIG -n 4 -o RUN

    TorchTrainer(loop, torch_config=lockstep.ray.TorchConfig(), ...)    # Ray Train
    tune.Tuner(lockstep.ray.trainable("config.yaml", workers=2), ...)   # Ray Tune
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockstep.ray.train import TorchConfig
    from lockstep.ray.tune import trainable

__all__ = ["TorchConfig", "trainable"]


def __getattr__(name: str) -> Any:
    """Ray's libraries take seconds to import, and PyTorch is needed for Ray Train alone."""
    if name == "TorchConfig":
        from lockstep.ray.train import TorchConfig

        return TorchConfig
    if name == "trainable":
        from lockstep.ray.tune import trainable

        return trainable
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
