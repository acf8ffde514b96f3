"""Rows of whatever has rows: dicts, tables, Parquet files, data sets."""

from __future__ import annotations

import glob
import importlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]

_BATCH = 4096  # rows of a table that are Python objects at one time


@dataclass
class Rows:
    """What is written.

    total    how many, if that is known
    types    encodings of columns that say their own types
    """

    rows: Iterable[Row]
    total: int | None = None
    types: dict[str, str] = field(default_factory=dict)


def at_row(number: int, error: Exception, column: str | None = None) -> Exception:
    """The error with its place; one whose class takes more than a text is a ValueError."""
    kind = type(error) if type(error) in (TypeError, OverflowError) else ValueError
    place = f"{column!r}: " if column is not None else ""
    return kind(f"write: row {number}: {place}{error}")


def _check_names(names: Iterable[str]) -> None:
    """A row is a dict, which would keep only the last column of a name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"write: two columns are named {name!r}; rename one")
        seen.add(name)


# ---- Arrow and Parquet ----


def _arrow_number(kind: Any) -> str | None:
    """The name of a number type of Arrow as an encoding has it: int64, float32."""
    names = {"bool": "uint8", "halffloat": "float16", "float": "float32", "double": "float64"}
    name = names.get(str(kind), str(kind))
    numbers = {f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)}
    return name if name in numbers | set(names.values()) else None


def _arrow_type(kind: Any) -> str | None:
    """The encoding of a type of Arrow; None: the values decide."""
    dims = 0
    if getattr(kind, "extension_name", None):
        kind = kind.storage_type
    while "list" in str(kind).split("<")[0] and hasattr(kind, "value_type"):
        kind, dims = kind.value_type, dims + 1
    number = _arrow_number(kind)
    return f"ndarray:{number}" if number and dims else number


def _arrow_types(schema: Any) -> dict[str, str]:
    _check_names(schema.names)
    found = {column.name: _arrow_type(column.type) for column in schema}
    return {name: kind for name, kind in found.items() if kind}


def _of_batches(batches: Iterable[Any]) -> Iterator[Row]:
    for batch in batches:
        for begin in range(0, batch.num_rows, _BATCH):
            yield from batch.slice(begin, _BATCH).to_pylist()


def _arrow(table: Any) -> Rows:
    """A Table, a RecordBatch, a RecordBatchReader or a Dataset of Arrow."""
    if hasattr(table, "to_batches"):
        batches, total = table.to_batches(), getattr(table, "num_rows", None)
    elif hasattr(table, "num_rows"):
        batches, total = [table], table.num_rows
    else:
        batches, total = table, None
    return Rows(_of_batches(batches), total, _arrow_types(table.schema))


def _parquet(path: str) -> Rows:
    """Parquet files: one, or those that match a pattern, in the order of their names."""
    paths = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    if not paths:
        raise FileNotFoundError(f"write: {path}: no such file")
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ImportError("write: Parquet files are read by the package pyarrow") from None
    files = []
    for p in paths:
        try:
            files.append(parquet.ParquetFile(p))
        except ValueError as e:  # pyarrow's ArrowInvalid
            raise ValueError(
                f"write: {p} is no Parquet file ({str(e).rstrip('.')}); CSV and JSON lines are "
                "trained on as they are (docs/guide/data.md)"
            ) from None
    for p, f in zip(paths, files):
        if f.schema_arrow.names != files[0].schema_arrow.names:
            raise ValueError(f"write: {p} has other columns than {paths[0]}")
    batches = (batch for f in files for batch in f.iter_batches(_BATCH))
    total = sum(f.metadata.num_rows for f in files)
    return Rows(_of_batches(batches), total, _arrow_types(files[0].schema_arrow))


# ---- pandas ----


def _pandas(frame: Any) -> Rows:
    def rows() -> Iterator[Row]:
        for begin in range(0, len(frame), _BATCH):
            part = frame.iloc[begin : begin + _BATCH]
            names = [str(name) for name in part.columns]
            columns = [part.iloc[:, i].astype(object).tolist() for i in range(len(names))]
            for values in zip(*columns):
                yield dict(zip(names, values))

    return Rows(rows(), len(frame), _pandas_types(frame))


def _pandas_types(frame: Any) -> dict[str, str]:
    """Types of NumPy's columns, of pandas' own (Int64, boolean), and of Arrow's."""
    _check_names(str(name) for name in frame.columns)
    found = {str(name): _pandas_type(kind) for name, kind in frame.dtypes.items()}
    return {name: kind for name, kind in found.items() if kind}


def _pandas_type(kind: Any) -> str | None:
    if hasattr(kind, "pyarrow_dtype"):
        return _arrow_type(kind.pyarrow_dtype)
    word = {"bool": "uint8", "boolean": "uint8"}.get(str(kind), str(kind).lower())
    return word if word == "uint8" or word.lstrip("u").startswith(("int", "float")) else None


# ---- data sets of torch, dicts ----


def _part_names(sample: Sequence[Any], names: Sequence[str] | None) -> Sequence[str]:
    if names is None and len(sample) == 2:
        first = sample[0]
        is_image = hasattr(first, "getbands") or getattr(first, "ndim", 0) in (2, 3)
        return ("image" if is_image else "x", "label")
    if names is None or len(names) != len(sample):
        raise ValueError(
            f"write: samples are tuples of {len(sample)} parts; `names` has a name for each"
        )
    return names


def _as_rows(samples: Iterable[Any], names: Sequence[str] | None) -> Iterator[Row]:
    for number, sample in enumerate(samples):
        if isinstance(sample, Mapping):
            yield sample
        elif isinstance(sample, (tuple, list)):
            yield dict(zip(_part_names(sample, names), sample))
        else:
            raise TypeError(
                f"write: row {number} is of the type {type(sample).__name__}; rows are dicts, or tuples"
            )


def _indexed(samples: Any) -> Iterator[Any]:
    """A Dataset of torch that is a map: it need not end by an IndexError."""
    for i in range(len(samples)):
        yield samples[i]


def read_rows(rows: Any, names: Sequence[str] | None) -> Rows:
    """Finds out what rows are. Raises TypeError for what has none."""
    module = type(rows).__module__.split(".")[0]
    if isinstance(rows, (str, os.PathLike)):
        return _parquet(os.fspath(rows))
    if module == "pandas" and hasattr(rows, "iloc"):
        return _pandas(rows)
    if module == "pyarrow" and hasattr(rows, "schema"):
        return _arrow(rows)
    total = len(rows) if hasattr(rows, "__len__") else None
    if isinstance(rows, Mapping):
        raise TypeError("write: rows are one dict; give a list of dicts, one for each row")
    if hasattr(rows, "__iter__"):
        return Rows(_as_rows(rows, names), total)
    if hasattr(rows, "__getitem__") and total is not None:
        return Rows(_as_rows(_indexed(rows), names), total)
    raise TypeError(f"write: the type {type(rows).__name__} has no rows")
