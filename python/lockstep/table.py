"""Columns of equal length by name: metrics of a run, events of a timeline."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from lockstep.arrays import Array


def _column(values: list[Any]) -> Array:
    """int64 where all are whole, float64 with NaN where some are missing, else objects."""
    given = [v for v in values if v is not None]
    if all(isinstance(v, (int, float)) for v in given):
        if len(given) == len(values) and all(isinstance(v, int) for v in given):
            return np.array(values, np.int64)
        return np.array([np.nan if v is None else v for v in values], np.float64)
    column = np.empty(len(values), object)
    column[:] = values
    return column


class Table(Mapping[str, "Array"]):
    """A mapping from the names of columns to one-dimensional arrays of the same length.

    `table["loss"]` is a column, `table.nrows` the number of rows. What a row lacks is NaN, or None
    in a column of texts. matplotlib takes it as `data=table`; frame() is pandas' form.
    """

    def __init__(self, columns: Mapping[str, Array]) -> None:
        self._columns = dict(columns)
        self.nrows = len(next(iter(self._columns.values()), ()))

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Table:
        """Columns stand in the order in which rows first have them."""
        listed = list(rows)
        names = dict.fromkeys(name for row in listed for name in row)
        return cls({name: _column([row.get(name) for row in listed]) for name in names})

    def __getitem__(self, name: str) -> Array:
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"no column {name!r}; there are {', '.join(self._columns)}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def where(self, chosen: Array) -> Table:
        """The rows for which `chosen`, an array of booleans, is true."""
        return Table({name: column[chosen] for name, column in self._columns.items()})

    def having(self, name: str) -> Table:
        """The rows that have a value in this column, and the columns that any of them has."""
        column = self[name]
        there = self.where(~np.isnan(column) if column.dtype == np.float64 else column != None)  # noqa: E711
        return Table(
            {n: c for n, c in there.items() if c.dtype != np.float64 or not np.isnan(c).all()}
        )

    def frame(self) -> Any:
        """The same as a DataFrame of pandas, which must be installed."""
        return importlib.import_module("pandas").DataFrame(self._columns)

    def _repr_html_(self) -> str | None:
        """A notebook shows pandas' table, where pandas is installed."""
        try:
            text: str = self.frame()._repr_html_()
        except ImportError:
            return None
        return text

    def __repr__(self) -> str:
        return f"<Table of {self.nrows} rows: {', '.join(self._columns)}>"
