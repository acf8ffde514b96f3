#!/usr/bin/env python3
"""Runs tests of torch.distributed that PyTorch's wheel does not contain, test_c10d_common.py and
test_c10d_gloo.py, with our backend in Gloo's place, and prints a table.

    torch_source_tests.py [--gloo] [--source FOLDER] [NAME...]

The files are those of Debian's source package pytorch, which apt-get fetches into build/torch-source, or
of a checkout of PyTorch: --source FOLDER. They are of another version than the PyTorch that runs them, so
a test is not applicable if it fails with Gloo, too. --gloo runs them with Gloo itself.
"""

import argparse
import glob
import multiprocessing
import os
import subprocess
import sys
import unittest

import torch_tests

SUITE = "trixie"
FILES = ["test_c10d_common", "test_c10d_gloo"]
FOLDER = "build/torch-source"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"

# Tests that can't pass, each with its reason.
NOT_APPLICABLE = {
    "test_init_process_group_for_all_backends": "it expects that the backend's name is gloo",
    "test_allgather_checks": "it expects that blocks of different lengths are refused",
    "test_allreduce_coalesced_checks": "it expects that tensors of different types are refused",
    "test_new_group_local_sync": "it expects what new_group() returned in PyTorch 2.6; Gloo fails, too",
}


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gloo", action="store_true")
    parser.add_argument("--source", help="a checkout of PyTorch")
    parser.add_argument("--report", help="a file for a line per test")
    parser.add_argument("names", nargs="*", help="parts of the names of tests, Class.test")
    return parser.parse_args()


def mirror():
    """The mirror of Debian that this machine uses."""
    lines = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"],
        check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    return next(line.split()[1] for line in lines if line.startswith("Debian http"))


def fetch_source():
    """Fetches the source package of PyTorch and unpacks its tests. Returns the folder of the tests."""
    tests = f"{FOLDER}/test/distributed"
    if os.path.exists(f"{tests}/{FILES[0]}.py"):
        return tests
    os.makedirs(f"{FOLDER}/lists/partial", exist_ok=True)
    with open(f"{FOLDER}/sources.list", "w") as f:
        f.write(f"deb-src [signed-by={KEYS}] {mirror()} {SUITE} main\n")
    here = os.path.abspath(FOLDER)
    apt = ["apt-get", "-qq", "-o", f"Dir::Etc::sourcelist={here}/sources.list"]
    apt += ["-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State::lists={here}/lists"]
    apt += ["-o", f"Dir::Cache={here}/cache", "-o", "APT::Sandbox::User=root"]
    subprocess.run([*apt, "update"], check=True, cwd=FOLDER)
    subprocess.run([*apt, "source", "--download-only", "pytorch"], check=True, cwd=FOLDER)
    archive = glob.glob(f"{FOLDER}/pytorch_*.orig.tar.*")[0]
    subprocess.run(
        ["tar", "-xf", archive, "-C", FOLDER, "--strip-components=1", "--wildcards",
         "*/test/distributed/test_c10d_*.py"],
        check=True,
    )  # fmt: skip
    return tests


def put_in_place_of_gloo():
    """Backends that are named gloo, and groups that a test makes as ProcessGroupGloo, are ours."""
    import torch.distributed as dist
    from torch.testing._internal import common_distributed

    torch_tests.put_in_place_of_gloo()
    from lockstep.torch import process_group

    gloo = dist.ProcessGroupGloo

    class Group:
        _Options = gloo._Options
        create_device = gloo.create_device
        create_default_device = gloo.create_default_device

        def __new__(cls, store, rank, size, *options, **named):
            given = [*options, *named.values()]
            limit = getattr(given[0], "_timeout", given[0]) if given else dist.default_pg_timeout
            return process_group.create(store, rank, size, limit)

    dist.ProcessGroupGloo = Group
    process_group.ProcessGroup.create_device = lambda self, **device: None

    def fork(case):  # so that workers have the replacement
        case._start_processes(multiprocessing.get_context("fork").Process)

    common_distributed.MultiProcessTestCase._spawn_processes = fork


def load(folder, names):
    sys.path.insert(0, folder)
    from torch.testing._internal.common_distributed import MultiProcessTestCase

    loader, cases = unittest.TestLoader(), []
    for file in FILES:
        for case in vars(__import__(file)).values():
            if isinstance(case, type) and issubclass(case, unittest.TestCase):
                cases += [case] if case.__module__ == file else []
    # Last those that leave threads in this process, from which others fork.
    cases.sort(key=lambda case: not issubclass(case, MultiProcessTestCase))
    tests = [test for case in cases for test in loader.loadTestsFromTestCase(case)]
    return unittest.TestSuite(t for t in tests if not names or any(n in t.id() for n in names))


def main():
    o = options()
    os.environ.update(OMP_NUM_THREADS="1")
    os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", str(torch_tests.LIMIT_S))
    try:
        folder = f"{o.source}/test/distributed" if o.source else fetch_source()
    except (OSError, StopIteration, subprocess.CalledProcessError) as e:
        print(f"skipped: PyTorch's source package was not reached: {type(e).__name__}: {e}")
        return
    if not o.gloo:
        put_in_place_of_gloo()
    result = torch_tests.Result(o.report, NOT_APPLICABLE)
    load(folder, o.names).run(result)
    sys.exit(torch_tests.print_result(result))


if __name__ == "__main__":
    main()
