#!/bin/sh
# Trains configs/fashion.yaml on Debian's Fashion-MNIST, evaluates it on the test images, and compares
# the weights with the recorded ones, which are the same for any number of workers and any processor.
set -eu
cd "$(dirname "$0")/.."

run=${RUN:-runs/fashion}
recorded=a4b2ae426f9bebe53efc59db052d2cb8
if [ -e "$run" ]; then
    echo "$run exists already; remove it, or choose another directory: make demo-vision RUN=runs/fashion2" >&2
    exit 1
fi
build/lockstep train configs/fashion.yaml -o "$run"
echo
build/lockstep eval "$run"
echo "pictures: $run/confusion.svg (which classes it mistakes for which) and $run/mistakes.svg (the worst mistakes)"
echo
scripts/check_bits.sh "$run" "$recorded"
