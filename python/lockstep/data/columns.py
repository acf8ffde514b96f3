"""Columns of samples: which encoding of MDS a column has, and its values as bytes.

Encodings are those of mosaicml-streaming that src/source/formats/mds_column.c reads.
"""

from __future__ import annotations

import io
import math
import re
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lockstep.data.rows import Row, at_row

_NUMBERS = {f"{u}int{n}": n // 8 for u in ("", "u") for n in (8, 16, 32, 64)}
_NUMBERS.update({"float16": 2, "float32": 4, "float64": 8})
_ARRAY = re.compile(r"ndarray:(\w+)$")
_CODES = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "float32": "f", "float64": "d"}
_CODES.update({f"u{name}": code.upper() for name, code in _CODES.items() if name[0] == "i"})
_FORMS = ("str", "bytes", "jpeg", "png")
_JPEG, _PNG = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"


def shorter(encoding: str) -> str:
    """Numbers with fractions become float32, in which training reads them."""
    return encoding.replace("float64", "float32")


def is_missing(value: Any) -> bool:
    """None, pandas' NA and NaT, a number that is NaN?"""
    if value is None:
        return True
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType")


class Missing:
    """Rules for values that are missing: "refuse", "drop", or what stands for them."""

    def __init__(self, rules: str | Mapping[str, Any]) -> None:
        self._rules = dict(rules) if isinstance(rules, Mapping) else {"*": rules}

    def rule(self, name: str) -> Any:
        return self._rules.get(name, self._rules.get("*", "refuse"))

    def apply(self, number: int, row: Row, columns: list[Column] | None) -> Row | None:
        """The row with other values where some are missing; None: it is left out."""
        names = [c.name for c in columns] if columns else list(row)
        lacking = [name for name in names if is_missing(row.get(name))]
        if not lacking:
            return row
        filled = dict(row)
        for name in lacking:
            rule = self.rule(name)
            if isinstance(rule, str) and rule == "drop":
                return None
            if isinstance(rule, str) and rule == "refuse":
                if not columns:  # JSON lines: a member that is not there
                    filled.pop(name, None)
                    continue
                raise ValueError(
                    f"write: row {number} has no {name!r}; `missing` says what becomes of it: "
                    '"drop", or a value'
                )
            filled[name] = rule
        return filled


def _as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """Lists, arrays and tensors of numbers; None: it is something else."""
    if hasattr(value, "detach"):  # a tensor of torch, also of bfloat16
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
        value = value.numpy()
    if not isinstance(value, (list, tuple, np.ndarray)):
        return None
    try:
        return np.asarray(value)
    except ValueError:
        raise TypeError("its lists have different lengths") from None


def _encoded(image: Any) -> bytes:
    """An image of Pillow as PNG: gray, or colours."""
    if image.mode not in ("L", "RGB"):
        if image.mode.startswith(("I", "F")):
            raise TypeError(f"is an image of mode {image.mode}; possible are 8 bits a colour")
        image = image.convert("L" if image.mode in ("1", "LA", "La") else "RGB")
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=3)
    return out.getvalue()


def _file_of(value: Mapping[str, Any]) -> bytes:
    """An image as Hugging Face has it in tables: its bytes, or its path."""
    if isinstance(value.get("bytes"), bytes):
        data: bytes = value["bytes"]
        return data
    if isinstance(value.get("path"), str):
        with open(value["path"], "rb") as file:
            return file.read()
    raise TypeError("is an object; give its members as columns")


def _plain(value: Any) -> Any:
    """Numbers, str, bytes, or an array."""
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, Mapping):
        return _file_of(value)
    if hasattr(value, "getbands"):
        return _encoded(value)
    array = _as_array(value)
    if array is None:
        return value
    return array[()] if array.ndim == 0 else array


def _encoding_of(value: Any) -> str:
    value = _plain(value)
    if isinstance(value, str):
        return "str"
    if isinstance(value, bytes):
        return "jpeg" if value[:3] == _JPEG else "png" if value[:8] == _PNG else "bytes"
    if isinstance(value, (bool, np.bool_)):
        return "uint8"
    if isinstance(value, (np.integer, np.floating)):
        return shorter(str(value.dtype))
    if isinstance(value, int):
        return "int64"
    if isinstance(value, float):
        return "float32"
    if isinstance(value, np.ndarray):
        return f"ndarray:{_name_of(value)}"
    raise TypeError(
        f"is of the type {type(value).__name__}, which is no value of a sample; write numbers or "
        "texts, e.g. the month and the hour of a date"
    )


def _name_of(array: np.ndarray[Any, Any]) -> str:
    if array.dtype == bool:
        return "uint8"
    if array.size == 0 and array.dtype == np.float64:
        return "int64"  # an empty list
    if str(array.dtype) not in _NUMBERS:
        raise TypeError(f"is an array of {array.dtype}; possible are numbers of 8 to 64 bits")
    return shorter(str(array.dtype))


def _wider(a: str, b: str) -> str:
    """The encoding of a column that has values of both."""
    if a == b:
        return a
    parts = [_ARRAY.match(x) for x in (a, b)]
    if all(parts):
        return "ndarray:" + _wider(*(p[1] for p in parts if p))
    if a in _NUMBERS and b in _NUMBERS:
        kinds = {np.dtype(a).kind, np.dtype(b).kind}
        if "f" in kinds and len(kinds) > 1:  # whole numbers among others
            return "float32"
        return shorter(str(np.promote_types(a, b)))
    if {a, b} <= {"jpeg", "png"}:
        return "jpeg"  # the reader looks at the first bytes of each
    raise TypeError(f"is {b}; the values before it are {a}")


class Column:
    """A column that is written.

    encoding    as the index has it: int64, ndarray:float32, str, png
    nbytes      of each value; None: they differ, and a sample has the length
    """

    def __init__(self, name: str, encoding: str) -> None:
        array = _ARRAY.match(encoding)
        if not (encoding in _NUMBERS or encoding in _FORMS or (array and array[1] in _NUMBERS)):
            raise ValueError(
                f"write: {name!r} has the type {encoding!r}; possible are {', '.join(_NUMBERS)}, "
                f"ndarray: and one of these, {', '.join(_FORMS)}"
            )
        self.name, self.encoding = name, encoding
        self.nbytes = _NUMBERS.get(encoding)
        self._dtype = np.dtype(array[1] if array else encoding) if array or self.nbytes else None
        self._pack = struct.Struct("<" + _CODES[encoding]).pack if encoding in _CODES else None

    def encode(self, number: int, value: Any) -> bytes:
        """A value's bytes. Raises TypeError or ValueError, naming row and column."""
        try:
            plain = value if type(value) in (int, float, str) else _plain(value)
            if self._dtype is None:
                return self._encode_text(plain)
            if self.nbytes:
                return self._number(plain)
            return self._array(plain)
        except (TypeError, ValueError, OverflowError) as error:
            raise at_row(number, error, self.name) from None

    def _encode_text(self, value: Any) -> bytes:
        if self.encoding == "str":
            if not isinstance(value, str):
                raise TypeError(f"is a {type(value).__name__}; the values before it are texts")
            if "\0" in value:
                raise ValueError("has a zero byte")
            return value.encode()
        if not isinstance(value, bytes):
            raise TypeError(f"is a {type(value).__name__}; the values before it are bytes")
        return value

    def _cast(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The numbers in the column's type, refused where one does not fit."""
        assert self._dtype is not None
        kind = array.dtype.kind
        if array.size == 0:
            return array.astype(self._dtype)
        if kind == "O" and isinstance(array[()], int):
            raise ValueError(f"{array[()]} does not fit {self.encoding}, nor another type")
        if kind not in "biuf":
            raise TypeError(f"is of {array.dtype}; the column's type is {self.encoding}")
        if self._dtype.kind != "f":
            limits = np.iinfo(self._dtype)
            whole = kind != "f" or bool((array == np.floor(array)).all())
            if not whole or int(array.min()) < limits.min or int(array.max()) > limits.max:
                low, high = int(limits.min), int(limits.max)
                bad = next(v for v in array.ravel().tolist() if v != v // 1 or not low <= v <= high)
                raise ValueError(
                    f"{bad} does not fit {self._dtype}; `types` names another type for the column"
                )
        elif kind == "f" and not np.isfinite(array).all():
            raise ValueError("has a number that is NaN or infinite")
        with np.errstate(over="ignore"):
            cast = array.astype(self._dtype)
        if self._dtype.kind == "f" and not np.isfinite(cast).all():
            raise ValueError(f"has a number that {self._dtype} can't hold")
        return cast

    def _number(self, value: Any) -> bytes:
        if self._pack and isinstance(value, (int, float)) and math.isfinite(value):
            try:
                return self._pack(value)
            except (struct.error, OverflowError):  # slower, with what is wrong
                pass
        if isinstance(value, (str, bytes, np.ndarray)):
            raise TypeError(f"is a {type(value).__name__}; the values before it are numbers")
        return _little(self._cast(np.asarray(value)))

    def _array(self, value: Any) -> bytes:
        if not isinstance(value, np.ndarray):
            raise TypeError(f"is a {type(value).__name__}; the values before it are arrays")
        cast = self._cast(value)
        longest = max(cast.shape)
        log = next(i for i in range(4) if longest < 1 << (8 << i))
        head = bytes([cast.ndim << 2 | log])
        return head + b"".join(d.to_bytes(1 << log, "little") for d in cast.shape) + _little(cast)


def _little(array: np.ndarray[Any, Any]) -> bytes:
    if sys.byteorder == "big":
        array = array.byteswap()
    return array.tobytes()


def choose_columns(
    first: Sequence[Row], names: Sequence[str] | None, types: Mapping[str, str],
    known: Mapping[str, str], missing: Missing,
) -> list[Column]:  # fmt: skip
    """Columns with encodings that hold the values of the first rows."""
    wanted = list(names) if names is not None else list(dict.fromkeys(k for r in first for k in r))
    lacking = [name for name in {**dict.fromkeys(wanted), **types} if name not in first[0]]
    if names is not None and lacking:
        raise ValueError(
            f"write: there is no column {lacking[0]!r}; there are {', '.join(first[0])}"
        )
    return [Column(name, _choose(name, first, types, known, missing)) for name in wanted]


def _choose(
    name: str, first: Sequence[Row], types: Mapping[str, str], known: Mapping[str, str],
    missing: Missing,
) -> str:  # fmt: skip
    if name in types or name in known:
        return types.get(name) or shorter(known[name])
    encoding = None
    values = [row.get(name) for row in first]
    rule = missing.rule(name)
    if not isinstance(rule, str) or rule not in ("drop", "refuse"):
        values.append(rule)
    for number, value in enumerate(values):
        if is_missing(value):
            continue
        try:
            found = _encoding_of(value)
            if found == "ndarray:int64" and encoding and np.size(_plain(value)) == 0:
                found = encoding  # an empty list says nothing
            encoding = _wider(encoding, found) if encoding else found
        except TypeError as error:
            raise at_row(number, error, name) from None
    if encoding is None:
        raise ValueError(
            f"write: {name!r} has no value in the first {len(first)} rows; `types` says its type, "
            "or `columns` leaves it out"
        )
    return encoding
