"""What can be chosen by name, and the state of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ._abi import library, text


@dataclass(frozen=True)
class Entry:
    """A score, normaliser, window, position or model."""

    axis: str
    name: str
    argument: str
    formula: str
    parameters: str
    paper: str


@dataclass(frozen=True)
class Option:
    """A setting of :func:`attend.train`. ``argument`` and ``default`` are None where there is none."""

    group: str
    name: str
    argument: str | None
    default: str | None
    help: str


@dataclass(frozen=True)
class Metric:
    """A metric of :func:`attend.score`."""

    name: str
    title: str
    meaning: str
    larger_is_better: bool


def _listed(function: Callable[[int], Any]) -> Iterator[Any]:
    index = 0
    while entry := function(index):
        yield entry.contents
        index += 1


def _entry(e: Any) -> Entry:
    return Entry(*(text(getattr(e, name)) for name, _ in e._fields_))


def catalogue(axis: str | None = None) -> list[Entry]:
    """The scores, normalisers, windows and positions, or those of one axis.

    >>> [entry.name for entry in catalogue("score")]
    ['dot', 'scaled', 'general', 'additive']
    """
    return [_entry(e) for e in _listed(library.at_catalogue) if axis is None or text(e.axis) == axis]


def models() -> list[Entry]:
    """The models that can be trained.

    >>> "transformer" in [entry.name for entry in models()]
    True
    """
    return [_entry(e) for e in _listed(library.at_model_entry)]


def training_options() -> list[Option]:
    """The settings of training, with defaults and help. In Python a dash is an underscore.

    >>> [option.argument for option in training_options() if option.name == "learning-rate"]
    ['RATE']
    """

    def optional(value: bytes | None) -> str | None:
        return None if value is None else text(value)

    return [
        Option(text(o.group), text(o.name), optional(o.argument), optional(o.fallback), text(o.help))
        for o in _listed(library.at_training_option_at)
    ]


def metrics() -> list[Metric]:
    """The metrics.

    >>> [metric.name for metric in metrics() if not metric.larger_is_better]
    ['aer', 'cer', 'ter', 'wer']
    """
    return [Metric(text(m.name), text(m.title), text(m.meaning), m.better > 0) for m in _listed(library.at_metric)]


def threads() -> int:
    """How many threads the library uses."""
    return int(library.at_threads())


def set_threads(count: int) -> None:
    """Sets it; 0 means one per core. Results have the same bits for any number."""
    library.at_threads_set(count)


def kernels() -> str:
    """The instruction set in use: ``plain``, ``avx2``, ``avx512`` or ``neon``; ATTEND_ISA chooses."""
    return text(library.at_kernels_name())


def version() -> str:
    """The version of the library that is loaded."""
    return text(library.at_version())
