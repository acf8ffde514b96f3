"""Samples as shards in the format MDS, version 2, with index.json (docs/reference/data.md#mds).

A shard: the number of samples and their offsets as uint32, the columns as JSON, the samples. A
sample: the lengths of values that have several, as uint32, then the values.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from lockstep.data.columns import Column
from lockstep.data.rows import Row


class ShardWriter:
    """Writes samples to shards of about `limit` bytes."""

    def __init__(self, folder: str, columns: list[Column], limit: int, exact: bool) -> None:
        """exact: a row with other columns is refused."""
        self._folder, self._columns, self._limit = folder, columns, limit
        self._names = {c.name for c in columns} if exact else None
        self._samples: list[bytes] = []
        self._held = 0  # bytes of these samples, and of their offsets
        self._shards: list[dict[str, Any]] = []
        self.nbytes = 0

    @property
    def nfiles(self) -> int:
        return len(self._shards)

    def add(self, number: int, row: Row) -> None:
        if self._names is not None and not row.keys() <= self._names:
            raise ValueError(
                f"write: row {number} has {min(row.keys() - self._names)!r}, which the first rows "
                "have not; `columns` names what is written"
            )
        values = [column.encode(number, row.get(column.name)) for column in self._columns]
        lengths = [len(v) for v, c in zip(values, self._columns) if c.nbytes is None]
        sample = np.array(lengths, "<u4").tobytes() + b"".join(values)
        if self._samples and self._held + len(sample) + 4 > self._limit:
            self._flush()
        self._samples.append(sample)
        self._held += len(sample) + 4

    def _description(self) -> dict[str, Any]:
        return {
            "column_encodings": [c.encoding for c in self._columns],
            "column_names": [c.name for c in self._columns],
            "column_sizes": [c.nbytes for c in self._columns],
            "compression": None,
            "format": "mds",
            "hashes": [],
            "size_limit": self._limit,
            "version": 2,
        }

    def _flush(self) -> None:
        head = json.dumps(self._description(), sort_keys=True).encode()
        lengths = [0, *(len(sample) for sample in self._samples)]
        offsets = np.cumsum(lengths) + 4 * (1 + len(lengths)) + len(head)
        if int(offsets[-1]) >= 1 << 32:
            raise ValueError(f"write: a sample has {max(lengths)} bytes; a shard has at most 4 GB")
        name = f"shard.{len(self._shards):05d}.mds"
        with open(os.path.join(self._folder, name), "wb") as file:
            file.write(np.array([len(self._samples), *offsets], "<u4").tobytes())
            file.write(head)
            file.writelines(self._samples)
        self._shards.append(
            {
                **self._description(),
                "raw_data": {"basename": name, "bytes": int(offsets[-1]), "hashes": {}},
                "samples": len(self._samples),
                "zip_data": None,
            }
        )
        self.nbytes += int(offsets[-1])
        self._samples, self._held = [], 0

    def close(self) -> None:
        """Writes what is held, and the index."""
        if self._samples:
            self._flush()
        with open(os.path.join(self._folder, "index.json"), "w", encoding="utf-8") as file:
            json.dump({"shards": self._shards, "version": 2}, file, sort_keys=True)
            file.write("\n")
