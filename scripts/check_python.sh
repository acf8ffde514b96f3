#!/bin/sh
# Tests the Python package: the wheel, installed into build/python-venv beside NumPy and the packages that
# some tests need, from PyPI. Where PyPI can't be reached, or with PYTHON=python3, the package of the source tree is
# tested by PYTHON, if that has NumPy (Debian's package python3-numpy).
#     check_python.sh [NAME...]    tests whose names contain NAME
set -eu
cd "$(dirname "$0")/.."
venv=build/python-venv
names=
for name in "$@"; do names="$names -k $name"; done

fetch() {
    { [ -x $venv/bin/python ] || python3 -m venv $venv; } &&
        $venv/bin/python -m pip install -q numpy ml_dtypes mypy pandas pyarrow pillow matplotlib nbclient \
            ipykernel datasets
}
if [ -z "${PYTHON:-}" ] && fetch; then
    scripts/build_wheel.sh
    PYTHON=$PWD/$venv/bin/python
    $PYTHON -m pip install -q --no-deps --force-reinstall build/dist/lockstep-*.whl
    unset LOCKSTEP_LIBRARY PYTHONPATH
    export LOCKSTEP_PROGRAM="$PWD/$venv/bin/lockstep"
else
    PYTHON=${PYTHON:-python3}
    if ! $PYTHON -c 'import numpy' 2>/dev/null; then
        echo "skipped: $PYTHON has no numpy (Debian: python3-numpy), and PyPI was not asked or reached"
        exit 0
    fi
    scripts/build.sh release lockstep liblockstep_shared
    export LOCKSTEP_LIBRARY="$PWD/build/liblockstep.so" PYTHONPATH="$PWD/python"
fi
# shellcheck disable=SC2086
exec $PYTHON -m unittest discover -v -s python/tests $names
