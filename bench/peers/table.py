"""The work of bench/table.c in PyTorch: a sparse EmbeddingBag in DistributedDataParallel over Gloo, with
the same number of processes. Prints one JSON object.

    table.py WORKERS ROWS WIDTH IDS STEPS

Sparse gradients allow SGD, Adagrad (a number for each element) and SparseAdam; the row-wise Adagrad of
lockstep's table is nearest to Adagrad. Each worker has the whole table, since DistributedDataParallel
does not shard it.
"""
import json
import os
import socket
import statistics
import sys
import time


def worker(rank, workers, rows, width, n, steps, port):
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // workers))
    torch.manual_seed(1)
    dist.init_process_group("gloo", rank=rank, world_size=workers)
    table = torch.nn.EmbeddingBag(rows, width, mode="sum", sparse=True)
    model = DistributedDataParallel(table) if workers > 1 else table
    optimizer = torch.optim.Adagrad(table.parameters(), lr=0.01, eps=1e-10)
    draw = torch.Generator().manual_seed(rank + 1)
    offsets = torch.arange(n)
    times = []
    for i in range(-1, steps):
        ids = torch.randint(rows, (n,), generator=draw)
        dist.barrier()
        begin = time.monotonic()
        optimizer.zero_grad()
        out = model(ids, offsets)  # one row a bag: the rows themselves
        (out * out).sum().mul(0.5).backward()  # the gradient of a row is the row
        optimizer.step()
        dist.barrier()
        if i >= 0:
            times.append(time.monotonic() - begin)
    if rank == 0:
        step_s = statistics.median(times)
        print(json.dumps({"system": f"pytorch {torch.__version__}", "workers": workers, "rows": rows, "width": width,
                          "ids": n, "step_s": step_s, "rows_per_s": round(n * workers / step_s)}), flush=True)
    dist.destroy_process_group()


def main():
    workers, rows, width, n, steps = map(int, sys.argv[1:6])
    import torch.multiprocessing

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    torch.multiprocessing.spawn(worker, (workers, rows, width, n, steps, port), nprocs=workers)


if __name__ == "__main__":
    main()
