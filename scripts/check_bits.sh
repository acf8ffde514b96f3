#!/bin/sh
# Fails if the weights of a run differ from a recorded hash.
#     check_bits.sh RUN HASH
# LOCKSTEP names the program; default: build/lockstep.
set -eu
program=${LOCKSTEP:-build/lockstep}
run=$1 recorded=$2
got=$("$program" ckpt hash "$run" | sed -n 's/^weights //p')
if [ "$got" = "$recorded" ]; then
    echo "bits as recorded: weights $got"
    exit 0
fi
echo "the bits are not the recorded ones: weights ${got:-unknown}, recorded $recorded" >&2
exit 1
