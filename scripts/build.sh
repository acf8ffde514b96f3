#!/bin/bash
# Configures and builds: the Makefile and all scripts build with this one.
#     build.sh PRESET [-DNAME=VALUE...] [TARGET...]
# PRESET is one of CMakePresets.json; without a TARGET everything is built. On success it prints one
# line. On failure it prints the output of CMake or of the compiler, and exits with 1.
# LOCKSTEP_WERROR=1 makes warnings errors, for those who change the code: a user's compiler may be
# newer than all that were tried.
set -eu
cd "$(dirname "$0")/.."
preset=$1
shift

case ${LOCKSTEP_WERROR-} in
'') werror=OFF ;;
1) werror=ON ;;
*) echo "build.sh: LOCKSTEP_WERROR is '$LOCKSTEP_WERROR'; it is 1, or not set" >&2; exit 2 ;;
esac
settings=("-DCMAKE_COMPILE_WARNING_AS_ERROR=$werror")
while [[ ${1:-} == -D* ]]; do
    settings+=("$1")
    shift
done
[ $# -gt 0 ] || set -- all
if [ "$preset" = release ]; then tree=build; else tree=build/$preset; fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset "$preset" "${settings[@]}" >"$log" || {
    cat "$log" >&2
    echo "build.sh: $tree can't be configured" >&2
    exit 1
}
# With --quiet, Ninja prints only the output of commands that fail or warn.
cmake --build "$tree" --target "$@" -- --quiet >"$log" 2>&1 || {
    cat "$log" >&2
    echo "build.sh: the build of $tree failed" >&2
    exit 1
}
sed '/^ninja: no work to do/d' "$log" >&2
echo "built: $tree ($*)"
