#!/bin/sh
# Trains a tiny model and reads its files with other programs: Python packages, installed from PyPI
# into a virtual environment in build/.
set -eu
cd "$(dirname "$0")/.."

venv=build/peers-venv
[ -x $venv/bin/python ] || python3 -m venv $venv
$venv/bin/pip install -q safetensors tokenizers tensorboard numpy
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
build/lockstep train configs/tiny.yaml -n 2 -o "$run/tiny" >/dev/null
$venv/bin/python scripts/check_files.py "$run/tiny"
$venv/bin/python scripts/check_tokenizer.py "$run/tiny/tokenizer.json" LICENSE "$run/tiny/tokens.bin" --train
