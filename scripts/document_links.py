#!/usr/bin/env python3
"""document_links.py - checks that links between documents, and files that they name, exist (check_documents.py).

    document_links.py [ROOT]    checks all of them, in a moment

A relative link must lead to a file, its #anchor to a heading there; a path in backquotes that begins
with a folder of the sources must be that of a file or a folder.
"""
import functools
import glob
import os
import re
import sys

PATH = re.compile(r"`((?:src|include|tests|scripts|bench|configs|examples|docs)/[\w./-]*\w/?)`")


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
    return failed, checked


def documents(root):
    """Returns all Markdown files but those of builds."""
    return sorted(n for n in glob.glob("**/*.md", root_dir=root, recursive=True) if not n.startswith("build"))


if __name__ == "__main__":
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    bad, total = check_links(top, documents(top))
    print(f"{total} links and paths of documents, {bad} lead nowhere")
    sys.exit(1 if bad else 0)
