#!/bin/sh
# Programs that people use ask `lockstep serve` (scripts/check_clients.py). They come from PyPI into build/clients-venv; where it
# is not reached, the check is skipped.
set -eu
cd "$(dirname "$0")/.."

venv=build/clients-venv
if { [ -x $venv/bin/python ] || python3 -m venv $venv; } &&
    $venv/bin/pip install -q openai openai-agents pydantic litellm llm 'lm-eval[api]' transformers && model=$(scripts/small_model.sh $venv/bin/python); then
    exec $venv/bin/python scripts/check_clients.py build/lockstep "$model" build/clients
fi
echo "skipped: PyPI is not reached"
