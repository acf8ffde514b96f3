#!/bin/bash
# Checks examples/deploy as far as this machine allows: the manifests against Kubernetes' schema,
# the image by building and running it, and the Job's own command in three namespaces that stand in
# for pods (each with its own network card, hostname and process numbers; two on one node), of which
# one is killed and one gets SIGTERM. No cluster is needed. Checks that are not possible here are
# skipped with the reason. Needs root.
set -u
cd "$(dirname "$0")/.."

lockstep=$PWD/build/lockstep
faults=$PWD/build/tests/libfaults.so # slows a run down while RUN.pace exists (tests/cli/faults.c)
n=3
. scripts/netns.sh
. scripts/runs.sh

# ---- the manifests ----

venv=build/peers-venv
if { [ -x $venv/bin/python ] || python3 -m venv $venv; } && $venv/bin/pip install -q kubernetes-validate pyyaml; then
    $venv/bin/kubernetes-validate --strict examples/deploy/job.yaml >"$dir/out.schema" 2>&1
    result $? "job.yaml follows the schema of Kubernetes"
else
    result 77 "job.yaml" "PyPI's kubernetes-validate can't be installed"
fi

# ---- the image ----

base=debian:bookworm-slim
podman="podman --storage-driver=${STORAGE_DRIVER:-vfs}"
build_image() {
    if docker info >/dev/null 2>&1; then
        docker build -q -f examples/deploy/Dockerfile -t lockstep .
    else
        $podman build -q --isolation=chroot --network=host -f examples/deploy/Dockerfile -t lockstep .
    fi
}
# Runs in the image: with an engine, or, if containers are not allowed, as a user in its mounted
# tree.
in_image() {
    if docker info >/dev/null 2>&1; then
        docker run --rm --entrypoint sh lockstep -c "$1"
    elif $podman run --rm --entrypoint true lockstep 2>/dev/null; then
        $podman run --rm --entrypoint sh lockstep -c "$1"
    else
        chroot --userspec=1000:1000 "$($podman image mount localhost/lockstep | awk '{print $NF}')" \
            sh -c "cd /opt/lockstep && $1"
    fi
}
run=$dir/alone
"$lockstep" train configs/tiny.yaml -n 1 -o "$run" >"$dir/out.alone" 2>&1
want=$(hash_of "$run")
if ! docker info >/dev/null 2>&1 && ! $podman image exists $base 2>/dev/null &&
    ! $podman pull -q $base >"$dir/why" 2>&1; then
    result 77 "the image" "no engine that has or reaches $base: $(tail -n 1 "$dir/why")"
else
    build_image >"$dir/out.image" 2>&1
    result $? "the image is built"
    got=$(in_image "lockstep train configs/tiny.yaml -n 2 -o /runs/tiny >/dev/null 2>&1
        lockstep ckpt hash /runs/tiny; rm -rf /runs/tiny" 2>>"$dir/out.image" | sed -n 's/^weights //p')
    [ -n "$got" ] && [ "$got" = "$want" ]
    result $? "in the image two workers make the weights of one outside"
    # libarchive and libcurl are loaded when they are used: each is there if the error is another one.
    got=$(in_image "cd /tmp && printf 'a,class\n1,x\n' | gzip >x.csv.gz && tar cf x.tar x.csv.gz
        for what in x.csv.gz x.tar http://127.0.0.1:1/x; do HOME=/tmp lockstep data \$what 2>&1; done" 2>>"$dir/out.image")
    echo "$got" >>"$dir/out.image"
    echo "$got" | grep -q '^samples    1 ' && echo "$got" | grep -q 'x.tar: sample x has no image' && echo "$got" | grep -q 'connect to 127.0.0.1'
    result $? "in the image packed data, archives and addresses are read"
fi
rm -f "$dir"/out.*

# ---- the Job's command in pods ----

mkdir -p "$dir/config" "$dir/runs"
$venv/bin/python - "$dir" <<'PYTHON' || { result 1 "job.yaml has its parts"; finish; }
import sys, yaml
dir = sys.argv[1]
parts = {d["kind"]: d for d in yaml.safe_load_all(open("examples/deploy/job.yaml"))}
config = parts["ConfigMap"]["data"]["train.yaml"]
open(dir + "/config/train.yaml", "w").write(config.replace("/runs/", dir + "/runs/"))
container = parts["Job"]["spec"]["template"]["spec"]["containers"][0]
assert container["command"] == ["sh", "-c"]
open(dir + "/command", "w").write(container["args"][0].replace(" /config/", f" {dir}/config/")
                                  .replace(" /runs/", f" {dir}/runs/"))
PYTHON
cp LICENSE "$dir/runs/text.txt"
small="--set model.layers=2 --set model.width=24 --set model.heads=3 --set model.context=32 --set model.vocab=300"
sed -i "s|--resume|--resume $small --set train.steps=400 --set log.every=100|" "$dir/command"
mkdir -p "$dir/bin" && ln -s "$lockstep" "$dir/bin/lockstep"
printf '127.0.0.1 localhost\n10.231.0.1 lockstep-0.lockstep\n' >"$dir/hosts"
for node in a b; do tr -dc '0-9a-f' </dev/urandom | head -c 32 >"$dir/boot.$node"; done
nodes="a a b"

run=$dir/reference
sh -c "$(sed -n 's/^exec \(lockstep .*\)/\1/p' "$dir/command" | sed "s|lockstep|$lockstep|; s|$dir/runs/mine|$run|") -n 1" \
    >"$dir/out.reference" 2>&1
want=$(hash_of "$run")
run=$dir/runs/mine

# Runs pod I once; the program is process 1 of its namespace.
pod_life() {
    PATH=$dir/bin:$PATH RANK=$1 WORLD_SIZE=$n MASTER_ADDR=lockstep-0.lockstep MASTER_PORT=29500 LOCKSTEP_KEY=$key \
        LD_PRELOAD=$faults ip netns exec $tag-$1 unshare --mount --uts --pid --ipc --fork --kill-child sh -c '
        hostname lockstep-$1 && mount -t proc proc /proc && mount --bind "$2/hosts" /etc/hosts &&
        mount -t tmpfs tmpfs /dev/shm && mount --bind "$2/boot.$3" /proc/sys/kernel/random/boot_id &&
        exec sh -c "$(cat "$2/command")"' sh $1 "$dir" "$(echo $nodes | cut -d' ' -f$(($1 + 1)))"
}
# Restarts a pod as Kubernetes would, but without its delay.
pod() {
    for life in $(seq 1 20); do
        pod_life $1 >>"$dir/out.pod$1" 2>&1
        code=$?
        echo "$code" >>"$dir/codes.$1"
        [ $code -eq 0 ] && return
        sleep 1
    done
}
program_of() { # program_of I: prints the process of pod I, found by its environment
    for p in $(pgrep -f "^lockstep train $dir/config"); do
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx "RANK=$1" && echo "$p"
    done | tail -n 1
}
has_turns() { [ "$(cat "$dir/out.pod0" 2>/dev/null | grep -c 'continuing from')" -ge "$1" ]; }

echo 150 >"$run.pace"
for i in 0 1 2; do
    pod $i &
    echo $! >"$dir/pid.pod$i"
done
await 120 has_lines "$run" 155
kill -9 "$(program_of 1)"
await 120 has_turns 1 && await 60 has_lines "$run" 165
kill -TERM "$(program_of 2)"
await 120 has_turns 2
rm -f "$run.pace"
wait $(cat "$dir"/pid.pod*)
got=$(hash_of "$run")
grep -qx 75 "$dir/codes.2" && [ -n "$want" ] && [ "$got" = "$want" ] && "$lockstep" ckpt ledger "$run" >"$dir/out.ledger" 2>&1
result $? "three pods on two nodes, one killed, one asked to leave: the weights of one worker (exit codes: $(
    for i in 0 1 2; do echo "pod $i:" $(cat "$dir/codes.$i"); done | paste -sd';'))"

finish
