#!/bin/sh
# Trains configs/demo.yaml on the King James Bible, draws its loss, generates text, and compares the
# weights with the recorded ones, which are the same for any number of workers and any processor.
set -eu
cd "$(dirname "$0")/.."

text=build/bible.txt
run=${RUN:-runs/demo}
recorded=c6ef72de008c1875ff4f00fbda3e9e25
if [ ! -s "$text" ]; then
    # One verse a line, chapters with their names, as the package's program prints them.
    bible gen1:1-rev22:21 >"$text.new"
    mv "$text.new" "$text"
fi
if [ -e "$run" ]; then
    echo "$run exists already; remove it, or choose another directory: make demo RUN=runs/demo2" >&2
    exit 1
fi
build/lockstep train configs/demo.yaml -o "$run"
echo
build/lockstep generate "$run" --prompt "In the beginning" --tokens 150 --seed 1 --temperature 0.8
echo
scripts/check_bits.sh "$run" "$recorded"
