"""The thread that makes a group's calls in order.

A call that its caller waits for is made in the caller's own thread, unless calls before it are still
in flight. Other calls are made by the lane's thread: so communication goes on while the caller
computes, and futures are completed without anybody's waiting.
"""

from __future__ import annotations

import ctypes
import os
import queue
import sys
import threading
import time
from typing import Any, Callable

import torch

from lockstep._c import ErrorStruct, Pointer, library
from lockstep.errors import Error, Status
from lockstep.torch.work import Work

_HERE = os.path.dirname(__file__)
_TORCH = os.path.dirname(torch.__file__)
_files: dict[str, bytes] = {}  # names of source files, for ever: the library keeps their addresses
_skipped: dict[str, bool] = {}  # is it a file of this package, or of torch?
_SLICE_S = 0.1  # a wait returns to the interpreter this often, for signals
_wait = library.ls_wait


def call_site() -> tuple[bytes, int]:
    """File and line of the caller outside this package and torch, for the library's messages."""
    frame: Any = sys._getframe(1)
    last = frame
    while frame is not None:
        name = frame.f_code.co_filename
        skip = _skipped.get(name)
        if skip is None:
            skip = _skipped[name] = name.startswith((_HERE, _TORCH)) or name.startswith("<")
        last = frame
        if not skip:
            break
        frame = frame.f_back
    name = last.f_code.co_filename
    text = _files.get(name)
    if text is None:
        text = _files[name] = name.encode(errors="replace")
    return text, last.f_lineno


class Job:
    """Calls of the library in order, and what comes after them.

    calls      (function that starts it, arguments between the group and the request)
    after      copies results to where they belong, or None
    uses       tensors and counts that the library reads and writes
    blocking   the functions return when the call is done
    limit      a function and its argument: the seconds of a call; most are done before that matters
    """

    __slots__ = ("after", "blocking", "calls", "limit", "name", "result", "site", "uses", "work")

    def __init__(
        self, name: str, calls: list[tuple[Any, tuple[Any, ...]]], result: list[torch.Tensor],
        uses: Any = None, after: Callable[[], None] | None = None, blocking: bool = False,
    ) -> None:  # fmt: skip
        self.name = name
        self.calls = calls
        self.result = result
        self.uses = uses
        self.after = after
        self.blocking = blocking
        self.limit: tuple[Callable[[Any], float], Any]
        self.site: tuple[bytes, int]
        self.work: Work | None = None


class Lane:
    """Calls a group of the library, which it does not own."""

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer
        self.end: Exception | None = None  # why no more calls can be made
        self._turn = threading.Lock()  # held while the library is called
        self._count = threading.Lock()
        self._nqueued = 0
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._error = ErrorStruct()
        self._error_ref = ctypes.byref(self._error)
        self._request = Pointer()
        self._request_ref = ctypes.byref(self._request)
        self._site: tuple[bytes, int] | None = None

    # ---- submitting ----

    def run(self, job: Job) -> bool:
        """Makes its calls in the caller's thread; False: others are in flight."""
        if self._nqueued or self.end is not None or not self._turn.acquire(False):
            return False
        try:
            job.site = call_site()
            self._run(job)
        finally:
            self._turn.release()
        return True

    def submit(self, job: Job, asynchronous: bool) -> Work | None:
        """None: the job is done."""
        if self.end is not None:
            raise self._refusal()
        job.site = call_site()
        # A callback of a future runs between two jobs, so its own calls come before those that are
        # queued: at every worker, however far the others' queues are.
        if threading.current_thread() is self._thread:
            with self._turn:
                self._run(job)
            return None
        work = job.work = Work(job.result)
        with self._count:
            self._nqueued += 1
        self._jobs.put(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="lockstep", daemon=True)
            self._thread.start()
        if asynchronous:
            return work
        work.wait()
        return None

    def _refusal(self) -> Exception:
        if isinstance(self.end, Error):
            return Error(self.end.code, f"the group can only be closed, since: {self.end}")
        return RuntimeError(f"lockstep: {self.end}")

    def _serve(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            error: BaseException | None = None
            try:
                with self._turn:
                    if self.end is not None:
                        raise self._refusal()
                    self._run(job)
            except BaseException as e:  # whatever it is, the caller gets it
                error = e
            assert job.work is not None
            job.work.finish(error)
            with self._count:
                self._nqueued -= 1
            del job

    # ---- running, with the turn ----

    def _run(self, job: Job) -> None:
        if job.site != self._site:
            library.ls_group_at(self.pointer, *job.site)
            self._site = job.site
        for function, arguments in job.calls:
            status = function(self.pointer, *arguments, self._request_ref, self._error_ref)
            if not status and not job.blocking:
                status = _wait(self._request_ref, _SLICE_S, self._error_ref)
            if status:
                self._await(job, status)
        if job.after is not None:
            job.after()

    def _failed(self) -> Error:
        error = Error(self._error.code, self._error.msg.decode(errors="replace"))
        if error.ends_group:
            self.end = error
        return error

    def _await(self, job: Job, status: int) -> None:
        """Goes on after a first slice of waiting."""
        function, opts = job.limit
        limit = function(opts)
        deadline = time.monotonic() + limit - _SLICE_S
        while status == Status.EPENDING:
            left = deadline - time.monotonic()
            if left <= 0:
                file, line = job.site
                rank = library.ls_group_rank(self.pointer)
                self.end = Error(
                    Status.ETIMEOUT,
                    f"worker {rank}: Timed out waiting {1000 * limit:.0f}ms in {job.name}, at "
                    f"{file.decode(errors='replace')}:{line}",
                )
                raise self.end
            status = _wait(self._request_ref, min(left, _SLICE_S), self._error_ref)
        if status:
            raise self._failed()

    def close(self) -> None:
        """Waits for the call that is being made; later ones are refused."""
        if self.end is None:
            self.end = RuntimeError("the process group is closed")
        if self._thread is not None:
            self._jobs.put(None)
            if self._thread is not threading.current_thread():
                self._thread.join()
        with self._turn:
            self.pointer = 0
