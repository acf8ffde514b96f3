#!/bin/sh
# Groups over TCP between hosts: four network namespaces, each with a network card of its own on one
# bridge. Tests a clean run, slow and lossy links, a cut link and a half-open connection: either the
# results are right, or every worker exits with an error that names the lost worker. Needs root and
# the kernel's namespaces; checks that the kernel does not support are skipped.
set -u
cd "$(dirname "$0")/.."

build=${BUILD:-build}
worker=$build/tests/netns_worker
n=4
limit=20 # seconds until all workers detect that one is lost

if [ ! -x "$worker" ]; then
    echo "hosts: $worker is not built: make build-tests" >&2
    exit 1
fi
. scripts/netns.sh

on() { # on HOST COMMAND...
    host=$1
    shift
    ip netns exec $tag-$host "$@"
}
all() { # all COMMAND...: on every host
    for h in 0 1 2 3; do on $h "$@" || return 1; done
}

start() { # start COMMAND...: as the workers, one per host
    rm -f "$dir"/out.* "$dir"/pid.* "$dir"/code.*
    for r in 0 1 2 3; do
        (
            LOCKSTEP_RANK=$r LOCKSTEP_SIZE=$n LOCKSTEP_ADDR=10.231.0.1:7000 LOCKSTEP_KEY=$key
            export LOCKSTEP_RANK LOCKSTEP_SIZE LOCKSTEP_ADDR LOCKSTEP_KEY
            ip netns exec $tag-$r "$@" >"$dir/out.$r" 2>&1 &
            echo $! >"$dir/pid.$r"
            wait $!
            echo $? >"$dir/code.$r"
        ) &
    done
}
begin() { start "$worker" "$1" "$2"; } # begin ALL-REDUCES PAUSE
end() { # end SECONDS: waits for all; fails if one still runs
    left=$(($1 * 10))
    while [ "$(ls "$dir" | grep -c '^code')" -lt $n ]; do
        left=$((left - 1))
        if [ $left -lt 0 ]; then
            kill -9 $(cat "$dir"/pid.*) 2>/dev/null
            wait
            echo "some workers still run after $1 s" >"$dir/out.limit"
            return 1
        fi
        sleep 0.1
    done
    wait
}
all_well() { [ "$(cat "$dir"/code.* | sort -u)" = 0 ] && cat "$dir/out.0"; }
# names LOST: every worker failed; the others name the lost one, it names one of them.
names() {
    for r in 0 1 2 3; do
        [ "$(cat "$dir/code.$r")" = 1 ] || return 1
        if [ $r = "$1" ]; then
            grep -q "lost worker [0-3] " "$dir/out.$r" || return 1
        else
            grep -q "lost worker $1 " "$dir/out.$r" || return 1
        fi
    done
    sort -t, -k2 "$dir"/out.[0-3] | grep -o 'all-reduces, [0-9.]* s' | tail -n 1
}

begin 50 0
end 60 && all_well
result $? "clean links"

# Training gives the weights of one worker.
lockstep=$build/lockstep
same_bits() {
    "$lockstep" train configs/tiny.yaml -n 1 -o "$dir/one" >"$dir/out.one" 2>&1 &&
        start "$lockstep" train configs/tiny.yaml -o "$dir/many" --set parallel.transport=tcp &&
        end 120 && [ "$(cat "$dir"/code.* | sort -u)" = 0 ] &&
        [ "$("$lockstep" ckpt hash "$dir/one")" = "$("$lockstep" ckpt hash "$dir/many")" ]
}
same_bits
result $? "training on four hosts, to the bits of one worker"

if all tc qdisc add dev eth0 root netem delay 20ms 5ms loss 1% 2>"$dir/why"; then
    begin 50 0
    end 120 && all_well
    result $? "20 ms (+-5 ms) and 1% of packets lost"
else
    result 77 "20 ms (+-5 ms) and 1% of packets lost" "no netem: $(head -n 1 "$dir/why")"
fi
all tc qdisc del dev eth0 root 2>/dev/null

if all tc qdisc add dev eth0 root tbf rate 20mbit burst 32kbit latency 400ms 2>"$dir/why"; then
    begin 20 0
    end 120 && all_well
    result $? "20 Mbit/s"
else
    result 77 "20 Mbit/s" "no tbf: $(head -n 1 "$dir/why")"
fi
all tc qdisc del dev eth0 root 2>/dev/null

# Packets to the neighbours go to an unused hardware address: none arrives, and no error is
# reported.
unreachable() { # unreachable HOST OTHERS...
    sender=$1
    shift
    for receiver in "$@"; do
        ip -n $tag-$sender neigh replace 10.231.0.$((receiver + 1)) lladdr 02:00:00:00:00:99 dev eth0 \
            nud permanent || return 1
    done
}
reachable() { all ip neigh flush all nud permanent 2>/dev/null; }

cut() { # cut NAME LOST COMMAND...: in the middle of a run
    name=$1 lost=$2
    shift 2
    begin 100000 2
    sleep 2
    "$@" || { result 77 "$name" "not possible here"; end 0; return; }
    end $limit && names "$lost"
    result $? "$name"
}
# The kernel asks for unreachable neighbours again only after a while.
reconnect() { # reconnect COMMAND...
    "$@"
    all ip neigh flush all 2>/dev/null
    sleep 1
}
cut "the link of worker 2 is cut" 2 ip link set $tag-2 down
reconnect ip link set $tag-2 up
cut "the card of worker 0 is taken down" 0 ip -n $tag-0 link set eth0 down
reconnect ip -n $tag-0 link set eth0 up

# No packet sent to HOST arrives.
deaf() { # deaf HOST OTHERS...
    to=$1
    shift
    for h in "$@"; do unreachable $h $to || return 1; done
}
silent() { unreachable 3 0 1 2 && deaf 3 0 1 2; }
cut "half open: nothing goes to or from worker 3" 3 silent
reachable
limit=40 # one side hears the other until the other gives up; its own limit begins then
cut "half open: what worker 3 sends is lost" 3 unreachable 3 0 1 2
reachable
cut "half open: what is sent to worker 1 is lost" 1 deaf 1 0 2 3
reachable
finish
