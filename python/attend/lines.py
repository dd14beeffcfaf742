"""Lines of text on their way into the library."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any, Union

import numpy as np

from ._abi import at_line

Text = Union[str, bytes]
"""A line: str, or bytes of any kind."""


def encoded(line: Text) -> bytes:
    """The bytes of a line. Undecodable bytes that Python keeps as lone surrogates become those bytes again.

    >>> encoded("größer")
    b'gr\\xc3\\xb6\\xc3\\x9fer'
    """
    if isinstance(line, bytes):
        return line
    if isinstance(line, str):
        return line.encode("utf-8", "surrogateescape")
    raise TypeError(f"a line is str or bytes, not {type(line).__name__}")


class Lines:
    """An array of at_line over one block of bytes, which it keeps alive."""

    def __init__(self, lines: Iterable[Text], what: str = "lines") -> None:
        if isinstance(lines, (str, bytes)):
            raise TypeError(f"{what} is a list of lines, not one {type(lines).__name__}")
        parts = [encoded(line) for line in lines]
        for number, part in enumerate(parts):
            if b"\n" in part:
                raise ValueError(f"line {number} of {what} contains a newline: {part[:40]!r}")
        self.count = len(parts)
        self._bytes = b"".join(parts)
        sizes = np.array([len(part) for part in parts], dtype=np.uintp)
        base = ctypes.cast(ctypes.c_char_p(self._bytes), ctypes.c_void_p).value or 0
        # An at_line is a pointer and a size: two words.
        self._table = np.empty((max(1, self.count), 2), dtype=np.uintp)
        self._table[: self.count, 0] = np.uintp(base) + np.cumsum(sizes, dtype=np.uintp) - sizes
        self._table[: self.count, 1] = sizes

    @property
    def pointer(self) -> Any:
        """What the library takes as ``const at_line *``; valid as long as this object."""
        return self._table.ctypes.data_as(ctypes.POINTER(at_line))

    def line(self, index: int) -> at_line:
        """One of them, by value."""
        return at_line(int(self._table[index, 0]), int(self._table[index, 1]))


def decoded(pointer: int | None, size: int) -> str:
    """Bytes of the library as str."""
    return ctypes.string_at(pointer, size).decode("utf-8", "replace") if pointer else ""


def paired(sources: Lines, targets: Lines) -> int:
    """How many pairs they are."""
    if sources.count != targets.count:
        raise ValueError(f"there are {sources.count} sources and {targets.count} targets; they must be pairs")
    return sources.count
