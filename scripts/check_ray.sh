#!/bin/sh
# Tests `python -m lockstep.ray` on Ray clusters of this machine, of three raylets each: a node is lost
# in mid-run, the first node is lost, a signal; then Ray Train and Ray Tune. Ray and NumPy come from PyPI
# into build/ray-venv; PyTorch is that of build/torch-venv (make check-torch), else Ray Train is skipped.
set -eu
cd "$(dirname "$0")/.."
venv=build/ray-venv
[ -x $venv/bin/python ] || python3 -m venv $venv
if ! $venv/bin/python -m pip install -q 'ray[train,tune]' numpy; then
    echo "skipped: Ray: PyPI was not reached"
    exit 0
fi
python=$PWD/$venv/bin/python
for torch in "$PWD"/build/torch-venv/lib/python3*/site-packages; do
    [ ! -d "$torch" ] || echo "$torch" >"$($python -c 'import site; print(site.getsitepackages()[0])')/torch.pth"
done
export LOCKSTEP_LIBRARY="$PWD/build/liblockstep.so" LOCKSTEP_PROGRAM="$PWD/build/lockstep"
export PYTHONPATH="$PWD/python:$PWD/python/tests" RAY_USAGE_STATS_ENABLED=0 OMP_NUM_THREADS=1
export RAY_worker_niceness=0 # else other programs of the machine go before the workers
cd python/tests
[ $# -gt 0 ] || set -- ray_train ray_libraries
exec "$python" -m unittest -v "$@"
