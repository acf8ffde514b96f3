"""How the workers of a process group meet: by PyTorch's store.

Worker 0 listens on a port that the system chooses, and puts its address and a random join key into
the store. With the key, connections between hosts are TLS 1.3. The key is as secret as the store: if
its network is not, set LOCKSTEP_KEY on all workers, which is then used in its place.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import socket
from typing import Any

import torch.distributed as dist

from lockstep._c import ErrorStruct, Meeting, Options, Pointer, library
from lockstep.errors import Error

_KEY = "meeting"
_ARENA_MIB = 1024  # of addresses; what is not used takes no memory


def _own_address() -> str:
    """An address of this host that the others reach: the one from which it reaches the store's."""
    listen = os.environ.get("LOCKSTEP_LISTEN")
    if listen:
        return listen
    for name in (os.environ.get("MASTER_ADDR"), socket.gethostname()):
        try:
            found = socket.getaddrinfo(name, 9, type=socket.SOCK_DGRAM) if name else []
        except OSError:
            continue
        for family, kind, protocol, _, to in found:
            try:
                with socket.socket(family, kind, protocol) as s:
                    s.connect(to)
                    return str(s.getsockname()[0])
            except OSError:
                continue
    return "127.0.0.1"


def _listen() -> socket.socket:
    host = _own_address()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM)
    s.bind((host, 0))
    s.listen(1024)
    return s


def _text(s: socket.socket) -> str:
    host, port = s.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def open_group(options: Options) -> int:
    """ls_group_open(). Raises Error."""
    pointer, error = Pointer(), ErrorStruct()
    if library.ls_group_open(ctypes.byref(options), ctypes.byref(pointer), ctypes.byref(error)):
        raise Error(error.code, error.msg.decode(errors="replace"))
    assert pointer.value
    return pointer.value


def options_for(timeout: float) -> Options:
    arena = int(os.environ.get("LOCKSTEP_TORCH_ARENA_MIB") or _ARENA_MIB)
    return Options(timeout_s=timeout, arena_nbytes=arena << 20)


def rounds_of(store: Any, rank: int) -> Any:
    """The part of the store that belongs to this round of its workers. torchrun's agent keeps one store
    while its workers live: after destroy_process_group() and init_process_group() it still has the
    address and the barriers of the group before. Each worker counts how often it has come here."""
    return dist.PrefixStore(f"lockstep/{store.add(f'lockstep/rounds/{rank}', 1)}", store)


def meet(store: Any, rank: int, size: int, timeout: float) -> int:
    """The library's group of these workers. Collective."""
    meeting, options = Meeting(rank=rank, size=size), options_for(timeout)
    options.meeting = ctypes.pointer(meeting)
    if os.environ.get("LOCKSTEP_TRANSPORT") == "mpi":
        options.transport = b"tcp"  # messages over MPI are for the group that mpirun has started
    if size == 1:
        meeting.address = b"127.0.0.1:1"
        return open_group(options)
    own = "LOCKSTEP_KEY" in os.environ or "LOCKSTEP_KEY_FILE" in os.environ
    if rank:
        address, key = store.get(_KEY).decode().split(" ")
        meeting.address, meeting.key = address.encode(), key.encode() or None
        return open_group(options)
    with _listen() as s:
        meeting.listen_fd, meeting.address = s.fileno(), _text(s).encode()
        meeting.key = None if own else secrets.token_hex(32).encode()
        store.set(_KEY, meeting.address + b" " + (meeting.key or b""))
        return open_group(options)


def duplicate(pointer: int) -> int:
    """A second group of the same workers. Collective."""
    new, error = Pointer(), ErrorStruct()
    if library.ls_group_dup(pointer, ctypes.byref(new), ctypes.byref(error)):
        raise Error(error.code, error.msg.decode(errors="replace"))
    assert new.value
    return new.value
