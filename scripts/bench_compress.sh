#!/bin/sh
# Training with compressed gradients between two hosts with slow links: two network namespaces whose
# cards `tc` limits. Each kind trains the demo's model with the same samples; the table has the time
# until it reaches the validation loss that training without compression has at the end. Needs root,
# and the kernel's namespaces and traffic control; without them it says so, and skips.
#     bench_compress.sh [RATES [STEPS [KINDS]]]
set -u
cd "$(dirname "$0")/.."
rates=${1:-100mbit 1gbit} steps=${2:-200}
kinds=${3:-none bf16 topk randomk onebit twobit int8 int4 demo}
build=${BUILD:-build}
text=${TEXT:-build/bible.txt}
n=2
. scripts/netns.sh
# As in demo.sh.
[ -s "$text" ] || bible gen1:1-rev22:21 >"$text" || { result 77 "codes" "no text: $text"; finish; }

settings() { # settings KIND: those that differ
    case $1 in
    none) ;;
    bf16) echo train.reduce_dtype=bf16 ;;
    twobit) echo compress.kind=twobit compress.threshold=0.001 ;;
    *) echo compress.kind="$1" ;;
    esac
}
# train KIND RATE: on both hosts; the run is $dir/KIND-RATE.
train() {
    sets=
    for s in $(settings "$1"); do sets="$sets --set $s"; done
    for i in 0 1; do
        how="--join 10.231.0.1:7100"
        [ $i = 1 ] || how="--listen 10.231.0.1:7100 --hosts 2"
        LOCKSTEP_KEY=$key ip netns exec $tag-$i "$build/lockstep" train configs/demo.yaml -n 1 \
            -o "$dir/$1-$2" --set data.path="$text" --set train.steps="$steps" \
            --set train.virtual_workers=2 --set optim.warmup=20 --set train.eval_every=10 --set train.eval_samples=64 \
            --set parallel.zero=0 --set survival.balance=off $sets $how >"$dir/out.$i" 2>&1 &
        echo $! >"$dir/pid.$i"
    done
    wait
    grep -q val_loss "$dir/$1-$2/metrics.jsonl" 2>/dev/null
}

for rate in $rates; do
    for i in 0 1; do
        ip netns exec $tag-$i tc qdisc replace dev eth0 root tbf rate "$rate" burst 256kb \
            latency 100ms 2>"$dir/why" ||
            { result 77 "codes" "no traffic control: $(cat "$dir/why")"; finish; }
    done
    for kind in $kinds; do
        train "$kind" "$rate"
        result $? "$kind at $rate"
    done
    python3 - "$rate" "$dir" $kinds <<'END'
import json, statistics, sys
rate, folder, kinds = sys.argv[1], sys.argv[2], sys.argv[3:]
def read(kind):
    seconds, clock, losses = [], 0.0, []
    for line in open(f"{folder}/{kind}-{rate}/metrics.jsonl"):
        x = json.loads(line)
        if "seconds" in x:
            seconds.append(x["seconds"])
            clock += x["seconds"]
        if "val_loss" in x:
            losses.append((x["step"], clock, x["val_loss"]))
    return statistics.median(seconds), losses
runs = {kind: read(kind) for kind in kinds}
target = 1.01 * min(x for _, _, x in runs[kinds[0]][1])
print(f"{rate}: until a validation loss of {target:.4f}, 1 % above the lowest of {kinds[0]}")
print("kind      s/step   steps   seconds  final loss")
for kind, (step_s, losses) in runs.items():
    there = next(((s, t) for s, t, x in losses if x <= target), None)
    steps, seconds = ("%d" % there[0], "%.1f" % there[1]) if there else ("-", "-")
    print(f"{kind:8} {step_s:7.3f} {steps:>7} {seconds:>9} {losses[-1][2]:11.4f}")
END
done
finish
