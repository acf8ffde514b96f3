#!/bin/sh
# Fails where a test is skipped without a reason: skip_because() of tests/test.h prints it, and
# scripts/count_tests.py counts it.
set -eu
cd "$(dirname "$0")/.."

found=$(grep -rnE '\b(skip|_skip) *\(' tests --include='*.[ch]' | grep -v '^tests/test\.h:' || [ $? -eq 1 ])
[ -z "$found" ] || { printf '%s\n' "$found" "use skip_because(), which prints the reason" >&2; exit 1; }
echo "tests say why they are skipped"
