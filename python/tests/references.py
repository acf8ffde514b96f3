"""References: what NumPy makes of the inputs of all workers, which every worker can make."""

from __future__ import annotations

from typing import Any

import numpy as np

import lockstep

FLOATS = ["f8", "f4", "f2"]
INTEGERS = ["i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"]
PAIRS = ["f8", "f4", "i8", "i4"]
ANY = ["SUM", "PROD", "MIN", "MAX"]
LOGICAL = ["LAND", "LOR", "LXOR"]
BITWISE = ["BAND", "BOR", "BXOR"]

_UFUNCS: dict[str, Any] = {
    "SUM": np.add, "PROD": np.multiply, "MIN": np.minimum, "MAX": np.maximum,
    "LAND": np.logical_and, "LOR": np.logical_or, "LXOR": np.logical_xor,
    "BAND": np.bitwise_and, "BOR": np.bitwise_or, "BXOR": np.bitwise_xor,
}  # fmt: skip


def cases() -> list[tuple[np.dtype[Any], list[str]]]:
    """Each dtype that the library has, with its operations."""
    found: list[tuple[Any, list[str]]] = [(np.dtype(name), [*ANY, "AVG"]) for name in FLOATS]
    try:
        import ml_dtypes

        found.append((np.dtype(ml_dtypes.bfloat16), [*ANY, "AVG"]))
    except ImportError:
        pass
    found += [(np.dtype(name), [*ANY, *LOGICAL, *BITWISE]) for name in INTEGERS]
    found.append((np.dtype(bool), LOGICAL))
    found += [(lockstep.pair(name), ["MINLOC", "MAXLOC"]) for name in PAIRS]
    return found


def values(rank: int, size: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Small whole numbers, multiples of `size` where there are averages: every result is exact."""
    random = np.random.default_rng([rank, *shape])
    if dtype.names:
        x = np.empty(shape, dtype)
        x["value"], x["index"] = random.integers(0, 3, shape), random.integers(0, 100, shape)
        return x
    if dtype.kind == "b":
        return np.array(random.integers(0, 2, shape), bool)
    low = 0 if dtype.kind == "u" else -2
    factor = 1 if dtype.kind in "iu" else size
    return np.asarray(random.integers(low, 4, shape) * factor).astype(dtype)


def reduced(inputs: list[Any], op: str) -> Any:
    """The reduction of the inputs, in the order of ranks."""
    if len(inputs) == 1:
        return inputs[0]  # combined with no other: copied
    dtype = inputs[0].dtype
    if op in ("MINLOC", "MAXLOC"):
        best = np.atleast_1d(inputs[0]).copy()
        for x in map(np.atleast_1d, inputs[1:]):
            better = x["value"] < best["value"] if op == "MINLOC" else x["value"] > best["value"]
            better |= (x["value"] == best["value"]) & (x["index"] < best["index"])
            best[better] = x[better]
        return best.reshape(inputs[0].shape)
    if op == "AVG":
        return (sum(x.astype("f8") for x in inputs) / len(inputs)).astype(dtype)
    result = inputs[0]
    for x in inputs[1:]:
        with np.errstate(over="ignore"):
            result = _UFUNCS[op](result, x).astype(dtype)
    return result
