"""Runs tests of this directory for `make check`, and reports them as scripts/count_tests.py reads it.

    short.py TEST...        names of files: test_run

A test of a package that is not installed is left to `make check-python`, which fetches packages from
PyPI: its name is printed, and it is not counted.
"""

from __future__ import annotations

import sys
import unittest
from typing import Any


class Report(unittest.TestResult):
    """Lines in the form of cmocka's, by which each test is counted."""

    left: list[str] = []

    def line(self, word: str, test: unittest.TestCase) -> None:
        print(f"[ {word:>8} ] {test.id()}", flush=True)

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        method = getattr(test, test.id().split(".")[-1])
        why = getattr(method, "__unittest_skip_why__", "")  # of a decorator
        if why.endswith(" installed"):
            self.left.append(test.id())
        else:
            self.line("RUN", test)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.line("OK", test)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        if test.id() not in self.left:
            print(f"skipped: {test.id()}: {reason}")
            self.line("SKIPPED", test)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        print(self.failures[-1][1])
        self.line("FAILED", test)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        print(self.errors[-1][1])
        self.line("FAILED", test)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err:
            print((self.failures + self.errors)[-1][1])
            self.line("FAILED", test)


def main() -> int:
    report = Report()
    unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:]).run(report)
    if report.left:
        print(f"left to make check-python: {' '.join(report.left)}")
    return 0 if report.wasSuccessful() and report.testsRun > len(report.left) else 1


if __name__ == "__main__":
    sys.exit(main())
