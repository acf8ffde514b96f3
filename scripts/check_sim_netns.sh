#!/bin/sh
# Predictions beside measurements over TCP: two workers in two network namespaces, the link between
# them limited by tc (tbf). Needs root; MACHINE=FILE as `lockstep bench machine --save` writes it.
set -eu
cd "$(dirname "$0")/.."

lockstep=${BUILD:-build}/lockstep
rounds=${ROUNDS:-3}
steps=${STEPS:-5}
tag=lsim$$
dir=$(mktemp -d)
key=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
clean() {
    ip netns del $tag-0 2>/dev/null || true
    ip netns del $tag-1 2>/dev/null || true
    rm -rf "$dir"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP

if ! ip netns add $tag-0 2>"$dir/why"; then
    echo "skipped: a link between hosts: no network namespaces: $(cat "$dir/why")"
    exit 0
fi
ip netns add $tag-1
ip link add eth0 netns $tag-0 type veth peer name eth0 netns $tag-1
for i in 0 1; do
    ip -n $tag-$i addr add 10.232.0.$((i + 1))/24 dev eth0
    ip -n $tag-$i link set lo up
    ip -n $tag-$i link set eth0 up
done

limit() { # limit RATE: both ways
    for i in 0 1; do
        ip netns exec $tag-$i tc qdisc replace dev eth0 root tbf rate "$1" burst 128kb latency 100ms ||
            return 1
    done
}
if ! limit 1gbit 2>"$dir/why"; then
    echo "skipped: a link between hosts: no tbf: $(cat "$dir/why")"
    exit 0
fi

machine=${MACHINE:-$dir/machine.yaml}
[ -f "$machine" ] || "$lockstep" bench machine --save "$machine"

common="--set model.layers=4 --set model.width=256 --set model.heads=8 --set model.context=128
    --set train.batch=8 --set train.micro_batch=2 --set train.virtual_workers=2
    --set parallel.bucket_mb=2 --set parallel.transport=tcp --set parallel.threads=1"

run() { # run SETTINGS...: the step in seconds
    for r in 0 1; do
        # shellcheck disable=SC2086
        LOCKSTEP_RANK=$r LOCKSTEP_SIZE=2 LOCKSTEP_ADDR=10.232.0.1:7000 LOCKSTEP_KEY=$key \
            ip netns exec $tag-$r "$lockstep" bench train configs/demo.yaml --steps "$steps" \
            $common "$@" >"$dir/out.$r" 2>&1 &
    done
    wait
    awk '$1 == "step" { print $2 }' "$dir/out.0"
}
median() { sort -n | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'; }

echo "two hosts, 4 layers of width 256, context 128, batch 8: step in s"
printf '%-10s %4s %8s %10s %10s %6s\n' link zero overlap predicted measured ratio
for link in 50mbit,50Mb/s 100mbit,100Mb/s 400mbit,400Mb/s; do
    limit "${link%,*}"
    for zero in 0 1 3; do
        for overlap in "off" "on"; do
            set -- --set parallel.zero=$zero --set parallel.overlap=$overlap
            measured=$(for _ in $(seq "$rounds"); do run "$@"; done | median)
            # shellcheck disable=SC2086
            predicted=$("$lockstep" plan configs/demo.yaml -n 2 $common "$@" --machine "$machine" \
                --link "${link#*,},20us" --host-workers 1 |
                awk '$1 == "predicted" && $2 == "step" { print $3 }')
            echo "${link#*,} $zero $overlap $predicted $measured" |
                awk '{ printf "%-10s %4d %8s %10.4f %10.4f %6.3f\n", $1, $2, $3, $4, $5, $4 / $5 }'
        done
    done
done
