#!/bin/sh
# Training between hosts: three network namespaces (or HOSTS) with two workers each. Links are cut
# at random for seconds and workers are killed meanwhile; the bits must equal those of an
# undisturbed run, and the ledger must be clean. The last case is a program with a model and data of
# its own (examples/tabular.c). Needs root and the kernel's namespaces. CUTS=5 for fewer; CONFIG for
# another model.
set -u
cd "$(dirname "$0")/.."

lockstep=${BUILD:-build}/lockstep
own=${BUILD:-build}/tests/example_tabular
n=${HOSTS:-3}
for program in "$lockstep" "$own"; do
    [ -x "$program" ] && continue
    echo "hosts: $program is not built: make build-tests" >&2
    exit 1
done
. scripts/netns.sh

try() { # try NAME PROGRAM CONFIG SETTINGS...
    name=$1 program=$2 config=$3
    shift 3
    LOCKSTEP_KEY=$key scripts/cut_links.py "$program" $tag "$dir" --cuts "${CUTS:-20}" \
        --config "$config" --hosts $n "$@" 2>"$dir/out.cuts"
    result $? "$name"
}
try_model() { # try_model NAME SETTINGS...
    name=$1
    shift
    try "$name" "$lockstep" "${CONFIG:-configs/tiny.yaml}" "$@"
}
try_model "links are cut, zero 0" --set parallel.zero=0
try_model "links are cut, zero 1, two copies" --set parallel.zero=1 --set survival.copies=2
try_model "links are cut, zero 3, two copies" --set parallel.zero=3 --set survival.copies=2
if [ $n -eq 3 ]; then # two groups of three workers, each with all parts of the experts, on two hosts
    try_model "links are cut, experts are divided between hosts" --set parallel.zero=0 \
        --set model.kind=llama --set model.heads=4 --set model.layers=1 --set model.experts=6 --set model.ffn=20 \
        --set train.batch=24 --set train.virtual_workers=4 --set train.micro_batch=3 \
        --set parallel.expert_virtual=3 --set parallel.mesh.expert=3
fi
echo 'train: {batch: 96, virtual_workers: 12}' >"$dir/own.yaml"
try "links are cut, a program of one's own, zero 2, two copies" "$own" "$dir/own.yaml" --set parallel.zero=2 \
    --set survival.copies=2
finish
