#!/bin/bash
# Runs Lockstep under PyTorch's torchrun: one node, a port that is in use, two nodes with torchrun's
# rendezvous, and a killed worker (torchrun restarts all workers, and --resume continues the run).
# Each run ends with the weights of one worker. torchrun comes with PyTorch from PyPI (some GB, in
# build/torch-venv), or is the one beside PYTHON.
set -u
cd "$(dirname "$0")/.."

if [ -z "${PYTHON:-}" ]; then
    PYTHON=build/torch-venv/bin/python
    { [ -x $PYTHON ] || python3 -m venv build/torch-venv; } && $PYTHON -m pip install -q torch numpy
fi
torchrun=$(dirname "$PYTHON")/torchrun
if [ ! -x "$torchrun" ]; then
    echo "skipped: torchrun: PyTorch is not installed beside $PYTHON"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
lockstep=$PWD/build/lockstep
. scripts/runs.sh
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$dir"' EXIT
passed=0 failed=0
result() { # result STATUS NAME
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
        echo "passed: $2"
    else
        failed=$((failed + 1))
        echo "failed: $2" >&2
        cat "$dir"/out.* >&2
    fi
    rm -f "$dir"/out.*
}
LOCKSTEP_KEY=$(tr -dc '0-9a-f' </dev/urandom | head -c 64)
export LOCKSTEP_KEY OMP_NUM_THREADS=1

train="train configs/tiny.yaml --set train.steps=2000 --set checkpoint.every=200"
"$lockstep" $train -n 1 -o "$dir/alone" >"$dir/out.alone" 2>&1
want=$(hash_of "$dir/alone")
is_right() { [ -n "$want" ] && [ "$(hash_of "$1")" = "$want" ] && "$lockstep" ckpt ledger "$1" >>"$dir/out.ledger" 2>&1; }

for n in 2 3; do
    run=$dir/one-node-$n
    "$torchrun" --standalone --nproc-per-node $n --no-python "$lockstep" $train -o "$run" >"$dir/out.$n" 2>&1 && is_right "$run"
    result $? "torchrun --standalone --nproc-per-node $n"
done

# Another program has the port after torchrun's.
run=$dir/port
port=$((20000 + RANDOM % 10000))
"$PYTHON" -c "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', $port + 1)); time.sleep(600)" &
holder=$!
"$torchrun" --nnodes 1 --master-addr 127.0.0.1 --master-port $port --nproc-per-node 2 --no-python \
    "$lockstep" $train -o "$run" >"$dir/out.port" 2>&1 && is_right "$run"
result $? "torchrun --master-port, and another program has the next port"
kill $holder

run=$dir/two-nodes
port=$((20000 + RANDOM % 10000))
node() { # node RANK: two workers, which take themselves to be on a host of their own
    LOCKSTEP_HOST=node-$1 "$torchrun" --nnodes 2 --node-rank $1 --nproc-per-node 2 --rdzv-backend c10d --rdzv-id $port \
        --rdzv-endpoint 127.0.0.1:$port --no-python "$lockstep" $train -o "$run" >"$dir/out.$1" 2>&1
}
node 0 & first=$!
node 1
second=$?
wait $first && [ $second -eq 0 ] && is_right "$run"
result $? "torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d"

run=$dir/killed
"$torchrun" --standalone --max-restarts 3 --monitor-interval 0.1 --nproc-per-node 2 --no-python \
    "$lockstep" $train -o "$run" --resume >"$dir/out.killed" 2>&1 &
launcher=$!
until has_lines "$run" 250 || ! kill -0 $launcher; do sleep 0.02; done
kill -9 "$(pgrep -f "^$lockstep $train -o $run" | head -n 1)"
wait $launcher && is_right "$run" && grep -q 'continuing from' "$dir/out.killed"
result $? "torchrun starts the workers again when one is killed, and they go on"

echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
