#!/bin/bash
# Checks that the checks can fail: every target of the Makefile, in a small project of one file,
# which is correct, broken, or causes a warning from clang only; and the counts of scripts/check.sh.
set -u
cd "$(dirname "$0")/.." || exit 1
unset MAKEFLAGS MAKELEVEL LOCKSTEP_WERROR LOCKSTEP_ALL_CASES

fake=$(mktemp -d)
trap 'rm -rf "$fake"' EXIT
bad=0
complain() {
    printf 'check_checks.sh: %s; it printed:\n' "$*" >&2
    sed 's/^/    /' "$fake/out" >&2
    bad=1
}

# Our own Makefile and the scripts that build and count; every other script does nothing and
# succeeds.
mkdir "$fake/scripts" "$fake/src"
cp Makefile CMakePresets.json "$fake"
for script in scripts/*; do
    case $(basename "$script") in
    build.sh | check.sh | count_tests.py | check_fuzz.sh | check_parameters.py | c_functions.py) cp "$script" "$fake/scripts" ;;
    *.sh | *.py) printf '#!/bin/sh\nexit 0\n' >"$fake/$script" && chmod +x "$fake/$script" ;;
    esac
done
# Builds at the lowest priority would not end while others compile beside this check.
mkdir "$fake/bin"
printf '#!/bin/sh\nexit 0\n' >"$fake/bin/renice" && chmod +x "$fake/bin/renice"
export PATH="$fake/bin:$PATH"
cat >"$fake/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
set(CMAKE_C_COMPILER_WORKS 1)
project(fake LANGUAGES C)
set(LOCKSTEP_SANITIZE "" CACHE STRING "")
include(broken.cmake OPTIONAL)
add_executable(lockstep src/one.c)
foreach(target installed faults check_asan check_tsan all_asan all_tsan fuzz bench_kernels)
    add_custom_target(${target} DEPENDS lockstep)
endforeach()
include(CTest)
foreach(name functions program slow_one long_one long_asan)
    add_test(NAME part/${name} COMMAND sh ${PROJECT_SOURCE_DIR}/${name}.sh)
    set_tests_properties(part/${name} PROPERTIES SKIP_RETURN_CODE 77)
endforeach()
set_tests_properties(part/functions PROPERTIES LABELS threads)
set_tests_properties(part/slow_one PROPERTIES LABELS slow)
set_tests_properties(part/long_one PROPERTIES LABELS long)
set_tests_properties(part/long_asan PROPERTIES LABELS "threads;long-asan")
CMAKE
whole='int main(void) { return 0; }'
# The output of a cmocka program with two test functions, the second of them skipped, and one that is
# left to make check-slow.
functions() { # functions [REASON]
    printf 'cat <<END\n[==========] Running 2 test(s).\n[ RUN      ] test_a\n[       OK ] test_a\n[ RUN      ] test_b\n'
    printf '%s\n[  SKIPPED ] test_b\n' "${1:+skipped: $1}"
    printf '[  PASSED  ] 1 test(s).\nEND\n'
    echo '[ -n "$LOCKSTEP_ALL_CASES" ] || printf "[ RUN      ] test_c\nleft to make check-slow\n[       OK ] test_c\n"'
}
functions "there is no b" >"$fake/functions.sh"
for name in program long_one long_asan; do echo 'exit 0' >"$fake/$name.sh"; done
echo 'echo "skipped: a peer: there is none"; exit 77' >"$fake/slow_one.sh"

try() { # try TARGET: returns its exit code; its output is in $fake/out
    make --no-print-directory -C "$fake" "$1" DESTDIR="$fake/installed" >"$fake/out" 2>&1
}
closing() { grep -v '^make: ' "$fake/out" | tail -n 1; }
closes() { [ "$(closing)" = "$1" ] || complain "the closing line is not '$1'"; }

# A correct project.
echo "$whole" >"$fake/src/one.c"
try build || complain "make build fails"
[ "$(wc -l <"$fake/out")" -eq 1 ] || complain "make build prints more than a line"
try check || complain "make check fails"
most=$(closing | sed 's/ passed.*//')
closes "$most passed, 0 failed, 2 skipped"
grep -qx 'release: 3 passed, 0 failed, 2 skipped' "$fake/out" || complain "the release suite has other counts"
grep -qx 'skipped: part/functions: test_b: there is no b' "$fake/out" || complain "a skipped function's reason is missing"
grep -qx 'skipped: part/slow_one: a peer: there is none' "$fake/out" || complain "a skipped program's reason is missing"

grep -qx 'left to make check-slow: part/functions: test_c' "$fake/out" || complain "a function that is left is not named"
grep -qx 'release: left to make check-slow: part/long_one ' "$fake/out" || complain "a long test is not named"
try check-sanitizers || complain "make check-sanitizers fails"
# functions.sh is in both suites, program.sh and long_asan.sh in one.
sanitized=$(closing | sed 's/ passed.*//')
closes "$sanitized passed, 0 failed, 2 skipped"
grep -qx 'asan: left to make check-slow: part/long_one part/long_asan ' "$fake/out" || complain "a test that is long with asan is not named"

# The tests that are left to it.
try check-slow || complain "make check-slow fails"
closes "$((most + sanitized + 3)) passed, 0 failed, 4 skipped"
grep -q 'left to' "$fake/out" && complain "make check-slow leaves tests"
echo 'exit 1' >"$fake/long_one.sh"
try check-slow && complain "make check-slow succeeds with a long test that fails"
try check || complain "make check runs a long test"
echo 'exit 0' >"$fake/long_one.sh"

# A test that fails, one that crashes, and one that is skipped without a reason.
echo 'exit 1' >"$fake/program.sh"
try check && complain "make check succeeds with a test that fails"
closes "$((most - 1)) passed, 1 failed, 2 skipped"
try check-sanitizers && complain "make check-sanitizers succeeds with a test that fails"
closes "$((sanitized - 1)) passed, 1 failed, 2 skipped"
echo 'exit 0' >"$fake/program.sh"
{ echo 'echo "[ RUN      ] test_a"'; echo 'kill -SEGV $$'; } >"$fake/functions.sh"
try check && complain "make check succeeds with a test that crashes"
closes "$((most - 1)) passed, 1 failed, 1 skipped"
try check-sanitizers && complain "make check-sanitizers succeeds with a test that crashes"
closes "$((sanitized - 2)) passed, 2 failed, 0 skipped"
functions >"$fake/functions.sh"
try check && complain "make check succeeds with a test that is skipped without a reason"
grep -q 'test_b is skipped without a reason' "$fake/out" || complain "the missing reason is not reported"
functions "there is no b" >"$fake/functions.sh"

# A function with too many parameters, and an exception that is not needed.
echo 'int f(int a, int b, int c, int d, int e, int (*g)(int, int), int h) { return a; }' >"$fake/src/two.c"
"$fake/scripts/check_parameters.py" >"$fake/out" && complain "7 parameters are not detected"
echo 'f seven are needed' >"$fake/scripts/parameters.txt"
"$fake/scripts/check_parameters.py" >"$fake/out" || complain "an exception is not accepted"
rm "$fake/src/two.c"
"$fake/scripts/check_parameters.py" >"$fake/out" && complain "a stale exception is not detected"
rm "$fake/scripts/parameters.txt"

# Comments of 100 and of 101 columns.
comment() { # comment COLUMNS: succeeds if check_columns.sh does
    printf "/* %0$(($1 - 6))d */\n" 0 >"$fake/src/two.c"
    scripts/check_columns.sh "$fake" >"$fake/out" 2>&1
}
comment 100 || complain "a comment of 100 columns is refused"
comment 101 && complain "a comment of 101 columns is not detected"
rm "$fake/src/two.c"

# A complete README.md of a room, and some that lack a file, name one that does not exist, or are
# too long.
room() { # room README-LINE...: succeeds if check_rooms.py does
    mkdir -p "$fake/src/base"
    touch "$fake/src/base/list.c" "$fake/src/base/list.h"
    echo 'base   errors' | tee "$fake/src/rooms.txt" >"$fake/CONTRIBUTING.md"
    printf '%s\n' "$@" >"$fake/src/base/README.md"
    scripts/check_rooms.py "$fake" >"$fake/out"
}
room 'See `list.[ch]`.' || complain "a complete room fails"
room 'See list.' && complain "a file that README.md does not name is not detected"
room 'See `list` and `gone.c`.' && complain "a missing file is not detected"
room '`list`; `gone`: nothing.' && complain "a word that is no file of the room is not detected"
room '`list`' {1..25} && complain "a long README.md is not detected"
room '`list`'
echo 'base   mistakes' >"$fake/CONTRIBUTING.md"
scripts/check_rooms.py "$fake" >"$fake/out" && complain "a different list in CONTRIBUTING.md is not detected"
rm -r "$fake/src/base" "$fake/src/rooms.txt"

# A tour that names an existing function, a missing one, a missing file, and none.
mkdir -p "$fake/docs/design"
tour() { # tour TEXT
    printf '1. %s\n' "$1" >"$fake/docs/design/tour.md"
    scripts/check_tour.py "$fake" >"$fake/out"
}
tour '`main()` in `src/one.c` ends.' || complain "a correct tour fails"
tour '`gone()` in `src/one.c` ends.' && complain "a missing function is not detected"
tour '`main()` in `src/two.c` ends.' && complain "a missing file is not detected"
tour 'It ends.' && complain "a tour without functions is not detected"
echo '/* other.c - as in ls_gone(). */' >"$fake/src/two.c"
tour '`main()` in `src/one.c` ends.' && complain "a comment that names what does not exist is not detected"
[ "$(grep -c '^src/two.c: a comment names' "$fake/out")" = 2 ] || complain "not all that a comment names is looked for"
rm "$fake/src/two.c"

# Documents whose links, paths and names exist, and some that lead to no file, no heading, and no
# source, or name what is nowhere in the sources.
mkdir "$fake/src/config"
echo 'static const char *const keys[] = {"train.steps", "--until"};' >"$fake/src/config/keys.c"
links() { # links TEXT
    printf '# One two\n%s\n' "$1" >"$fake/docs/design/tour.md"
    scripts/document_links.py "$fake" >"$fake/out"
}
links '[a](tour.md#one-two) [b](#one-two) [c](https://d/e) `src/one.c`' || complain "correct links fail"
links '[a](gone.md)' && complain "a link to no file is not detected"
links '[a](tour.md#three)' && complain "a link to no heading is not detected"
links 'See `src/two.c`.' && complain "a path that does not exist is not detected"
links '`main()`, `train.steps: 3`, `lockstep train --until 3`, `train.bin`' || complain "correct names fail"
links '`gone()`' && complain "a function that does not exist is not detected"
links '`train.stops`' && complain "a key that does not exist is not detected"
links '`lockstep train --till 3`' && complain "an option that does not exist is not detected"
rm -r "$fake/src/config"

# A warning from clang only.
printf '#ifdef __clang__\n#warning of clang alone\n#endif\n%s\n' "$whole" >"$fake/src/one.c"
try build || complain "make build fails"
try check-sanitizers || complain "make check-sanitizers fails with a warning of a compiler that a user may have"
grep -q 'warning: of clang alone' "$fake/out" || complain "clang's warning is missing"
LOCKSTEP_WERROR=1 try check-sanitizers && complain "make check-sanitizers succeeds with a warning of clang, though warnings are errors"
grep -q 'error: of clang alone' "$fake/out" || complain "clang's message is missing"
LOCKSTEP_WERROR=yes try check && complain "LOCKSTEP_WERROR=yes is not refused"

# A file that is broken: each target that builds fails, with the compiler's message.
echo 'int main(void) { return broken; }' >"$fake/src/one.c"
for target in $(sed -n 's/^\.PHONY: //p' Makefile); do
    case $target in
    format | clean | check-debian | check-builds) continue ;; # the last two build trees of their own
    python | check-python) continue ;; # pip builds, in a tree of its own
    esac
    try "$target" && complain "make $target succeeds with a broken file"
    grep -q "error: .*broken" "$fake/out" || complain "make $target does not print the compiler's message"
done
try check-slow
closing | grep -qx '[0-9]* passed, 3 failed, 0 skipped' || complain "three broken builds are not all counted"

# A missing library.
echo "$whole" >"$fake/src/one.c"
echo 'message(FATAL_ERROR "there is no library b")' >"$fake/broken.cmake"
try build && complain "make build succeeds without a library"
grep -q 'there is no library b' "$fake/out" || complain "make build does not print the message of CMake"

[ $bad -eq 0 ] && echo "the checks can fail"
exit $bad
