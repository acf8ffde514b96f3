#!/bin/sh
# Fails where the executor knows a strategy: it runs a plan's actions, and asks the plan's predicates
# (src/plan/plan.h). So these words do not occur in src/exec, not even inside other words.
set -eu
cd "$(dirname "$0")/.."

found=$(grep -rniE 'zero|early|shard_group|fsdp|pipeline' src/exec --include='*.[ch]' || [ $? -eq 1 ])
[ -z "$found" ] || { printf '%s\n' "$found"; echo "src/exec reads no strategy: ask a predicate of the plan" >&2; exit 1; }
echo "the executor knows no strategy"
