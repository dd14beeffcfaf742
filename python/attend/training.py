"""Training: from text to a model file."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from ._abi import AT_TRAIN, AT_VALID, at_train_listener, at_train_news, at_train_result, at_train_start
from ._abi import call, library, text
from ._stop import Stop
from .lines import Lines, Text, decoded, paired

Setting = Union[str, int, float, bool, "os.PathLike[str]", Iterable[Any]]

_NEWS = ("tick", "update", "valid", "saved", "skipped", "note", "start")


@dataclass(frozen=True)
class Part:
    """What was read for training or for validation. Pairs are of source and target."""

    pairs: int
    used: int
    empty: int
    too_long: int
    over_ratio: int
    units: tuple[int, int]
    unknown: tuple[int, int]


@dataclass(frozen=True)
class Start:
    """What a run starts with."""

    training: Part
    validation: Part
    vocabulary: tuple[int, int]
    model: str
    parameters: int
    batches: int
    threads: int
    update: int
    files: tuple[str | None, ...]
    """Those that are written: the model, the last model, state and log."""


@dataclass(frozen=True)
class News:
    """What a run reports. ``what`` is ``start``, ``tick`` (after every update), ``update`` (a report), ``valid``,
    ``saved``, ``skipped`` (an update whose gradient was not finite) or ``note``."""

    what: str
    epoch: int
    update: int
    sentences: int
    cost: float
    """Per target token, since the last report."""
    seconds: float
    words_per_second: float
    norm: float
    rate: float
    done: float
    left: float
    metric: str
    score: float
    best: float
    better: bool
    text: str
    failures: int
    patience: int
    scores: Mapping[str, float] = field(default_factory=dict)
    samples: tuple[tuple[str, str, str], ...] = ()
    """Lines of the validation data: source, reference, output."""
    start: Start | None = None


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended."""

    updates: int
    epochs: int
    parameters: int
    seconds: float
    words_per_second: float
    cost: float
    best_score: float
    """NaN if the run never validated."""
    best_update: int
    interrupted: bool
    stopped_early: bool
    saved: int
    """The update of the last save; -1 if there was none."""


Callback = Callable[[News], Union[bool, None]]


def _plain(struct: Any, names: Iterable[str]) -> dict[str, Any]:
    """Fields of these names; text as str, pairs as tuples."""

    def value(v: Any) -> Any:
        if isinstance(v, ctypes.Array):
            return tuple(v)
        return text(v) if isinstance(v, bytes) else v

    return {name: value(getattr(struct, name)) for name in names}


def _start(s: at_train_start) -> Start:
    parts = [Part(**_plain(part, Part.__annotations__)) for part in s.part]
    return Start(
        training=parts[AT_TRAIN],
        validation=parts[AT_VALID],
        files=tuple(None if name is None else os.fsdecode(name) for name in s.file),
        **_plain(s, ("vocabulary", "model", "parameters", "batches", "threads", "update")),
    )


def _news(n: at_train_news) -> News:
    told = {"what", "scores", "samples", "start", "metric", "text"}
    lines = [n.samples[i] for i in range(n.sample_count)]
    return News(
        what=_NEWS[n.what],
        metric=text(n.metric),
        text=text(n.text),
        scores={text(n.scores[i].metric): n.scores[i].score for i in range(n.score_count)},
        samples=tuple(
            (decoded(s.source.text, s.source.size), decoded(s.reference.text, s.reference.size),
             decoded(s.output.text, s.output.size))
            for s in lines
        ),  # fmt: skip
        start=_start(n.start.contents) if n.start else None,
        **_plain(n, (name for name in News.__annotations__ if name not in told)),
    )


def _typed(value: Setting) -> bytes:
    """A value as one would type it."""
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, (str, os.PathLike)):
        return os.fsencode(value)
    if isinstance(value, float):
        return repr(value).encode()
    if isinstance(value, Iterable):
        return b",".join(_typed(v) for v in value)
    return str(value).encode()


def _listener(callback: Callback | None, stop: Stop) -> Any:
    def listen(_context: int | None, news: Any) -> None:
        try:
            if callback is not None and stop.exception is None and callback(_news(news.contents)) is False:
                stop.flag.value = 1
        except BaseException as exception:
            stop.fail(exception)

    return at_train_listener(listen)  # also without a callback: Python sees Ctrl-C when its own code runs


def train(
    output: str | os.PathLike[str],
    sources: Iterable[Text] | None = None,
    targets: Iterable[Text] | None = None,
    *,
    valid_sources: Iterable[Text] | None = None,
    valid_targets: Iterable[Text] | None = None,
    callback: Callback | None = None,
    **settings: Setting,
) -> TrainingResult:
    """Trains a model on pairs of lines and writes it to ``output``.

    Lines come from lists, or from files that the settings ``source`` and ``target`` name. All settings are those of
    ``attend train``, with underscores; :func:`attend.training_options` lists them. ``callback`` gets :class:`News`;
    if it returns False the run saves and ends. An exception in it, or Ctrl-C, also ends the run after saving, and is
    raised then; ``resume=True`` continues to the same bits. A model that is there is replaced with ``overwrite=True``.

    >>> costs = []
    >>> done = train(folder / "copy.safetensors", ["a b", "b c", "c a b"], ["a b", "b c", "c a b"], embedding=4,
    ...              hidden=6, attention=4, maxout=4, updates=3, report_every=1,
    ...              callback=lambda news: costs.append(news.cost) if news.what == "update" else None)
    >>> done.updates, len(costs), done.interrupted
    (3, 3, False)
    """
    handle = call("at_training_new")
    try:
        everything: dict[str, Setting] = {**settings, "output": output}
        for name, value in everything.items():
            call("at_training_set", handle, name.replace("_", "-").encode(), _typed(value))
        held = []  # the library does not copy the lines
        for part, source, target in ((AT_TRAIN, sources, targets), (AT_VALID, valid_sources, valid_targets)):
            if target is None:
                if source is not None:
                    raise ValueError("sources need their targets")
                continue
            pair = (None if source is None else Lines(source, "sources"), Lines(target, "targets"))
            count = pair[1].count if pair[0] is None else paired(pair[0], pair[1])
            held.append(pair)
            pointer = None if pair[0] is None else pair[0].pointer
            call("at_training_data", handle, part, pointer, pair[1].pointer, count)
        result = at_train_result()
        with Stop() as stop:
            listener = _listener(callback, stop)
            call("at_training_run", handle, listener, None, ctypes.byref(stop.flag), result)
        return TrainingResult(**_plain(result, TrainingResult.__annotations__))
    finally:
        library.at_training_free(handle)
