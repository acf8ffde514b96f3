"""Lockstep as a backend of torch.distributed, for tensors on CPUs.

    import torch.distributed as dist, lockstep.torch

    dist.init_process_group("lockstep")  # under torchrun, mpirun, srun or `lockstep run`
    model = DistributedDataParallel(model)

docs/guide/pytorch.md says what it does, and what it does not.
"""

from __future__ import annotations

import torch.distributed as _dist

from lockstep.torch.compress import Compression, compressed
from lockstep.torch.memory import empty
from lockstep.torch.launcher import serve_launchers as _serve_launchers
from lockstep.torch.process_group import ProcessGroup
from lockstep.torch.process_group import create as _create

__all__ = ["Compression", "ProcessGroup", "compressed", "empty"]

_dist.Backend.register_backend("lockstep", _create, devices=["cpu"])
_serve_launchers()
