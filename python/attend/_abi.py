"""The C interface of attend.h as ctypes: structs and prototypes under their C names, and the library that is loaded.

``tests/python/test_abi.py`` compares every struct, enumerator and prototype with the header.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64
from ctypes import c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from .errors import Error, error_of

INTERFACE = "0.1"  # the minor version, which is the library's soname

AT_MAX_RANK = 8
AT_NEWS_TICK, AT_NEWS_UPDATE, AT_NEWS_VALID, AT_NEWS_SAVED, AT_NEWS_SKIPPED, AT_NEWS_NOTE, AT_NEWS_START = range(7)
AT_TRAIN, AT_VALID = range(2)
AT_ENCODER_ATTENTION, AT_DECODER_ATTENTION, AT_CROSS_ATTENTION = range(3)

# A pointer to text with a size, or to numbers, is c_void_p: ctypes would read a c_char_p up to a NUL.
_texts = POINTER(c_char_p)
_floats = c_void_p
_int32s = POINTER(c_int32)


class at_error(Structure):
    _fields_ = [("code", c_int), ("text", c_char * 500)]


class at_settings(Structure):
    _fields_ = [
        ("score", c_char_p),
        ("normaliser", c_char_p),
        ("window", c_char_p),
        ("position", c_char_p),
        ("heads", c_int),
        ("kv_heads", c_int),
        ("plain", c_bool),
    ]


class at_parameter(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("rank", c_int),
        ("dim", c_int64 * AT_MAX_RANK),
        ("value", _floats),
        ("grad", _floats),
    ]


class at_call(Structure):
    _fields_ = [
        ("batch", c_int64),
        ("queries", c_int64),
        ("keys", c_int64),
        ("query_width", c_int64),
        ("key_width", c_int64),
        ("value_width", c_int64),
        ("query", _floats),
        ("key", _floats),
        ("value", _floats),
        ("lengths", c_void_p),
        ("query_start", c_int64),
        ("sample", c_bool),
        ("seed", c_uint64),
        ("parameters", POINTER(at_parameter)),
        ("parameter_count", c_int),
        ("out", _floats),
        ("weights", _floats),
        ("rows", c_void_p),
        ("row_count", c_int64),
        ("argmax", c_void_p),
        ("entropy", _floats),
        ("key_sums", _floats),
        ("log_prob", _floats),
        ("grad_out", _floats),
        ("grad_log_prob", _floats),
        ("grad_query", _floats),
        ("grad_key", _floats),
        ("grad_value", _floats),
        ("memory", c_void_p),
        ("memory_size", c_size_t),
        ("memory_used", c_size_t),
        ("scores", _floats),
    ]


class at_entry(Structure):
    _fields_ = [
        ("axis", c_char_p),
        ("name", c_char_p),
        ("argument", c_char_p),
        ("formula", c_char_p),
        ("parameters", c_char_p),
        ("paper", c_char_p),
    ]


class at_line(Structure):
    _fields_ = [("text", c_void_p), ("size", c_size_t)]


class at_training_option(Structure):
    _fields_ = [
        ("group", c_char_p),
        ("name", c_char_p),
        ("argument", c_char_p),
        ("fallback", c_char_p),
        ("help", c_char_p),
    ]


class at_train_part(Structure):
    _fields_ = [
        ("pairs", c_int64),
        ("used", c_int64),
        ("empty", c_int64),
        ("too_long", c_int64),
        ("over_ratio", c_int64),
        ("units", c_int64 * 2),
        ("unknown", c_int64 * 2),
    ]


class at_train_start(Structure):
    _fields_ = [
        ("part", at_train_part * 2),
        ("vocabulary", c_int64 * 2),
        ("model", c_char_p),
        ("parameters", c_int64),
        ("batches", c_int64),
        ("threads", c_int),
        ("update", c_int64),
        ("file", c_char_p * 4),
    ]


class at_train_score(Structure):
    _fields_ = [("metric", c_char_p), ("score", c_double)]


class at_train_sample(Structure):
    _fields_ = [("source", at_line), ("reference", at_line), ("output", at_line)]


class at_train_news(Structure):
    _fields_ = [
        ("what", c_int),
        ("epoch", c_int64),
        ("update", c_int64),
        ("sentences", c_int64),
        ("cost", c_double),
        ("seconds", c_double),
        ("words_per_second", c_double),
        ("norm", c_double),
        ("rate", c_double),
        ("done", c_double),
        ("left", c_double),
        ("metric", c_char_p),
        ("score", c_double),
        ("best", c_double),
        ("better", c_bool),
        ("text", c_char_p),
        ("start", POINTER(at_train_start)),
        ("scores", POINTER(at_train_score)),
        ("samples", POINTER(at_train_sample)),
        ("score_count", c_int),
        ("sample_count", c_int),
        ("failures", c_int64),
        ("patience", c_int64),
    ]


class at_train_result(Structure):
    _fields_ = [
        ("updates", c_int64),
        ("epochs", c_int64),
        ("parameters", c_int64),
        ("seconds", c_double),
        ("words_per_second", c_double),
        ("cost", c_double),
        ("best_score", c_double),
        ("best_update", c_int64),
        ("interrupted", c_bool),
        ("stopped_early", c_bool),
        ("saved", c_int64),
    ]


at_train_listener = CFUNCTYPE(None, c_void_p, POINTER(at_train_news))
at_on_long = CFUNCTYPE(None, c_void_p, c_int64, c_int64, c_int64)
at_on_term = CFUNCTYPE(None, c_void_p, c_int64, at_line, c_bool)


class at_search_settings(Structure):
    _fields_ = [
        ("beam", c_int64),
        ("length_penalty", c_double),
        ("n_best", c_int64),
        ("temperature", c_double),
        ("seed", c_uint64),
        ("first_line", c_int64),
        ("batch", c_int64),
        ("max_length_factor", c_double),
        ("max_length", c_int64),
        ("min_length_factor", c_double),
        ("replace_unknown", c_bool),
        ("wants_weights", c_bool),
        ("wants_links", c_bool),
        ("layer", c_int),
        ("head", c_int),
        ("prefix", c_bool),
        ("max_source", c_int64),
        ("on_long", at_on_long),
        ("top_k", c_int64),
        ("top_p", c_double),
        ("stop", POINTER(c_int)),
        ("normalise", c_double),
        ("no_repeat", c_int64),
        ("coverage_penalty", c_double),
        ("glossary", c_void_p),
        ("on_term", at_on_term),
        ("split", c_char_p),
        ("placeholders", c_bool),
        ("align_shift", c_bool),
    ]


class at_hypothesis(Structure):
    _fields_ = [
        ("text", c_void_p),
        ("size", c_size_t),
        ("ids", _int32s),
        ("count", c_int64),
        ("score", c_double),
        ("penalised", c_double),
        ("links", _int32s),
        ("weights", POINTER(c_float)),
        ("names", _texts),
        ("source_units", c_int64),
    ]


class at_result(Structure):
    _fields_ = [
        ("count", c_int64),
        ("best", POINTER(at_hypothesis)),
        ("source_names", _texts),
        ("source_units", c_int64),
        ("source_offsets", _int32s),
        ("target_offsets", _int32s),
        ("replaced", c_int64),
        ("is_long", c_bool),
        ("features", POINTER(c_float)),
        ("feature_size", c_int64),
        ("cut", c_int64),
    ]


at_on_result = CFUNCTYPE(c_bool, c_void_p, c_int64, POINTER(at_result))


class at_map(Structure):
    _fields_ = [
        ("kind", c_int),
        ("layer", c_int),
        ("heads", c_int),
        ("rows", c_int64),
        ("columns", c_int64),
        ("weights", POINTER(c_float)),
        ("row_names", _texts),
        ("column_names", _texts),
    ]


class at_metric_info(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("title", c_char_p),
        ("meaning", c_char_p),
        ("better", c_int),
        ("tokenises", c_bool),
        ("alignments", c_bool),
        ("most_references", c_int),
    ]


class at_score_settings(Structure):
    _fields_ = [
        ("tokenise", c_char_p),
        ("lowercase", c_bool),
        ("sentences", c_bool),
        ("resamples", c_int64),
        ("seed", c_uint64),
    ]


class at_spread(Structure):
    _fields_ = [("mean", c_double), ("low", c_double), ("high", c_double), ("resamples", c_int64)]


class at_comparison(Structure):
    _fields_ = [("difference", c_double), ("spread", at_spread), ("p", c_double)]


class at_heatmap(Structure):
    _fields_ = [
        ("rows", c_int64),
        ("columns", c_int64),
        ("values", _floats),
        ("row_names", _texts),
        ("column_names", _texts),
        ("colour", c_bool),
        ("width", c_int),
        ("indexed", c_bool),
    ]


_object = c_void_p  # what _new and _load return
_error = POINTER(at_error)
_lines = POINTER(at_line)
_search = POINTER(at_search_settings)

# name: (what it returns, its arguments)
PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "at_version": (c_char_p, []),
    "at_threads_set": (None, [c_int]),
    "at_threads": (c_int, []),
    "at_kernels_name": (c_char_p, []),
    "at_attend": (c_bool, [POINTER(at_settings), POINTER(at_call), _error]),
    "at_catalogue": (POINTER(at_entry), [c_int]),
    "at_model_entry": (POINTER(at_entry), [c_int]),
    "at_training_new": (_object, [_error]),
    "at_training_free": (None, [_object]),
    "at_training_option_at": (POINTER(at_training_option), [c_int]),
    "at_training_set": (c_bool, [_object, c_char_p, c_char_p, _error]),
    "at_training_data": (c_bool, [_object, c_int, _lines, _lines, c_int64, _error]),
    "at_training_run": (
        c_bool,
        [_object, at_train_listener, c_void_p, POINTER(c_int), POINTER(at_train_result), _error],
    ),
    "at_translator_load": (_object, [c_char_p, _error]),
    "at_translator_load_memory": (_object, [c_void_p, c_size_t, _error]),
    "at_translator_clone": (_object, [_object, _error]),
    "at_translator_free": (None, [_object]),
    "at_translator_add": (c_bool, [_object, c_char_p, _error]),
    "at_translator_has_source": (c_bool, [_object]),
    "at_translator_has_pictures": (c_bool, [_object]),
    "at_translator_heads": (c_bool, [_object, POINTER(c_int), POINTER(c_int)]),
    "at_translator_guided": (c_bool, [_object, POINTER(c_int), POINTER(c_int)]),
    "at_translator_info_json": (c_void_p, [_object, _error]),
    "at_translator_longest": (c_int64, [_object]),
    "at_translate": (c_bool, [_object, _search, _lines, c_int64, at_on_result, c_void_p, _error]),
    "at_align": (c_bool, [_object, _search, _lines, _lines, c_int64, at_on_result, c_void_p, _error]),
    "at_encode": (c_bool, [_object, _search, _lines, c_int64, at_on_result, c_void_p, _error]),
    "at_word_numbers": (c_int64, [at_line, _int32s, c_int64, POINTER(c_int64)]),
    "at_maps_new": (_object, [_object, _search, _lines, _lines, _error]),
    "at_maps_free": (None, [_object]),
    "at_maps_words": (_object, [_object, _error]),
    "at_maps_at": (POINTER(at_map), [_object, c_int]),
    "at_maps_target": (c_char_p, [_object]),
    "at_maps_score": (c_double, [_object]),
    "at_metric": (POINTER(at_metric_info), [c_int]),
    "at_scores_new": (
        _object,
        [c_char_p, POINTER(at_score_settings), _lines, c_int64, POINTER(_lines), c_int, _error],
    ),
    "at_scores_free": (None, [_object]),
    "at_scores_count": (c_int64, [_object]),
    "at_scores_metric": (POINTER(at_metric_info), [_object]),
    "at_scores_total": (c_double, [_object]),
    "at_scores_line": (c_double, [_object, c_int64]),
    "at_scores_signature": (c_char_p, [_object]),
    "at_scores_details": (c_char_p, [_object]),
    "at_scores_spread": (c_bool, [_object, POINTER(at_spread), _error]),
    "at_scores_compare": (c_bool, [_object, _object, POINTER(at_comparison), _error]),
    "at_heatmap_text": (c_void_p, [POINTER(at_heatmap), _error]),
    "at_text_free": (None, [c_void_p]),
}


def _candidates() -> list[str]:
    """Where the library may be: the environment's choice alone, or a source tree's build before the system's."""
    chosen = os.environ.get("ATTEND_LIBRARY")
    if chosen:
        return [chosen]
    name = f"libattend.so.{INTERFACE}"
    tree = Path(__file__).resolve().parents[2]
    built = tree / "build" / name
    return ([str(built)] if (tree / "include/attend.h").exists() and built.exists() else []) + [name]


def _load() -> ctypes.CDLL:
    failures = []
    for name in _candidates():
        try:
            loaded = ctypes.CDLL(name)
        except OSError as reason:
            failures.append(str(reason))
            continue
        for function, (result, arguments) in PROTOTYPES.items():
            entry = getattr(loaded, function)
            entry.restype, entry.argtypes = result, arguments
        version = loaded.at_version().decode()
        if version.rpartition(".")[0] != INTERFACE:
            raise ImportError(f"'{name}' is attend {version}, and this package is for attend {INTERFACE}")
        return loaded
    raise ImportError(
        "the library libattend is not found; install it, or name it in ATTEND_LIBRARY: " + "; ".join(failures)
    )


library = _load()


def call(function: str, *arguments: Any) -> Any:
    """Calls a function that takes an at_error last; a failure becomes an exception with the library's message."""
    error = at_error()
    result = getattr(library, function)(*arguments, error)
    if error.code:
        raise error_of(error.code, error.text.decode("utf-8", "replace"))
    if not result:
        raise Error(f"{function} failed without a message")
    return result


def taken_text(pointer: int) -> str:
    """A string that the library allocated, as str; it is released."""
    try:
        return ctypes.string_at(pointer).decode("utf-8", "replace")
    finally:
        library.at_text_free(pointer)


def text(pointer: bytes | None) -> str:
    """A string that belongs to the library; NULL is ''."""
    return pointer.decode("utf-8", "replace") if pointer else ""
