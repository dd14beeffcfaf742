"""Weights drawn as text."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ._abi import at_heatmap, call, taken_text
from .errors import ShapeError


def _names(names: Sequence[str] | None, count: int, what: str) -> object:
    if names is None:
        return None
    if len(names) != count:
        raise ShapeError(f"there are {len(names)} names of {what} for {count} {what}")
    return (ctypes.c_char_p * max(1, count))(*(name.encode() for name in names))


def heatmap(
    values: ArrayLike,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    colour: bool = False,
    width: int = 0,
) -> str:
    """A heat map [rows, columns] for the terminal; ``width`` is what no line may exceed, 0 for any.

    >>> print(heatmap([[1, 0], [0.25, 0.75]], rows=["x", "y"], columns=["a", "b"]), end="")
          a        b
    x  ██ 1.00     0.00
    y  ░░ 0.25  ▓▓ 0.75
    """
    shown = np.ascontiguousarray(values, dtype=np.float32)
    if shown.ndim != 2:
        raise ShapeError(f"values has the shape {list(shown.shape)}; it needs [rows, columns]")
    map_ = at_heatmap(rows=shown.shape[0], columns=shown.shape[1], values=shown.ctypes.data, colour=colour, width=width)
    map_.row_names = _names(rows, shown.shape[0], "rows")
    map_.column_names = _names(columns, shown.shape[1], "columns")
    return taken_text(call("at_heatmap_text", map_))
