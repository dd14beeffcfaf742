"""Metrics: scores of lines against references."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._abi import at_comparison, at_line, at_score_settings, at_spread, call, library, text
from .lines import Lines, Text


@dataclass(frozen=True)
class Spread:
    """Bootstrap resampling: 95% of the samples lie between ``low`` and ``high``."""

    mean: float
    low: float
    high: float
    resamples: int


@dataclass(frozen=True)
class Comparison:
    """Paired bootstrap resampling of two systems; ``difference`` is the first score minus the second."""

    difference: float
    spread: Spread
    p: float


def _spread(s: at_spread) -> Spread:
    return Spread(s.mean, s.low, s.high, s.resamples)


class Score:
    """The scores of one system's lines by one metric; made by :func:`score`."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            library.at_scores_free(self._handle)

    @property
    def total(self) -> float:
        """The score of the whole text, which is not the mean over the lines."""
        return float(library.at_scores_total(self._handle))

    def __float__(self) -> float:
        return self.total

    def __repr__(self) -> str:
        return f"<{text(library.at_scores_metric(self._handle).contents.title)} {self.total:.2f}>"

    @property
    def lines(self) -> NDArray[np.float64]:
        """The score of each line."""
        count = library.at_scores_count(self._handle)
        return np.array([library.at_scores_line(self._handle, line) for line in range(count)], dtype=np.float64)

    @property
    def signature(self) -> str:
        """How the score was computed, to publish with it."""
        return text(library.at_scores_signature(self._handle))

    @property
    def details(self) -> str:
        """The parts of BLEU; '' for the others."""
        return text(library.at_scores_details(self._handle))

    def spread(self) -> Spread:
        """How much the score would vary with other lines."""
        spread = at_spread()
        call("at_scores_spread", self._handle, spread)
        return _spread(spread)

    def compare(self, other: Score) -> Comparison:
        """Whether the difference to another system with the same references is more than chance."""
        found = at_comparison()
        call("at_scores_compare", self._handle, other._handle, found)
        return Comparison(found.difference, _spread(found.spread), found.p)


def score(
    metric: str,
    hypotheses: Iterable[Text],
    references: Sequence[Text] | Sequence[Sequence[Text]],
    *,
    tokenise: str = "13a",
    lowercase: bool = False,
    sentences: bool = False,
    resamples: int = 0,
    seed: int = 0,
) -> Score:
    """Scores lines by a metric of :func:`attend.metrics`, against one list of references or several. ``resamples``
    is for :meth:`Score.spread` and :meth:`Score.compare`, 1000 if not given, and in the signature if given.

    >>> done = score("wer", ["a b c d", "e f"], ["a b c x", "e f"])
    >>> round(done.total, 2)
    16.67
    >>> done.lines
    array([25.,  0.])
    >>> score("bleau", ["a"], ["a"])
    Traceback (most recent call last):
    ...
    attend.errors.UsageError: no metric 'bleau'; did you mean 'bleu'?
    """
    several: list[Any] = list(references)
    if not several or isinstance(several[0], (str, bytes)):
        several = [several]
    system = Lines(hypotheses, "hypotheses")
    held = [Lines(reference, "references") for reference in several]
    for reference in held:
        if reference.count != system.count:
            raise ValueError(f"there are {system.count} hypotheses and {reference.count} references")
    pointers = (ctypes.POINTER(at_line) * len(held))(*(reference.pointer for reference in held))
    settings = at_score_settings(
        tokenise=tokenise.encode(), lowercase=lowercase, sentences=sentences, resamples=resamples, seed=seed
    )
    return Score(
        call("at_scores_new", metric.encode(), settings, system.pointer, system.count, pointers, len(held))
    )
