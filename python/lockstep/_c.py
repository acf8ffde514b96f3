"""The functions of liblockstep that the package calls, by ctypes: prototypes, and how it is found.

Prototypes repeat include/lockstep/group.h, virtual.h and lockstep.h; tests/test_c.py compares them with the
headers. ctypes releases the interpreter's lock during each call.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

VERSION = "0.1"  # of the library that these prototypes are for: its major and minor number

Status = ctypes.c_int
Pointer = ctypes.c_void_p
Size = ctypes.c_size_t


class ErrorStruct(ctypes.Structure):
    """ls_error."""

    _fields_ = [
        ("code", ctypes.c_int),
        ("line", ctypes.c_int),
        ("file", ctypes.c_char_p),
        ("msg", ctypes.c_char * 512),
    ]


class Meeting(ctypes.Structure):
    """ls_meeting."""

    _fields_ = [
        ("rank", ctypes.c_int),
        ("size", ctypes.c_int),
        ("address", ctypes.c_char_p),
        ("key", ctypes.c_char_p),
        ("listen_fd", ctypes.c_int),
    ]


class Options(ctypes.Structure):
    """ls_group_options."""

    _fields_ = [
        ("transport", ctypes.c_char_p),
        ("algorithm", ctypes.c_char_p),
        ("timeout_s", ctypes.c_double),
        ("report_s", ctypes.c_double),
        ("arena_nbytes", Size),
        ("insecure", ctypes.c_bool),
        ("links", ctypes.c_char_p),
        ("meeting", ctypes.POINTER(Meeting)),
    ]


class CountersStruct(ctypes.Structure):
    """ls_counters."""

    _fields_ = [
        ("calls", ctypes.c_uint64),
        ("messages_sent", ctypes.c_uint64),
        ("bytes_sent", ctypes.c_uint64),
        ("bytes_read", ctypes.c_uint64),
    ]


_INT = ctypes.c_int
_ERROR = ctypes.POINTER(ErrorStruct)
_OUT = ctypes.POINTER(Pointer)

# Arguments between the group and the request of ls_NAME_start().
_IN_OUT = [Pointer, Pointer, Size, _INT]
_COUNTS = [Pointer, Pointer, Pointer, _INT]
STARTS: dict[str, list[Any]] = {
    "all_reduce": [*_IN_OUT, _INT],
    "reduce": [*_IN_OUT, _INT, _INT],
    "reduce_scatter": [*_IN_OUT, _INT],
    "reduce_scatter_v": [*_COUNTS, _INT],
    "all_gather": _IN_OUT,
    "all_gather_v": _COUNTS,
    "broadcast": [Pointer, Size, _INT, _INT],
    "gather": [*_IN_OUT, _INT],
    "gather_v": [Pointer, Size, Pointer, Pointer, _INT, _INT],
    "scatter": [*_IN_OUT, _INT],
    "scatter_v": [Pointer, Pointer, Pointer, Size, _INT, _INT],
    "all_to_all": _IN_OUT,
    "all_to_all_v": [Pointer, Pointer, Pointer, Pointer, _INT],
    "scan": [*_IN_OUT, _INT],
    "exscan": [*_IN_OUT, _INT],
    "barrier": [],
    "send": [Pointer, Size, _INT, _INT],
    "recv": [Pointer, Size, _INT, _INT],
}

PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "ls_version": (ctypes.c_char_p, []),
    "ls_status_name": (ctypes.c_char_p, [_INT]),
    "ls_dtype_size": (Size, [_INT]),
    "ls_dtype_name": (ctypes.c_char_p, [_INT]),
    "ls_op_name": (ctypes.c_char_p, [_INT]),
    "ls_group_open": (Status, [ctypes.POINTER(Options), _OUT, _ERROR]),
    "ls_group_close": (None, [Pointer]),
    "ls_group_rank": (_INT, [Pointer]),
    "ls_group_size": (_INT, [Pointer]),
    "ls_group_split": (Status, [Pointer, _INT, _INT, _OUT, _ERROR]),
    "ls_group_dup": (Status, [Pointer, _OUT, _ERROR]),
    "ls_group_alloc": (Pointer, [Pointer, Size]),
    "ls_group_free": (None, [Pointer, Pointer]),
    "ls_group_readable": (ctypes.c_bool, [Pointer, Pointer, Size]),
    "ls_group_counters": (CountersStruct, [Pointer]),
    "ls_group_explain": (
        Status,
        [Pointer, ctypes.c_char_p, Size, _INT, ctypes.c_char_p, Size, _ERROR],
    ),
    "ls_group_virtual_workers": (
        None,
        [Pointer, _INT, ctypes.POINTER(_INT), ctypes.POINTER(_INT)],
    ),
    "ls_all_reduce_virtual": (Status, [Pointer, *_IN_OUT, _INT, _INT, _ERROR]),
    "ls_group_at": (Pointer, [Pointer, ctypes.c_char_p, _INT]),
    "ls_test": (Status, [_OUT, ctypes.POINTER(ctypes.c_bool), _ERROR]),
    "ls_wait": (Status, [_OUT, ctypes.c_double, _ERROR]),
    "ls_wait_any": (Status, [_OUT, _INT, ctypes.c_double, ctypes.POINTER(_INT), _ERROR]),
    **{
        f"ls_{name}_start": (Status, [Pointer, *args, _OUT, _ERROR])
        for name, args in STARTS.items()
    },
}


def find() -> str:
    """The library's path: in the package, else $LOCKSTEP_LIBRARY, else a name for the system."""
    inside = os.path.join(os.path.dirname(__file__), "lib", "liblockstep.so.0")
    if os.path.exists(inside):
        return inside
    return os.environ.get("LOCKSTEP_LIBRARY") or "liblockstep.so.0"


def declare(opened: ctypes.CDLL, prototypes: dict[str, tuple[Any, list[Any]]]) -> None:
    """Gives functions of the library their types. Raises AttributeError if one is not there."""
    for name, (result, arguments) in prototypes.items():
        function = getattr(opened, name)
        function.restype, function.argtypes = result, arguments


def load(path: str) -> ctypes.CDLL:
    """Opens the library, and declares the functions of PROTOTYPES. Raises ImportError."""
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"lockstep: the library can't be loaded: {error}; install Lockstep (make install), or "
            "set LOCKSTEP_LIBRARY to the path of liblockstep.so"
        ) from None
    try:
        declare(library, PROTOTYPES)
    except AttributeError as error:
        raise ImportError(f"lockstep: {path} is not this package's library: {error}") from None
    version = library.ls_version().decode()
    if version.split(".")[:2] != VERSION.split("."):
        raise ImportError(f"lockstep: {path} is version {version}; this package needs {VERSION}")
    return library


library = load(find())
