"""What the library's calls raise."""

from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """ls_status: what failed. Above PEER only the call failed, and the group stays usable."""

    OK = 0
    EINVAL = -1  # a bad argument or bad input
    ENOMEM = -2  # out of memory
    EIO = -3  # a file could not be read or written
    EPENDING = -4  # a call is still in flight: wait for it again
    EPEER = -20  # a worker is lost
    ETIMEOUT = -40  # a wait ran out
    EABORT = -41  # the group was called off
    EDISAGREE = -42  # workers made different calls
    EBROKEN = -43  # messages can't be moved here


class Error(RuntimeError):
    """A call of the library failed; the text is the library's message.

    code    what failed, a Status
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = Status(code)

    def __reduce__(self) -> tuple[type[Error], tuple[int, str]]:
        return type(self), (int(self.code), str(self))

    @property
    def ends_group(self) -> bool:
        """Can the group only be closed now?"""
        return self.code <= Status.EPEER
