"""Attention on NumPy arrays, and sequence-to-sequence models: the library attend from Python.

    attention       the operator: score, normaliser, window, position and heads, forward and backward
    train           trains a model on pairs of lines, with a callback
    Translator      a trained model: translate, search, align, score, encode, and all its attention weights
    score           metrics: BLEU, chrF, TER, WER ...
    heatmap         weights as text
    catalogue, models, metrics, training_options      what can be chosen by name

The package calls libattend by ctypes; nothing is compiled. The library is that of the system, of the source tree that
the package lies in, or the one that the environment variable ATTEND_LIBRARY names. While the library computes, other
threads of Python run. Errors are exceptions with the library's message: see :mod:`attend.errors`.

>>> import attend, numpy as np
>>> attend.attention(np.eye(2, dtype=np.float32), score="dot", normaliser="hard").out
array([[1., 0.],
       [0., 1.]], dtype=float32)
"""

from .catalogue import Entry, Metric, Option, catalogue, kernels, metrics, models, set_threads, threads
from .catalogue import training_options, version
from .errors import Error, FileError, FormatError, InterruptedByCallbackError, OutOfMemoryError, ShapeError
from .errors import UnsupportedError, UsageError
from .operator import Attention, attention
from .pictures import heatmap
from .scores import Comparison, Score, Spread, score
from .training import News, Part, Start, TrainingResult, train
from .translator import Alignment, Hypothesis, Map, Maps, Result, Translator

__version__ = version()

__all__ = [
    "Alignment",
    "Attention",
    "Comparison",
    "Entry",
    "Error",
    "FileError",
    "FormatError",
    "Hypothesis",
    "InterruptedByCallbackError",
    "Map",
    "Maps",
    "Metric",
    "News",
    "Option",
    "OutOfMemoryError",
    "Part",
    "Result",
    "Score",
    "ShapeError",
    "Spread",
    "Start",
    "TrainingResult",
    "Translator",
    "UnsupportedError",
    "UsageError",
    "attention",
    "catalogue",
    "heatmap",
    "kernels",
    "metrics",
    "models",
    "score",
    "set_threads",
    "threads",
    "train",
    "training_options",
    "version",
]
