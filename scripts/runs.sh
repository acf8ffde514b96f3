# runs.sh - what the checks ask of a run directory. It is sourced, after lockstep=PROGRAM.
#
#   hash_of RUN        the hash of its weights; nothing where it has no checkpoint yet
#   lines_of RUN       lines in its metrics.jsonl, one a step; 0 where there is none yet
#   has_lines RUN N    succeeds when there are N lines or more
hash_of() { "$lockstep" ckpt hash "$1" 2>/dev/null | sed -n 's/^weights //p'; }
lines_of() { cat "$1/metrics.jsonl" 2>/dev/null | wc -l; }
has_lines() { [ "$(lines_of "$1")" -ge "$2" ]; }
