#!/bin/bash
# Fails on a line of C that is longer than 100 columns, but for those of macros: .clang-format breaks
# code there, and leaves comments as they are written.
#     check_columns.sh [ROOT]
cd "${1:-$(dirname "$0")/..}" || exit 1
found=$(LC_ALL=C.UTF-8 grep -rsnP --include='*.[ch]' '^(?!#define ).{100,}[^\\]$' src include tests bench examples)
[ -z "$found" ] || { printf '%s\n' "$found"; echo "break these lines: they are longer than 100 columns" >&2; exit 1; }
echo "no line is too long"
