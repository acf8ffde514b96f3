"""Compares tensor parallelism of two workers by lockstep and by torch.distributed.tensor.parallel.

    compare_tensor.py LOCKSTEP PYTHON OUT [--rounds N] [--steps N] [--batch N]

GPT of 12 million parameters, samples of 256 tokens: the same weights and samples. One worker of
lockstep has the model in one piece.
"""
from two_workers import Table, arguments, run_lockstep, run_pytorch

WAYS = {"lockstep, one worker": ["1"],
        "lockstep, two slices, one worker": ["1", "parallel.tensor_virtual=2"],
        "lockstep, tensor 2": ["2", "parallel.tensor_virtual=2", "parallel.mesh.tensor=2"]}


def ours(a, way, export):
    n, *sets = WAYS[way]
    sets += ["model.context=256", f"train.batch={a.batch}", "train.virtual_workers=1", f"train.micro_batch={a.batch}"]
    return run_lockstep(a, n, sets, export)


def main():
    a = arguments(6, batch=1)
    folder, table = f"{a.out}/tensor", Table()
    for _ in range(a.rounds):
        for way in WAYS:
            table.add(way, way, ours(a, way, None if table.losses else folder))
        table.add("pytorch, tensor 2", "pytorch", run_pytorch(a, "tensor.py", folder))
    medians = table.medians(4)
    two = medians["lockstep, tensor 2"]
    table.end(f"two workers beside one: {medians['lockstep, one worker'] / two:.2f}; "
              f"beside PyTorch's: {medians['pytorch, tensor 2'] / two:.2f}")


if __name__ == "__main__":
    main()
