#!/bin/sh
# Fails if the executor, or what outlives workers, could depend on a strategy. They read the table of
# src/share that says who has what (share.h, codes.h); the config that it follows from is a type that
# the compiler does not know there, as none of these headers defines it.
set -eu
cd "$(dirname "$0")/.."

found=$(grep -nE '#include "share/(config|mesh|stages|schedule)\.h"' src/exec/*.[ch] src/share/share.h \
    src/share/codes.h src/plan/plan.h src/plan/progress.h src/state/*.h || [ $? -eq 1 ])
[ -z "$found" ] || { printf '%s\n' "$found"; echo "src/exec must see the table of src/share alone" >&2; exit 1; }
echo "the executor depends on no strategy"
