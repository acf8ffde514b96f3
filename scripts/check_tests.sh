#!/bin/sh
# Fails if a test is skipped without a reason: skip_because() of tests/test.h prints it, and
# scripts/count_tests.py counts it. Also fails on a line "ctest: WORD..." that tests/CMakeLists.txt
# can't read.
set -eu
cd "$(dirname "$0")/.."

found=$(grep -rnE '\b(skip|_skip) *\(' tests --include='*.[ch]' | grep -v '^tests/test\.h:' || [ $? -eq 1 ])
[ -z "$found" ] || { printf '%s\n' "$found" "use skip_because(), which prints the reason" >&2; exit 1; }
found=$(grep -rn 'ctest:' tests --include='*.[ch]' | grep -vE '_test\.c:[0-9]+:/\* ctest: ((no-tsan|long-tsan|long-asan): )?[^:*]* \*/$' || [ $? -eq 1 ])
[ -z "$found" ] || { printf '%s\n' "$found" "tests/CMakeLists.txt reads only whole lines of a *_test.c" >&2; exit 1; }
echo "skipped tests print their reasons"
