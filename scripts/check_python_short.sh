#!/bin/sh
# Tests the Python package of the source tree without other packages than NumPy, for `make check`.
#     check_python_short.sh PROGRAM LIBRARY
# Skipped without NumPy (Debian: python3-numpy). `make check-python` has all tests, on the wheel.
set -eu
cd "$(dirname "$0")/.."
export LOCKSTEP_PROGRAM="$1" LOCKSTEP_LIBRARY="$2" PYTHONPATH="$PWD/python" PYTHONDONTWRITEBYTECODE=1
for python in "${PYTHON:-python3}" /usr/bin/python3; do
    $python -c 'import sys, numpy; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || continue
    cd python/tests
    $python short.py test_c test_package test_run test_model test_data
    exit
done
echo "skipped: Python: python3 has no NumPy (Debian: python3-numpy)"
exit 77
