#!/bin/bash
# The README's commands on bare systems: for each release of Debian, an empty directory gets the
# smallest system (debootstrap) with git and make, a clone of the last commit, and runs `make demo`
# and `make check` there. Needs root. An hour on two quiet cores.
#     check_debian.sh [RELEASE...]     bookworm and trixie (Debian 12 and 13), if none is named
# The output is in build/debian/RELEASE.log. The last line counts releases; those of `make check` are
# printed before.
set -u
cd "$(dirname "$0")/.." || exit 1
[ "$(id -u)" -eq 0 ] || { echo "check_debian.sh: needs root, to make a system of its own" >&2; exit 2; }
[ $# -gt 0 ] || set -- bookworm trixie
mkdir -p build/debian
here=$PWD/build/debian
base=$(mktemp -d "$here/base.XXXXXX")
trap 'rm -rf "$base"' EXIT
passed=0 failed=0

# Runs the commands in the system at $1, in namespaces of its own: what they mount and leave running
# ends with them. Devices are new nodes, so nothing there can damage those of this machine.
inside() { # inside ROOT COMMANDS
    root=$1 commands=$2 unshare --mount --pid --fork --kill-child bash -c '
        set -e
        mount --make-rprivate /
        mount --bind "$root" "$root" # tests that mount need a root that is a mount point
        mount -t proc proc "$root/proc"
        mount --rbind -o ro /sys "$root/sys"
        mount -t tmpfs -o mode=755 dev "$root/dev"
        mkdir "$root/dev/shm" "$root/dev/pts"
        mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
        ln -s pts/ptmx "$root/dev/ptmx"
        ln -s /proc/self/fd "$root/dev/fd"
        for node in null:3 zero:5 full:7 random:8 urandom:9; do
            mknod -m 666 "$root/dev/${node%:*}" c 1 "${node#*:}"
        done
        mknod -m 666 "$root/dev/tty" c 5 0
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            LANG=C.UTF-8 chroot "$root" bash -c "$commands" </dev/null'
}

try() { # try RELEASE: returns 0 if both commands pass
    root=$base/$1
    debootstrap --variant=minbase --include=git,make "$1" "$root" >"$here/$1.log" 2>&1 || return 1
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    git clone -q --no-hardlinks . "$root/root/lockstep" || return 1
    inside "$root" 'cd /root/lockstep && make demo && make check' >>"$here/$1.log" 2>&1
}

for release in "$@"; do
    if try "$release"; then
        passed=$((passed + 1)) word=passed
    else
        failed=$((failed + 1)) word=failed
    fi
    echo "$release: $word: $(tail -n 1 "$here/$release.log") ($here/$release.log)"
    rm -rf --one-file-system "${base:?}/$release"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
