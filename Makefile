# The front door. CMake and Ninja do the work; see CMakePresets.json.
.PHONY: all build demo check check-peers format clean

all: build

build:
	@scripts/install.sh build
	@cmake --preset release >/dev/null
	@cmake --build build --target lockstep | tail -n 1

# Trains a small GPT on the King James Bible with one worker a core: about two minutes.
demo:
	@scripts/install.sh build demo
	@$(MAKE) --no-print-directory build
	@scripts/demo.sh

# Builds and runs all tests.
check:
	@scripts/install.sh build check
	@scripts/check.sh

# Reads our files with other programs (Python packages, from PyPI into build/peers-venv).
check-peers:
	@scripts/install.sh build peers
	@$(MAKE) --no-print-directory build
	@scripts/check_peers.sh

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf build
