# netns.sh - $n hosts as network namespaces, each with a network card of its own on one bridge. It
# is sourced; call `result` after each check and `finish` at the end. The hosts end with the shell.
tag=ls$$
dir=$(mktemp -d)
passed=0 failed=0 skipped=0
key=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef

result() { # result STATUS NAME [why]
    case $1 in
    0) passed=$((passed + 1)); echo "passed: $2" ;;
    77) skipped=$((skipped + 1)); echo "skipped: $2: $3" ;;
    *) failed=$((failed + 1)); echo "failed: $2" >&2; cat "$dir"/out.* >&2 ;;
    esac
}
# await SECONDS COMMAND...: waits until the command succeeds.
await() {
    left=$(($1 * 5))
    shift
    until "$@"; do
        left=$((left - 1))
        [ $left -gt 0 ] || return 1
        sleep 0.2
    done
}
finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}
clean() {
    kill $(cat "$dir"/pid.* 2>/dev/null) 2>/dev/null
    for i in $(seq 0 $((n - 1))); do
        ip link del $tag-$i 2>/dev/null
        ip netns del $tag-$i 2>/dev/null
    done
    ip link del $tag 2>/dev/null
    rm -rf "$dir"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP

if ! command -v ip >/dev/null || ! ip netns add $tag-0 2>"$dir/why"; then
    result 77 "hosts" "no network namespaces: $(cat "$dir/why" 2>/dev/null)"
    finish
fi

# Host i is $tag-i, its address 10.231.0.(i + 1); outside, on the bridge, its link is $tag-i.
make_hosts() {
    ip link add $tag type bridge && ip link set $tag up || return 1
    i=0
    while [ $i -lt $n ]; do
        [ $i -eq 0 ] || ip netns add $tag-$i || return 1
        ip link add $tag-$i type veth peer name eth0 netns $tag-$i &&
            ip link set $tag-$i master $tag up &&
            ip -n $tag-$i link set lo up &&
            ip -n $tag-$i addr add 10.231.0.$((i + 1))/24 dev eth0 &&
            ip -n $tag-$i link set eth0 up || return 1
        i=$((i + 1))
    done
}
if ! make_hosts 2>"$dir/why"; then
    result 77 "hosts" "no bridge or veth: $(cat "$dir/why")"
    finish
fi
