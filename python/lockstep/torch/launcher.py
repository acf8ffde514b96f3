"""init_process_group() under launchers other than torchrun.

PyTorch's rendezvous "env://" needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Where RANK is not
set, but the program was started by mpirun, srun or `lockstep run`, the library opens the group of all
workers; worker 0 chooses a port for PyTorch's store, and the others get it over that group.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import socket
from typing import Any

from lockstep._c import ErrorStruct, library
from lockstep.errors import Error
from lockstep.torch.meeting import _own_address, open_group, options_for
from lockstep.torch.types import U8

_RANKS = ("LOCKSTEP_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_STEP_ID")
_LOCAL_RANKS = ("LOCKSTEP_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                "SLURM_LOCALID")  # fmt: skip
_ROOM = 256

# The group of all workers, until the default process group takes it.
_opened: list[int] = []


def take_opened() -> int | None:
    return _opened.pop() if _opened else None


def _free_port() -> tuple[str, int]:
    host = _own_address()
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
        s.bind((host, 0))
        return host, int(s.getsockname()[1])


def _broadcast(group: int, text: str) -> str:
    error, buffer = ErrorStruct(), ctypes.create_string_buffer(text.encode(), _ROOM)
    request = ctypes.c_void_p()
    status = library.ls_broadcast_start(
        group, buffer, _ROOM, U8, 0, ctypes.byref(request), ctypes.byref(error)
    ) or library.ls_wait(ctypes.byref(request), -1.0, ctypes.byref(error))
    if status:
        raise Error(error.code, error.msg.decode(errors="replace"))
    return buffer.value.decode()


def _ask_launcher(timeout: float) -> None:
    group = open_group(options_for(timeout))
    rank, size = library.ls_group_rank(group), library.ls_group_size(group)
    address = " ".join(map(str, _free_port())) if rank == 0 else ""
    host, port = _broadcast(group, address).split(" ")
    _opened.append(group)
    local = next((os.environ[name] for name in _LOCAL_RANKS if name in os.environ), str(rank))
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR=host, MASTER_PORT=port)
    os.environ.setdefault("LOCAL_RANK", local)


def serve_launchers() -> None:
    """Wraps the handler of env://."""
    # torch.distributed.rendezvous is a function, too.
    handlers: dict[str, Any] = importlib.import_module(
        "torch.distributed.rendezvous"
    )._rendezvous_handlers
    wrapped = handlers["env"]

    def env(url: str, timeout: Any = None, **kwargs: Any) -> Any:
        given = any(name in os.environ for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
        if not given and "rank=" not in url and any(name in os.environ for name in _RANKS):
            _ask_launcher(timeout.total_seconds() if timeout else 300.0)
        if timeout is not None:
            kwargs["timeout"] = timeout
        return wrapped(url, **kwargs)

    handlers["env"] = env
