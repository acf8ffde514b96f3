#!/bin/sh
# Fails if a file of src/ writes to standard output or error by itself: text for people goes
# through ls_log() and ls_print(), which escape control characters (src/base/escape.h).
set -eu
cd "$(dirname "$0")/.."

# These files write only fixed texts, or output for programs.
allowed='^src/(base/(log|print|bar|mem)|cli/(help|commands|stream_text)|net/join_key|net/mpi/plugin|train/worker|cluster/workers|net/launch/stop)\.c:'
found=$(grep -rnE '(^|[^a-z_])(v?printf|puts|putchar|perror|v?dprintf) *\(|(fprintf|fputs|fputc|fwrite|putc) *\(.*\b(stdout|stderr)|STD(OUT|ERR)_FILENO, *[a-z]' src --include='*.c' |
    grep -vE "$allowed" | grep -vE 'isatty|ioctl' || [ $? -eq 1 ])
[ -z "$found" ] || { printf '%s\n' "$found"; echo "use ls_print() or ls_log(), which escape control characters" >&2; exit 1; }
echo "output is escaped"
