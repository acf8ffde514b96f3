#!/bin/sh
# Compares exported networks with onnxruntime: scripts/check_onnx.py. Its Python packages come from PyPI
# into build/peers-venv, or are those of PYTHON.
#     check_onnx.sh [DRAWN [FIRST]]
set -eu
cd "$(dirname "$0")/.."

if [ -z "${PYTHON:-}" ]; then
    PYTHON=build/peers-venv/bin/python
    [ -x $PYTHON ] || python3 -m venv build/peers-venv
    $PYTHON -m pip install -q numpy onnx onnxruntime
fi
exec $PYTHON scripts/check_onnx.py build/lockstep build/tests/network_predictions "$@"
