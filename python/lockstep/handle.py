"""The library's group as a Python object: one thread at a time calls it, and it outlives its users.

The library frees a group's memory, and forgets its requests, when the group is closed. So the group
is closed only after the last array of its memory is gone, and what a request uses is referenced
until the request is done or the group is closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

from lockstep._c import ErrorStruct, Pointer, library
from lockstep.errors import Error, Status

_HERE = os.path.dirname(__file__)
_files: dict[str, bytes] = {}  # names of source files, for ever: the library keeps their addresses
_ours: dict[str, bool] = {}  # is it a file of this package?

# A start waits inside the library if another worker is eight calls behind (shared memory), or more.
_ROOM = 7


def call_site() -> tuple[bytes, int]:
    """File and line of the caller outside this package, for the library's messages."""
    frame = sys._getframe(2)
    while True:
        name = frame.f_code.co_filename
        ours = _ours.get(name)
        if ours is None:
            ours = _ours[name] = os.path.dirname(name) == _HERE
        if not ours or frame.f_back is None:
            break
        frame = frame.f_back
    if name not in _files:
        _files[name] = name.encode(errors="replace")
    return _files[name], frame.f_lineno


@contextlib.contextmanager
def ending_at_interrupt() -> Iterator[None]:
    """Around a call that may wait inside the library: Ctrl-C ends the process, if Python's own
    handler is set, since that could run only after the call."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Handle:
    """An open ls_group. Its lock is held during each call of the library."""

    def __init__(self, pointer: int, timeout: float) -> None:
        self.pointer = pointer
        self.timeout = math.inf if timeout < 0 else timeout  # seconds of a wait
        self.lock = threading.Lock()
        self.request_owners: set[Any] = set()  # futures that are not done
        self.nstarted = 0  # calls since one that needs all workers was done
        self._error = ErrorStruct()
        self.error_ref = ctypes.byref(self._error)
        self._site: tuple[bytes, int] | None = None  # what ls_group_at() was told
        self._end: Error | None = None  # why the group can only be closed
        self._closed = False
        self._narrays = 0

    def check(self) -> None:
        """Raises Error if the group can't be called."""
        if self._closed:
            raise Error(Status.EINVAL, "the group is closed")
        if self._end:
            raise Error(self._end.code, f"the group can only be closed, since: {self._end}")

    def failed(self) -> Error:
        """The error that the last call has described."""
        return Error(self._error.code, self._error.msg.decode(errors="replace"))

    def time_out(self, text: str) -> Error:
        """From now on the group can only be closed."""
        self._end = Error(Status.ETIMEOUT, text)
        return self._end

    def start(self, function: Any, arguments: tuple[Any, ...], request: Any) -> None:
        """Calls a function that starts a collective. Raises Error."""
        self.check()
        self.nstarted += 1
        site = call_site()
        with self.lock:
            if site != self._site:
                library.ls_group_at(self.pointer, *site)
                self._site = site
            if self.nstarted <= _ROOM:
                status = function(self.pointer, *arguments, request, self.error_ref)
            else:
                with ending_at_interrupt():
                    status = function(self.pointer, *arguments, request, self.error_ref)
            if status:
                raise self.failed()

    def call(self, function: Any, *arguments: Any) -> None:
        """Calls a function that returns when its collective is done. Raises Error."""
        self.check()
        with self.lock, ending_at_interrupt():
            self._site = call_site()
            library.ls_group_at(self.pointer, *self._site)
            if function(self.pointer, *arguments, self.error_ref):
                raise self.failed()
            self.nstarted = 0

    def divide(self, function: Any, *arguments: int) -> Handle | None:
        """Calls ls_group_split() or ls_group_dup()."""
        self.check()
        new = Pointer()
        with self.lock, ending_at_interrupt():
            self._site = call_site()
            library.ls_group_at(self.pointer, *self._site)
            if function(self.pointer, *arguments, ctypes.byref(new), self.error_ref):
                raise self.failed()
        timeout = -1.0 if math.isinf(self.timeout) else self.timeout
        return Handle(new.value, timeout) if new.value else None

    def close(self) -> None:
        """Refuses further calls, and closes the group once it has no more arrays."""
        self._closed = True
        if self._narrays:
            return
        with self.lock:
            pointer, self.pointer = self.pointer, 0
            library.ls_group_close(pointer)
        self.request_owners.clear()

    def alloc(self, nbytes: int) -> Memory:
        """Zeroed memory that other workers of the host can read."""
        self.check()
        pointer = library.ls_group_alloc(self.pointer, max(nbytes, 1))
        if not pointer:
            raise MemoryError(f"empty: no memory for {nbytes} bytes")
        self._narrays += 1
        return Memory(self, pointer, nbytes)

    def free(self, pointer: int) -> None:
        library.ls_group_free(self.pointer, pointer)
        self._narrays -= 1
        if self._closed and not self._narrays:
            self.close()


class Memory:
    """Memory of a group as the base of a NumPy array, which frees it when it is gone."""

    def __init__(self, handle: Handle, pointer: int, nbytes: int) -> None:
        self._handle = handle
        self._pointer = pointer
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (nbytes,), "data": (pointer, False),
        }  # fmt: skip

    def __del__(self) -> None:
        self._handle.free(self._pointer)
