#!/bin/sh
# The kernels for AArch64, compiled by a cross compiler and run by an emulator: portable and neon
# have the same bits there, and the same as the kernels here.
#     check_neon.sh VARIANT_BITS FOLDER
# VARIANT_BITS: tests/tensor/variant_bits.c built for this machine. The program for AArch64 is built
# in FOLDER. Exit code 77: skipped, since a program is missing.
set -eu
cd "$(dirname "$0")/.."
here=$1 folder=$2

cc=aarch64-linux-gnu-gcc
emulator=
for name in qemu-aarch64-static qemu-aarch64; do
    command -v $name >/dev/null && emulator=$name
done
[ "$(uname -m)" != aarch64 ] || { echo "skipped: this is an AArch64 processor; tensor/variant_bits compares its kernels"; exit 77; }
command -v $cc >/dev/null || { echo "skipped: there is no $cc"; exit 77; }
[ -n "$emulator" ] || { echo "skipped: there is no qemu-aarch64"; exit 77; }

mkdir -p "$folder"
# Compiling takes longer than the program that it makes. Portable kernels with -O1 would take longer
# still.
flags="-std=c11 -ffp-contract=off -Wall -Wextra -Wpedantic -Wshadow -Wconversion ${LOCKSTEP_WERROR:+-Werror}
    -D_GNU_SOURCE -DLS_HAVE_NEON -Isrc -Iinclude -Itests"
objects=
for variant in portable neon; do
    if [ $variant = portable ]; then level=-O0; else level=-O1; fi
    for source in src/tensor/kernels/*.c tests/tensor/vec_probe.c; do
        object=$folder/$(basename "$source" .c)-$variant.o
        $cc $flags $level -DLS_VARIANT=$variant -DLS_VARIANT_$variant -c "$source" -o "$object"
        objects="$objects $object"
    done
done
# Functions that call other libraries are left out, since none is called.
room=$(ls src/tensor/*.c | grep -v /peak.c) # which only measures
$cc $flags -O1 -static -ffunction-sections -Wl,--gc-sections -o "$folder/variant_bits" tests/tensor/variant_bits.c $objects $room \
    tests/tensor/no_device.c src/base/clock.c src/base/error.c src/base/escape.c src/base/fail.c src/base/math.c src/base/mem.c src/base/random.c src/base/thread.c src/base/utf8.c src/base/wait_policy.c \
    -lpthread -lm

# All variants of this machine have the same bits: tensor/variant_bits.
"$here" portable >"$folder/here" || { cat "$folder/here"; exit 1; }
$emulator "$folder/variant_bits" >"$folder/there" || { cat "$folder/there"; exit 1; }
for side in here there; do
    grep '^hash' "$folder/$side" >"$folder/$side.hashes"
    tail -n 1 "$folder/$side"
done
if ! diff "$folder/here.hashes" "$folder/there.hashes"; then
    echo "the kernels of $(uname -m) (<) and of aarch64 (>) differ"
    exit 1
fi
echo "$(wc -l <"$folder/here.hashes") hashes, the same on $(uname -m) and aarch64"
