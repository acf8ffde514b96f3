"""Arrays as the library's buffers: types of elements, and what is refused."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    Array = NDArray[Any]

# In the order of ls_dtype. None: bfloat16, which NumPy knows by ml_dtypes alone.
_PAIRS = [("f8", "i8"), ("f4", "i4"), ("i8", "i8"), ("i4", "i4")]
DTYPES: list[Any] = [
    *(np.dtype(name) if name else None for name in ["f8", "f4", None, "f2", "i8", "i4", "i1"]),
    *(np.dtype(name) for name in ["u1", "u2", "u4", "u8", "i2", "?"]),
    *(np.dtype([("value", value), ("index", index)]) for value, index in _PAIRS),
]
BF16 = 2
_codes: dict[Any, int] = {dtype: code for code, dtype in enumerate(DTYPES) if dtype is not None}


def pair(value: DTypeLike) -> np.dtype[Any]:
    """The structured dtype of a value and its index, for MINLOC and MAXLOC.

    value    float64 or int64 (with an index of int64), float32 or int32 (with one of int32)
    """
    for dtype in DTYPES[-len(_PAIRS) :]:
        if dtype["value"] == np.dtype(value):
            found: np.dtype[Any] = dtype
            return found
    raise TypeError(
        f"pair: no pairs of {np.dtype(value)}; there are float64, float32, int64, int32"
    )


def _layout(dtype: np.dtype[Any]) -> list[Any]:
    return [dtype.itemsize, *(dtype.fields[name][:2] for name in dtype.names or () if dtype.fields)]


def _look_up(dtype: np.dtype[Any], call: str) -> int:
    """The code of a type that _codes does not list: bfloat16, and pairs with other names."""
    if dtype.name == "bfloat16" and dtype.itemsize == 2:
        return BF16
    for known, code in list(_codes.items()):
        if dtype.names and known.names and _layout(dtype) == _layout(known):
            return code
    raise TypeError(
        f"{call}: the library has no elements of {dtype}; it has float64, float32, bfloat16 (of "
        "ml_dtypes), float16, integers of 8 to 64 bits, bool, and lockstep.pair()"
    )


def code_of(dtype: np.dtype[Any], call: str) -> int:
    """The ls_dtype of a NumPy dtype. Raises TypeError where there is none."""
    code = _codes.get(dtype)
    if code is None:
        code = _codes[dtype] = _look_up(dtype, call)
    return code


_addressof = ctypes.addressof
_char_at: Any = ctypes.c_char.from_buffer


def address(array: Array) -> int:
    """Where its elements are."""
    # A fifth of the time of the dictionary; ml_dtypes has no buffers.
    if array.dtype.kind != "V" and array.nbytes and array.flags.writeable:
        return _addressof(_char_at(array))
    return int(array.__array_interface__["data"][0])


_NATIVE = ("__array__", "__array_interface__", "__array_struct__", "__buffer__")


def _only_by_dlpack(x: Any) -> bool:
    return hasattr(x, "__dlpack__") and not any(hasattr(x, name) for name in _NATIVE)


def _from_dlpack(x: Any, call: str) -> Array:
    """The array over x's memory. Raises TypeError, as for memory of a GPU."""
    try:
        array: Array = np.from_dlpack(x)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(
            f"{call}: NumPy can't read a {type(x).__name__} by DLPack: {error}"
        ) from None
    return array


def as_input(x: ArrayLike, call: str) -> Array:
    """x as a C-contiguous array, copied only where it has to be."""
    if type(x) is np.ndarray and x.flags.carray:
        return x
    if isinstance(x, (bytes, bytearray)):
        return np.frombuffer(x, np.uint8)
    array = _from_dlpack(x, call) if _only_by_dlpack(x) else np.asarray(x)
    code_of(array.dtype, call)
    return np.require(array, requirements=["C", "A"]).reshape(array.shape)


def _shared(out: Any, call: str, name: str) -> Array:
    """The array over out's memory."""
    if isinstance(out, np.ndarray):
        return out
    if _only_by_dlpack(out):
        return _from_dlpack(out, call)
    try:
        memory: Any = (
            out
            if hasattr(out, "__array__") or hasattr(out, "__array_interface__")
            else memoryview(out)
        )
    except TypeError:
        raise TypeError(
            f"{call}: {name} is a {type(out).__name__}; it must be an array, or a buffer"
        ) from None
    array = np.asarray(memory)
    if array.flags.owndata:
        raise TypeError(f"{call}: NumPy can only copy {name}, a {type(out).__name__}")
    return array


def as_output(out: Any, call: str, name: str = "out") -> Array:
    """The array over out's memory, which the library can write. Raises TypeError or ValueError."""
    array = _shared(out, call, name)
    code_of(array.dtype, call)
    flags = array.flags
    if not flags.writeable:
        raise ValueError(f"{call}: {name} is read-only")
    if not flags.c_contiguous:
        raise ValueError(f"{call}: {name} is not C-contiguous (strides {array.strides})")
    if not flags.aligned:
        raise ValueError(f"{call}: {name} is not aligned to its elements")
    return array


def result_for(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], call: str) -> Array:
    """A new array, or out if it is not None and has this shape and dtype."""
    if out is None:
        return np.empty(shape, dtype)
    if type(out) is np.ndarray and out.flags.carray and out.dtype == dtype and out.shape == shape:
        return out
    array = as_output(out, call)
    if array.dtype != dtype:
        raise TypeError(f"{call}: out has elements of {array.dtype}; the input's are {dtype}")
    if array.shape != shape:
        raise ValueError(f"{call}: out has the shape {array.shape}; the result has {shape}")
    return array
