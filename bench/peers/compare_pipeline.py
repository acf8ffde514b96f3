"""Compares a pipeline of two workers by lockstep and by torch.distributed.pipelining.

    compare_pipeline.py LOCKSTEP PYTHON OUT [--rounds N] [--steps N] [--context N]

GPT of 12 million parameters, 8 samples, micro-batches of one: the same weights and samples. PyTorch is
measured with each schedule and two cuts, and the best counts.
"""
from two_workers import Table, arguments, run_lockstep, run_pytorch

WAYS = [(schedule, cut) for schedule in ("1f1b", "gpipe") for cut in (3, 4)]


def ours(a, schedule, export):
    return run_lockstep(a, 2, ["parallel.mesh.pipe=2", f"parallel.schedule={schedule}", f"model.context={a.context}",
                               "train.batch=8", "train.virtual_workers=1", "train.micro_batch=1"], export)


def main():
    a = arguments(4, context=256)
    folder, table = f"{a.out}/pipeline", Table()
    for _ in range(a.rounds):
        for schedule in ("1f1b", "gpipe"):
            r = ours(a, schedule, None if table.losses else folder)
            table.add(f"lockstep {schedule}", "lockstep", r)
        for schedule, cut in WAYS:
            r = run_pytorch(a, "pipeline.py", folder, "--schedule", schedule, "--cut", str(cut))
            table.add(f"pytorch {r['variant']}", "pytorch", r)
    medians = table.medians(3)
    best = {who: min(x for name, x in medians.items() if name.startswith(who)) for who in ("lockstep", "pytorch")}
    table.end(f"ratio {best['pytorch'] / best['lockstep']:.2f}")


if __name__ == "__main__":
    main()
