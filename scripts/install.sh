#!/bin/sh
# Installs the Debian packages of groups that are missing. Prints their names; uses sudo if it does
# not run as root.
#     install.sh build [check] [page] [netns] [slurm] [debian] [demo] [demo-vision] [demo-chat] [peers] [bench] [kernels] [clients]
set -eu

packages=
for group in "$@"; do
    case $group in
    build) packages="$packages gcc libc6-dev make cmake ninja-build pkg-config
        libyaml-dev libjansson-dev libxxhash-dev libpcre2-dev libutf8proc-dev libssl-dev libhwloc-dev libdw-dev
        libcurl4-openssl-dev libedit-dev libjpeg62-turbo-dev libpng-dev libarchive-dev libmicrohttpd-dev zlib1g-dev libzstd-dev
        libprotobuf-c-dev protobuf-c-compiler protobuf-compiler opencl-c-headers" ;;
    check) packages="$packages libcmocka-dev clang libclang-rt-dev lld git procps openssl python3 python3-numpy etcd-server
        dataset-fashion-mnist gzip zstd
        openmpi-bin libopenmpi-dev mpich libmpich-dev
        gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static valgrind pocl-opencl-icd" ;;
    page) packages="$packages chromium chromium-driver python3 python3-venv" ;;
    netns) packages="$packages iproute2 iptables" ;;
    slurm) packages="$packages munge slurmctld slurmd slurm-client" ;;
    debian) packages="$packages debootstrap git util-linux" ;;
    peers) packages="$packages python3 python3-venv" ;;
    clients) packages="$packages python3 python3-venv prometheus" ;;
    bench) packages="$packages openmpi-bin libopenmpi-dev mpich libmpich-dev libgloo-dev g++ python3" ;;
    kernels) packages="$packages libopenblas0-pthread libdnnl2" ;;
    demo) packages="$packages bible-kjv bible-kjv-text" ;;
    demo-chat) packages="$packages python3 python3-venv dict-foldoc gzip" ;;
    demo-vision) packages="$packages dataset-fashion-mnist" ;;
    *) echo "install.sh: there is no group '$group'" >&2; exit 2 ;;
    esac
done

missing=
for p in $packages; do
    dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q '^install ok installed$' ||
        missing="$missing $p"
done
[ -n "$missing" ] || exit 0

echo "installing:$missing"
sudo=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "run as root, or install sudo" >&2; exit 1; }
    sudo=sudo
fi
export DEBIAN_FRONTEND=noninteractive
# The package lists may be missing or old: they are fetched if the installation fails.
$sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 || {
    $sudo apt-get update -qq
    $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
}
