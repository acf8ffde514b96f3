#!/bin/sh
# Tests `python -m lockstep.ray` on Ray clusters of this machine, of three raylets each: a node is lost
# in mid-run, the first node is lost, a signal. Ray and NumPy come from PyPI into build/ray-venv.
set -eu
cd "$(dirname "$0")/.."
venv=build/ray-venv
[ -x $venv/bin/python ] || python3 -m venv $venv
if ! $venv/bin/python -m pip install -q ray numpy; then
    echo "skipped: Ray: PyPI was not reached"
    exit 0
fi
export LOCKSTEP_LIBRARY="$PWD/build/liblockstep.so" LOCKSTEP_PROGRAM="$PWD/build/lockstep" PYTHONPATH="$PWD/python"
export RAY_USAGE_STATS_ENABLED=0
python=$PWD/$venv/bin/python
cd python/tests
exec "$python" -m unittest -v "${@:-ray_train}"
