"""The config.yaml of a run, as `lockstep train` writes it: groups of keys, each a line, whose values
are numbers, texts in double quotes, or lists and maps of these in JSON's form."""

from __future__ import annotations

import re
from typing import Any

_TOKEN = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.)*)"|([\[\]{},])|(:)(?=\s|$)|((?:[^\s",\[\]{}:]|:(?!\s))+))'
)
_ESCAPE = re.compile(r"\\(?:U([0-9a-fA-F]{8})|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.S)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


def _text(quoted: str) -> str:
    def one(found: re.Match[str]) -> str:
        code = found[1] or found[2] or found[3]
        return chr(int(code, 16)) if code else _LETTERS.get(found[4], found[4])

    return _ESCAPE.sub(one, quoted)


def _scalar(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word


class _Reader:
    """Reads values out of a text."""

    def __init__(self, text: str, what: str) -> None:
        self._text, self._what, self._at = text, what, 0

    def _next(self) -> re.Match[str]:
        found = _TOKEN.match(self._text, self._at)
        if not found:
            raise ValueError(f"{self._what}: can't be read near {self._text[self._at :][:40]!r}")
        self._at = found.end()
        return found

    def _sign(self) -> str:
        """The bracket, comma or colon that comes next, which stays there; else nothing."""
        found = _TOKEN.match(self._text, self._at)
        return (found[2] or found[3] or "") if found else ""

    def _list(self) -> list[Any]:
        items: list[Any] = []
        while self._sign() != "]":
            items.append(self.value())
            if self._sign() == ",":
                self._next()
        self._next()
        return items

    def _map(self) -> dict[str, Any]:
        items: dict[str, Any] = {}
        while self._sign() != "}":
            key = self.value()
            if self._next()[3] != ":":
                raise ValueError(f"{self._what}: no ':' behind {key!r}")
            items[str(key)] = self.value()
            if self._sign() == ",":
                self._next()
        self._next()
        return items

    def value(self) -> Any:
        found = self._next()
        if found[1] is not None:
            return _text(found[1])
        if found[2] == "[":
            return self._list()
        if found[2] == "{":
            return self._map()
        if found[4] is None:
            raise ValueError(f"{self._what}: '{found[0].strip()}' stands in the place of a value")
        return _scalar(found[4])


def read_config(path: str) -> dict[str, dict[str, Any]]:
    """Groups of keys with their values. Raises ValueError for a file in another form."""
    groups: dict[str, dict[str, Any]] = {}
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^#.*\n", "", file.read(), flags=re.M)
    if not re.match(r"\w+:\n", text):
        raise ValueError(f"{path}: is no config that lockstep has written")
    for name, body in re.findall(r"^(\w+):\n((?: .*\n?)*)", text, re.M):
        keys = re.split(r"^  (?! )([\w.]+): ?", body, flags=re.M)[1:]
        groups[name] = {
            key: _Reader(value, f"{path}: {name}.{key}").value()
            for key, value in zip(keys[::2], keys[1::2])
        }
    return groups
