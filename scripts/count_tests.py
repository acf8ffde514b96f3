#!/usr/bin/env python3
"""Counts the tests that ctest ran, and prints the reasons of skipped ones.

    count_tests.py OUTPUT LastTest.log

OUTPUT is the output of ctest; the log has the output of each test. A test is a test function of
cmocka; a program without any is one test. A program that ends before it has reported a function (a
crash, a time limit) fails it. A test that is skipped prints "skipped: WHAT: WHY" (skip_because() in
tests/test.h); a program without test functions may print such lines for parts of its work; each
counts as skipped. A function that prints "left to make check-slow" (slow_unit_test()) is listed and
not counted. The last line is "N passed, N failed, N skipped".
"""
import re
import sys
from pathlib import Path

# ctest's own results; its log reports a test that was skipped or did not run as "Passed".
ENDED = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*(?: +|\*\*\*)(Passed|Skipped|\S+)", re.M)
BLOCK = re.compile(r"^\d+/\d+ Testing: (\S+)\n(.*?)^<end of output>$", re.M | re.S)
RESULT = re.compile(r"^\[\s*(RUN|OK|SKIPPED|FAILED|ERROR)\s*\] (\S+)$|^skipped: (.*)$|^(left) to make check-slow$", re.M)


def count(words, result):
    """Returns (passed, failed, reasons of skipped tests, complaints, functions left) of one of ctest's tests."""
    passed = failed = functions = 0
    running, reasons, skipped, wrong, left = None, [], [], [], []
    for kind, function, reason, later in RESULT.findall(words):
        if kind == "RUN":
            running, reasons = function, []
            functions += 1
        elif reason:
            reasons.append(reason)
        elif later:
            left.append(running)
        elif running == function and kind == "OK" and running in left:
            running = None
        elif running == function and kind == "OK":
            passed, running = passed + 1, None
            if reasons:
                wrong.append(f"{function} passes, but skips a part of itself: {reasons[0]}")
        elif running == function and kind == "SKIPPED":
            running = None
            skipped.append(": ".join([function] + reasons[:1]))
            if not reasons:
                wrong.append(f"{function} is skipped without a reason")
        elif running == function:
            failed, running = failed + 1, None
    if not functions:
        skipped = reasons
        passed = result == "Passed"
        if result == "Skipped" and not skipped:
            wrong.append("it is skipped without a reason")
    if running or result not in ("Passed", "Skipped"):
        failed = max(failed, 1)
    return passed, failed + len(wrong), skipped, wrong, left


def main():
    output, log = (Path(p).read_text(errors="replace") for p in sys.argv[1:])
    words = dict(BLOCK.findall(log))
    results = ENDED.findall(output)
    npassed = nfailed = nskipped = 0
    for name, result in results:
        passed, failed, skipped, wrong, left = count(words.get(name, ""), result)
        npassed, nfailed, nskipped = npassed + passed, nfailed + failed, nskipped + len(skipped)
        for reason in skipped:
            print(f"skipped: {name}: {reason}")
        if left:
            print(f"left to make check-slow: {name}: {' '.join(left)}")
        for complaint in wrong:
            print(f"failed: {name}: {complaint}")
    if not results:
        print("failed: no tests were run")
        nfailed = 1
    print(f"{npassed} passed, {nfailed} failed, {nskipped} skipped")


main()
