#!/bin/sh
# Builds the wheel of the Python package into build/dist, with the library, the program and the plugins
# for MPI inside. pip and scikit-build-core come from PyPI into build/python-venv.
set -eu
cd "$(dirname "$0")/.."
venv=build/python-venv

werror=OFF
[ -z "${LOCKSTEP_WERROR:-}" ] || werror=ON
[ -x $venv/bin/python ] || python3 -m venv $venv
# The option of pip 22.1 and later.
$venv/bin/python -m pip install -q --upgrade 'pip>=22.1'
rm -rf build/dist
$venv/bin/python -m pip wheel -q --no-deps -w build/dist \
    --config-settings=cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=$werror ./python
echo "built: $(ls build/dist/lockstep-*.whl)"
