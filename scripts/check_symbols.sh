#!/bin/sh
# The public interface: the shared library exports the functions that include/lockstep declares, and
# no others; src/lockstep.map lists the same. Each header compiles alone, as C11 and as C++17.
#     check_symbols.sh [BUILD]
set -eu
cd "$(dirname "$0")/.."
library=${1:-build}/liblockstep.so

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
bad=0

: >"$work/preprocessed"
for header in include/lockstep/*.h; do
    cc -E -P -DLS_NO_CALL_SITES -Iinclude "$header" >>"$work/preprocessed"
done
# A type before a pointer to a function, "ls_status (*", is no function.
grep -oE '\bls_[a-z0-9_]+ *\([^*]' "$work/preprocessed" | sed 's/ *(.$//' | sort -u >"$work/headers"
nm -D --defined-only "$library" | sed -n 's/^[0-9a-f]* [^A] \([^@]*\).*/\1/p' | sort -u >"$work/library"
sed -n 's/^ *\([a-z0-9_]*\);$/\1/p' src/lockstep.map | sort -u >"$work/map"

for other in library map; do
    comm -23 "$work/headers" "$work/$other" | sed "s/$/: declared in include\/lockstep, not in the $other/" >"$work/differ"
    comm -13 "$work/headers" "$work/$other" | sed "s/$/: in the $other, not declared in include\/lockstep/" >>"$work/differ"
    [ -s "$work/differ" ] || continue
    cat "$work/differ" >&2
    bad=1
done

# Every macro of group.h that stands in for a function, used as a caller would.
cat >"$work/calls.c" <<'EOF'
#include <lockstep/group.h>
ls_status calls(ls_group *g, float *x, const float *in, const size_t *counts, ls_error *e);
ls_status calls(ls_group *g, float *x, const float *in, const size_t *counts, ls_error *e) {
    if (ls_all_reduce(g, in, x, 1, LS_F32, LS_AVG, e) || ls_reduce(g, in, x, 1, LS_F32, LS_SUM, 0, e) ||
        ls_reduce_scatter(g, in, x, 1, LS_F32, LS_SUM, e) ||
        ls_reduce_scatter_v(g, in, x, counts, LS_F32, LS_SUM, e) ||
        ls_all_gather(g, in, x, 1, LS_F32, e) || ls_all_gather_v(g, in, x, counts, LS_F32, e) ||
        ls_broadcast(g, x, 1, LS_F32, 0, e) || ls_gather(g, in, x, 1, LS_F32, 0, e) ||
        ls_scatter(g, in, x, 1, LS_F32, 0, e) || ls_all_to_all(g, in, x, 1, LS_F32, e) ||
        ls_scan(g, in, x, 1, LS_F32, LS_SUM, e) || ls_exscan(g, in, x, 1, LS_F32, LS_SUM, e) ||
        ls_gather_v(g, in, 1, x, counts, LS_F32, 0, e) || ls_scatter_v(g, in, counts, x, 1, LS_F32, 0, e) ||
        ls_all_to_all_v(g, in, counts, x, counts, LS_F32, e) ||
        ls_send(g, in, 1, LS_F32, 0, e) || ls_recv(g, x, 1, LS_F32, 0, e))
        return LS_EIO;
    return ls_barrier(g, e);
}
EOF

strict="-fsyntax-only -Wall -Wextra -Wpedantic ${LOCKSTEP_WERROR:+-Werror} -Iinclude"
tried=0
for compiler in gcc clang g++ clang++; do
    command -v $compiler >/dev/null || continue
    case $compiler in
    *++) language="-x c++ -std=c++17" tried=1 ;;
    *) language="-x c -std=c11" ;;
    esac
    for header in include/lockstep/*.h; do
        echo "#include \"lockstep/$(basename "$header")\"" | $compiler $language $strict - || bad=1
    done
    $compiler $language $strict "$work/calls.c" || bad=1
done
[ $tried = 1 ] || { echo "there is no C++ compiler" >&2; bad=1; }

[ $bad -eq 0 ] && echo "$(wc -l <"$work/headers") public functions; headers compile as C and C++"
exit $bad
