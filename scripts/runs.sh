# runs.sh - functions of the checks that read a run directory. Source it after lockstep=PROGRAM.
#
#   hash_of RUN        prints the hash of its weights; nothing if it has no checkpoint yet
#   lines_of RUN       prints the number of lines of steps in its metrics.jsonl; 0 if there is
#                      no file
#   has_lines RUN N    succeeds if there are N lines or more
hash_of() { "$lockstep" ckpt hash "$1" 2>/dev/null | sed -n 's/^weights //p'; }
lines_of() { cat "$1/metrics.jsonl" 2>/dev/null | grep -c '"seconds"'; }
has_lines() { [ "$(lines_of "$1")" -ge "$2" ]; }
