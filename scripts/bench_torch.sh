#!/bin/sh
# Times torch.distributed over Lockstep and over Gloo (bench/peers/torch_backends.py).
#     bench_torch.sh [WORKERS [PART]...]    2 and 4 workers, all parts, if none are given
set -eu
cd "$(dirname "$0")/.."
. scripts/torch_venv.sh
workers=${1:-2 4}
[ $# -eq 0 ] || shift
for n in $workers; do
    "$PYTHON" -m torch.distributed.run --standalone --nproc-per-node "$n" bench/peers/torch_backends.py "$@"
done
