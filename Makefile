# Short names for common tasks. CMake and Ninja build; see CMakePresets.json.
.PHONY: all build install demo demo-vision demo-chat check check-peers check-onnx bench bench-kernels bench-peers bench-table bench-stragglers bench-compress format clean check-sanitizers check-slow check-netns check-fuzz check-hurt check-sim check-megatron check-bubble check-slurm check-deploy check-attack check-bf16 check-debian check-builds build-tests python check-python check-torch bench-torch check-page check-clients check-ray check-serve bench-watch

PREFIX ?= /usr/local

all: build

build:
	@scripts/install.sh build
	@scripts/build.sh release lockstep

# Installs the program, both libraries, headers, lockstep.pc and lockstepConfig.cmake, man page,
# completion, documents, examples and configs into $(DESTDIR)$(PREFIX).
install:
	@scripts/install.sh build
	@scripts/build.sh release -DCMAKE_INSTALL_PREFIX="$(PREFIX)" installed
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" -ne 0 ] || ldconfig

# Trains a small GPT on the King James Bible with one worker a core: about two minutes.
demo:
	@scripts/install.sh build demo
	@$(MAKE) --no-print-directory build
	@scripts/demo.sh

# Trains a residual network on Fashion-MNIST with one worker a core.
demo-vision:
	@scripts/install.sh build demo-vision
	@$(MAKE) --no-print-directory build
	@scripts/demo_vision.sh

# Fetches a published language model, and tunes it on a dictionary: about ten minutes.
demo-chat:
	@scripts/install.sh build demo-chat
	@$(MAKE) --no-print-directory build
	@scripts/demo_chat.sh

# Builds, and runs the tests; some are left to check-slow.
check:
	@scripts/install.sh build check
	@scripts/check.sh

# The tests with the address, undefined-behaviour and thread sanitizers, and clang's warnings.
check-sanitizers:
	@scripts/install.sh build check
	@scripts/check.sh sanitizers

# All tests with all of their random cases, with and without sanitizers.
check-slow:
	@scripts/install.sh build check
	@scripts/check.sh slow

# The wheel of the Python package, in build/dist (scikit-build-core from PyPI into build/python-venv).
python:
	@scripts/install.sh build peers
	@scripts/build_wheel.sh

# Tests the wheel (NumPy and what some tests need from PyPI into build/python-venv; then with NumPy 1), or, with PYTHON=python3
# or without PyPI, the package of the source tree.
check-python:
	@scripts/install.sh build peers
	@scripts/check_python.sh

# Tests the backend of torch.distributed (PyTorch and NumPy from PyPI into build/torch-venv): every
# collective, DDP, FSDP2, DTensor and checkpoints beside Gloo, faults, and PyTorch's own tests of DDP. A
# quarter of an hour on two quiet cores.
check-torch:
	@scripts/install.sh build peers
	@scripts/build.sh release lockstep
	@scripts/check_torch.sh $(TORCH_TESTS)

# Times torch.distributed over Lockstep and over Gloo: all-reduces, and steps of a GPT of 12 million
# parameters by DDP and FSDP2; some minutes on a quiet machine.
bench-torch:
	@scripts/install.sh build peers
	@scripts/build.sh release lockstep
	@scripts/bench_torch.sh

# How long `lockstep watch` takes until the curves of 1, 50 and 250 runs are there, beside TensorBoard, MLflow and Aim (from
# PyPI into build/watch-peers): an hour, and 25 GB in the folder for temporary files. RUNS=1,50: fewer.
bench-watch:
	@scripts/install.sh build peers
	@scripts/build.sh release lockstep
	@test -x build/watch-peers/tb/bin/python || python3 -m venv build/watch-peers/tb
	@test -x build/watch-peers/ml/bin/python || python3 -m venv build/watch-peers/ml
	@build/watch-peers/tb/bin/pip install -q tensorboard
	@test -x build/watch-peers/aim/bin/python || python3 -m venv build/watch-peers/aim
	@build/watch-peers/ml/bin/pip install -q mlflow==3.4.0 'sqlalchemy<2.1'
	@build/watch-peers/aim/bin/pip install -q aim
	@bench/peers/watch.py build/lockstep --runs $(or $(RUNS),1,50,250)

# The pages of `lockstep watch` and `lockstep serve` in headless Chromium, driven by selenium (from PyPI into
# build/page-venv; the model that is served, too, 98 MB). PICTURES=DIR: with screenshots.
check-page:
	@scripts/install.sh build page
	@scripts/build.sh release lockstep
	@test -x build/page-venv/bin/python || python3 -m venv build/page-venv
	@build/page-venv/bin/pip install -q selenium axe-selenium-python
	@build/page-venv/bin/python scripts/check_page.py build/lockstep $(PICTURES)
	@build/page-venv/bin/python scripts/check_chat_page.py build/lockstep "$$(scripts/small_model.sh build/page-venv/bin/python)" $(PICTURES)

# Attacks `lockstep serve` with 100,000 requests at random, slow readers and clients that go away, and
# compares its answers; five minutes.
check-serve:
	@scripts/install.sh build
	@scripts/build.sh release lockstep
	@scripts/check_serve.py build/lockstep --seconds 240 --requests 100000

# Asks `lockstep serve` with programs that people use: openai, lm-eval, litellm, llm (from PyPI into
# build/clients-venv) and promtool, with a model of 98 MB from PyPI; some minutes.
check-clients:
	@scripts/install.sh build clients
	@scripts/build.sh release lockstep
	@scripts/check_clients.sh

# Trains on Ray clusters of this machine, whose nodes are lost; Ray Train and Ray Tune (Ray from PyPI into
# build/ray-venv).
check-ray:
	@scripts/install.sh build peers
	@scripts/build.sh release lockstep
	@scripts/build.sh release liblockstep_shared
	@scripts/check_ray.sh

# Reads our files with other programs, and starts workers with torchrun (Python packages, from PyPI
# into build/peers-venv and build/torch-venv).
check-peers:
	@scripts/install.sh build check peers
	@scripts/build.sh release lockstep
	@scripts/check_peers.sh
	@scripts/check_torchrun.sh

# Exports networks of all layers as ONNX, and compares what onnxruntime computes (Python packages, from
# PyPI into build/peers-venv, or of PYTHON).
check-onnx:
	@scripts/install.sh build check peers
	@scripts/build.sh release lockstep
	@scripts/build.sh release network_predictions
	@scripts/check_onnx.sh

# Times our collectives and those of Open MPI, MPICH, Gloo, and the machine's floor, by one
# procedure.
bench:
	@scripts/install.sh build bench
	@scripts/build.sh release -DLOCKSTEP_BENCH=ON
	@bench/peers/compare_comm.py build/lockstep openmpi,mpich,gloo,floor -n 2

# Times our kernels, as shares of a core's peak, and those of OpenBLAS and oneDNN; two minutes on a
# quiet machine.
bench-kernels:
	@scripts/install.sh build kernels
	@scripts/build.sh release bench_kernels
	@build/bench/kernels --vs openblas,onednn

# Times training in Lockstep and in PyTorch (from PyPI into build/torch-venv), with the same weights
# and samples, and generating in Lockstep and in llama.cpp (from PyPI into build/llama-venv); an hour
# on a quiet machine.
bench-peers:
	@scripts/install.sh build peers
	@$(MAKE) --no-print-directory build
	@scripts/bench_peers.sh generate
	@scripts/bench_peers.sh

# Training with compressed gradients between two hosts with slow links (docs/measured/communication.md):
# network namespaces with limited cards, so it needs root. An hour.
bench-compress:
	@scripts/install.sh build
	@scripts/build.sh release
	@scripts/bench_compress.sh

# Rows of a table read and updated a second, beside PyTorch (docs/measured/speed.md). Takes a minute.
bench-table:
	@scripts/install.sh build peers
	@scripts/build.sh release
	@scripts/bench_table.sh

# Steps a second with one of four workers at a third of its speed: synchronous and asynchronous runs.
bench-stragglers:
	@scripts/build.sh release lockstep faults
	@scripts/bench_stragglers.py

# Compares predicted step times and memory with measured ones; some minutes on a quiet machine.
check-sim: build
	@scripts/check_sim.sh

# Compares the predicted part of a step in which a pipeline's workers wait with the measured one; some
# minutes on a quiet machine.
check-bubble: build
	@python3 scripts/check_bubble.py build/lockstep

# Compares predicted steps with published ones of Megatron-LM; some minutes, 4 GB of memory.
check-megatron: build
	@python3 scripts/check_megatron.py build/lockstep

# Trains the demo's model and one of twelve million parameters in f32 and in bf16, three seeds each,
# and compares their validation losses; an hour on a quiet machine. BF16="configs/demo.yaml" or
# BF16="configs/gpt-12m.yaml:300" trains only that, for so many steps.
check-bf16:
	@scripts/install.sh build demo
	@$(MAKE) --no-print-directory build
	@scripts/check_bf16_quality.sh $(BF16)

# Runs between network namespaces, as between hosts (root).
check-netns:
	@scripts/install.sh build check netns
	@$(MAKE) --no-print-directory build-tests
	@scripts/check_netns.sh
	@scripts/check_hosts.sh
	@scripts/part_hosts.py build/lockstep

# Runs under a real Slurm, a controller and three nodes, in network namespaces (root); five minutes.
check-slurm:
	@scripts/install.sh build check netns slurm
	@$(MAKE) --no-print-directory build-tests
	@scripts/check_slurm.sh

# Checks the manifests, the image and the pods of examples/deploy, as far as this machine allows
# (root); some minutes.
check-deploy:
	@scripts/install.sh build check netns peers
	@$(MAKE) --no-print-directory build-tests
	@scripts/check_deploy.sh

# Runs `make demo` and `make check` on a bare Debian 12 and on a bare Debian 13, in directories that
# debootstrap fills (root). An hour and 3 GB in build/ on two quiet cores; before each release.
check-debian:
	@scripts/install.sh build check debian
	@scripts/check_debian.sh

# Builds with other flags and compilers, as distributions do: the same bits.
check-builds:
	@scripts/install.sh build check
	@scripts/check_builds.sh

# Runs the fuzzers of all code that reads a peer's bytes or a file, for a short time.
check-fuzz:
	@scripts/install.sh build check
	@scripts/check_fuzz.sh

# Attacks a build with sanitizers: races of starts, a second user (root), floods, damaged files,
# random command lines; five minutes. ATTACK has more options, e.g. ATTACK="--rounds 500 --seed 7".
check-attack:
	@scripts/install.sh build check
	@scripts/build.sh asan lockstep faults
	@scripts/attack.py build/asan/lockstep $(ATTACK)

# Trains random small models, of data of all formats, with random settings and random faults, on one
# host and on several, and started by launchers; three hours. As root, and with etcd, for the last two.
check-hurt:
	@scripts/install.sh build check
	@$(MAKE) --no-print-directory build-tests
	@scripts/random_faults.py build/lockstep --runs 200
	@scripts/random_faults.py build/lockstep --runs 100 --hosts
	@scripts/random_faults.py build/lockstep --runs 100 --async
	@scripts/random_faults.py build/lockstep --runs 50 --async --hosts
	@scripts/random_faults.py build/lockstep --runs 50 --meshes
	@scripts/random_faults.py build/lockstep --runs 30 --meshes --hosts
	@scripts/random_faults.py build/lockstep --runs 60 --again
	@scripts/random_faults.py build/lockstep --runs 40 --again --meshes
	@scripts/random_faults.py build/lockstep --runs 40 --again --recommenders
	@scripts/random_faults.py build/lockstep --runs 25 --again --recommenders --replicas
	@scripts/random_faults.py build/lockstep --runs 25 --rare --again --recommenders --async
	@scripts/random_faults.py build/lockstep --runs 40 --again --device
	@scripts/random_faults.py build/lockstep --runs 40 --again --async
	@scripts/random_faults.py build/lockstep --runs 40 --again --hosts
	@scripts/random_faults.py build/lockstep --runs 60 --rare --again
	@scripts/random_faults.py build/lockstep --runs 60 --rare --hosts
	@scripts/random_faults.py build/lockstep --runs 60 --rare --again --hosts --replicas
	@scripts/random_faults.py build/lockstep --runs 60 --rare --again --compressed
	@scripts/random_faults.py build/lockstep --runs 40 --rare --hosts --compressed
	@scripts/random_faults.py build/lockstep --runs 40 --rare --launched --compressed
	@scripts/random_faults.py build/lockstep --runs 40 --rare --launched
	@scripts/random_faults.py build/lockstep --runs 40 --rare --launched --meshes
	@scripts/random_faults.py build/lockstep --runs 40 --hosts --elect
	@scripts/random_faults.py build/lockstep --runs 30 --rare --hosts --elect
	@scripts/random_faults.py build/lockstep --runs 40 --disk

build-tests:
	@scripts/build.sh release

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf build
