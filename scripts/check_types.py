#!/usr/bin/env python3
"""Fails on a type name (ls_...) that two files of src/ or include/ define.

    check_types.py [ROOT]

C accepts two meanings of a name as long as no file includes both headers, but readers are misled.
Types are structs, unions, enums and typedefs; a declaration ("typedef struct ls_x ls_x;") defines
nothing.
"""
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
from c_functions import DIRECTIVE, SKIPPED  # noqa: E402

TAG = re.compile(r"\b(?:struct|union|enum)\s+(ls_\w+)\s*\{")
TYPEDEF = re.compile(r"\btypedef\b([^;]*);")
DECLARATION = re.compile(r"\s*(?:struct|union|enum)\s+(\w+)\s+\1\s*")
POINTER = re.compile(r"\(\s*\*\s*(\w+)\s*\)\s*\(")  # to a function


def typedef_name(words):
    """Returns the name that "typedef WORDS;" defines; None if WORDS only declare a type."""
    if DECLARATION.fullmatch(words):
        return None
    pointer = POINTER.search(words)
    if pointer:
        return pointer.group(1)
    return re.findall(r"\w+", re.sub(r"\[.*\]|\(.*\)", " ", words, flags=re.S))[-1]


def defined(text):
    text = DIRECTIVE.sub(" ", SKIPPED.sub(" ", text))
    names = set(TAG.findall(text))
    while "{" in text:  # the innermost bodies go first
        text, n = re.subn(r"\{[^{}]*\}", " body ", text)
        if n == 0:
            break
    names.update(typedef_name(words) for words in TYPEDEF.findall(text))
    return {name for name in names if name and name.startswith("ls_")}


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    where = {}
    for folder in ("src", "include"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            for name in defined(path.read_text()):
                where.setdefault(name, []).append(str(path.relative_to(root)))
    twice = {name: paths for name, paths in sorted(where.items()) if len(paths) > 1}
    for name, paths in twice.items():
        print(f"{name} is defined in {' and in '.join(paths)}")
    if not where:
        print(f"no type in {root}/src and {root}/include", file=sys.stderr)
    elif not twice:
        print(f"{len(where)} type names, each defined once")
    return 1 if twice or not where else 0


sys.exit(main())
