"""Calls that were started and are waited for later."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Generator
from typing import Any, Generic, TypeVar

from lockstep._c import Pointer, library
from lockstep.errors import Error, Status
from lockstep.handle import Handle, call_site

T = TypeVar("T")
_SLICE_S = 0.1  # a wait returns to the interpreter this often, for signals


class Future(Generic[T]):
    """A call in flight: wait(), done(), or `await`.

    Its arrays belong to the call until it is done. All workers start their calls in the same
    order, and may wait for them in any order. There is no thread behind it: work is done inside
    calls of the library, so call done() now and then where much is computed in between.
    """

    def __init__(
        self, handle: Handle, result: T, synchronises: bool, uses: tuple[Any, ...]
    ) -> None:
        self._handle = handle
        self._result = result
        self._synchronises = synchronises  # done at one worker: all have started it
        self._uses = uses  # what the library reads and writes
        self._request = Pointer()
        self._request_ref = ctypes.byref(self._request)
        self._error: Error | None = None

    def _start(self, name: str, function: Any, arguments: tuple[Any, ...]) -> Future[T]:
        self._name = name
        self._handle.request_owners.add(self)
        try:
            self._handle.start(function, arguments, self._request_ref)
        except Error:
            self._handle.request_owners.discard(self)
            raise
        return self

    def _finish(self, error: Error | None = None) -> None:
        self._error = error
        self._handle.request_owners.discard(self)
        self._uses = ()
        if not error and self._synchronises:
            self._handle.nstarted = 0

    def _is_over(self) -> bool:
        return self._error is not None or not self._request.value

    def done(self) -> bool:
        """Has the call ended, well or by an error? Returns at once, and helps the call on."""
        if self._is_over():
            return True
        handle, answer = self._handle, ctypes.c_bool()
        handle.check()
        with handle.lock:
            status = library.ls_test(self._request_ref, ctypes.byref(answer), handle.error_ref)
            error = handle.failed() if status else None
        if error or answer.value:
            self._finish(error)
        return self._is_over()

    def wait(self, timeout: float | None = None) -> T:
        """Waits until the call is done, and returns its result.

        timeout    seconds; None: the group's limit, after which the group can only be closed. Error
                   with the code EPENDING: this limit ran out, and the call is still in flight

        Ctrl-C ends the wait (KeyboardInterrupt); the call stays in flight.
        """
        if not self._is_over():
            self._wait(timeout)
        if self._error:
            raise self._error
        return self._result

    def _wait(self, timeout: float | None) -> None:
        handle = self._handle
        if timeout is None:  # most waits end in the first slice, without a look at the clock
            handle.check()
            with handle.lock:
                status = library.ls_wait(self._request_ref, _SLICE_S, handle.error_ref)
                error = handle.failed() if status else None
            if not error or error.code != Status.EPENDING:
                self._finish(error)
                return
        self._wait_long(timeout)

    def _wait_long(self, timeout: float | None) -> None:
        handle = self._handle
        begin = time.monotonic() - (_SLICE_S if timeout is None else 0.0)
        left = timeout if timeout is not None else _SLICE_S
        while True:
            handle.check()
            with handle.lock:
                limit = max(min(left, _SLICE_S), 0.0)
                status = library.ls_wait(self._request_ref, limit, handle.error_ref)
                error = handle.failed() if status else None
            if not error or error.code != Status.EPENDING:
                self._finish(error)
                return
            waited = time.monotonic() - begin
            self._check_limit(waited)
            if timeout is not None:
                left = timeout - waited
                if left <= 0:
                    raise Error(Status.EPENDING, f"still in flight after {waited:.3f} s")

    def _check_limit(self, waited: float) -> None:
        """Ends the group if its own limit has run out. Raises Error."""
        handle = self._handle
        if waited < handle.timeout:
            return
        file, line = call_site()
        rank = library.ls_group_rank(handle.pointer)
        where = f"{file.decode(errors='replace')}:{line}"
        text = f"worker {rank} waited {waited:.1f} s in {self._name}, at {where}"
        self._finish(handle.time_out(text))
        raise handle.time_out(text)

    def __await__(self) -> Generator[Any, None, T]:
        """Lets other coroutines run until the call is done."""
        import asyncio  # takes 30 ms

        begin, pause = time.monotonic(), 0.0
        while not self.done():
            self._check_limit(time.monotonic() - begin)
            yield from asyncio.sleep(pause).__await__()
            pause = min(pause + 50e-6, 2e-3)
        return self.wait()
