#!/bin/sh
# Rows of a table read and updated in a second, beside PyTorch's sparse EmbeddingBag, alternating:
# bench/table.c and bench/peers/table.py. PyTorch comes from PyPI (some GB) into a virtual
# environment in build/, or PYTHON names an interpreter that has it.
#     bench_table.sh [WORKERS [ROWS [WIDTH [IDS [STEPS [TIMES]]]]]]
set -eu
cd "$(dirname "$0")/.."
workers=${1:-2} rows=${2:-10000000} width=${3:-16} ids=${4:-100000} steps=${5:-10} times=${6:-3}

python=${PYTHON:-build/torch-venv/bin/python}
if [ -z "${PYTHON:-}" ]; then
    [ -x $python ] || python3 -m venv build/torch-venv
    build/torch-venv/bin/pip install -q torch numpy
fi
mkdir -p build/bench
program=build/bench/table
cc -std=c11 -D_GNU_SOURCE -O2 bench/table.c -Iinclude -Lbuild -llockstep -Wl,-rpath,"$PWD/build" -o $program
out=$(mktemp)
trap 'rm -f "$out"' EXIT
for _ in $(seq "$times"); do
    build/lockstep run -n "$workers" $program "$rows" "$width" "$ids" "$steps" | tee -a "$out"
    "$python" -W ignore bench/peers/table.py "$workers" "$rows" "$width" "$ids" "$steps" | tee -a "$out"
done
python3 - "$out" <<'END'
import json, statistics, sys
speed = {}
for line in open(sys.argv[1]):
    x = json.loads(line)
    speed.setdefault(x["system"].split()[0], []).append(x["rows_per_s"])
ours, theirs = (statistics.median(speed[s]) for s in ("lockstep", "pytorch"))
print(f"medians: lockstep {ours:.3g} rows/s, pytorch {theirs:.3g} rows/s: {ours / theirs:.2f} times")
END
