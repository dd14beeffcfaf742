"""The attention operator on NumPy arrays, forward and backward."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._abi import AT_MAX_RANK, at_call, at_parameter, at_settings, call
from .errors import ShapeError, UsageError

Floats = NDArray[np.float32]

# What `want` may name: the type of each, and its dimensions.
_SUMMARIES: dict[str, tuple[Any, str]] = {
    "argmax": (np.int32, "BHQ"),
    "entropy": (np.float32, "BHQ"),
    "key_sums": (np.float32, "BHK"),
    "log_prob": (np.float32, "BHQ"),
    "scores": (np.float32, "BHQK"),
}


@dataclass(frozen=True)
class Attention:
    """What :func:`attention` returns. B batch, H heads, Q queries, K keys; without the B if the query has none."""

    out: Floats
    """[B, Q, H·Dv], or [B, Q, output width] with the parameter ``WO``."""
    weights: Floats | None = None
    """[B, H, rows, K], if wanted."""
    argmax: NDArray[np.int32] | None = None
    """[B, H, Q] the key of the largest weight, -1 for an empty row."""
    entropy: Floats | None = None
    """[B, H, Q] -Σ w log w in nats."""
    key_sums: Floats | None = None
    """[B, H, K] the sum of each key's weights over the queries."""
    log_prob: Floats | None = None
    """[B, H, Q] with ``normaliser="hard"``: the log-probability of the chosen key."""
    scores: Floats | None = None
    """[B, H, Q, K] what normalising makes weights of; -inf outside the window."""
    grads: dict[str, Floats] = field(default_factory=dict)
    """With ``grad_out``: ``query``, ``key``, ``value`` and every parameter, each shaped as its array."""
    memory_used: int = 0
    """The most bytes that the call held at any time."""


def _floats(array: ArrayLike, what: str) -> Floats:
    """The array as contiguous float32; the same memory if it is that already."""
    given = np.asarray(array)
    if given.dtype.kind not in "fiub":
        raise TypeError(f"{what} has the type {given.dtype}; it needs real numbers")
    return np.ascontiguousarray(given, dtype=np.float32)


def _batched(array: ArrayLike, what: str, rank: int | None) -> Floats:
    """[B, n, width]. All three arrays have the rank of the first, 2 or 3."""
    floats = _floats(array, what)
    if floats.ndim not in (2, 3) or (rank is not None and floats.ndim != rank):
        needed = "[rows, width] or [batch, rows, width]" if rank is None else f"{rank} dimensions, as the query"
        raise ShapeError(f"{what} has the shape {list(floats.shape)}; it needs {needed}")
    return floats if floats.ndim == 3 else floats[None]


def _counts(numbers: ArrayLike, what: str, size: int | None = None) -> NDArray[np.int64]:
    given = np.asarray(numbers)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu") or (size is not None and len(given) != size):
        length = "" if size is None else f"{size} "
        raise ShapeError(f"{what} needs {length}whole numbers, one dimension; it is {given.dtype} {list(given.shape)}")
    return np.ascontiguousarray(given, dtype=np.int64)


def _like(array: ArrayLike, shape: tuple[int, ...], what: str) -> Floats:
    floats = _floats(array, what)
    if floats.shape != shape:
        raise ShapeError(f"{what} has the shape {list(floats.shape)}; it needs {list(shape)}")
    return floats


def _output(out: Floats | None, shape: tuple[int, ...]) -> Floats:
    """The caller's array, if it can be written as it is, or a new one."""
    if out is None:
        return np.empty(shape, dtype=np.float32)
    if not isinstance(out, np.ndarray) or out.dtype != np.float32 or not out.flags.c_contiguous or not out.flags.writeable:
        raise TypeError("out is a contiguous, writeable array of float32")
    return _like(out, shape, "out")


def _output_width(parameters: Mapping[str, Floats], value_width: int, heads: int, kv_heads: int) -> int:
    """H·Dv, or the rows of WO. Shapes that do not fit are refused by the library, before it writes."""
    if "WO" in parameters and parameters["WO"].ndim:
        return parameters["WO"].shape[0]
    if "WV" in parameters and parameters["WV"].ndim:
        value_width = parameters["WV"].shape[0]
    return value_width // max(1, kv_heads) * max(1, heads)


def _pass_parameters(c: at_call, arrays: Mapping[str, Floats], grads: Mapping[str, Floats]) -> None:
    table = (at_parameter * max(1, len(arrays)))()
    for entry, (name, array) in zip(table, arrays.items()):
        if array.ndim > AT_MAX_RANK:
            raise ShapeError(f"parameter {name} has {array.ndim} dimensions; the most are {AT_MAX_RANK}")
        entry.name = name.encode()
        entry.rank = array.ndim
        entry.dim[: array.ndim] = array.shape
        entry.value = array.ctypes.data
        entry.grad = grads[name].ctypes.data if name in grads else None
    c.parameters = table
    c.parameter_count = len(arrays)


def attention(
    query: ArrayLike,
    key: ArrayLike | None = None,
    value: ArrayLike | None = None,
    *,
    score: str = "scaled",
    normaliser: str = "softmax",
    window: str = "global",
    position: str = "none",
    heads: int = 1,
    kv_heads: int | None = None,
    plain: bool = False,
    parameters: Mapping[str, ArrayLike] | None = None,
    lengths: ArrayLike | None = None,
    query_start: int = 0,
    sample: bool = False,
    seed: int = 0,
    weights: Union[bool, Sequence[int], NDArray[np.int64]] = False,
    want: Collection[str] = (),
    grad_out: ArrayLike | None = None,
    grad_log_prob: ArrayLike | None = None,
    out: Floats | None = None,
) -> Attention:
    """``out_i = Σ_j w_ij v_j`` with ``w_i = normalise_j(score(q_i, k_j) + position)`` over the keys of the window.

    ``query`` is [B, Q, H·D] or [Q, H·D], ``key`` [B, K, G·D], ``value`` [B, K, G·Dv]; G is ``kv_heads``. Without a key
    this is self-attention, and without a value the keys are the values. Contiguous float32 arrays are read where they
    are; others are converted.

    ``score``, ``normaliser``, ``window`` and ``position`` are names of :func:`attend.catalogue`, and ``parameters``
    the arrays they need by name, such as ``{"W": w}`` for ``score="general"``. ``lengths`` [B] is the number of valid
    keys of each batch row. ``weights=True`` returns all weights, ``weights=[3, 5]`` those of query rows 3 and 5;
    ``want`` names summaries: ``argmax``, ``entropy``, ``key_sums``, ``log_prob``, ``scores``. ``grad_out`` is dL/d out
    and gives all gradients. ``out`` is an array to write to.

    >>> import numpy as np
    >>> x = np.array([[1, 3, 2], [1, 1, 3], [1, 2, 1]], dtype=np.float32)
    >>> done = attention(x, score="dot", weights=True)
    >>> done.out.round(2)
    array([[1.  , 2.96, 2.01],
           [1.  , 1.54, 2.72],
           [1.  , 2.86, 2.  ]], dtype=float32)
    >>> done.weights.shape
    (1, 3, 3)
    >>> attention(x, window="causal", grad_out=np.ones_like(x)).grads["value"].sum().round(4)
    9.0
    >>> attention(x, heads=2)
    Traceback (most recent call last):
    ...
    attend.errors.ShapeError: `heads` is 2 and does not divide the query width 3
    """
    unknown = [name for name in want if name not in _SUMMARIES]
    if unknown or isinstance(want, str):
        raise UsageError(f"`want` names some of {', '.join(_SUMMARIES)}; not {unknown[0] if unknown else want!r}")
    q = _batched(query, "query", None)
    rank = np.ndim(query)
    k = q if key is None else _batched(key, "key", rank)
    v = k if value is None else _batched(value, "value", rank)
    if k.shape[0] != q.shape[0] or v.shape[:2] != k.shape[:2]:
        raise ShapeError(
            f"query {list(q.shape)}, key {list(k.shape)} and value {list(v.shape)} need the same batch, and key and "
            "value as many rows"
        )
    size = {"B": q.shape[0], "H": max(1, heads), "Q": q.shape[1], "K": k.shape[1]}
    held = {name: _floats(array, name) for name, array in (parameters or {}).items()}
    grouped = heads if kv_heads is None else kv_heads
    given: Any = slice(0, None) if rank == 3 else 0  # of a batch of one: without its dimension
    shape = (size["B"], size["Q"], _output_width(held, v.shape[2], heads, grouped))
    made: dict[str, Any] = {"out": _output(out, shape if rank == 3 else shape[1:])}

    c = at_call(
        batch=size["B"], queries=size["Q"], keys=size["K"],
        query_width=q.shape[2], key_width=k.shape[2], value_width=v.shape[2],
        query=q.ctypes.data, key=k.ctypes.data, value=v.ctypes.data,
        query_start=query_start, sample=sample, seed=seed, out=made["out"].ctypes.data,
    )  # fmt: skip
    if lengths is not None:
        kept_lengths = _counts(lengths, "lengths", size["B"])
        c.lengths = kept_lengths.ctypes.data
    if weights is not False:
        rows = None if weights is True else _counts(weights, "weights")
        chosen = size["Q"] if rows is None else len(rows)
        made["weights"] = np.empty((size["B"], size["H"], chosen, size["K"]), dtype=np.float32)[given]
        c.weights = made["weights"].ctypes.data
        c.rows, c.row_count = (None, 0) if rows is None else (rows.ctypes.data, chosen)
    for name in want:
        dtype, dimensions = _SUMMARIES[name]
        made[name] = np.empty([size[d] for d in dimensions], dtype=dtype)[given]
        setattr(c, name, made[name].ctypes.data)

    grads: dict[str, Floats] = {}
    if grad_out is not None:
        arriving = _like(grad_out, made["out"].shape, "grad_out")
        c.grad_out = arriving.ctypes.data
        for name, array in (("query", q), ("key", k), ("value", v)):
            grads[name] = np.zeros(array[given].shape, dtype=np.float32)
            setattr(c, "grad_" + name, grads[name].ctypes.data)
        grads.update({name: np.zeros_like(array) for name, array in held.items()})
        if grad_log_prob is not None:
            signal = _like(grad_log_prob, tuple(size[d] for d in "BHQ")[0 if rank == 3 else 1 :], "grad_log_prob")
            c.grad_log_prob = signal.ctypes.data
    elif grad_log_prob is not None:
        raise UsageError("`grad_log_prob` goes with `grad_out`")
    _pass_parameters(c, held, grads)

    settings = at_settings(
        score=score.encode(), normaliser=normaliser.encode(), window=window.encode(), position=position.encode(),
        heads=heads, kv_heads=grouped, plain=plain,
    )  # fmt: skip
    call("at_attend", ctypes.byref(settings), ctypes.byref(c))
    return Attention(**made, grads=grads, memory_used=c.memory_used)
