#!/bin/sh
# Trains models in f32 and in bf16, from the same seeds, and compares their last validation losses.
# Fails if a model's mean over the seeds differs by more than LIMIT percent (0.5).
#     check_bf16_quality.sh [CONFIG[:STEPS] ...]
# Without arguments: configs/demo.yaml as it is, and configs/gpt-12m.yaml, an hour on two cores. The
# schedule of the learning rate ends at STEPS. SEEDS="1 2 3"; OUT keeps the runs, and a run that is
# there is not repeated.
set -eu
cd "$(dirname "$0")/.."

lockstep=${BUILD:-build}/lockstep
seeds=${SEEDS:-1 2 3}
limit=${LIMIT:-0.5}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP
out=${OUT:-$dir}
[ $# -gt 0 ] || set -- configs/demo.yaml configs/gpt-12m.yaml
[ -s build/bible.txt ] || bible gen1:1-rev22:21 >build/bible.txt

# Prints the validation loss after the last step. All of the validation part is used.
final_loss() { # final_loss RUN CONFIG [STEPS] TYPE SEED
    run=$1 config=$2 steps=$3 type=$4 seed=$5
    if [ ! -e "$run/done" ]; then
        rm -rf "$run"
        "$lockstep" train "$config" -o "$run" --set train.compute="$type" --set train.seed="$seed" \
            --set train.eval_samples=100000 --set train.eval_every=100000 \
            --set checkpoint.every=0 ${steps:+--set train.steps="$steps"} >"$dir/log" 2>&1 || {
            cat "$dir/log" >&2
            exit 1
        }
        : >"$run/done"
    fi
    sed -n 's/.*"val_loss": \([0-9.]*\).*/\1/p' "$run/metrics.jsonl" | tail -1
}

echo "validation loss, nats a token"
printf '%-28s %4s %9s %9s %9s\n' config seed f32 bf16 difference
for model; do
    config=${model%%:*}
    steps=${model#"$config"}
    steps=${steps#:}
    name=$(basename "$config" .yaml)${steps:+-$steps}
    for seed in $seeds; do
        f32=$(final_loss "$out/$name-f32-$seed" "$config" "$steps" f32 "$seed")
        bf16=$(final_loss "$out/$name-bf16-$seed" "$config" "$steps" bf16 "$seed")
        echo "$name $seed $f32 $bf16" | tee -a "$dir/losses" | awk '
            { printf "%-28s %4s %9.4f %9.4f %+8.3f%%\n", $1, $2, $3, $4, 100 * ($4 / $3 - 1) }'
    done
done
awk -v limit="$limit" '
    { if (!n[$1]++) names[++models] = $1; f32[$1] += $3; bf16[$1] += $4 }
    END {
        for (i = 1; i <= models; i++) {
            name = names[i]
            off = 100 * (bf16[name] / f32[name] - 1)
            printf "%-28s mean %9.4f %9.4f %+8.3f%%\n", name, f32[name] / n[name], bf16[name] / n[name], off
            if (off > limit || off < -limit) bad = 1
        }
        if (bad) print "differs by more than " limit "%"
        exit bad
    }' "$dir/losses"
