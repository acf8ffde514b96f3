#!/usr/bin/env python3
"""document_links.py - checks that links between documents, and what they name, exist (check_documents.py).

    document_links.py [ROOT]    checks all of them, in a moment

A relative link must lead to a file, its #anchor to a heading there; a path in backquotes that begins
with a folder of the sources must be that of a file or a folder. Between backquotes, a function(), a name
that begins with ls_, LS_ or LOCKSTEP_, and an --option (alone, or of lockstep) must occur in the sources,
and a key of a config in the table of keys. The reference must have all metrics for Prometheus.
"""
import functools
import glob
import os
import re
import sys

PATH = re.compile(r"`((?:src|include|tests|scripts|bench|configs|examples|docs)/[\w./-]*\w/?)`")


SOURCES = ("src", "include", "tests", "scripts", "bench", "python", "examples", "cmake")
NAME = re.compile(r"\b(?:ls_|LS_|LOCKSTEP_)\w*\w\b(?!\*)|\b\w+(?=\(\))")
OPTION = re.compile(r"(?:^|lockstep .*?)(--[a-z][\w-]*)")
KEY = re.compile(r"^([a-z]+)\.([a-z_]+(?:\.[a-z_]+)*)(?=$|[:= ])")
FILE = re.compile(r"\.(json|txt|bin|safetensors|gguf|onnx|data|py|yaml|svg)$")
OTHERS = {"checkpoint.optimizer"}  # an attribute in Python


@functools.lru_cache(None)
def sources(root):
    """Returns the words and options of the sources, and the keys of a config by group."""
    words = set()
    for folder in SOURCES:
        for path in glob.glob(os.path.join(root, folder, "**"), recursive=True):
            if os.path.isfile(path) and path.endswith((".c", ".h", ".k", ".py", ".sh", ".txt", ".cmake", ".map", ".js")):
                text = open(path, encoding="utf-8").read()
                words.update(re.findall(r"\w+|--[a-z][\w-]*", text), re.findall(r'"([a-z][\w-]*)"', text))
    keys = re.findall(r'"([a-z]+)\.([a-z_0-9.]+)"', open(os.path.join(root, "src/config/keys.c"), encoding="utf-8").read())
    return words, {group: {k for g, k in keys if g == group} for group, _ in keys}


def unknown(root, quoted):
    """Yields what stands between backquotes and is nowhere in the sources."""
    words, keys = sources(root)
    yield from (name for name in NAME.findall(quoted) if name not in words)
    yield from (option for option in OPTION.findall(quoted) if not {option, option[2:]} & words)
    key = KEY.match(quoted)
    if key and key[1] in keys and not FILE.search(key[0]) and key[0] not in OTHERS:
        if not any(k == key[2] or k.startswith(key[2] + ".") for k in keys[key[1]]):
            yield key[0]


def unwritten(root):
    """Yields names of metrics for Prometheus that the reference does not have."""
    page = os.path.join(root, "docs/reference/metrics.md")
    told = set(re.findall(r"\w+", open(page, encoding="utf-8").read())) if os.path.exists(page) else set()
    for path in glob.glob(os.path.join(root, "src/*/*.c")):
        for name in re.findall(r'"(lockstep_[a-z]+_[a-z_]+?)(?:_bucket|_sum|_count)?["{]', open(path, encoding="utf-8").read()):
            if name not in told:
                yield name


@functools.lru_cache(None)
def anchors(path):
    """Returns the anchors of a document's headings, as GitHub makes them."""
    found, fenced = set(), False
    for line in open(path, encoding="utf-8"):
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip()).lower()
            found.add(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return found


def check_links(root, names):
    """Returns how many links and paths of these documents lead nowhere, and of how many."""
    failed = checked = 0
    for name in sorted(set(unwritten(root))):
        failed += 1
        print(f"FAILED: docs/reference/metrics.md: {name} is not there")
    for name in names:
        path = os.path.join(root, name)
        for number, line in enumerate(open(path, encoding="utf-8"), 1):
            for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", line):
                if "://" in target or not (target or anchor):
                    continue
                to = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
                good = os.path.exists(to) and (not anchor or not to.endswith(".md") or anchor in anchors(to))
                checked += 1
                if not good:
                    failed += 1
                    print(f"FAILED: {name}:{number}: a link to nothing: {target}{'#' + anchor if anchor else ''}")
            for target in PATH.findall(line):
                checked += 1
                if "NAME" not in target and not os.path.exists(os.path.join(root, target)):
                    failed += 1
                    print(f"FAILED: {name}:{number}: {target} does not exist")
            for target in (t for quoted in re.findall(r"`([^`]+)`", line) for t in unknown(root, quoted)):
                failed += 1
                print(f"FAILED: {name}:{number}: {target} is nowhere in the sources")
    return failed, checked


def documents(root):
    """Returns all Markdown files but those of builds."""
    return sorted(n for n in glob.glob("**/*.md", root_dir=root, recursive=True) if not n.startswith("build"))


if __name__ == "__main__":
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    bad, total = check_links(top, documents(top))
    print(f"{total} links and paths of documents, {bad} lead nowhere")
    sys.exit(1 if bad else 0)
