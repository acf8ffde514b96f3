#!/usr/bin/env python3
"""Fails if a stop of docs/design/tour.md, or a comment, names a function that does not exist.

    check_tour.py [ROOT]

A comment's names that begin with ls_ or LS_ must occur in the code, a `room/file.h` in it must exist, and the name
with which a file's first comment begins must be the file's own.

A stop is a paragraph, an item of a list, a heading with what follows, or a row of a table. It names
functions as `function()` and their files as `src/...c` (or `src/...h`), between backquotes: each
file must exist, and one of the stop's files must define the function.
"""
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
from c_functions import functions  # noqa: E402


def stops(text):
    """Yields (line, text) of each stop."""
    begin, lines = 1, []
    for number, line in enumerate(text.splitlines(), 1):
        ends = not line.strip() and not (lines and lines[0].startswith("#") and len(lines) == 1)
        if ends or re.match(r"(#|\||\d+\.|[-*]) ?", line):
            yield begin, "\n".join(lines)
            begin, lines = number, []
        if line.strip():
            lines.append(line)
    yield begin, "\n".join(lines)


def comments(root):
    """Yields what comments of the sources name that is not there."""
    files = [p for top in ("src", "include", "tests", "bench", "examples") for p in (root / top).rglob("*.[chk]")]
    texts = {p: p.read_text() for p in files}
    words = set(re.findall(r"\w+", "\n".join(re.sub(r"/\*.*?\*/", " ", t, flags=re.S) for t in texts.values())))
    rooms = {str(p.parent.relative_to(root / "src")) for p in files if p.is_relative_to(root / "src")}
    for path, text in sorted(texts.items()):
        begins = re.match(r"/\* (\S+\.[chk]) - ", text)
        wrong = [begins[1]] if begins and not f"/{path}".endswith("/" + begins[1]) else []
        for comment in re.findall(r"/\*.*?\*/", text, flags=re.S):
            wrong += set(re.findall(r"\b(?:ls|LS)_\w*[^\W_]\b(?!\*)", comment)) - words
            named = re.findall(r"(?<![\w/.])([\w/]+)/(\w+\.[ch])\b", comment)
            wrong += [f"{room}/{name}" for room, name in named
                      if room in rooms and not any((root / top / room / name).exists() for top in ("src", "tests"))]
        yield from (f"{path.relative_to(root)}: a comment names {w}, which does not exist" for w in wrong)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    bad, total = [], 0
    for line, text in stops((root / "docs/design/tour.md").read_text()):
        files = re.findall(r"`(src/[\w./-]+\.[ch])`", text)
        wanted = re.findall(r"`(\w+)\(\)`", text)
        missing = [f for f in files if not (root / f).exists()]
        bad += [f"docs/design/tour.md:{line}: {f} does not exist" for f in missing]
        defined = {name for f in files if f not in missing
                   for _, name, _, is_definition in functions(root / f) if is_definition}
        bad += [f"docs/design/tour.md:{line}: {name}() is not defined in {' or '.join(files) or 'a file that the stop names'}"
                for name in wanted if name not in defined]
        total += len(wanted)
    if not total:
        bad.append("docs/design/tour.md names no functions")
    bad += comments(root)
    for complaint in bad:
        print(complaint)
    if not bad:
        print(f"{total} functions of the tour exist, and what comments name")
    return bool(bad)


sys.exit(main())
