#!/bin/sh
# Fails on an include that points up: a part includes only parts below it (see CONTRIBUTING.md).
set -eu
cd "$(dirname "$0")/.."

# Each part, and what it may include beside itself.
may_include() {
    case $1 in
    base) echo "" ;;
    tensor) echo "base" ;;
    net) echo "base tensor" ;;
    coll) echo "base tensor net" ;;
    model) echo "base tensor net" ;;
    data) echo "base tensor net coll model" ;;
    optim) echo "base tensor net coll model" ;;
    plan) echo "base tensor net coll model data optim" ;;
    train) echo "base tensor net coll model data optim plan" ;;
    cli) echo "base tensor net coll model data optim plan train bench" ;;
    *) echo "src/$1 is not a part" >&2; return 1 ;;
    esac
}

bad=0
for dir in src/*/; do
    part=$(basename "$dir")
    allowed=" $part lockstep $(may_include "$part") "
    found=$(grep -rnoE '^ *# *include +"[a-z]+/' "$dir" || true)
    [ -n "$found" ] || continue
    while IFS= read -r line; do
        to=$(printf '%s' "$line" | sed -E 's/.*"([a-z]+)\/$/\1/')
        case $allowed in
        *" $to "*) ;;
        *) echo "$line: $part may not include $to" >&2; bad=1 ;;
        esac
    done <<EOF
$found
EOF
done
[ $bad -eq 0 ] && echo "includes point down"
exit $bad
