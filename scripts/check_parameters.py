#!/usr/bin/env python3
"""Fails on a function of src/ with more than 6 parameters.

    check_parameters.py [--list] [ROOT]

A longer list becomes a struct of named fields. scripts/parameters.txt lists the exceptions, a
function and its reason a line; an exception that is no longer needed fails, too. The public
functions (declared in include/lockstep) are exempt as a class: they take a collective's operands in
MPI's order, which their users know. A "..." is not counted. --list prints the offenders as lines
for parameters.txt.
"""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
from c_functions import functions  # noqa: E402

MOST = 6


def functions_of(folder):
    """Yields (file, line, name, parameters) of each function in the files below a directory."""
    for path in sorted(folder.rglob("*.[ch]")):
        for line, name, n, _ in functions(path):
            yield path, line, name, n


def main():
    words = [w for w in sys.argv[1:] if w != "--list"]
    root = Path(words[0] if words else Path(__file__).resolve().parent.parent)
    public = {name for _, _, name, _ in functions_of(root / "include/lockstep")}
    allowed, bad = {}, False
    listed = root / "scripts/parameters.txt"
    for number, line in enumerate(listed.read_text().splitlines() if listed.exists() else [], 1):
        name, _, reason = line.partition(" ")
        if not line or line.startswith("#"):
            continue
        if not reason.strip():
            print(f"{listed.relative_to(root)}:{number}: {name} has no reason")
            bad = True
        allowed[name] = number

    seen, over, total = set(), {}, 0
    for path, line, name, n in functions_of(root / "src"):
        total += 1
        seen.add(name)
        if n > MOST and name not in public:
            over.setdefault(name, (path.relative_to(root), line, n))
    if "--list" in sys.argv:
        for name, (path, _, n) in sorted(over.items(), key=lambda x: x[1]):
            print(f"{name} {n}, {path}")
        return 0
    for name, (path, line, n) in sorted(over.items(), key=lambda x: x[1]):
        if name not in allowed:
            print(f"{path}:{line}: {name}() has {n} parameters, over {MOST}: pass a struct of named fields")
            bad = True
    for name, number in allowed.items():
        if name not in over:
            why = "has fewer parameters" if name in seen else "does not exist"
            print(f"{listed.relative_to(root)}:{number}: {name}() {why}: remove the exception")
            bad = True
    if not bad:
        print(f"at most {MOST} parameters in {total} declarations; {len(allowed)} exceptions")
    return bad


sys.exit(main())
