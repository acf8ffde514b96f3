#!/bin/sh
# Fails on an include that points up: a room includes only rooms below it (src/rooms.txt). Also
# fails on a dependency without an include: a struct that one room names and a room above it
# defines. One such
# dependency is allowed: net/net.h holds a transport's watch, whose fields it never reads.
set -eu
cd "$(dirname "$0")/.."

{
    grep -rnoE '^ *# *include +"[a-z_/]+\.[ch]"' src --include='*.[ch]' | sed 's/^/include:/'
    grep -rnoE '^ *(typedef +)?struct +ls_[a-z0-9_]+ *\{' src --include='*.[ch]' | sed 's/^/define:/'
    grep -rnoE 'struct +ls_[a-z0-9_]+' src --include='*.[ch]' | sed 's/^/use:/'
} | awk '
    function room(path) {
        sub(/^src\//, "", path)
        sub(/\/[^\/]*$/, "", path)
        sub(/^tensor\/kernels$/, "tensor", path)
        return path
    }
    function name(text) {
        sub(/^.*struct +/, "", text)
        sub(/ *\{?$/, "", text)
        return text
    }
    FNR == NR { if ($0 !~ /^#/) place[$1] = ++n; next }
    {
        kind = $0; sub(/:.*/, "", kind)
        line = substr($0, length(kind) + 2)
        split(line, part, ":")
        from = room(part[1])
        if (!(from in place)) { print "src/" from " is not in src/rooms.txt"; bad = 1; next }
    }
    kind == "define" { home[name(part[3])] = from; next }
    kind == "use" {
        to = home[name(part[3])]
        if (part[1] == "src/net/net.h" && name(part[3]) == "ls_watch") next
        if (to != "" && place[to] < place[from]) {
            print part[1] ":" part[2] ": " from " may not name struct " name(part[3]) ", which " to " defines"
            bad = 1
        }
        next
    }
    {
        to = part[3]; sub(/^[^"]*"/, "", to); sub(/\/[^\/]*$/, "", to)
        sub(/^tensor\/kernels$/, "tensor", to)
        if (to == "lockstep" || to == "bench" || from == to) next
        if (!(to in place)) { print line ": " to " is not in src/rooms.txt"; bad = 1; next }
        if (place[to] < place[from]) { print line ": " from " may not include " to; bad = 1 }
    }
    END { exit bad }' src/rooms.txt - && echo "includes point down"
