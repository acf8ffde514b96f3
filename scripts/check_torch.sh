#!/bin/sh
# Tests the backend of torch.distributed: python/tests/torch, then PyTorch's own tests: of DDP and
# collectives, which its wheel contains (scripts/torch_tests.py), and of process groups and Gloo, which
# Debian's source package contains (scripts/torch_source_tests.py).
#     check_torch.sh [NAME...]    tests of ours whose names contain NAME
set -eu
cd "$(dirname "$0")/.."
. scripts/torch_venv.sh
if ! "$PYTHON" -c 'import torch' 2>/dev/null; then
    echo "skipped: $PYTHON has no torch, and PyPI was not reached"
    exit 0
fi
names=
for name in "$@"; do names="$names -k $name"; done
# shellcheck disable=SC2086
"$PYTHON" -m unittest discover -v -s python/tests/torch $names
[ $# -eq 0 ] || exit 0
"$PYTHON" scripts/torch_tests.py
"$PYTHON" scripts/torch_source_tests.py
