#!/bin/sh
# Training beside PyTorch, on the same weights and samples: bench/peers/compare_train.py. PyTorch
# comes from PyPI (some GB) into a virtual environment in build/, or PYTHON names an interpreter
# that has it. Arguments are passed on.
set -eu
cd "$(dirname "$0")/.."

python=${PYTHON:-build/torch-venv/bin/python}
if [ -z "${PYTHON:-}" ]; then
    [ -x $python ] || python3 -m venv build/torch-venv
    build/torch-venv/bin/pip install -q torch numpy transformers peft
fi
python3 bench/peers/compare_train.py build/lockstep "$python" build/bench-peers "$@"
