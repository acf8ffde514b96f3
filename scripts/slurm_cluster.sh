# slurm_cluster.sh - a Slurm cluster of four hosts: a controller (host 0) and node1 to node3. It is
# sourced after n=4 and scripts/netns.sh, whose hosts it uses. Each host has a hostname, /etc/hosts,
# /dev/shm and boot id of its own, so that workers of two nodes take themselves to be on two
# machines. The cluster ends with the shell.
#
#   cluster_start        starts munged, slurmctld and three slurmd; fails, with the reason in $dir/why
#   on_cluster COMMAND   runs a command on the controller, e.g. sbatch
#   node_start I         starts slurmd of node I (again)
#   node_cut I, node_restore I   takes the link of node I down, and up again
cluster=$dir/slurm

write_configuration() {
    mkdir -p "$cluster/state" "$cluster/munge" || return 1
    # munged trusts only directories that other users can't write to.
    chmod 755 "$dir" "$cluster" "$cluster/munge"
    dd if=/dev/urandom of="$cluster/munge.key" bs=128 count=1 2>/dev/null
    chmod 400 "$cluster/munge.key"
    printf '127.0.0.1 localhost\n10.231.0.1 ctl\n10.231.0.2 node1\n10.231.0.3 node2\n10.231.0.4 node3\n' \
        >"$cluster/hosts"
    cat >"$cluster/slurm.conf" <<CONF
ClusterName=lockstep
SlurmctldHost=ctl(10.231.0.1)
SlurmUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket=$cluster/munge/socket,cred_expire=5
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool.%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd.%n.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=100000
SlurmdParameters=config_overrides
SlurmdTimeout=8
KillWait=10
ReturnToService=2
MpiDefault=none
NodeName=node1 NodeAddr=10.231.0.2 CPUs=4 State=UNKNOWN
NodeName=node2 NodeAddr=10.231.0.3 CPUs=4 State=UNKNOWN
NodeName=node3 NodeAddr=10.231.0.4 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=node[1-3] Default=YES MaxTime=60 State=UP
CONF
    printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' >"$cluster/cgroup.conf"
}

# as_host I NAME COMMAND...: on host I, as a machine of that name.
as_host() {
    host=$1 name=$2
    shift 2
    tr -dc '0-9a-f' </dev/urandom | head -c 32 >"$cluster/boot.$name"
    SLURM_CONF=$cluster/slurm.conf exec ip netns exec $tag-$host unshare --mount --uts \
        sh -c 'hostname "$1" && mount --bind "$2/hosts" /etc/hosts && mount -t tmpfs tmpfs /dev/shm &&
            mount --bind "$2/boot.$1" /proc/sys/kernel/random/boot_id && shift 2 && exec "$@"' \
        sh "$name" "$cluster" "$@"
}

node_start() {
    (as_host $1 node$1 slurmd -D -N node$1) >"$cluster/slurmd.$1.out" 2>&1 &
    echo $! >"$dir/pid.node$1"
}
node_cut() { ip link set $tag-$1 down; }
node_restore() { ip link set $tag-$1 up; }

# Runs a command on the controller's host, in the project's directory, which all nodes share.
on_cluster() {
    SLURM_CONF=$cluster/slurm.conf ip netns exec $tag-0 "$@"
}

nodes_are_idle() { [ "$(on_cluster sinfo -h -N -o '%N %t' 2>/dev/null | grep -c ' idle$')" = "$1" ]; }

cluster_start() {
    write_configuration || return 1
    munged --force --foreground --key-file="$cluster/munge.key" --socket="$cluster/munge/socket" \
        --pid-file="$cluster/munge/pid" --log-file="$cluster/munge/log" --seed-file="$cluster/munge/seed" \
        >"$dir/why" 2>&1 &
    echo $! >"$dir/pid.munged"
    await 10 test -S "$cluster/munge/socket" || return 1
    (as_host 0 ctl slurmctld -D) >"$cluster/slurmctld.out" 2>&1 &
    echo $! >"$dir/pid.slurmctld"
    for i in 1 2 3; do node_start $i; done
    await 30 nodes_are_idle 3 && return 0
    on_cluster sinfo -N -l >"$dir/why" 2>&1
    tail -n 5 "$cluster"/*.log >>"$dir/why"
    return 1
}
