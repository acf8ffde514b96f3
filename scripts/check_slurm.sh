#!/bin/bash
# Runs Lockstep under a real Slurm: a controller and three nodes in network namespaces
# (scripts/slurm_cluster.sh). Tests srun and sbatch as in docs/guide/hosts.md, a job that is signalled
# before its time limit and requeued until all steps are done, scancel, a lost node, a job array
# on one run directory, and programs with models of their own. Each run ends with the weights of one
# worker. Needs root, munge, slurmctld and slurmd.
set -u
cd "$(dirname "$0")/.."

lockstep=$PWD/build/lockstep
faults=$PWD/build/tests/libfaults.so # slows a run down while RUN.pace exists (tests/cli/faults.c)
n=4
. scripts/netns.sh
. scripts/runs.sh
. scripts/slurm_cluster.sh

for program in munged slurmctld slurmd srun; do
    command -v $program >/dev/null && continue
    result 77 "slurm" "$program is not installed"
    finish
done
[ -f "$faults" ] || { result 77 "slurm" "$faults is not built"; finish; }
cluster_start || { cp "$dir/why" "$dir/out.start"; result 1 "a cluster starts"; finish; }

export LOCKSTEP_KEY=$key
steps=200
sets="--set train.steps=$steps --set checkpoint.every=20 --set train.eval_every=100"
train() { # train RUN: prints the command line after srun
    echo "$lockstep train configs/tiny.yaml $sets -o $1"
}

$(train "$dir/alone") -n 1 >"$dir/out.alone" 2>&1 || { result 1 "one worker, without Slurm"; finish; }
want=$(hash_of "$dir/alone")
echo "weights of one worker: $want"

# The run is complete, with the weights of one worker and each sample once per epoch.
is_right() { # is_right RUN
    got=$(hash_of "$1")
    [ -n "$want" ] && [ "$got" = "$want" ] && "$lockstep" ckpt ledger "$1" >"$dir/out.ledger" 2>&1 && return 0
    echo "$1: hash $got, expected $want" >"$dir/out.wrong"
    return 1
}
check() { # check NAME RUN
    is_right "$2"
    result $? "$1"
    rm -f "$dir"/out.*
}
state_of() { on_cluster squeue -h -j "$1" -o %T 2>/dev/null; }
has_ended() { [ -z "$(state_of "$1")" ] || [ "$(state_of "$1")" = COMPLETING ]; }
is_complete() { [ "$(hash_of "$1")" = "$want" ]; }
slow_from() { echo "$2" >"$1.pace"; } # slow_from RUN STEP: from STEP on, a step takes a quarter of a second
let_go() { rm -f "$1.pace"; }
turns_of() { cat "$dir/out.job" 2>/dev/null | grep -c 'continuing from'; }
has_turns() { [ "$(turns_of)" -ge "$1" ]; }
submit() { # submit RUN [sbatch options]: the script of docs/guide/hosts.md; prints the job's number
    run=$1
    shift
    cat >"$dir/job.sh" <<JOB
#!/bin/bash
export LD_PRELOAD=$faults
srun $(train "$run") --resume
code=\$?
if [ \$code = 75 ]; then scontrol requeue "\$SLURM_JOB_ID"; fi
exit \$code
JOB
    on_cluster sbatch --parsable --requeue --open-mode=append --output="$dir/out.job" "$@" "$dir/job.sh"
}

# ---- srun ----

for layout in "1 1" "2 2" "2 3" "3 3" "1 3"; do
    set -- $layout
    run=$dir/srun-$1-$2
    on_cluster timeout 120 srun -N$1 -n$2 $(train "$run") >"$dir/out.srun" 2>&1
    check "srun with $2 tasks on $1 nodes" "$run"
done

# ---- sbatch: signalled before its time limit, requeued until all steps are done ----

# Slurm counts time in whole minutes, and may send the signal up to a minute early.
steps=1000
sets="--set train.steps=$steps --set checkpoint.every=100 --set train.eval_every=500 --set log.every=250"
$(train "$dir/alone-long") -n 1 >"$dir/out.alone" 2>&1
want=$(hash_of "$dir/alone-long")
run=$dir/requeued
slow_from "$run" 200
job=$(submit "$run" -N2 -n2 --time=1 --signal=TERM@55)
await 240 has_turns 2
let_go "$run"
await 240 is_complete "$run"
await 30 has_ended "$job"
has_turns 2 && is_right "$run"
result $? "sbatch --signal=TERM@55, requeued $(turns_of) times until all steps are done"
rm -f "$dir"/out.*

# ---- scancel ----

run=$dir/cancelled
slow_from "$run" 200
job=$(submit "$run" -N2 -n3)
await 60 has_lines "$run" 200
on_cluster scancel "$job"
await 60 has_ended "$job"
let_go "$run"
[ "$(lines_of "$run")" -lt $steps ]
result $? "scancel ends a job at step $(lines_of "$run")"
job=$(submit "$run" -N3 -n3)
await 200 has_ended "$job"
check "another job goes on from there" "$run"

# ---- a lost node ----

run=$dir/lost
slow_from "$run" 200
job=$(submit "$run" -N2 -n2)
await 60 has_lines "$run" 200
lost=$(on_cluster squeue -h -j "$job" -o %N | sed 's/.*\([1-3]\)\]*$/\1/')
node_cut "$lost"
await 120 has_turns 1
let_go "$run"
await 200 is_complete "$run"
check "node$lost is cut off; Slurm requeues the job, which goes on with the other nodes" "$run"
node_restore "$lost"
await 60 nodes_are_idle 3
result $? "the node comes back"

# ---- a job array on one run directory ----

run=$dir/chain
slow_from "$run" 200
submit "$run" -N1 -n2 --array=1-3%1 >"$dir/job"
job=$(cat "$dir/job")
await 60 has_lines "$run" 200
await 30 on_cluster scancel --quiet --signal=TERM "${job}_1"
await 60 has_turns 1
stopped=$?
let_go "$run"
await 300 has_ended "$job"
[ $stopped -eq 0 ] && is_right "$run"
result $? "a job array: the first is stopped, the next goes on"
rm -f "$dir"/out.*

run=$dir/array
slow_from "$run" 200
submit "$run" -N1 -n2 --array=1-3 >"$dir/job"
job=$(cat "$dir/job")
has_refused() { [ "$(cat "$dir/out.job" 2>/dev/null | grep -c 'in use by')" -ge "$1" ]; }
await 120 has_refused 2
refused=$?
let_go "$run"
await 300 has_ended "$job"
[ $refused -eq 0 ] && is_right "$run"
result $? "a job array, all at once: one trains, the others are refused"
rm -f "$dir"/out.*

# ---- a program with a model and data of its own, and one that owns its loop ----

own=$PWD/build/tests/example_tabular
loop=$PWD/build/tests/loop_worker # tests/cli/loop_worker.c
printf 'train: {steps: 400, batch: 24, virtual_workers: 6}\ncheckpoint: {every: 20}\n' >"$dir/own.yaml"
own_train() { echo "$own train $dir/own.yaml -o $1"; } # own_train RUN: prints the command line
own_is_right() { "$own" ckpt hash "$1" >"$dir/out.hash" 2>&1 && cmp -s "$dir/out.hash" "$dir/own.hash"; }
$(own_train "$dir/own-alone") -n 1 >"$dir/out.alone" 2>&1 && "$own" ckpt hash "$dir/own-alone" >"$dir/own.hash"

run=$dir/own
on_cluster timeout 120 srun -N2 -n3 $(own_train "$run") >"$dir/out.srun" 2>&1 && own_is_right "$run"
result $? "srun with a program of one's own"
rm -f "$dir"/out.*

run=$dir/own-killed
slow_from "$run" 100
on_cluster env LD_PRELOAD=$faults timeout 120 srun -N2 -n3 --kill-on-bad-exit=1 $(own_train "$run") --resume \
    >"$dir/out.srun" 2>&1 &
step=$!
await 60 has_lines "$run" 100
kill -9 "$(pgrep -f "^$own train .* -o $run" | tail -n 1)"
wait $step
killed=$?
let_go "$run"
[ $killed -ne 0 ] && on_cluster timeout 120 srun -N3 -n3 $(own_train "$run") --resume >>"$dir/out.srun" 2>&1 &&
    grep -q 'continuing from' "$dir/out.srun" && own_is_right "$run"
result $? "a worker of it is killed, and the next srun continues the run"
rm -f "$dir"/out.*

mkdir "$dir/loop-alone" "$dir/loop"
"$loop" "$dir/loop-alone" - -1 0 >"$dir/out.loop" 2>&1
on_cluster timeout 120 srun -N3 -n3 --kill-on-bad-exit=1 "$loop" "$dir/loop" kill 1 8 >>"$dir/out.loop" 2>&1
killed=$?
[ $killed -ne 0 ] && [ -e "$dir/loop/lost" ] &&
    on_cluster timeout 120 srun -N2 -n2 "$loop" "$dir/loop" kill 1 8 >>"$dir/out.loop" 2>&1 &&
    cmp "$dir/loop-alone/weights" "$dir/loop/weights" >>"$dir/out.loop" 2>&1
result $? "a worker of a program that owns its loop is killed, and the next srun continues"

# ---- PyTorch ----

torch=$PWD/build/torch-venv/bin/python # of make check-torch
if [ -x "$torch" ]; then
    export PYTHONPATH=$PWD/python LOCKSTEP_LIBRARY=$PWD/build/liblockstep.so OMP_NUM_THREADS=1
    for layout in "1 2" "2 2"; do
        set -- $layout
        on_cluster timeout 240 srun -N$1 -n$2 "$torch" python/tests/torch/worker_collectives.py >"$dir/out.torch" 2>&1
        [ "$(grep -c '^right$' "$dir/out.torch")" = "$2" ]
        result $? "srun with $2 tasks of torch.distributed on $1 nodes"
    done
else
    result 77 "srun of torch.distributed" "there is no build/torch-venv; make check-torch makes it"
fi

finish
