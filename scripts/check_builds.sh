#!/bin/bash
# Builds as distributions and users do, with other flags and compilers, have the same bits; flags that
# change the order of sums are refused. Eleven minutes on two cores; build/flags has the trees.
set -u
cd "$(dirname "$0")/.." || exit 1
log=$(mktemp) && trap 'rm -f "$log"' EXIT
failed=0

tests="train_recorded_bits_test train_floats_test tensor_gemm_bf16_test"

# built TREE [options of cmake]: builds, and runs the tests whose results are recorded or compared.
built() {
    local tree=$1
    shift
    cmake -S . -B "$tree" -G Ninja "$@" || return
    # shellcheck disable=SC2086
    cmake --build "$tree" --target lockstep variant_bits $tests || return
    "$tree/tests/variant_bits" || return
    for test in $tests; do "$tree/tests/$test" || return; done
}
try() { # try NAME [options of cmake]
    echo "== $*"
    built "build/flags/$1" "${@:2}" >"$log" 2>&1 && return
    tail -n 20 "$log"
    failed=$((failed + 1))
}

try distribution -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_C_FLAGS="-g -O2 -fstack-protector-strong -D_FORTIFY_SOURCE=2 -flto=auto -ffat-lto-objects"
try native -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS="-O3 -march=native -funroll-loops -ffinite-math-only"
try clang -DCMAKE_C_COMPILER=clang

if cmake -S . -B build/flags/refused -G Ninja -DCMAKE_C_FLAGS=-Ofast >"$log" 2>&1; then
    echo "-Ofast is not refused" && failed=$((failed + 1))
fi
grep -q "changes the order of sums" "$log" || { cat "$log" && failed=$((failed + 1)); }

echo "$failed failed"
[ $failed -eq 0 ]
