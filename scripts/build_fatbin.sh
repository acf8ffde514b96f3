#!/bin/bash
#     build_fatbin.sh LOCKSTEP FOLDER ARCHITECTURE...
# Compiles the kernels of GPUs with CUDA's nvcc (from $CUDA_HOME, or the PATH), e.g. for 80 90a 100, and
# writes FOLDER/lockstep-kernels-KEY.fatbin. Installed in PREFIX/lib/lockstep, it spares users NVIDIA's compiler
# on these GPUs. cmake -DLOCKSTEP_FATBIN="80;90a" builds and installs it.
set -eu
[ $# -ge 3 ] || { sed -n 2p "$0" >&2; exit 2; }
lockstep=$1 folder=$2
shift 2

nvcc=nvcc
[ -z "${CUDA_HOME-}" ] || nvcc=$CUDA_HOME/bin/nvcc
command -v "$nvcc" >/dev/null || {
    echo "build_fatbin.sh: there is no $nvcc: install CUDA's package cuda-nvcc, and set CUDA_HOME to where it is" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$lockstep" help --cuda >"$work/kernels.cu"
read -r _ key options <"$work/kernels.cu"
least=${1%%[a-z]*}
code=(-gencode "arch=compute_$least,code=compute_$least") # NVIDIA's driver compiles this for GPUs that are newer
for architecture in "$@"; do code+=(-gencode "arch=compute_$architecture,code=sm_$architecture"); done
# shellcheck disable=SC2086 # several words
"$nvcc" -fatbin $options "${code[@]}" -o "$work/kernels.fatbin" "$work/kernels.cu"
mkdir -p "$folder"
rm -f "$folder"/lockstep-kernels-*.fatbin # of another text
mv "$work/kernels.fatbin" "$folder/lockstep-kernels-$key.fatbin"
