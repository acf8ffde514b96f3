#!/bin/sh
# Compares predictions with measurements: ten configs with 1 and 2 workers, step time and memory, in
# f32 and in bf16 (TYPES="f32 bf16").
# Not a part of `make check`: it takes some minutes, and measures only while the machine is idle
# (WHAT=cpu: measures processor time instead, for a machine that is never idle).
# ROUNDS=N: measures all configs N times, and takes medians. MACHINE=FILE as `lockstep bench
# machine --save` writes it; without it, the machine is measured first.
set -eu
cd "$(dirname "$0")/.."

lockstep=${BUILD:-build}/lockstep
rounds=${ROUNDS:-5}
steps=${STEPS:-8}
what=${WHAT:-step}
types=${TYPES:-f32 bf16}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

machine=${MACHINE:-$dir/machine.yaml}
[ -f "$machine" ] || "$lockstep" bench machine --save "$machine"

# layers width heads context batch micro_batch virtual_workers zero recompute
configs="
4 128 4  64 32 4 4 1 0
4 192 6 128  8 2 4 1 0
4 256 8 128  8 2 2 0 0
6 256 8 256  4 1 4 2 0
4 384 6 128 16 4 4 1 2
4 512 8 128  8 2 2 0 0
2 512 8 256  4 2 2 3 0
3 768 12 128 4 1 4 1 0
2 768 12 256 4 2 2 2 2
8 320 5  64 16 4 2 3 4
"

settings() { # settings TYPE LAYERS WIDTH HEADS CONTEXT BATCH MICRO V ZERO RECOMPUTE
    echo "--set train.compute=$1"
    shift
    echo "--set model.layers=$1 --set model.width=$2 --set model.heads=$3 --set model.context=$4" \
        "--set train.batch=$5 --set train.micro_batch=$6 --set train.virtual_workers=$7" \
        "--set parallel.zero=$8 --set parallel.recompute=$9 --set parallel.threads=1"
}

echo "$configs" | while read -r line; do
    [ -n "$line" ] || continue
    for n in 1 2; do
        for type in $types; do echo "$n $type $line"; done
    done
done >"$dir/cases"

measure() { # measure step|memory STEPS N SETTINGS...
    how=$1 count=$2 n=$3
    shift 3
    # shellcheck disable=SC2046
    python3 scripts/measure_quietly.py "$how" "$lockstep" bench train configs/demo.yaml \
        -n "$n" $(settings "$@") --steps "$count" </dev/null
}

round=0
while [ $round -lt "$rounds" ]; do
    i=0
    while read -r n line; do
        i=$((i + 1))
        # shellcheck disable=SC2086
        measure "$what" "$steps" "$n" $line >>"$dir/step.$i"
    done <"$dir/cases"
    round=$((round + 1))
done

median() { sort -n "$1" | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }

echo "type layers width heads context batch micro V zero recompute, workers: step in s, memory in MB"
printf '%-38s %2s %10s %10s %6s   %9s %9s %6s\n' config n predicted measured ratio \
    predicted measured ratio
i=0
while read -r n line; do
    i=$((i + 1))
    # shellcheck disable=SC2046,SC2086
    "$lockstep" plan configs/demo.yaml -n "$n" --machine "$machine" $(settings $line) >"$dir/out"
    step=$(awk '$2 == "step" && $1 == "predicted" { print $3 }' "$dir/out")
    memory=$(awk '$2 == "memory" && $1 == "predicted" { print $3 }' "$dir/out")
    measured=$(median "$dir/step.$i")
    # shellcheck disable=SC2086
    peak=$(measure memory 1 "$n" $line)
    echo "$line|$n $step $measured $memory $peak"
done <"$dir/cases" | awk -F '|' '
    {
        split($2, x, " ")
        ratio = x[2] / x[3]
        printf "%-38s %2d %10.4f %10.4f %6.3f   %9.1f %9.1f %6.3f\n", $1, x[1], x[2], x[3], ratio,
            x[4], x[5], x[4] / x[5]
        off = ratio > 1 ? ratio - 1 : 1 - ratio
        type = substr($1, 1, index($1, " ") - 1)
        if (off > worst[type]) worst[type] = off
        if (off <= 0.1) good[type]++
        sum[type] += off
        count[type]++
    }
    END {
        for (type in count)
            printf "%s: %d of %d within 10 %%; on average off by %.1f %%, at worst by %.1f %%\n", type,
                good[type], count[type], 100 * sum[type] / count[type], 100 * worst[type]
    }'
