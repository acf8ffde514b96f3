#!/bin/sh
# Instructions that a training step of a small GPT takes, counted by callgrind, compared with the
# record in tests/instructions.txt: fails if more than 5 % above it; prints a line if more than 5 %
# below it. Counts, unlike times, are the same on a busy machine; but they weigh a load from memory
# as much as an addition, so they show added work, not what is slow.
#     check_instructions.sh PROGRAM COMPILER BUILD_TYPE
# A step is measured from the beginning of the first to the beginning of the second one, which
# excludes startup, the last checkpoint and evaluation. One process; for zero-3 it runs two workers
# alternately. Without LOCKSTEP_ALL_CASES (make check-slow), f32 alone. LOCKSTEP_UPDATE=1 writes the record. Exit code 77: skipped, with the reason.
set -eu
cd "$(dirname "$0")/.."
program=$1 compiler=$2 build_type=$3
record=tests/instructions.txt
machine="$compiler, $(uname -m), avx2"

skip() { echo "skipped: $*"; exit 77; }
[ "$build_type" = Release ] || skip "instructions are recorded of the release build, not of ${build_type:-another}"
command -v valgrind >/dev/null || skip "there is no valgrind"
LOCKSTEP_CPU=avx2; export LOCKSTEP_CPU
grep -qw avx2 /proc/cpuinfo || skip "this processor has no AVX2"
recorded=$(sed -n 's/^recorded with: //p' $record)
update=${LOCKSTEP_UPDATE:-}
[ -n "$update" ] || [ "$machine" = "$recorded" ] ||
    skip "instructions are recorded with $recorded; this is $machine"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# count SET...: instructions from one step's beginning to the next one's.
count() {
    rm -rf "$work/run" "$work"/counts*
    valgrind --tool=callgrind --callgrind-out-file="$work/counts" --dump-before=ls_member_step \
        "$program" train configs/tiny.yaml -o "$work/run" --set train.steps=2 \
        --set model.width=48 --set train.batch=4 --set train.virtual_workers=2 --set train.eval_every=0 \
        --set data.val_fraction=0.01 --set optim.warmup=0 \
        --set parallel.threads=1 --set parallel.overlap=off --set parallel.transport=thread \
        "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    [ -f "$work/counts.2" ] && [ ! -f "$work/counts.3" ] || { echo "there were not exactly two steps" >&2; exit 1; }
    sed -n 's/^totals: //p' "$work/counts.2"
}

bad=0
check() { # check NAME SET...
    name=$1
    shift
    got=$(count "$@")
    echo "$name: $got" >>"$work/record"
    want=$(sed -n "s/^$name: //p" $record)
    [ -z "$update" ] || { echo "$name: $got"; return; }
    [ -n "$want" ] || { echo "$name: there is no record of it" >&2; bad=1; return; }
    permille=$(((got - want) * 1000 / want))
    printf '%-10s %9d instructions a step, recorded %9d: %+d permille\n' "$name" "$got" "$want" $permille
    if [ $((got * 20)) -gt $((want * 21)) ]; then
        bad=1
        echo "$name: over 5 % more instructions; if that is meant: LOCKSTEP_UPDATE=1 ctest -R instructions" >&2
    elif [ $((got * 20)) -lt $((want * 19)) ]; then
        echo "$name: over 5 % fewer instructions: the record could be lowered"
    fi
}

{
    echo "Instructions of a training step; scripts/check_instructions.sh describes them."
    echo "recorded with: $machine"
} >"$work/record"
check f32 -n 1
if [ -n "${LOCKSTEP_ALL_CASES:-}$update" ]; then
    check bf16 -n 1 --set train.compute=bf16
    check zero-3 -n 2 --set parallel.executor=sequential --set parallel.zero=3 --set parallel.recompute=2
fi
[ -z "$update" ] || cp "$work/record" $record
exit $bad
