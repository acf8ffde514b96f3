#!/bin/sh
# Fails if the executor depends on a strategy: it runs a plan's actions, and asks the plan's
# predicates (src/plan/plan.h). So these words must not occur in src/exec, not even inside other
# words.
set -eu
cd "$(dirname "$0")/.."

found=$(grep -rniE 'zero|early|shard_group|fsdp|pipeline' src/exec --include='*.[ch]' || [ $? -eq 1 ])
[ -z "$found" ] || { printf '%s\n' "$found"; echo "src/exec must not read a strategy: ask a predicate of the plan" >&2; exit 1; }
echo "the executor depends on no strategy"
