#!/bin/bash
#     check.sh [sanitizers|slow]
# Builds (warnings are errors where LOCKSTEP_WERROR=1), and runs the tests. The last line counts test
# functions of cmocka; a program without test functions, a script and a build count as one each. Each
# skipped test prints its reason.
# With `sanitizers`, the tests run with the address and undefined-behaviour sanitizers (clang, whose
# sanitizers are faster and find more), and, those with threads, with the thread sanitizer (gcc).
# With `slow`, everything, with and without sanitizers: also the tests that take long
# (tests/CMakeLists.txt: long, long-asan, long-tsan), and all cases of those that otherwise try some
# (tests/test.h). Without, the names of the tests that are left to it are printed.
set -u
cd "$(dirname "$0")/.." || exit 1

case $PWD in
*[[:space:]]*)
    echo "check.sh: the tests start shells with this directory's path, which has a space: move '$PWD' for them" >&2
    exit 2
    ;;
esac

plain=true sanitizers=true set_of_tests=check all_variants=OFF patience_s=900
case ${1:-} in
'') sanitizers=false ;;
sanitizers) plain=false ;;
slow)
    set_of_tests=all all_variants=ON patience_s=3600
    export LOCKSTEP_ALL_CASES=1
    ;;
*) echo "check.sh: '$1' is not known; the words are sanitizers, slow" >&2; exit 2 ;;
esac

log=$(mktemp)
background=
started=() names=() # checks that run beside others: processes and names
trap 'rm -rf "$log" "$log".* ${memory:+"$memory"}
    [ -z "$background" ] || kill -- "-$background"
    [ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2>/dev/null' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 skipped=0
# Many tests mostly wait and run beside those that compute, which count twice
# (tests/CMakeLists.txt): with two a processor, a sixth of the processors' time was not used.
jobs=$(($(nproc) * 3 + 1))

# Tests write, and remove, tens of thousands of files: in memory, where there is room, and programs may
# be started. On ext4 a new file costs the more, the more were removed in the last minutes.
memory=
use_memory() {
    [ -z "${TMPDIR-}" ] && [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] &&
        [ "$(df -k --output=avail /dev/shm | tail -n 1)" -ge $((4 << 20)) ] &&
        memory=$(mktemp -d /dev/shm/XXX) || return # a short name: folder.h
    chmod 1777 "$memory"                           # as /tmp: tests have users who are not root
    printf '#!/bin/sh\n' >"$memory/try" && chmod +x "$memory/try" && "$memory/try" 2>/dev/null || return
    export TMPDIR=$memory
}

# Where python3 is a shim (pyenv's) that starts twenty programs before it starts Python, Python itself.
python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null)
[ -z "$python" ] || [ "$python" = "$(command -v python3)" ] || PATH=$(dirname "$python"):$PATH

one() { # one NAME COMMAND...: a check outside ctest
    name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: $name" >&2
        return 1
    fi
}
# start NAME COMMAND...: one() beside what follows: most of the time such a check uses one core. finish()
# waits for all that were started, prints their output, and counts them.
start() {
    names+=("$1")
    "${@:2}" >"$log.beside.${#started[@]}" 2>&1 &
    started+=("$!")
}
result() { # result I: that of the i-th check that was started
    wait "${started[$1]}"
    ended=$?
    cat "$log.beside.$1"
    return $ended
}
finish() {
    for i in "${!started[@]}"; do one "${names[$i]}" result "$i"; done
    started=() names=()
}
build() { # build PRESET [TARGET...]
    echo "== build: $1"
    one "build of $1" scripts/build.sh "$@"
}
# Builds the trees of the sanitizers in the background, then runs the tests of threads: they get the
# processor time that the rest leaves.
start_sanitizers() {
    set -m # a process group of its own, which can be killed
    {
        renice -n 19 "$BASHPID" >/dev/null
        for preset in asan tsan; do
            scripts/build.sh $preset "-DLOCKSTEP_ALL_VARIANTS=$all_variants" "${set_of_tests}_$preset" >"$log.$preset" 2>&1
            echo $? >"$log.$preset.status"
        done
        [ "$(cat "$log.tsan.status")" -ne 0 ] || run tsan slow 'long|long-tsan' -j "$(nproc)" -L '^threads$'
    } &
    background=$!
    set +m
}
# built PRESET: waits until the background has built it; prints its output, and returns whether it could.
built() {
    while [ ! -s "$log.$1.status" ] && kill -0 "$background" 2>/dev/null; do sleep 0.2; done
    cat "$log.$1"
    return "$(cat "$log.$1.status" || echo 1)"
}
tree_of() { if [ "$1" = release ]; then echo build; else echo "build/$1"; fi; }
# run PRESET NEVER LEFT [ctest options]: runs the tests, with their output in a file: not those with a
# label NEVER, nor, without `slow`, those with a label LEFT, whose names are printed by count().
run() {
    preset=$1 never=$2 left=$3
    shift 3
    : >"$log.$preset.left"
    if [ $set_of_tests = check ]; then
        (cd "$(tree_of "$preset")" && ctest -N "$@" -L "^($left)$" -LE "^($never)$") |
            sed -n 's/^ *Test *#[0-9]*: //p' >"$log.$preset.left"
        never="$never|$left"
    fi
    (cd "$(tree_of "$preset")" && ctest --output-on-failure --timeout $patience_s "$@" -LE "^($never)$") >"$log.$preset.tests" 2>&1
    echo $? >"$log.$preset.ended"
}
# count PRESET: prints the output, and counts the tests.
count() {
    cat "$log.$1.tests"
    scripts/count_tests.py "$log.$1.tests" "$(tree_of "$1")/Testing/Temporary/LastTest.log" >"$log.counts"
    sed '$d' "$log.counts"
    [ ! -s "$log.$1.left" ] ||
        echo "$1: left to make check-slow: $(tr '\n' ' ' <"$log.$1.left")"
    echo "$1: $(tail -n 1 "$log.counts")"
    suite=$1
    read -r ended <"$log.$1.ended"
    # shellcheck disable=SC2046
    set -- $(tail -n 1 "$log.counts")
    passed=$((passed + $1)) failed=$((failed + $3)) skipped=$((skipped + $5))
    [ "$3" -gt 0 ] || [ "$ended" -eq 0 ] || one "ctest of $suite ends with $ended" false
}

check_plain() {
    start "checks can fail" scripts/check_checks.sh
    one includes scripts/check_includes.sh
    one rooms scripts/check_rooms.py
    one "picture of the rooms" scripts/draw_rooms.py --check
    one tour scripts/check_tour.py
    one links scripts/document_links.py
    one parameters scripts/check_parameters.py
    one types scripts/check_types.py
    one columns scripts/check_columns.sh
    one output scripts/check_output.sh
    one executor scripts/check_executor.sh
    one tests scripts/check_tests.sh
    one installs scripts/check_install.sh install "$log.installed" &&
        start "what is installed" scripts/check_install.sh try "$log.installed"
    build release
    built=$?
    finish
    [ $built -eq 0 ] || return
    start symbols scripts/check_symbols.sh
    echo "== test: release"
    run release no-test long -j "$jobs"
    finish
    count release
}
check_sanitizers() {
    echo "== test: asan, tsan"
    if one "build of asan" built asan; then
        run asan slow 'long|long-asan' -j "$jobs"
        count asan
    fi
    if one "build of tsan" built tsan; then
        wait "$background"
        count tsan
    fi
    background=
}

use_memory
! $sanitizers || start_sanitizers
! $plain || check_plain
! $sanitizers || check_sanitizers

echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
