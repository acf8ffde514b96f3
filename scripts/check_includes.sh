#!/bin/sh
# Fails on an include that points up: a room includes only rooms below it (src/rooms.txt).
set -eu
cd "$(dirname "$0")/.."

grep -rnoE '^ *# *include +"[a-z_/]+\.[ch]"' src --include='*.[ch]' | awk '
    FNR == NR { if ($0 !~ /^#/) place[$1] = ++n; next }
    {
        split($0, part, ":")
        from = part[1]; sub(/^src\//, "", from); sub(/\/[^\/]*$/, "", from)
        to = part[3]; sub(/^[^"]*"/, "", to); sub(/\/[^\/]*$/, "", to)
        sub(/^tensor\/kernels$/, "tensor", from)
        sub(/^tensor\/kernels$/, "tensor", to)
        if (to == "lockstep" || to == "bench" || from == to) next
        if (!(from in place)) { print "src/" from " is not in src/rooms.txt"; bad = 1; next }
        if (!(to in place)) { print $0 ": " to " is not in src/rooms.txt"; bad = 1; next }
        if (place[to] < place[from]) { print $0 ": " from " may not include " to; bad = 1 }
    }
    END { exit bad }' src/rooms.txt - && echo "includes point down"
