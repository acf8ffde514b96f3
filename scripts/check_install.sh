#!/bin/sh
#     check_install.sh [install|try DIR]
# Installs into an empty directory, compiles the examples against the installed files, with the
# shared and the static library, and runs them alone and with `lockstep run`; programs with models
# of their own also as C++. `install` does the first alone, into an empty DIR; `try` the
# rest, without the build tree, and removes DIR: scripts/check.sh builds the tests meanwhile.
set -eu
cd "$(dirname "$0")/.."

part=${1:-all} root=${2:-$(mktemp -d)}
prefix=/opt/lockstep
here=$root$prefix
plain=$root/plain # the prefix of a tree that is not staged
fail() { echo "$*" >&2; exit 1; }
case $part in all | install | try) ;; *) fail "check_install.sh: '$part' is not known; the words are install, try" ;; esac

if [ "$part" != try ]; then
    mkdir -p "$root"
    installed=false
    trap '$installed || rm -rf "$root"' EXIT
    make --no-print-directory install DESTDIR="$root" PREFIX=$prefix >"$root/log" 2>&1 || fail "$(cat "$root/log")"
    rm "$root/log"
    [ -z "$(find "$root" -type f -o -type l | grep -v "^$here/")" ] || fail "files outside the prefix"
    make --no-print-directory install PREFIX="$plain" >"$root/log" 2>&1 || fail "$(cat "$root/log")"
    scripts/build.sh release -DCMAKE_INSTALL_PREFIX=/usr/local installed >"$root/log" 2>&1 || fail "$(cat "$root/log")"
    rm "$root/log"
    installed=true
    [ "$part" != install ] || { echo "installed: staged, and under a prefix"; exit; }
fi
trap 'rm -rf "$root"' EXIT
for file in bin/lockstep lib/liblockstep.a lib/liblockstep.so lib/liblockstep.so.0 \
    lib/liblockstep.so.0.1.0 lib/pkgconfig/lockstep.pc include/lockstep/group.h \
    lib/cmake/lockstep/lockstepConfig.cmake lib/cmake/lockstep/lockstepConfigVersion.cmake \
    share/doc/lockstep/README.md share/doc/lockstep/docs/guide/program.md share/doc/lockstep/examples/hello.c \
    share/doc/lockstep/configs/tiny.yaml \
    include/lockstep/lockstep.h share/man/man1/lockstep.1 share/bash-completion/completions/lockstep; do
    [ -s "$here/$file" ] || fail "$file is not installed"
done
[ "$(find "$here/include" -type f | wc -l)" -eq "$(ls include/lockstep/*.h | wc -l)" ] || fail "headers differ"
readelf -d "$here/lib/liblockstep.so" | grep -q 'SONAME.*\[liblockstep.so.0\]' || fail "a wrong soname"
grep -q '^\.TH LOCKSTEP 1' "$here/share/man/man1/lockstep.1" || fail "no man page"
bash -n "$here/share/bash-completion/completions/lockstep" || fail "no completion"

export PKG_CONFIG_PATH="$here/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root" LD_LIBRARY_PATH="$here/lib"
version=$(pkg-config --modversion lockstep)
[ "$("$here/bin/lockstep" --version)" = "lockstep $version" ] || fail "lockstep.pc says $version"

# A host that has none of the libraries' development files, such as a cluster's node.
needed=$(PKG_CONFIG_LIBDIR="$here/lib/pkgconfig" pkg-config --cflags --libs lockstep) || fail "lockstep.pc needs other modules"
[ "$(echo $needed)" = "-I$here/include -L$here/lib -llockstep" ] || fail "lockstep.pc has the flags of others: $needed"

strict="-std=c11 -O2 -Wall -Wextra -Wpedantic ${LOCKSTEP_WERROR:+-Werror}"
# With the shared library the examples are also checked by the compiler's sanitizers, where these work.
sanitize="-g -fsanitize=address,undefined -fno-sanitize-recover=undefined"
{ echo 'int main(void) { return 0; }' | cc $sanitize -x c - -o "$root/sane" && "$root/sane"; } 2>/dev/null || sanitize=
run3() { "$here/bin/lockstep" run -n 3 "$1" | sort; }
for how in shared static; do
    for example in hello least_squares threads factors predict; do
        if [ $how = shared ]; then
            flags="$(pkg-config --cflags --libs lockstep) $sanitize"
        else
            flags=$(pkg-config --cflags --libs --static lockstep | sed 's/-llockstep/-l:liblockstep.a/')
        fi
        cc $strict examples/$example.c -o "$root/$example-$how" $flags -lm
        needs=$(readelf -d "$root/$example-$how" | grep -c 'NEEDED.*liblockstep' || true)
        [ "$how $needs" = "shared 1" ] || [ "$how $needs" = "static 0" ] || fail "$example is not $how"
    done
    for n in 1 2 5; do
        [ "$("$root/threads-$how" $n)" = "mean 499.500, deviation 288.675" ] || fail "threads ($how) with $n"
    done
    hello=$root/hello-$how fit=$root/least_squares-$how
    [ "$($hello)" = "worker 0 of 1: the ranks add up to 0" ] || fail "hello ($how) alone"
    [ "$(run3 "$hello")" = "$(for i in 0 1 2; do
        echo "worker $i of 3: the ranks add up to 3"
    done)" ] || fail "hello ($how) on three workers"
    alone=$($fit | sort) three=$(run3 "$fit")
    [ "$alone" = "$three" ] || fail "least_squares ($how): $alone on one worker, $three on three"
    [ "$("$root/factors-$how")" = "$("$here/bin/lockstep" run -n 3 "$root/factors-$how")" ] ||
        fail "factors ($how): other rows on three workers"
    echo "$alone" | grep -qE '^w = (2\.0|1\.9)[0-9]* -(1\.0|0\.9)[0-9]* 0\.(5|49)[0-9]*, b = (3\.0|2\.9)' ||
        fail "least_squares ($how): $alone"
done

# A program that predicts links neither the trainer, nor the executor, nor collectives.
if nm "$root/predict-static" | grep -E ' T ls_(all_reduce|exec_|train$|trainer_|group_open|workers_run)' >"$root/log"; then
    fail "predict (static) has parts of the training: $(cat "$root/log")"
fi
(cd "$root" && printf 'a,b,kind\n' && for i in 1 2 3 4 5 6; do printf '%s,1,x\n%s,2,y\n' $i $i; done) >"$root/rows.csv"
printf 'model: {kind: mlp, hidden: [4], loss: {cross_entropy: {target: kind}}}\ntrain: {steps: 3, batch: 4, virtual_workers: 2}\noptim: {warmup: 0}\n' >"$root/rows.yaml"
"$here/bin/lockstep" train "$root/rows.yaml" -o "$root/rows" --set data.path="$root/rows.csv" >"$root/log" 2>&1 ||
    fail "rows: $(cat "$root/log")"
for how in shared static; do
    "$root/predict-$how" "$root/rows" 1 2 >"$root/log" || fail "predict ($how)"
    grep -qE '^kind y  *0\.[0-9]{4}$' "$root/log" || fail "predict ($how): $(cat "$root/log")"
done

# A project of CMake's that knows only the prefix, in C and in C++, shared and static.
mkdir "$root/project"
cp examples/hello.c examples/cnn.c "$root/project"
cp examples/hello.c "$root/project/hello.cpp"
cat >"$root/project/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(mine LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(lockstep 0.1 CONFIG REQUIRED)
add_executable(hello hello.c)
target_link_libraries(hello PRIVATE lockstep::lockstep)
add_executable(hello_cpp hello.cpp)
target_link_libraries(hello_cpp PRIVATE lockstep::lockstep)
add_executable(cnn_static cnn.c)
target_link_libraries(cnn_static PRIVATE lockstep::static m)
EOF
# Not with the paths of a staged tree, which pkg-config would prepend to those of Debian's libraries.
configure() { env -u PKG_CONFIG_SYSROOT_DIR cmake -S "$root/project" -B "$root/project/$1" -DCMAKE_PREFIX_PATH="$here"; }
configure build >"$root/log" 2>&1 && cmake --build "$root/project/build" >>"$root/log" 2>&1 ||
    fail "$(cat "$root/log")"
for program in hello hello_cpp; do
    [ "$("$root/project/build/$program")" = "worker 0 of 1: the ranks add up to 0" ] || fail "CMake: $program"
done
"$root/project/build/cnn_static" help >/dev/null || fail "CMake: cnn_static"
if readelf -d "$root/project/build/cnn_static" | grep -q 'NEEDED.*liblockstep'; then fail "CMake: cnn is not static"; fi
sed -i 's/lockstep 0\.1/lockstep 0.2/' "$root/project/CMakeLists.txt"
if configure other >"$root/log" 2>&1; then fail "CMake: version 0.2 is found"; fi

# Programs with models of their own, as C and as C++: the same bits, for any number of workers.
printf 'train: {steps: 20, batch: 24, virtual_workers: 6}\noptim: {warmup: 2}\n' >"$root/tabular.yaml"
flags=$(pkg-config --cflags --libs lockstep)
for language in c c++; do
    for example in cnn tabular loop; do
        [ "$(wc -l <examples/$example.c)" -lt 120 ] || fail "examples/$example.c has 120 lines or more"
        program=$root/$example-$language
        if [ $language = c ]; then
            cc $strict examples/$example.c -o "$program" $flags $sanitize -lm
        else
            g++ -std=c++20 -O2 -Wall -Wextra -Wpedantic ${LOCKSTEP_WERROR:+-Werror} -x c++ examples/$example.c -o "$program" $flags -lm
        fi
        [ $example = loop ] || "$program" check >"$root/log" 2>&1 ||
            fail "$example ($language): $(cat "$root/log")"
    done
    for how in "" 3 "run"; do
        words="$root/loop-$language $how"
        [ "$how" = run ] && words="$here/bin/lockstep run -n 3 $root/loop-$language"
        (cd "$root" && rm -f loop.safetensors && $words >log 2>&1) || fail "loop ($words): $(cat "$root/log")"
        (cd "$root" && md5sum loop.safetensors) >>"$root/loops"
    done
    (cd "$root" && rm loop.safetensors && LOOP_RUN="$root/run-loop-$language" "$here/bin/lockstep" run -n 2 "./loop-$language" &&
        md5sum loop.safetensors >>loops) >"$root/log" 2>&1 || fail "loop with checkpoints: $(cat "$root/log")"
    [ -e "$root/run-loop-$language/checkpoints/step-300" ] || fail "loop writes no checkpoint"
    for n in 1 3; do
        "$root/tabular-$language" train "$root/tabular.yaml" -n $n -o "$root/run-$language-$n" >"$root/log" 2>&1 ||
            fail "tabular ($language) on $n workers: $(cat "$root/log")"
        "$root/tabular-$language" ckpt hash "$root/run-$language-$n" >>"$root/hashes"
    done
done
[ "$(sort -u "$root/loops" | wc -l)" -eq 1 ] || fail "loop has different bits: $(cat "$root/loops")"
[ "$(sort -u "$root/hashes" | wc -l)" -eq 2 ] || fail "tabular has different bits: $(cat "$root/hashes")"

# Under MPI, a static program in any directory finds the plugin: under the prefix, or, if the tree
# is staged, through LOCKSTEP_PLUGINS.
if command -v mpirun.openmpi >/dev/null && [ -e "$here/lib/lockstep/lockstep-mpi-openmpi.so" ]; then
    # Open MPI itself may write warnings to stderr.
    mpi3() { env -u LD_LIBRARY_PATH "$@" mpirun.openmpi --allow-run-as-root --oversubscribe -n 3 "$root/hello-static" 2>"$root/log" | sort; }
    three=$(for i in 0 1 2; do echo "worker $i of 3: the ranks add up to 3"; done)
    mpi3 >/dev/null
    grep -q "which was built with this lockstep, is neither.*$prefix/lib/lockstep.*set LOCKSTEP_PLUGINS" "$root/log" ||
        fail "no message about the missing plugin: $(cat "$root/log")"
    [ "$(mpi3 LOCKSTEP_PLUGINS="$here/lib/lockstep")" = "$three" ] || fail "hello (static) under mpirun: $(cat "$root/log")"
    export PKG_CONFIG_PATH="$plain/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR=
    [ "$(pkg-config --variable=plugindir lockstep)" = "$plain/lib/lockstep" ] || fail "a wrong plugindir"
    cc $strict examples/hello.c -o "$root/hello-static" \
        $(pkg-config --cflags --libs --static lockstep | sed 's/-llockstep/-l:liblockstep.a/')
    [ "$(mpi3)" = "$three" ] || fail "hello (static) under mpirun, installed: $(cat "$root/log")"
fi
echo "installed, and the examples run: shared and static, alone and on three workers"
