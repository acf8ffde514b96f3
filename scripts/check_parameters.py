#!/usr/bin/env python3
"""Fails on a function of src/ with more than 6 parameters.

    check_parameters.py [--list] [ROOT]

A longer list becomes a struct of named fields. scripts/parameters.txt lists the exceptions, a function
and its reason a line; an exception that is no longer needed fails, too. The public functions (declared
in include/lockstep) are exempt as a class: they take a collective's operands in MPI's order, which
their users know. A "..." is not counted. --list prints the offenders as lines for parameters.txt.
"""
import re
import sys
from pathlib import Path

MOST = 6
SKIPPED = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.S | re.X)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.M)
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "_Static_assert", "__attribute__"}


def blank(match):
    """The same number of lines, without the words."""
    word = match.group()
    return '""' if word[0] == '"' else "' '" if word[0] == "'" else re.sub(r"[^\n]", " ", word)


def declarations(text):
    """(line, text) of each declaration and each head of a definition at file scope."""
    text = SKIPPED.sub(blank, text)
    text = DIRECTIVE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    text = re.sub(r'extern\s+""\s*\{', "", text)
    begin = depth = 0
    for i, c in enumerate(text):
        if c == "{":
            if depth == 0:
                yield text.count("\n", 0, i) + 1, text[begin:i]
            depth += 1
        elif c == "}":
            depth = max(depth - 1, 0)
            begin = i + 1
        elif c == ";" and depth == 0:
            yield text.count("\n", 0, i) + 1, text[begin:i]
            begin = i + 1


def groups(text):
    """(begin, end) of each outermost pair of parentheses."""
    depth = begin = 0
    for i, c in enumerate(text):
        if c == "(":
            if depth == 0:
                begin = i
            depth += 1
        elif c == ")":
            depth -= 1
            if depth == 0:
                yield begin, i + 1


def count(parameters):
    """How many: commas outside parentheses, and one."""
    depth = commas = 0
    for c in parameters:
        depth += (c == "(") - (c == ")")
        commas += c == "," and depth == 0
    words = parameters.strip()
    if words in ("", "void"):
        return 0
    return commas + (0 if words.endswith("...") else 1)


def function(text):
    """(name, parameters) of a function's declarator, or None."""
    text = re.sub(r"\b(?:__attribute__|_Alignas|__declspec)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", " ", text)
    if "=" in re.sub(r"\(.*\)", "", text, flags=re.S) or re.match(r"\s*typedef\b", text):
        return None
    found = list(groups(text))
    if not found or text[found[-1][1]:].strip():
        return None
    begin, end = found[-1]
    before = text[:begin].rstrip()
    if before.endswith(")") and len(found) > 1:  # NAME(x)(parameters): a name that a macro makes
        inside = text[found[-2][0] + 1:found[-2][1] - 1].strip()
        if not re.fullmatch(r"\w+", inside):
            return None  # a pointer to a function
        name = inside
    else:
        match = re.search(r"(\w+)$", before)
        if not match or match.group(1) in KEYWORDS or not before[:match.start()].strip():
            return None
        name = match.group(1)
    return name, count(text[begin + 1:end - 1])


def functions(folder):
    """(file, line, name, parameters) of each in the files below a folder."""
    for path in sorted(folder.rglob("*.[ch]")):
        for line, text in declarations(path.read_text()):
            found = function(text)
            if found:
                yield path, line, *found


def main():
    words = [w for w in sys.argv[1:] if w != "--list"]
    root = Path(words[0] if words else Path(__file__).resolve().parent.parent)
    public = {name for _, _, name, _ in functions(root / "include/lockstep")}
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
    for path, line, name, n in functions(root / "src"):
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
            why = "has no more" if name in seen else "is gone"
            print(f"{listed.relative_to(root)}:{number}: {name}() {why}: remove the exception")
            bad = True
    if not bad:
        print(f"at most {MOST} parameters in {total} declarations; {len(allowed)} exceptions")
    return bad


sys.exit(main())
