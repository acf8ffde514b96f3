#!/bin/sh
# Training between hosts: three network namespaces (or HOSTS) with two workers each. Links are cut
# at random for seconds and workers are killed meanwhile; the bits must equal those of an
# undisturbed run, and the ledger must be clean. Needs root and the kernel's namespaces. CUTS=5 for
# fewer; CONFIG for another model.
set -u
cd "$(dirname "$0")/.."

lockstep=${BUILD:-build}/lockstep
n=${HOSTS:-3}
if [ ! -x "$lockstep" ]; then
    echo "hosts: $lockstep is not built: make build-tests" >&2
    exit 1
fi
. scripts/netns.sh

try() { # try NAME SETTINGS...
    name=$1
    shift
    LOCKSTEP_KEY=$key scripts/cut_links.py "$lockstep" $tag "$dir" --cuts "${CUTS:-20}" \
        --config "${CONFIG:-configs/tiny.yaml}" --hosts $n "$@" 2>"$dir/out.cuts"
    result $? "$name"
}
try "links are cut, zero 0" --set parallel.zero=0
try "links are cut, zero 1, two copies" --set parallel.zero=1 --set survival.copies=2
try "links are cut, zero 3, two copies" --set parallel.zero=3 --set survival.copies=2
finish
