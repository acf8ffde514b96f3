"""What a call returns: torch.distributed.Work, with a future that callbacks hang on."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.futures import Future


class Work(dist.Work):
    """A call in flight. finish() is called once, by the thread that has made the call."""

    def __init__(self, result: list[Tensor] | None = None) -> None:
        super().__init__()
        self._result = result if result is not None else []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._future: Any = None
        self._source = -1

    def finish(self, error: BaseException | None = None, source: int = -1) -> None:
        with self._lock:
            self._error, self._source = error, source
            self._over.set()
            future = self._future
        if future is not None:
            self._settle(future)

    def _settle(self, future: Any) -> None:
        if self._error is not None:
            future.set_exception(self._error)
        else:
            future.set_result(self._result)

    def wait(self, timeout: timedelta | None = None) -> bool:
        seconds = timeout.total_seconds() if timeout else 0.0
        if not self._over.wait(seconds if seconds > 0 else None):
            raise RuntimeError(f"lockstep: wait timed out after {1000 * seconds:.0f} ms")
        if self._error is not None:
            raise self._error
        return True

    def get_future(self) -> Any:
        with self._lock:
            if self._future is not None:
                return self._future
            future = self._future = Future()
            over = self._over.is_set()
        if over:
            self._settle(future)
        return future

    def is_completed(self) -> bool:
        return self._over.is_set()

    def is_success(self) -> bool:
        return self._over.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> list[Tensor]:
        return self._result

    def synchronize(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        return self._source

    _source_rank = source_rank


class AllWork(Work):
    """Several calls as one."""

    def __init__(self, works: list[Work]) -> None:
        super().__init__([t for w in works for t in w.result()])
        self._works = works

    def wait(self, timeout: timedelta | None = None) -> bool:
        for w in self._works:
            w.wait(timeout)
        if not self._over.is_set():
            self.finish()
        return True

    def is_completed(self) -> bool:
        return all(w.is_completed() for w in self._works)

    def is_success(self) -> bool:
        return all(w.is_success() for w in self._works)

    def exception(self) -> BaseException | None:
        return next((w.exception() for w in self._works if w.exception()), None)

    def get_future(self) -> Any:
        from torch.futures import collect_all

        result = self._result
        return collect_all([w.get_future() for w in self._works]).then(lambda _: result)


class Done(Work):
    """A call without a result that is over."""

    def __init__(self) -> None:
        super().__init__()
        self.finish()

    def wait(self, timeout: timedelta | None = None) -> bool:
        return True


def done(result: list[Tensor] | None = None) -> Work:
    work = Work(result)
    work.finish()
    return work
