"""Operations of reductions."""

from __future__ import annotations

import enum
from typing import Union


class Op(enum.IntEnum):
    """ls_op: what a reduction does with elements (docs/reference/collectives.md)."""

    SUM = 0
    AVG = 1  # floating point alone
    PROD = 2
    MIN = 3
    MAX = 4
    LAND = 5  # logical: integers and bool
    LOR = 6
    LXOR = 7
    BAND = 8  # bitwise: integers
    BOR = 9
    BXOR = 10
    MINLOC = 11  # of pairs
    MAXLOC = 12


OpLike = Union[Op, str]


def op_of(op: OpLike, call: str) -> Op:
    """An Op, or its name in any case."""
    if isinstance(op, Op):
        return op
    try:
        return Op[op.upper()]
    except (AttributeError, KeyError):
        names = ", ".join(o.name.lower() for o in Op)
        raise ValueError(f"{call}: no operation {op!r}; there are {names}") from None
