#!/bin/sh
# The public interface: the shared library exports the functions that include/lockstep declares, and
# no others; src/lockstep.map lists the same. Each header compiles alone, and with a program that names
# few options, without a warning: as C11, and as C++14, C++17 and C++20.
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
    const ls_reduction *by = NULL;
    if (ls_all_reduce_by(g, in, x, 1, by, e) || ls_reduce_by(g, in, x, 1, by, 0, e) ||
        ls_reduce_scatter_by(g, in, x, 1, by, e) || ls_reduce_scatter_v_by(g, in, x, counts, by, e) ||
        ls_scan_by(g, in, x, 1, by, e) || ls_exscan_by(g, in, x, 1, by, e))
        return LS_EIO;
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

# Every macro of model.h that takes options, with none and with one of them; structs that a program
# fills in, with one member.
{
    echo '#include <lockstep/lockstep.h>'
    for header in include/lockstep/*.h; do echo "#include <lockstep/$(basename "$header")>"; done
    echo 'void few(ls_model *m, ls_value *x, const ls_layer_kind *kind, ls_dims dims);'
    echo 'void few(ls_model *m, ls_value *x, const ls_layer_kind *kind, ls_dims dims) {'
    echo '    ls_value *ids = x, *targets = x, *label = x;'
    echo '#include <lockstep/model.h>' | cc -E -dM -Iinclude -x c - |
        sed -nE 's/^#define (ls_[a-z0-9_]+)\(([a-z,]+),\.\.\.\) .*_options, *__VA_ARGS__.*/\1(\2/p' |
        sed 's/.*/    &, LS_DEFAULTS);\n    &, .name = "a");/'
    echo '    (void)ids, (void)targets, (void)label, (void)dims, (void)kind;'
    echo '    (void)ls_concat(m, 0, x, x), (void)ls_learned(m, LS_DIMS(2, 3), LS_DEFAULTS);'
    echo '}'
    echo 'int64_t structs(void);'
    echo 'int64_t structs(void) {'
    sed -nE 's/^typedef struct (ls_(program|own_source|key_spec|layer_kind|reduction|[a-z0-9_]+_options|table_config|compression)) \{/\1/p' \
        include/lockstep/*.h | sed 's/.*/    const & a_& = LS_NOTHING; (void)a_&;/'
    echo '    const ls_program p = LS_OPTIONS(ls_program, .name = "a");'
    echo '    const ls_trainer_options o = LS_OPTIONS(ls_trainer_options, .count = 1);'
    echo '    return p.name ? (int64_t)o.count : 0;'
    echo '}'
} >"$work/few.c"
[ "$(grep -c LS_DEFAULTS "$work/few.c")" -ge 26 ] || { echo "few options are tried" >&2; bad=1; }

# A header that warns breaks the programs of those who build with -Werror: warnings are errors here.
strict="-fsyntax-only -Wall -Wextra -Wpedantic -Werror -Iinclude"
tried=0
check() { # check COMPILER LANGUAGE...
    for header in include/lockstep/*.h; do
        echo "#include \"lockstep/$(basename "$header")\"" | "$@" $strict - || bad=1
    done
    "$@" $strict "$work/calls.c" && "$@" $strict -DLS_NOTHING=$nothing "$work/few.c" || bad=1
}
for compiler in gcc clang g++ clang++; do
    command -v $compiler >/dev/null || continue
    case $compiler in
    *++)
        tried=1 nothing='{}'
        for standard in 14 17 20; do check $compiler -x c++ -std=c++$standard; done
        for example in examples/*.c; do $compiler -x c++ -std=c++20 $strict "$example" || bad=1; done ;;
    *)
        nothing='{0}'
        check $compiler -x c -std=c11
        for example in examples/*.c; do $compiler -std=c11 $strict "$example" || bad=1; done ;;
    esac
done
[ $tried = 1 ] || { echo "there is no C++ compiler" >&2; bad=1; }

[ $bad -eq 0 ] && echo "$(wc -l <"$work/headers") public functions; headers compile as C and C++"
exit $bad
