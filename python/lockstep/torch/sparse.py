"""Sums of sparse tensors: each worker's indices and values are gathered, and added in rank order."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from lockstep.torch.work import Work, done


def all_reduce_sparse(group: Any, tensor: Tensor, op: Any, opts: Any) -> Work:
    """tensor becomes the sum at all workers. Waits for it."""
    if getattr(op, "op", op) != dist.ReduceOp.SUM:
        raise NotImplementedError(
            "lockstep: all_reduce: unsupported reduction operation: of sparse tensors only SUM"
        )
    mine = tensor.coalesce()
    indices, values = mine.indices(), mine.values()
    counts = torch.zeros(group.size(), dtype=torch.int64)
    group.all_gather_single(counts, torch.tensor([indices.shape[1]])).wait()
    n = counts.tolist()
    all_indices = [torch.empty((indices.shape[0], k), dtype=torch.int64) for k in n]
    all_values = [torch.empty((k, *values.shape[1:]), dtype=values.dtype) for k in n]
    group.allgather([all_indices], [indices.contiguous()]).wait()
    group.allgather([all_values], [values.contiguous()]).wait()
    total = torch.sparse_coo_tensor(
        torch.cat(all_indices, 1), torch.cat(all_values), tensor.shape
    ).coalesce()
    with torch.no_grad():
        tensor.copy_(total)  # not of detach(): that has indices of its own
    return done([tensor])
