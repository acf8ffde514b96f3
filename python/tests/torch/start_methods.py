"""Three workers, started by a method of torch.multiprocessing.

    start_methods.py fork|spawn|forkserver
"""

from __future__ import annotations

import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing

import lockstep.torch  # noqa: F401


def main(rank: int, port: int) -> None:
    dist.init_process_group("lockstep", f"tcp://127.0.0.1:{port}", rank=rank, world_size=3)
    x = torch.ones(1000)
    dist.all_reduce(x, async_op=True).wait()
    assert torch.equal(x, torch.full((1000,), 3.0))
    dist.destroy_process_group()
    print("right\n", end="", flush=True)


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free = s.getsockname()[1]
    torch.multiprocessing.start_processes(main, (free,), nprocs=3, start_method=sys.argv[1])
