#!/usr/bin/env python3
"""Fails if a room of src/rooms.txt has no README.md of at most 25 lines that names its files.

    check_rooms.py [ROOT]

A file is named between backquotes: `gemm.c`, or a pair as `gemm` or `gemm.[ch]`; a subdirectory
that is no room itself by its name: `kernels/`. Every named file must exist: in the room, below
src/, or below the root; a word alone must be a file, a room, or a name in the room's code. CONTRIBUTING.md prints the rooms as src/rooms.txt does, in a code block or
a table.
"""
import re
import sys
from pathlib import Path

MOST = 25
ENDING = re.compile(r"\.(?:\[ch\]|[ch])$")


def named(text):
    """Returns the words between backquotes, including those in code blocks."""
    return {w for quoted in re.findall(r"`([^`\n]+)`", text) for w in re.split(r"[\s,]+", quoted) if w}


def check_readme(root, room, rooms):
    folder = root / "src" / room
    readme = folder / "README.md"
    if not readme.exists():
        yield f"src/{room}/README.md is missing"
        return
    text = readme.read_text()
    if len(text.splitlines()) > MOST:
        yield f"src/{room}/README.md has {len(text.splitlines())} lines, over {MOST}"
    words = named(text)
    stems = {ENDING.sub("", w) for w in words}
    for stem in sorted({p.stem for p in folder.glob("*.[ch]")} - stems):
        yield f"src/{room}/README.md does not name {stem}"
    for path in sorted(p for p in folder.iterdir() if p.is_dir() and any(p.glob("*.[ch]"))):
        if f"{room}/{path.name}" not in rooms and f"{path.name}/" not in words:
            yield f"src/{room}/README.md does not name {path.name}/"
    for word in sorted(w for w in words if ENDING.search(w)):
        files = [ENDING.sub(e, word) for e in ([".c", ".h"] if word.endswith("[ch]") else [word[-2:]])]
        if not any(all((d / f).exists() for f in files) for d in (folder, root / "src", root)):
            yield f"src/{room}/README.md names {word}, which does not exist"
    inside = [p for p in folder.rglob("*") if p.is_file() and p != readme]
    known = rooms + [p.stem for p in inside] + re.findall(r"\w+", "".join(p.read_text() for p in inside if ENDING.search(p.name)))
    for word in sorted({w for w in words if re.fullmatch(r"[a-z_0-9]+", w)} - set(known)):
        yield f"src/{room}/README.md names {word}, which is no file, room or name there"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    lines = [x for x in (root / "src/rooms.txt").read_text().splitlines() if x.strip() and not x.startswith("#")]
    rooms = [x.split()[0] for x in lines]
    bad = [complaint for room in rooms for complaint in check_readme(root, room, rooms)]
    printed = [" ".join(re.sub(r"[|`]", " ", x).split())
               for x in (root / "CONTRIBUTING.md").read_text().splitlines()]
    want = [" ".join(re.sub(r"[|`]", " ", x).split()) for x in lines]
    first = printed.index(want[0]) if want[0] in printed else 0
    for room, line, there in zip(rooms, want, printed[first:] + [""] * len(want)):
        if line != there:
            bad.append(f"CONTRIBUTING.md does not print the room {room} as src/rooms.txt does")
            break
    for complaint in bad:
        print(complaint)
    if not bad:
        print(f"{len(rooms)} rooms with a README.md that names their files")
    return bool(bad)


sys.exit(main())
