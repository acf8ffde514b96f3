#!/bin/sh
# Tests the Python package: the wheel, installed into build/python-venv beside NumPy and the packages that
# some tests need, from PyPI; then again beside NumPy 1, in build/numpy1-venv, and by each other version of
# Python that is on the PATH or in pyenv's folder, in build/pythonX.Y-venv. Where PyPI can't be reached, or
# with PYTHON=python3, the package of the source tree is tested by PYTHON, if that has NumPy (Debian's
# package python3-numpy).
#     check_python.sh [NAME...]    tests whose names contain NAME
set -eu
cd "$(dirname "$0")/.."
venv=build/python-venv old=build/numpy1-venv
names=
for name in "$@"; do names="$names -k $name"; done

fetch() {
    { [ -x $venv/bin/python ] || python3 -m venv $venv; } &&
        $venv/bin/python -m pip install -q numpy ml_dtypes mypy pandas pyarrow pillow matplotlib nbclient \
            ipykernel datasets
}
fetch_numpy1() {
    { [ -x $old/bin/python ] || python3 -m venv $old; } &&
        $old/bin/python -m pip install -q --only-binary :all: 'numpy<2' 2>/dev/null
}
# The wheel's size is limited: 6 MB. It has the code of the library once, 3 MB.
check_wheel() {
    nbytes=$(wc -c <"$1")
    echo "$1: $nbytes bytes"
    [ "$nbytes" -lt 6000000 ] || { echo "check_python.sh: the wheel has $nbytes bytes; 6,000,000 are allowed" >&2; exit 1; }
}
python_of() { # python_of VERSION: where it is, or nothing
    for python in "$(command -v "python$1" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python3; do
        # A shim of pyenv is there for versions that are not chosen, too.
        [ -x "$python" ] && "$python" -c 'import venv' 2>/dev/null && { echo "$python"; return; }
    done
    return 0
}
test_with() { # test_with PYTHON [OPTION...]
    python=$1
    shift
    $python -c 'import sys, numpy; print(f"== Python {sys.version.split()[0]}, NumPy {numpy.__version__}")'
    # shellcheck disable=SC2086
    $python -m unittest discover "$@" -s python/tests $names
}

if [ -n "${PYTHON:-}" ] || ! fetch; then
    PYTHON=${PYTHON:-python3}
    if ! $PYTHON -c 'import numpy' 2>/dev/null; then
        echo "skipped: $PYTHON has no numpy (Debian: python3-numpy), and PyPI was not asked or reached"
        exit 0
    fi
    scripts/build.sh release lockstep liblockstep_shared
    export LOCKSTEP_LIBRARY="$PWD/build/liblockstep.so" PYTHONPATH="$PWD/python"
    test_with "$PYTHON" -v
    exit
fi
scripts/build_wheel.sh
check_wheel build/dist/lockstep-*.whl
unset LOCKSTEP_LIBRARY PYTHONPATH
$venv/bin/python -m pip install -q --no-deps --force-reinstall build/dist/lockstep-*.whl
LOCKSTEP_PROGRAM="$PWD/$venv/bin/lockstep" test_with $venv/bin/python -v
if fetch_numpy1; then
    $old/bin/python -m pip install -q --no-deps --force-reinstall build/dist/lockstep-*.whl
    LOCKSTEP_PROGRAM="$PWD/$old/bin/lockstep" test_with $old/bin/python
else
    echo "skipped: NumPy 1: PyPI has none for this Python"
fi
own=$($venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
for version in 3.9 3.10 3.11 3.12 3.13; do
    [ $version != "$own" ] || continue
    python=$(python_of $version)
    other=build/python$version-venv
    if [ -z "$python" ]; then
        echo "skipped: Python $version: it is not installed"
    elif ! { [ -x $other/bin/python ] || "$python" -m venv $other; } || ! $other/bin/python -m pip install -q numpy; then
        echo "skipped: Python $version: PyPI was not reached"
    else
        $other/bin/python -m pip install -q --no-deps --force-reinstall build/dist/lockstep-*.whl
        LOCKSTEP_PROGRAM="$PWD/$other/bin/lockstep" test_with $other/bin/python
    fi
done
