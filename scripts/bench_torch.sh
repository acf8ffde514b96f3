#!/bin/sh
# Times torch.distributed over Lockstep and over Gloo (bench/peers/torch_backends.py).
#     bench_torch.sh [WORKERS...]
set -eu
cd "$(dirname "$0")/.."
. scripts/torch_venv.sh
[ $# -gt 0 ] || set -- 2 4
for n in "$@"; do
    "$PYTHON" -m torch.distributed.run --standalone --nproc-per-node "$n" bench/peers/torch_backends.py
done
