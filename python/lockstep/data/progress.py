"""A line on stderr that says how far the writing is."""

from __future__ import annotations

import sys
import time
from types import TracebackType

_EVERY_S = 0.2


class Progress:
    """`with Progress(...) as bar: bar.at(n)`. Nothing is printed where it is not wanted."""

    def __init__(self, name: str, total: int | None, wanted: bool | None) -> None:
        self._name, self._total = name, total
        self._shown = sys.stderr.isatty() if wanted is None else wanted
        self._begun = self._last = time.monotonic()
        self._n = 0

    def __enter__(self) -> Progress:
        return self

    def at(self, n: int) -> None:
        """n rows are done."""
        self._n = n
        if self._shown and n % 64 == 0 and time.monotonic() - self._last >= _EVERY_S:
            self._last = time.monotonic()
            self._print("\r")

    def _print(self, begin: str) -> None:
        seconds = time.monotonic() - self._begun
        done = f"{self._n:,} of {self._total:,} rows" if self._total else f"{self._n:,} rows"
        rate = f", {self._n / seconds:,.0f} a second" if seconds > 0 else ""
        bar = ""
        if self._total:
            filled = min(20, 20 * self._n // self._total)
            bar = f" [{'#' * filled}{' ' * (20 - filled)}]"
        print(
            f"{begin}writing {self._name}:{bar} {done}{rate}", end="", file=sys.stderr, flush=True
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._shown:
            self._print("\r")
            print(file=sys.stderr)
