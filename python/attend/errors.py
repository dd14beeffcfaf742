"""What the library's errors become: one exception for each kind, with the library's message."""

from __future__ import annotations


class Error(Exception):
    """Any failure of the library. ``code`` is the ``at_code`` of attend.h."""

    code = 1


class UsageError(Error, ValueError):
    """A setting, a name or an argument is wrong, or two of them do not fit together."""

    code = 2


class OutOfMemoryError(Error, MemoryError):
    """Out of memory."""

    code = 3


class FileError(Error, OSError):
    """The system refused to open, read, write or lock a file."""

    code = 4


class FormatError(Error, ValueError):
    """A file is truncated, damaged or of another kind."""

    code = 5


class ShapeError(Error, ValueError):
    """Sizes do not fit together."""

    code = 6


class UnsupportedError(Error, NotImplementedError):
    """Understood, but this model, file or build cannot do it."""

    code = 7


class InterruptedByCallbackError(Error):
    """A callback asked to stop."""

    code = 8


_kinds = {kind.code: kind for kind in Error.__subclasses__()}


def error_of(code: int, message: str) -> Error:
    """The exception for an ``at_code``."""
    return _kinds.get(code, Error)(message)
