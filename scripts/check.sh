#!/bin/sh
# Builds with gcc and clang (warnings are errors), and runs all tests: plain, with the address and
# undefined-behaviour sanitizers, and, those with threads, with the thread sanitizer. The closing line
# counts them all.
set -eu
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0 failed=0 skipped=0
# Many tests wait for most of their time, beside those that don't, which count twice (tests/CMakeLists.txt).
jobs=$(($(nproc) * 2 + 1))

build() { # PRESET [TARGET]
    echo "== build: $1"
    cmake --preset "$1" >/dev/null
    cmake --build "$(build_dir "$1")" --target "${2:-all}" | tail -n 1
}
build_dir() { if [ "$1" = release ]; then echo build; else echo "build/$1"; fi; }

# suite PRESET [ctest options]: runs and counts.
suite() {
    preset=$1
    shift
    echo "== test: $preset"
    (cd "$(build_dir "$preset")" && ctest --output-on-failure -j "$jobs" "$@") >"$log" 2>&1 || true
    cat "$log"
    out_of=$(sed -n 's/.*tests failed out of \([0-9]*\).*/\1/p' "$log" | tail -n 1)
    bad=$(sed -n 's/.* \([0-9]*\) tests failed out of.*/\1/p' "$log" | tail -n 1)
    left=$(grep -c '\*\*\*Skipped' "$log" || true)
    grep -h '^skipped: ' "$(build_dir "$preset")/Testing/Temporary/LastTest.log" || true
    if [ -z "$out_of" ]; then
        echo "no tests were run in $preset" >&2
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + out_of - bad - left))
    failed=$((failed + bad))
    skipped=$((skipped + left))
}

one() { # one NAME COMMAND...: a check that is no ctest
    name=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "failed: $name" >&2; fi
}

one includes scripts/check_includes.sh
one parameters scripts/check_parameters.py
one types scripts/check_types.py
one output scripts/check_output.sh
one executor scripts/check_executor.sh
build release
one symbols scripts/check_symbols.sh
one installs scripts/check_install.sh
one "clang builds without a warning" build clang
suite release
build asan
suite asan -LE slow
build tsan with_threads
suite tsan -L threads

echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
