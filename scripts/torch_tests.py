#!/usr/bin/env python3
"""Runs the tests of torch.distributed that PyTorch's wheel contains (those of PyTorch's
test_distributed_spawn.py) with our backend in Gloo's place, and prints a table.

    torch_tests.py [--gloo] [--workers N] [NAME...]

Tests that are skipped are so by PyTorch's own conditions: they need GPUs, more workers, or another
backend. --gloo runs them with Gloo itself, for comparison.
"""

import argparse
import multiprocessing
import os
import re
import sys
import time
import unittest

# Tests that can't pass, each with its reason.
NOT_APPLICABLE = {
    "test_ddp_logging_data_cpu": "it expects that the backend's name is gloo",
}

LIMIT_S = 120


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gloo", action="store_true")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--report", help="a file for a line per test")
    parser.add_argument("names", nargs="*")
    return parser.parse_args()


def put_in_place_of_gloo():
    import torch.distributed as dist

    import lockstep.torch

    plugins = dist.Backend._plugins
    plugins["GLOO"] = plugins["LOCKSTEP"]
    return lockstep.torch


def make_case(gloo):
    from torch.testing._internal.distributed import distributed_test
    from torch.testing._internal.distributed.distributed_test import (
        DistributedTest,
        TestDistBackend,
    )

    if not gloo:  # the backend records no events for the profiler; the rest of a test is run
        distributed_test.PROFILING_SUPPORTED_BACKENDS.clear()
        distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.clear()

    class Case(TestDistBackend, DistributedTest._DistTestBase):
        """Workers are forked: nothing is imported again."""

        def setUp(self):
            super().setUp()
            distributed_test.INIT_METHOD = os.environ["INIT_METHOD"]  # read when it is imported
            self._start_processes(multiprocessing.get_context("fork").Process)

    return Case


def reason_of(text):
    lines = [s for s in text.strip().splitlines() if s.strip()]
    errors = [s for s in lines if re.match(r"^\w*(Error|Exception)\b", s.strip())]
    return (errors or lines or ["?"])[-1].strip()[:150]


class Result(unittest.TestResult):
    def __init__(self, report, not_applicable):
        super().__init__()
        self.report = report
        self.not_applicable = not_applicable
        self.rows = []

    def startTest(self, test):
        super().startTest(test)
        self.begin = time.monotonic()

    def note(self, test, outcome, why=""):
        name = test.id().split(".")[-1]
        self.rows.append((name, outcome, why))
        line = f"{outcome:8} {name} ({time.monotonic() - self.begin:.1f} s) {why}"
        print(line, flush=True)
        if self.report:
            with open(self.report, "a") as f:
                f.write(line + "\n")

    def addSuccess(self, test):
        self.note(test, "passed")

    def addSkip(self, test, reason):
        self.note(test, "skipped", reason)

    def failed(self, test, error):
        name = test.id().split(".")[-1]
        if name in self.not_applicable:
            self.note(test, "not", self.not_applicable[name])
        else:
            self.note(test, "failed", reason_of(self._exc_info_to_string(error, test)))

    def addFailure(self, test, error):
        self.failed(test, error)

    addError = addFailure

    def addExpectedFailure(self, test, error):
        self.note(test, "passed", "expected to fail")


def print_table(rows):
    print("\n| tests | outcome | reason |\n|---|---|---|")
    groups = {}
    for _, outcome, why in rows:
        key = (outcome, why if outcome in ("skipped", "not") else "")
        groups[key] = groups.get(key, 0) + 1
    for (outcome, why), n in sorted(groups.items(), key=lambda x: (x[0][0], -x[1])):
        print(f"| {n} | {outcome.replace('not', 'not applicable')} | {why} |")


def print_result(result):
    """Prints the table and the counts. Returns whether a test failed."""
    print_table(result.rows)
    failed = sum(outcome == "failed" for _, outcome, _ in result.rows)
    passed = sum(outcome == "passed" for _, outcome, _ in result.rows)
    print(f"{passed} passed, {failed} failed, {len(result.rows) - passed - failed} skipped")
    return failed > 0


def main():
    o = options()
    os.environ.update(BACKEND="gloo", WORLD_SIZE=str(o.workers), OMP_NUM_THREADS="1")
    os.environ.setdefault("DISTRIBUTED_TESTS_DEFAULT_TIMEOUT", str(LIMIT_S))
    from torch.testing._internal.common_distributed import initialize_temp_directories

    initialize_temp_directories()
    if not o.gloo:
        put_in_place_of_gloo()
    case = make_case(o.gloo)
    names = [n for n in unittest.TestLoader().getTestCaseNames(case)]
    names = [n for n in names if not o.names or any(part in n for part in o.names)]
    result = Result(o.report, NOT_APPLICABLE)
    unittest.TestSuite(case(name) for name in names).run(result)
    sys.exit(print_result(result))


if __name__ == "__main__":
    main()
