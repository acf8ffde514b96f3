# Sourced by scripts that run PyTorch: PYTHON has it (from PyPI, some GB, in build/torch-venv, or given),
# and imports the package of the source tree with the library of build/.
if [ -z "${PYTHON:-}" ]; then
    PYTHON=$PWD/build/torch-venv/bin/python
    { [ -x "$PYTHON" ] || python3 -m venv build/torch-venv; } && "$PYTHON" -m pip install -q torch numpy expecttest hypothesis pytest mypy
fi
scripts/build.sh release lockstep liblockstep_shared
export PYTHONPATH="$PWD/python" LOCKSTEP_LIBRARY="$PWD/build/liblockstep.so"
export LOCKSTEP_PROGRAM="$PWD/build/lockstep" LOCKSTEP_PLUGINS="$PWD/build/plugins" OMP_NUM_THREADS=1
