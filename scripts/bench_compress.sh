#!/bin/sh
# Training with compressed gradients between two hosts with slow links: two network namespaces whose
# cards `tc` limits. A kind has the same loss after each step whatever the link, since a run has the
# same bits on any number of hosts. So each kind trains once on this machine, STEPS steps, for its
# losses, and a few steps over each link, for the time of a step. The table has the product: the time
# until the validation loss is within 3 % of the lowest without compression. PyTorch with its
# PowerSGD hook has the time of its own step, on the same shapes; its steps are those of powersgd.
# Needs root, and the kernel's namespaces and traffic control; without them it says so, and skips.
#     bench_compress.sh [RATES [STEPS [KINDS]]]
set -u
cd "$(dirname "$0")/.."
rates=${1:-100mbit 1gbit} steps=${2:-120}
kinds=${3:-none bf16 int8 int4 powersgd topk onebit pytorch}
build=${BUILD:-build}
config=${CONFIG:-configs/gpt-12m.yaml}
text=${TEXT:-build/bible.txt}
python=${PYTHON:-build/torch-venv/bin/python}
timed=${TIMED:-8}
more=${MORE:-} # further arguments of all runs
losses=${LOSSES:-} # a directory for the runs of the losses, which are then kept and not repeated
n=2
. scripts/netns.sh
losses=${losses:-$dir}
mkdir -p "$losses"
# As in demo.sh.
[ -s "$text" ] || bible gen1:1-rev22:21 >"$text" || { result 77 "codes" "no text: $text"; finish; }

settings() { # settings KIND: those that differ
    case $1 in
    none) ;;
    bf16) echo train.reduce_dtype=bf16 ;;
    *) echo compress.kind="$1" ;;
    esac
}
# arguments KIND NAME STEPS: of a run, all hosts alike.
arguments() {
    echo "$config -o $dir/$2 --set data.path=$text --set train.steps=$3" \
        "--set train.virtual_workers=2 --set train.micro_batch=4 --set optim.warmup=20" \
        "--set parallel.zero=0 --set parallel.threads=1 --set survival.balance=off" \
        "$(for s in $(settings "$1"); do echo "--set $s"; done) $more"
}
# The losses of a kind: the run $losses/KIND-losses.
train_here() {
    [ ! -f "$losses/$1-losses/loss.svg" ] || return 0
    "$build/lockstep" train $(dir=$losses arguments "$1" "$1-losses" "$steps") -n 2 \
        --set train.eval_every=10 --set train.eval_samples=64 >"$dir/out.0" 2>&1
}
# The seconds of its steps over a link: the run $dir/KIND-RATE, on both hosts.
train_over() {
    for i in 0 1; do
        how="--join 10.231.0.1:7100"
        [ $i = 1 ] || how="--listen 10.231.0.1:7100 --hosts 2"
        LOCKSTEP_KEY=$key ip netns exec $tag-$i "$build/lockstep" train \
            $(arguments "$1" "$1-$2" "$timed") -n 1 --set train.eval_every=0 --set optim.warmup=1 $how >"$dir/out.$i" 2>&1 &
        echo $! >"$dir/pid.$i"
    done
    wait
    grep -q '"seconds"' "$dir/$1-$2/metrics.jsonl" 2>/dev/null
}
torch_over() {
    for i in 0 1; do
        GLOO_SOCKET_IFNAME=eth0 MASTER_ADDR=10.231.0.1 MASTER_PORT=7200 RANK=$i WORLD_SIZE=2 \
            ip netns exec $tag-$i "$python" bench/peers/powersgd.py "$config" "$timed" \
            >"$dir/out.$i" 2>&1 &
        echo $! >"$dir/pid.$i"
    done
    wait
    grep '^{' "$dir/out.0" >"$dir/pytorch-$1.json"
}

for kind in $kinds; do
    [ "$kind" != pytorch ] || continue
    train_here "$kind"
    result $? "losses of $kind"
done
for rate in $rates; do
    for i in 0 1; do
        ip netns exec $tag-$i tc qdisc replace dev eth0 root tbf rate "$rate" burst 256kb \
            latency 100ms 2>"$dir/why" ||
            { result 77 "codes" "no traffic control: $(cat "$dir/why")"; finish; }
    done
    for kind in $kinds; do
        if [ "$kind" != pytorch ]; then
            train_over "$kind" "$rate"
            result $? "$kind at $rate"
        elif "$python" -c "import torch, yaml" 2>/dev/null; then
            torch_over "$rate"
            result $? "$kind at $rate"
        else
            result 77 "$kind at $rate" "$python has no torch; set PYTHON"
        fi
    done
    python3 - "$rate" "$dir" "$losses" $kinds <<'END'
import json, os, statistics, sys
rate, folder, kept, kinds = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
def lines(run, folder=folder):
    return [json.loads(line) for line in open(f"{folder}/{run}/metrics.jsonl")]
def losses(kind):
    return [(x["step"], x["val_loss"]) for x in lines(f"{kind}-losses", kept) if "val_loss" in x]
def step_s(kind):
    if kind != "pytorch":
        return statistics.median(x["seconds"] for x in lines(f"{kind}-{rate}")[1:] if "seconds" in x)
    path = f"{folder}/pytorch-{rate}.json"
    return json.load(open(path))["seconds"] if os.path.exists(path) and os.path.getsize(path) else None
target = 1.03 * min(x for _, x in losses(kinds[0]))
print(f"{rate}: until a validation loss of {target:.4f}, 3 % above the lowest of {kinds[0]}")
print("kind       s/step   steps   seconds  final loss")
for kind in kinds:
    seconds, curve = step_s(kind), losses("powersgd" if kind == "pytorch" else kind)
    if seconds is None:
        continue
    there = next((step for step, x in curve if x <= target), None)
    total = "%.1f" % (there * seconds) if there else "-"
    print(f"{kind:9} {seconds:7.3f} {there or '-':>7} {total:>9} {curve[-1][1]:11.4f}")
END
done
finish
