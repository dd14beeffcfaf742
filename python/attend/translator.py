"""Trained models: translating, aligning, and their attention weights."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from ._abi import at_hypothesis, at_on_result, at_result, at_search_settings
from ._abi import call, library, taken_text, text
from ._stop import Stop
from .errors import UsageError
from .lines import Lines, Text, decoded, paired

Floats = NDArray[np.float32]
Links = list[tuple[int, int]]
"""Pairs (source, target), counted from 0."""

_KINDS = ("encoder", "decoder", "cross")


@dataclass(frozen=True)
class Hypothesis:
    """One output."""

    text: str
    ids: NDArray[np.int32]
    """[T] its units, without the end."""
    score: float
    """Its log-probability, the end included."""
    penalised: float
    """What the beam ranked by."""
    links: NDArray[np.int32] | None
    """[T + 1] the source unit of the largest weight, -1 for none; None without attention."""
    weights: Floats | None
    """[T + 1, S] the attention weights; the last row is the end's. None unless wanted."""
    units: tuple[str, ...]
    """The target's units and the end; empty unless weights are wanted."""


@dataclass(frozen=True)
class Result:
    """The result of one line."""

    hypotheses: tuple[Hypothesis, ...]
    """The best first."""
    source_units: tuple[str, ...]
    """Empty unless weights are wanted."""
    replaced: int
    """Byte sequences that were not UTF-8."""
    is_long: bool
    """The line has more units than the model was trained for."""
    cut: int
    """Units that ``max_source`` left out."""

    @property
    def best(self) -> Hypothesis:
        """The first hypothesis."""
        return self.hypotheses[0]

    @property
    def text(self) -> str:
        """That of the best."""
        return self.best.text


@dataclass(frozen=True)
class Alignment:
    """A target line aligned with its source by forced decoding."""

    score: float
    """The log-probability of the target, the end included."""
    links: Links
    """Between words: each target word's source word, ordered by source."""
    weights: Floats | None
    """[T + 1, S] between units; the last row is the end's. None for a source without a unit."""
    source_units: tuple[str, ...]
    target_units: tuple[str, ...]

    def __str__(self) -> str:
        """The links as ``attend align`` writes them: ``0-0 1-2``."""
        return " ".join(f"{s}-{t}" for s, t in self.links)


@dataclass(frozen=True)
class Map:
    """The attention weights of one layer. ``kind`` is ``encoder``, ``decoder`` or ``cross``."""

    kind: str
    layer: int
    weights: Floats
    """[heads, rows, columns]"""
    rows: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Maps:
    """All attention weights of one line."""

    target: str
    score: float
    """The target's log-probability."""
    maps: tuple[Map, ...]

    def of(self, kind: str, layer: int = 1) -> Map:
        """The map of a kind and a layer."""
        for found in self.maps:
            if found.kind == kind and found.layer == layer:
                return found
        raise KeyError(f"there is no {kind} attention in layer {layer}")


def _copied(pointer: Any, *shape: int) -> NDArray[Any]:
    """A copy: what a callback receives is valid during the call only."""
    if 0 in shape or not pointer:
        return np.empty(shape, dtype=pointer._type_)
    return np.ctypeslib.as_array(pointer, shape).copy()


def _names(pointer: Any, count: int) -> tuple[str, ...]:
    return tuple(text(pointer[i]) for i in range(count)) if pointer else ()


def _hypothesis(h: at_hypothesis) -> Hypothesis:
    return Hypothesis(
        text=decoded(h.text, h.size),
        ids=_copied(h.ids, h.count) if h.ids else np.empty(0, dtype=np.int32),  # none for a line in parts
        score=h.score,
        penalised=h.penalised,
        links=_copied(h.links, h.count + 1) if h.links else None,
        weights=_copied(h.weights, h.count + 1, h.source_units) if h.weights else None,
        units=_names(h.names, h.count + 1),
    )


def _result(r: at_result) -> Result:
    return Result(
        hypotheses=tuple(_hypothesis(r.best[i]) for i in range(r.count)),
        source_units=_names(r.source_names, r.source_units),
        replaced=r.replaced,
        is_long=r.is_long,
        cut=r.cut,
    )


def _words_of(line: Any, offsets: Any, units: int) -> tuple[int, NDArray[np.int64]]:
    """How many words a line has, and the word of each unit."""
    numbers = np.full(max(1, units), -1, dtype=np.int64)
    pointer = numbers.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
    return int(library.at_word_numbers(line, offsets, units, pointer)), numbers[:units]


def _word_links(weights: Floats, sources: NDArray[np.int64], targets: NDArray[np.int64], words: int) -> Links:
    """Each target word's source word of the largest weight: columns of a word are added, its rows averaged."""
    by_column = np.zeros((len(targets), words), dtype=np.float64)
    for unit, word in enumerate(sources):
        if word >= 0:
            by_column[:, word] += weights[: len(targets), unit]
    links = []
    for word in np.unique(targets[targets >= 0]):
        row = by_column[targets == word].mean(axis=0)
        if row.size and row.max() > 0:
            links.append((int(row.argmax()), int(word)))
    return sorted(links)


def _alignment(r: at_result, source: Any, target: Any, by_unit: bool) -> Alignment:
    h = r.best[0]
    weights = _copied(h.weights, h.count + 1, r.source_units) if h.weights else None
    links: Links = []
    if weights is not None and by_unit:
        units = np.arange(r.source_units), np.arange(h.count)
        links = _word_links(weights, units[0], units[1], r.source_units)
    elif weights is not None:
        words, sources = _words_of(source, r.source_offsets, r.source_units)
        _, targets = _words_of(target, r.target_offsets, h.count)
        links = _word_links(weights, sources, targets, words)
    return Alignment(h.score, links, weights, _names(r.source_names, r.source_units), _names(h.names, h.count + 1))


class Translator:
    """A trained model, or an ensemble of several. One thread at a time uses one; :meth:`clone` makes others.

    >>> translator = Translator(model)
    >>> translator.translate("a b c")
    'C B A'
    >>> translator.translate(["b a", "c"])
    ['A B', 'C']
    >>> str(translator.align(["a b"], ["B A"])[0])
    '0-1 1-0'
    >>> Translator("no/such/file")
    Traceback (most recent call last):
    ...
    attend.errors.FileError: cannot read 'no/such/file': No such file or directory
    """

    def __init__(self, path: str | os.PathLike[str], *more: str | os.PathLike[str]) -> None:
        """Loads a model file; further ones make an ensemble."""
        self._handle: int | None = call("at_translator_load", os.fsencode(path))
        for other in more:
            call("at_translator_add", self._handle, os.fsencode(other))

    @classmethod
    def from_bytes(cls, data: bytes) -> Translator:
        """The same from the bytes of a file of ``attend train``."""
        made = cls.__new__(cls)
        made._handle = call("at_translator_load_memory", data, len(data))
        return made

    def clone(self) -> Translator:
        """Another translator with the same parameters, which are shared, for another thread."""
        made = type(self).__new__(type(self))
        made._handle = call("at_translator_clone", self._open)
        return made

    def close(self) -> None:
        """Releases the model now; it cannot be used any more."""
        handle, self._handle = self._handle, None
        library.at_translator_free(handle)

    def __enter__(self) -> Translator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    @property
    def _open(self) -> int:
        if self._handle is None:
            raise UsageError("the translator is closed")
        return self._handle

    @property
    def info(self) -> dict[str, Any]:
        """Settings, sizes and training history, as ``attend info --json`` prints them."""
        info: dict[str, Any] = json.loads(taken_text(call("at_translator_info_json", self._open)))
        return info

    @property
    def has_source(self) -> bool:
        """False for a language model."""
        return bool(library.at_translator_has_source(self._open))

    @property
    def heads(self) -> tuple[int, int] | None:
        """How many layers attend to the source, and with how many heads each; None if none does."""
        layers, heads = ctypes.c_int(), ctypes.c_int()
        return (layers.value, heads.value) if library.at_translator_heads(self._open, layers, heads) else None

    @property
    def longest(self) -> int:
        """The units of the longest source that training allowed; 0 if that is not known."""
        return int(library.at_translator_longest(self._open))

    def _settings(self, **given: Any) -> at_search_settings:
        names = {name for name, _ in at_search_settings._fields_} - {"on_long", "stop", "glossary", "on_term"}
        for name in given:
            if name not in names:
                raise UsageError(f"no search setting '{name}'; there are {', '.join(sorted(names))}")
        if isinstance(given.get("split"), str):
            given["split"] = given["split"].encode()
        return at_search_settings(**given)

    def _collect(self, function: str, settings: at_search_settings, lines: list[Any], make: Any) -> list[Any]:
        """What ``make(line, result)`` makes of the result of each line."""
        made: list[Any] = []

        def take(_context: int | None, line: int, result: Any) -> bool:
            try:
                made.append(make(line - settings.first_line, result.contents))
            except BaseException as exception:
                stop.fail(exception)
            return not stop.flag.value

        pointers = [None if line is None else line.pointer for line in lines]
        with Stop() as stop:
            settings.stop = ctypes.pointer(stop.flag)
            call(function, self._open, settings, *pointers, lines[-1].count, at_on_result(take), None)
        return made

    def search(self, lines: Iterable[Text], **settings: Any) -> list[Result]:
        """The complete results, one for each line. Settings are those of ``at_search_settings`` in attend.h:
        ``beam``, ``length_penalty``, ``n_best``, ``temperature``, ``seed``, ``batch``, ``max_length_factor``,
        ``top_k``, ``top_p``, ``prefix``, ``wants_weights``, ``layer``, ``head``, ``no_repeat``, ``coverage_penalty``,
        ``split``, ``placeholders`` ...

        >>> best = Translator(model).search(["a b"], beam=3, n_best=2, wants_weights=True)[0].best
        >>> best.text, best.units, best.weights.shape
        ('B A', ('B', 'A', '</s>'), (3, 2))
        """
        return self._collect("at_translate", self._settings(**settings), [Lines(lines)], lambda _, r: _result(r))

    @overload
    def translate(self, lines: Text, **settings: Any) -> str: ...  # type: ignore[misc]

    @overload
    def translate(self, lines: Iterable[Text], **settings: Any) -> list[str]: ...

    def translate(self, lines: Any, **settings: Any) -> Any:
        """The translation of a line, or of each line of a list. Settings as in :meth:`search`."""
        one = isinstance(lines, (str, bytes))
        texts = self._collect(
            "at_translate", self._settings(**settings), [Lines([lines] if one else lines)],
            lambda _, r: decoded(r.best[0].text, r.best[0].size),
        )  # fmt: skip
        return texts[0] if one else texts

    def align(self, sources: Iterable[Text], targets: Iterable[Text], **settings: Any) -> list[Alignment]:
        """Aligns targets with their sources. Without ``layer`` and ``head`` the weights are those of the head that
        training guided, or the mean of all; ``batch`` and ``max_source`` are the other settings."""
        if "layer" not in settings and "head" not in settings:
            layer, head = ctypes.c_int(), ctypes.c_int()
            if library.at_translator_guided(self._open, layer, head):
                settings.update(layer=layer.value, head=head.value)
        search = self._settings(**{"wants_weights": True, **settings})
        source, target = Lines(sources, "sources"), Lines(targets, "targets")
        paired(source, target)
        by_unit = bool(library.at_translator_has_pictures(self._open))  # the cells of a picture are no words

        def make(line: int, r: at_result) -> Alignment:
            return _alignment(r, source.line(line), target.line(line), by_unit)

        return self._collect("at_align", search, [source, target], make)

    def score(self, targets: Iterable[Text], sources: Iterable[Text] | None = None, **settings: Any) -> NDArray[np.float64]:
        """The log-probability of each target, given its source; a language model has no sources.

        >>> scores = Translator(model).score(["B A", "A B"], ["a b", "a b"])
        >>> bool(scores[0] > scores[1])
        True
        """
        target = Lines(targets, "targets")
        source = None if sources is None else Lines(sources, "sources")
        if source is not None:
            paired(source, target)
        scores = self._collect("at_align", self._settings(**settings), [source, target], lambda _, r: r.best[0].score)
        return np.array(scores, dtype=np.float64)

    def encode(self, lines: Iterable[Text], **settings: Any) -> list[Floats]:
        """The encoder's features of each line: [units, size].

        >>> Translator(model).encode(["a b c"])[0].shape[0]
        3
        """

        def features(_: int, r: at_result) -> Floats:
            return _copied(r.features, r.source_units, r.feature_size)

        return self._collect("at_encode", self._settings(**settings), [Lines(lines)], features)

    def maps(self, source: Text | None, target: Text | None = None, *, words: bool = False, **settings: Any) -> Maps:
        """The attention weights of all layers and heads for one line: of its best translation, or of ``target``.

        >>> cross = Translator(model).maps("a b c").of("cross")
        >>> cross.weights.shape, cross.rows, cross.columns
        ((1, 4, 3), ('C', 'B', 'A', '</s>'), ('a', 'b', 'c'))
        """
        lines = [None if line is None else Lines([line]) for line in (source, target)]
        pointers = [None if line is None else line.pointer for line in lines]
        handles = [call("at_maps_new", self._open, self._settings(**settings), *pointers)]
        try:
            if words:
                handles.append(call("at_maps_words", handles[0]))
            found = handles[-1]
            maps: list[Map] = []
            while m := library.at_maps_at(found, len(maps)):
                c = m.contents
                maps.append(
                    Map(
                        kind=_KINDS[c.kind],
                        layer=c.layer,
                        weights=_copied(c.weights, c.heads, c.rows, c.columns),
                        rows=_names(c.row_names, c.rows),
                        columns=_names(c.column_names, c.columns),
                    )
                )
            return Maps(text(library.at_maps_target(found)), library.at_maps_score(found), tuple(maps))
        finally:
            for handle in handles:
                library.at_maps_free(handle)
