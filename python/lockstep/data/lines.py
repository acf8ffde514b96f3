"""Conversations and texts as files of JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from lockstep.data.rows import Row, at_row


def _without_none(value: Any) -> Any:
    """Tables have all members of an object in each row: those without a value are left out."""
    if isinstance(value, dict):
        return {key: _without_none(v) for key, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        listed = value.tolist() if hasattr(value, "tolist") else value
        return [_without_none(v) for v in listed] if isinstance(listed, (list, tuple)) else listed
    return value


class LineWriter:
    """Writes rows to files of about `limit` bytes."""

    def __init__(self, folder: str, columns: Sequence[str] | None, limit: int) -> None:
        self._folder, self._columns, self._limit = folder, columns, limit
        self._file: Any = None
        self._held = 0  # bytes in the open file
        self.nfiles = self.nbytes = 0

    def add(self, number: int, row: Row) -> None:
        chosen = row if self._columns is None else {name: row.get(name) for name in self._columns}
        try:
            line = json.dumps(_without_none(dict(chosen)), ensure_ascii=False, allow_nan=False)
            data = line.encode() + b"\n"
        except (TypeError, ValueError) as error:
            raise at_row(number, error) from None
        if self._file is None or self._held + len(data) > self._limit:
            self.close()
            path = os.path.join(self._folder, f"{self.nfiles:05d}.jsonl")
            self._file, self._held = open(path, "wb"), 0
            self.nfiles += 1
        self._file.write(data)
        self._held += len(data)
        self.nbytes += len(data)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
