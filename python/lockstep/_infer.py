"""The functions of include/lockstep/infer.h, by ctypes. tests/test_c.py compares them with the
header."""

from __future__ import annotations

import ctypes
from typing import Any

from lockstep._c import ErrorStruct, Pointer, Size, Status, declare, library

_INT, _LONG, _TEXT = ctypes.c_int, ctypes.c_int64, ctypes.c_char_p
_TEXTS = ctypes.POINTER(ctypes.c_char_p)
_OUT, _ERROR = ctypes.POINTER(Pointer), ctypes.POINTER(ErrorStruct)
_NBYTES = ctypes.POINTER(Size)
MAX_DIMS = 4

WRITE = ctypes.CFUNCTYPE(_INT, ctypes.c_void_p, ctypes.c_void_p, Size)


class Dims(ctypes.Structure):
    """ls_dims."""

    _fields_ = [("of", _LONG * MAX_DIMS)]


class PredictorOptions(ctypes.Structure):
    """ls_predictor_options."""

    _fields_ = [
        ("program", Pointer),
        ("ema", _INT),
        ("threads", _INT),
        ("logits", _INT),
        ("vectors", _INT),
        ("device", _TEXT),
    ]


class Input(ctypes.Structure):
    """ls_predictor_input."""

    _fields_ = [
        ("name", _TEXT),
        ("type", _INT),
        ("dims", Dims),
        ("count", _LONG),
        ("nbytes", _LONG),
    ]


class Output(ctypes.Structure):
    """ls_predictor_output."""

    _fields_ = [
        ("name", _TEXT),
        ("kind", _INT),
        ("dims", Dims),
        ("count", _LONG),
        ("rows", _LONG),
        ("width", _LONG),
        ("classes", _TEXTS),
        ("nclasses", _INT),
    ]


class LanguageOptions(ctypes.Structure):
    """ls_language_options."""

    _fields_ = [("ema", _INT), ("template_file", _TEXT), ("sets", _TEXTS), ("device", _TEXT)]


class WritingOptions(ctypes.Structure):
    """ls_writing_options."""

    _fields_ = [
        ("tokens", _LONG),
        ("seed", ctypes.c_uint64),
        ("temperature", ctypes.c_double),
        ("top_k", _LONG),
        ("top_p", ctypes.c_double),
        ("min_p", ctypes.c_double),
        ("penalty", ctypes.c_double),
        ("stops", _TEXTS),
        ("write", WRITE),
        ("arg", Pointer),
    ]


class TextStruct(ctypes.Structure):
    """ls_language_text."""

    _fields_ = [("text", Pointer), ("nbytes", Size), ("ntokens", _LONG), ("end", _TEXT)]


class MessageStruct(ctypes.Structure):
    """ls_language_message."""

    _fields_ = [("role", _TEXT), ("text", _TEXT)]


STRUCTS = {
    "ls_predictor_options": PredictorOptions,
    "ls_predictor_input": Input,
    "ls_predictor_output": Output,
    "ls_language_options": LanguageOptions,
    "ls_writing_options": WritingOptions,
    "ls_language_text": TextStruct,
    "ls_language_message": MessageStruct,
}

_WRITTEN = [ctypes.POINTER(WritingOptions), ctypes.POINTER(TextStruct), _ERROR]

PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "ls_predictor_open": (Status, [_TEXT, ctypes.POINTER(PredictorOptions), _OUT, _ERROR]),
    "ls_predictor_close": (None, [Pointer]),
    "ls_predictor_ninputs": (_INT, [Pointer]),
    "ls_predictor_get_input": (Input, [Pointer, _INT]),
    "ls_predictor_noutputs": (_INT, [Pointer]),
    "ls_predictor_get_output": (Output, [Pointer, _INT]),
    "ls_predict": (Status, [Pointer, _LONG, _OUT, _OUT, _ERROR]),
    "ls_language_open": (Status, [_TEXT, ctypes.POINTER(LanguageOptions), _OUT, _ERROR]),
    "ls_language_close": (None, [Pointer]),
    "ls_language_vocab": (_LONG, [Pointer]),
    "ls_language_context": (_LONG, [Pointer]),
    "ls_language_encode": (Status, [Pointer, _TEXT, Size, _INT, _OUT, _NBYTES, _ERROR]),
    "ls_language_decode": (Status, [Pointer, Pointer, Size, _OUT, _NBYTES, _ERROR]),
    "ls_language_logits": (Status, [Pointer, Pointer, _LONG, Pointer, _ERROR]),
    "ls_language_generate": (Status, [Pointer, _TEXT, *_WRITTEN]),
    "ls_language_chat": (Status, [Pointer, ctypes.POINTER(MessageStruct), _INT, *_WRITTEN]),
}

declare(library, PROTOTYPES)
