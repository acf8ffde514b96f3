"""Tensors of safetensors files as NumPy arrays over the mapped files."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from lockstep.arrays import Array

_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
_MOST_HEADER = 100 << 20  # bytes, as the format's own library has it


class _Tensor(NamedTuple):
    path: str
    kind: str  # as the file names it: F32, BF16
    shape: tuple[int, ...]
    begin: int  # bytes from the file's beginning
    end: int
    blocks: str | None  # Q8_0 ...: rows of bytes are rows of these blocks


def _dtype(tensor: _Tensor, name: str) -> np.dtype[Any]:
    if tensor.kind == "BF16":
        try:
            found: np.dtype[Any] = np.dtype(importlib.import_module("ml_dtypes").bfloat16)
            return found
        except ImportError:
            raise TypeError(
                f"{name} is bfloat16, which NumPy knows by the package ml_dtypes alone: install it"
            ) from None
    if tensor.kind not in _TYPES:
        raise TypeError(f"{tensor.path}: {name} has elements of {tensor.kind}, which NumPy lacks")
    return np.dtype(_TYPES[tensor.kind])


def _read_header(path: str) -> dict[str, _Tensor]:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        nbytes = int.from_bytes(file.read(8), "little")
        if size < 8 or nbytes > min(size - 8, _MOST_HEADER):
            raise ValueError(f"{path}: is no safetensors file")
        try:
            header = json.loads(file.read(nbytes))
            blocks = header.pop("__metadata__", {})
            return {
                name: _Tensor(
                    path,
                    t["dtype"],
                    tuple(t["shape"]),
                    8 + nbytes + t["data_offsets"][0],
                    8 + nbytes + t["data_offsets"][1],
                    blocks.get(name),
                )
                for name, t in header.items()
            }
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: is no safetensors file: its header is damaged") from error


class Weights(Mapping[str, "Array"]):
    """Tensors by name, read-only arrays over the mapped files: nothing is copied.

    `weights["wte.weight"]` is a tensor. One of blocks (Q8_0, Q4_1 ...) is its rows of bytes;
    types[name] says what each is stored as.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._tensors: dict[str, _Tensor] = {}
        for path in paths:
            self._tensors.update(_read_header(path))
        self._maps: dict[str, Array] = {}
        self.types = {name: t.blocks or t.kind for name, t in self._tensors.items()}

    def _map(self, path: str) -> Array:
        if path not in self._maps:
            self._maps[path] = np.memmap(path, np.uint8, "r")
        return self._maps[path]

    def __getitem__(self, name: str) -> Array:
        if name not in self._tensors:
            raise KeyError(f"no tensor {name!r}")
        tensor = self._tensors[name]
        dtype, count = _dtype(tensor, name), int(np.prod(tensor.shape, dtype=np.int64))
        data = np.asarray(self._map(tensor.path))
        if tensor.end > data.size or tensor.end - tensor.begin != count * dtype.itemsize:
            raise ValueError(f"{tensor.path}: {name} has another size than its shape")
        if sys.byteorder == "little":
            dtype = dtype.newbyteorder("=")
        return np.ndarray(tensor.shape, dtype, data.data, tensor.begin)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(t.end - t.begin for t in self._tensors.values())

    def __repr__(self) -> str:
        return f"<Weights of {len(self)} tensors, {self.nbytes} bytes>"


def files_of_model(folder: str) -> list[str]:
    """The weight files of a published model's directory: one, or shards. Raises FileNotFoundError."""
    one = os.path.join(folder, "model.safetensors")
    index = one + ".index.json"
    if os.path.exists(one) or not os.path.exists(index):
        return [one]
    with open(index, encoding="utf-8") as file:
        shards = json.load(file)["weight_map"].values()
    return [os.path.join(folder, os.path.basename(name)) for name in dict.fromkeys(shards)]
