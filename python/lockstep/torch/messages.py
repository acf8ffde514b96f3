"""Messages from one worker to another, with tags, in any order.

The library matches the k-th send to a worker with its k-th receive from this one. So each message
is two: a header with the tag and the length, and the elements. The receiver reads headers as they
come; elements that no receive waits for yet are put aside. A thread makes all calls, in a group of
the library of its own: sends and receives of one worker wait for nothing of each other.
"""

from __future__ import annotations

import ctypes
import queue
import threading
import time
from collections import deque
from typing import Any, Callable

from torch import Tensor

from lockstep._c import ErrorStruct, Pointer, library
from lockstep.errors import Error, Status
from lockstep.torch.types import U8
from lockstep.torch.work import Work

_Header = ctypes.c_int64 * 2  # tag, bytes
_LEAVING_S = 1.0
_SLICE_S = 0.0005  # new commands wait that long while others are in flight


class _Post:
    """A send or a receive that PyTorch has asked for. peer None: from any worker."""

    __slots__ = ("deadline", "limit", "nbytes", "peer", "send", "tag", "tensor", "work")

    def __init__(self, send: bool, tensor: Tensor, peer: int | None, tag: int, limit: float):
        self.send = send
        self.tensor = tensor
        self.nbytes = tensor.numel() * tensor.element_size()
        self.peer = peer
        self.tag = tag
        self.limit = limit
        self.deadline = time.monotonic() + limit
        self.work = Work([tensor])


class _Request:
    """A call of the library in flight."""

    __slots__ = ("done", "pointer", "uses")

    def __init__(self, pointer: int | None, uses: Any, done: Callable[[], None]) -> None:
        self.pointer = pointer
        self.uses = uses
        self.done = done


class Messages:
    """Owns a group of the library."""

    def __init__(self, pointer: int, rank: int, size: int) -> None:
        self._pointer = pointer
        self._rank = rank
        self._size = size
        self._commands: queue.SimpleQueue[_Post | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False
        self._end: BaseException | None = None
        self._error = ErrorStruct()
        self._error_ref = ctypes.byref(self._error)
        self._requests: list[_Request] = []
        self._posts: list[_Post] = []  # receives without a message
        self._sends: list[_Post] = []  # in flight
        self._headers: dict[int, Any] = {}  # workers whose next header is awaited
        self._early: dict[int, deque[tuple[int, Any]]] = {}  # tag and elements

    def send(self, tensor: Tensor, peer: int, tag: int, limit: float) -> Work:
        return self._submit(_Post(True, tensor, peer, tag, limit))

    def receive(self, tensor: Tensor, peer: int | None, tag: int, limit: float) -> Work:
        return self._submit(_Post(False, tensor, peer, tag, limit))

    def _submit(self, post: _Post) -> Work:
        call = "send" if post.send else "recv"
        if self._closed:
            raise RuntimeError("lockstep: the process group is closed")
        if post.peer is not None and not 0 <= post.peer < self._size:
            raise ValueError(f"lockstep: {call}: there is no rank {post.peer}")
        if post.peer == self._rank:
            raise ValueError(f"lockstep: {call}: rank {post.peer} is this worker itself")
        self._commands.put(post)
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="lockstep messages", daemon=True
                )
                self._thread.start()
        return post.work

    def close(self) -> None:
        self._closed = True
        if self._thread is not None:
            self._commands.put(None)
            self._thread.join()
        if self._end is None and self._size > 1:
            self._wait_for_others()
        library.ls_group_close(self._pointer)

    def _wait_for_others(self) -> None:
        """A worker that leaves is lost to those that are still in their last call. So it waits until
        they leave, too, but not long: they may have more to do. Whatever comes of it is right."""
        request = Pointer()
        request_ref = ctypes.byref(request)
        if not library.ls_barrier_start(self._pointer, request_ref, self._error_ref):
            library.ls_wait(request_ref, _LEAVING_S, self._error_ref)

    # ---- the thread ----

    def _serve(self) -> None:
        while True:
            idle = not self._posts and not self._sends
            try:
                command = self._commands.get(block=idle)
            except queue.Empty:
                self._advance()
                continue
            if command is None:
                return
            if self._end is not None:
                command.work.finish(self._end)
                continue
            try:
                self._begin(command)
            except BaseException as e:
                self._fail(e)
                command.work.finish(e)

    def _advance(self) -> None:
        try:
            self._wait_any()
            self._check_limits()
        except BaseException as e:
            self._fail(e)

    def _fail(self, error: BaseException) -> None:
        """No message can be sent or received any more."""
        self._end = error
        posts, self._posts, self._sends = [*self._posts, *self._sends], [], []
        for post in posts:
            if not post.work.is_completed():
                post.work.finish(error)

    def _failed(self) -> Error:
        return Error(self._error.code, self._error.msg.decode(errors="replace"))

    def _check_limits(self) -> None:
        now = time.monotonic()
        for post in [*self._posts, *self._sends]:
            if now < post.deadline:
                continue
            (self._sends if post.send else self._posts).remove(post)
            call, peer = ("send to", post.peer) if post.send else ("recv from", post.peer)
            text = f"worker {self._rank}: Timed out waiting {1000 * post.limit:.0f}ms in {call} "
            text += "any worker" if peer is None else f"worker {peer}"
            post.work.finish(Error(Status.ETIMEOUT, text))

    def _start(self, name: str, at: Any, nbytes: int, peer: int, uses: Any, done: Any) -> None:
        request = Pointer()
        function = getattr(library, f"ls_{name}_start")
        if function(
            self._pointer, at, nbytes, U8, peer, ctypes.byref(request), self._error_ref
        ):
            raise self._failed()
        self._requests.append(_Request(request.value, uses, done))

    def _wait_any(self) -> None:
        n = len(self._requests)
        if not n:
            return
        array = (ctypes.c_void_p * n)(*[r.pointer for r in self._requests])
        index = ctypes.c_int(-1)
        status = library.ls_wait_any(array, n, _SLICE_S, ctypes.byref(index), self._error_ref)
        if status == Status.EPENDING:
            return
        if status:
            raise self._failed()
        self._requests.pop(index.value).done()

    # ---- sending ----

    def _begin(self, post: _Post) -> None:
        if not post.send:
            self._begin_receive(post)
            return
        assert post.peer is not None
        self._sends.append(post)
        header = _Header(post.tag, post.nbytes)
        left = [1 + bool(post.nbytes)]

        def done() -> None:
            left[0] -= 1
            if not left[0] and post in self._sends:
                self._sends.remove(post)
                post.work.finish()

        self._start("send", header, ctypes.sizeof(header), post.peer, header, done)
        if post.nbytes:
            self._start("send", post.tensor.data_ptr(), post.nbytes, post.peer, post.tensor, done)

    # ---- receiving ----

    def _begin_receive(self, post: _Post) -> None:
        peers = [post.peer] if post.peer is not None else list(range(self._size))
        for peer in peers:
            early = self._early.get(peer, ())
            for i, (tag, elements) in enumerate(early):
                if tag == post.tag:
                    del self._early[peer][i]
                    self._deliver(post, peer, elements)
                    return
        self._posts.append(post)
        self._await_headers()

    def _deliver(self, post: _Post, peer: int, elements: Any) -> None:
        if ctypes.sizeof(elements) != post.nbytes:
            post.work.finish(self._misfit(post, peer, ctypes.sizeof(elements)))
            return
        ctypes.memmove(post.tensor.data_ptr(), elements, post.nbytes)
        post.work.finish(source=peer)

    def _misfit(self, post: _Post, peer: int, nbytes: int) -> Error:
        return Error(
            Status.EDISAGREE,
            f"recv from worker {peer} of {post.nbytes} bytes with tag {post.tag}, but it sent "
            f"{nbytes}",
        )

    def _await_headers(self) -> None:
        """Awaits the next header of each worker from which a receive expects a message."""
        for post in self._posts:
            for peer in range(self._size) if post.peer is None else [post.peer]:
                if peer != self._rank and peer not in self._headers:
                    header = self._headers[peer] = _Header()
                    self._start(
                        "recv", header, ctypes.sizeof(header), peer, header,
                        lambda peer=peer: self._header_came(peer),
                    )  # fmt: skip

    def _header_came(self, peer: int) -> None:
        tag, nbytes = self._headers.pop(peer)
        for post in self._posts:
            if post.tag == tag and post.peer in (None, peer):
                self._posts.remove(post)
                break
        else:
            self._receive_early(peer, tag, nbytes)
            return
        if nbytes != post.nbytes:
            post.work.finish(self._misfit(post, peer, nbytes))
            self._receive_early(peer, None, nbytes)
        elif not nbytes:
            post.work.finish(source=peer)
            self._await_headers()
        else:
            self._sends.append(post)  # it is in flight

            def done() -> None:
                if post in self._sends:
                    self._sends.remove(post)
                    post.work.finish(source=peer)

            self._start("recv", post.tensor.data_ptr(), nbytes, peer, post.tensor, done)
            self._await_headers()

    def _receive_early(self, peer: int, tag: int | None, nbytes: int) -> None:
        """Puts elements aside, or drops those without a tag. The next header follows them."""
        elements = (ctypes.c_ubyte * nbytes)()

        def done() -> None:
            if tag is None:
                return
            for post in self._posts:
                if post.tag == tag and post.peer in (None, peer):
                    self._posts.remove(post)
                    self._deliver(post, peer, elements)
                    return
            self._early.setdefault(peer, deque()).append((tag, elements))

        if nbytes:
            self._start("recv", elements, nbytes, peer, elements, done)
        else:
            done()
        self._await_headers()
