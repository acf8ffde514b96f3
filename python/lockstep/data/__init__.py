"""Data for `lockstep train`, written from Python: tables, data sets, conversations, texts.

    import lockstep.data

    print(lockstep.data.write("rows", table))  # pandas, Arrow, a Parquet file, dicts ...

docs/guide/python_data.md has the whole of it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lockstep.data.columns import Column, Missing, choose_columns
from lockstep.data.lines import LineWriter
from lockstep.data.progress import Progress
from lockstep.data.rows import Row, read_rows
from lockstep.data.shards import ShardWriter

__all__ = ["Written", "write"]

_LOOKED_AT = 1000  # first rows, by which types of columns are chosen
_CHATS = ("messages", "conversations", "prompt", "instruction", "chosen")
_TEXTS = ("text", "content")


@dataclass(frozen=True)
class Written:
    """What write() has written.

    path       the directory
    samples    how many rows
    form       "samples", "chat" or "text"
    columns    of samples: the encoding of each column in the shards
    files      the number of files with samples
    nbytes     their bytes
    dropped    rows that were left out, since a value was missing
    """

    path: str
    samples: int
    form: str
    columns: dict[str, str]
    files: int
    nbytes: int
    dropped: int

    @property
    def config(self) -> dict[str, dict[str, str]]:
        """The keys of a config that train on it."""
        more = {"format": "chat"} if self.form == "chat" else {}
        return {"data": {"path": self.path, **more}}

    def __str__(self) -> str:
        keys = " ".join(f"--set data.{key}={value}" for key, value in self.config["data"].items())
        dropped = f", {_count(self.dropped, 'row')} left out" if self.dropped else ""
        what = "sample" if self.form == "samples" else "row"
        return (
            f"{self.path}: {_count(self.samples, what)} in {_count(self.files, 'file')}{dropped}; "
            f"train on it with {keys}"
        )


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _find_form(row: Row) -> str:
    if any(isinstance(row.get(name), (list, tuple)) for name in _CHATS[:2]):
        return "chat"
    pairs = {"prompt", "completion"}, {"instruction", "output"}, {"chosen", "rejected"}
    if any(names <= row.keys() for names in pairs):
        return "chat"
    texts = [name for name in _TEXTS if isinstance(row.get(name), str)]
    return "text" if texts and len(row) == 1 else "samples"


def _new_folder(path: str) -> str:
    """A directory beside path, which becomes path when all is written."""
    if os.path.exists(path) and (not os.path.isdir(path) or os.listdir(path)):
        raise FileExistsError(f"{path}: exists; remove it, or give another name")
    parent = os.path.dirname(os.path.abspath(path))
    os.makedirs(parent, exist_ok=True)
    return tempfile.mkdtemp(prefix=f".{os.path.basename(path)}-", dir=parent)


def _write_all(
    writer: ShardWriter | LineWriter, columns: list[Column] | None, rows: Iterator[Row],
    missing: Missing, progress: Progress,
) -> tuple[int, int]:  # fmt: skip
    nsamples = ndropped = 0
    for number, row in enumerate(rows):
        kept = missing.apply(number, row, columns)
        if kept is None:
            ndropped += 1
        else:
            writer.add(number, kept)
            nsamples += 1
        progress.at(number + 1)
    writer.close()
    return nsamples, ndropped


def write(
    path: str | os.PathLike[str],
    rows: Any,
    *,
    form: str | None = None,
    columns: Sequence[str] | None = None,
    types: Mapping[str, str] | None = None,
    names: Sequence[str] | None = None,
    missing: str | Mapping[str, Any] = "refuse",
    shard: int = 64 << 20,
    progress: bool | None = None,
) -> Written:
    """Writes rows as a data set that `lockstep train` reads: a new directory.

    rows        an iterable of dicts; a table of pandas or Arrow; a Dataset of Hugging Face or torch;
                the path of Parquet files, or a pattern of them
    form        "samples": shards in the format MDS, with an index; "chat": conversations, and
                "text": texts, as JSON lines; None: found by the first row
    columns     those that are written; None: all of the first row
    types       {"x": "float64"}: the encoding of a column, in place of the one that its values have
    names       of the parts of samples that are tuples; None: "image" or "x", then "label"
    missing     what becomes of None, and of NaN among numbers: "refuse", "drop" (the row is left
                out), or a value; a map has a rule for each column, and "*" for all others
    shard       bytes of a file, about; at most 1 GB
    progress    a line on stderr meanwhile; None: at a terminal

    Nothing is left behind if it fails. Raises ValueError or TypeError for a value that is no
    number, text, image, or array of numbers, naming row and column.
    """
    name = os.fspath(path)
    source = read_rows(rows, names)
    iterator = iter(source.rows)
    first = list(itertools.islice(iterator, _LOOKED_AT))
    if not first:
        raise ValueError("write: there are no rows")
    form = form or _find_form(first[0])
    if form not in ("samples", "chat", "text"):
        raise ValueError(f"write: form is {form!r}; possible are samples, chat, text")
    if not 1 <= shard <= 1 << 30:
        raise ValueError(f"write: shard is {shard} bytes; possible are 1 to {1 << 30}")
    rules = Missing(missing)
    chosen = None
    if form == "samples":
        chosen = choose_columns(first, columns, types or {}, source.types, rules)
    folder = _new_folder(name)
    writer: ShardWriter | LineWriter = LineWriter(folder, columns, shard)
    if chosen:
        writer = ShardWriter(folder, chosen, shard, columns is None)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        bar = stack.enter_context(Progress(name, source.total, progress))
        all_rows = itertools.chain(first, iterator)
        nsamples, ndropped = _write_all(writer, chosen, all_rows, rules, bar)
        if not nsamples:
            raise ValueError("write: a value is missing in every row")
        os.chmod(folder, 0o777 & ~_umask())
        if os.path.isdir(name):
            os.rmdir(name)
        os.rename(folder, name)
    return Written(
        name, nsamples, form, {c.name: c.encoding for c in chosen or []}, writer.nfiles,
        writer.nbytes, ndropped,
    )  # fmt: skip


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
