"""Trained models, loaded in this process: language models that write, networks that predict.

A thin layer over include/lockstep/infer.h. Nothing here computes.
"""

from __future__ import annotations

import codecs
import ctypes
import os
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, TypedDict, Union

import numpy as np

from lockstep import _infer
from lockstep._c import ErrorStruct, Pointer, library
from lockstep.arrays import DTYPES, address, as_output
from lockstep.errors import Error, Status

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Unpack

    from lockstep.arrays import Array

Path = Union[str, "os.PathLike[str]"]
Message = Mapping[str, str]
OnText = Callable[[str], Any]


class Text(str):
    """What a model has written: a str that knows how it ended.

    tokens    how many were written; one that ended the text is one of them
    end       "length": it has as many tokens as were wanted, or the context is full; "end": the
              model ended it; "stop": a stop came; "asked": on_text returned False
    """

    tokens: int
    end: str


class Writing(TypedDict, total=False):
    """How a model writes.

    seed           of what is drawn (1)
    temperature    0: always the likeliest token
    top_k, top_p, min_p, penalty
                   which tokens may be drawn; None: the model's own
    stop           texts that end it, and are not written
    on_text        called with each piece as it is written; if it returns False, the text ends
    """

    seed: int
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    penalty: float | None
    stop: str | Sequence[str]
    on_text: OnText | None


def _zero_ended(text: str, what: str) -> bytes:
    """Raises ValueError where C would read only a part."""
    if not isinstance(text, str):
        raise TypeError(f"{what} is of the type {type(text).__name__}; a text is needed")
    if "\0" in text:
        raise ValueError(f"{what} has a zero byte")
    return text.encode()


def _check(error: ErrorStruct, status: int) -> None:
    if status:
        raise Error(error.code, error.msg.decode(errors="replace"))


def _texts(values: Iterable[str]) -> Any:
    """A C array of texts that NULL ends."""
    listed = [value.encode() for value in values]
    return (ctypes.c_char_p * (len(listed) + 1))(*listed, None)


def _sets(settings: Mapping[str, object] | None) -> Any:
    return _texts(f"{key}={value}" for key, value in (settings or {}).items())


class _Listener:
    """Passes text on to a Python function as it is written. What the function raises ends the
    writing, and is raised again by the call."""

    def __init__(self, on_text: OnText | None) -> None:
        self._on_text = on_text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.raised: BaseException | None = None
        self.function = _infer.WRITE(self._hear)

    def _hear(self, _: int | None, text: int, nbytes: int) -> int:
        try:
            piece = self._decoder.decode(ctypes.string_at(text, nbytes))
            if self._on_text and piece:
                return self._on_text(piece) is False
        except BaseException as error:
            self.raised = error
            return 1
        return 0


class LanguageModel:
    """A language model with its tokenizer. One thread at a time uses it: others wait.

    vocab      the number of logits of a position
    context    how many tokens it reads at most
    """

    def __init__(
        self,
        path: Path,
        *,
        ema: bool = False,
        template: Path | None = None,
        settings: Mapping[str, object] | None = None,
        device: str | None = None,
    ) -> None:
        """As load() describes it."""
        file = None if template is None else os.fsencode(template)
        self._device = None if device is None else device.encode()  # as long as the model
        options = _infer.LanguageOptions(
            ema=ema, template_file=file, sets=_sets(settings), device=self._device
        )
        pointer, error = Pointer(), ErrorStruct()
        status = library.ls_language_open(
            os.fsencode(path), ctypes.byref(options), ctypes.byref(pointer), ctypes.byref(error)
        )
        if status and error.msg.startswith((b"sets ", b"sets:")):  # the C field's name
            error.msg = b"settings" + error.msg[4:]
        _check(error, status)
        self._pointer = pointer
        self._lock = threading.Lock()
        self._close = weakref.finalize(self, library.ls_language_close, pointer)
        self.path = os.fspath(path)
        self.vocab: int = library.ls_language_vocab(pointer)
        self.context: int = library.ls_language_context(pointer)

    def close(self) -> None:
        """Frees the model; it can't be used afterwards. It is freed when it is collected, too."""
        with self._lock:
            self._close()

    def _call(self, name: str, *arguments: Any) -> None:
        if not self._close.alive:
            raise Error(Status.EINVAL, "the model is closed")
        error = ErrorStruct()
        function = getattr(library, name)
        _check(error, function(self._pointer, *arguments, ctypes.byref(error)))

    def encode(self, text: str, *, begin: bool = False) -> NDArray[np.uint32]:
        """The tokens of a text. begin: with what the tokenizer puts before a text, as in generate().
        Names of special tokens are ordinary text."""
        data = text.encode()
        ids, n = Pointer(), ctypes.c_size_t()
        with self._lock:
            self._call(
                "ls_language_encode", data, len(data), begin, ctypes.byref(ids), ctypes.byref(n)
            )
            found = ctypes.string_at(ids.value, 4 * n.value) if n.value and ids.value else b""
        return np.frombuffer(bytearray(found), np.uint32)

    def decode(self, ids: ArrayLike) -> str:
        """The text of tokens; special ones have none. A character that is cut off is U+FFFD."""
        array = self._ids(ids, "decode")
        text, n = Pointer(), ctypes.c_size_t()
        with self._lock:
            self._call(
                "ls_language_decode", address(array), array.size, ctypes.byref(text),
                ctypes.byref(n),
            )  # fmt: skip
            found = ctypes.string_at(text.value, n.value) if text.value else b""
        return found.decode(errors="replace")

    def _ids(self, ids: ArrayLike, call: str) -> NDArray[np.uint32]:
        array = np.asarray(ids)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise TypeError(f"{call}: tokens are a list of whole numbers; not {array.dtype}, "
                            f"{array.ndim} dimensions")  # fmt: skip
        if array.size and (array.min() < 0 or array.max() >= self.vocab):
            wrong = array[(array < 0) | (array >= self.vocab)][0]
            raise ValueError(f"{call}: token {wrong}; the model has {self.vocab}, from 0 on")
        return np.ascontiguousarray(array, np.uint32)

    def logits(self, text: str | ArrayLike) -> NDArray[np.float32]:
        """[tokens, vocab] the logits after each token of a text, or of tokens."""
        array = (
            self.encode(text, begin=True) if isinstance(text, str) else self._ids(text, "logits")
        )
        out = np.empty((array.size, self.vocab), np.float32)
        with self._lock:
            self._call("ls_language_logits", address(array), array.size, address(out))
        return out

    def generate(self, prompt: str = "", *, tokens: int = 100, **how: Unpack[Writing]) -> Text:
        """The continuation of a prompt, as `lockstep generate` with the same options writes it.

        tokens    at most
        how       seed, temperature, top_k, top_p, min_p, penalty, stop, on_text: see Writing
        """
        prompt_bytes = _zero_ended(prompt, "generate: the prompt")
        return self._write("ls_language_generate", (prompt_bytes,), tokens, **how)

    def chat(
        self, messages: str | Sequence[Message], *, tokens: int = 512, **how: Unpack[Writing]
    ) -> Text:
        """The answer to the last of messages, each {"role": ..., "content": ...} with the role
        system, user or assistant; or to a text, of the user. Arguments are those of generate().

        The answer depends on messages and arguments alone. What messages share with those of the
        last call is not computed again.
        """
        listed = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        array = (_infer.MessageStruct * len(listed))()
        for i, m in enumerate(listed):
            where = f"chat: message {i + 1}"
            if not isinstance(m, Mapping) or not {"role", "content"} <= m.keys():
                raise TypeError(f"{where} is no dict with 'role' and 'content'")
            array[i].role = _zero_ended(m["role"], where)
            array[i].text = _zero_ended(m["content"], where)
        return self._write("ls_language_chat", (array, len(listed)), tokens, **how)

    def _write(
        self,
        name: str,
        what: tuple[Any, ...],
        tokens: int,
        *,
        seed: int = 1,
        stop: str | Sequence[str] = (),
        on_text: OnText | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        penalty: float | None = None,
    ) -> Text:
        numbers = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p,
                   "penalty": penalty}  # fmt: skip
        for key, value in numbers.items():
            if value is not None and value < 0:
                raise ValueError(f"{key} is {value}; it must not be negative")
        if tokens < 1:
            raise ValueError(f"tokens is {tokens}; at least 1 is written")
        listener, written = _Listener(on_text), _infer.TextStruct()
        options = _infer.WritingOptions(
            tokens=tokens, seed=seed, stops=_texts([stop] if isinstance(stop, str) else stop),
            write=listener.function,
            **{key: -1 if value is None else value for key, value in numbers.items()},
        )  # fmt: skip
        with self._lock:
            self._call(name, *what, ctypes.byref(options), ctypes.byref(written))
            if listener.raised:
                raise listener.raised
            data = ctypes.string_at(written.text, written.nbytes)
        text = Text(data.decode(errors="replace"))
        text.tokens, text.end = written.ntokens, written.end.decode()
        return text

    def __repr__(self) -> str:
        return f"<LanguageModel {self.path!r}: {self.vocab} tokens, context {self.context}>"


class Field(NamedTuple):
    """What a network reads: `shape` and `dtype` are those of a sample."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Prediction(NamedTuple):
    """What a network predicts of a sample.

    kind       "classes": probabilities of classes, for each of the shape's rows; "chances": each a
               probability of its own; "numbers"; "scores": their order alone counts
    classes    names of the first classes, if the data have names
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    classes: list[str]


_KINDS = ("", "classes", "chances", "numbers", "scores")


def _shape(dims: _infer.Dims) -> tuple[int, ...]:
    sizes = list(dims.of)
    return tuple(sizes[: sizes.index(0)] if 0 in sizes else sizes)


class Network:
    """A network that predicts. Any threads may call it at the same time.

    inputs     the fields that it reads
    outputs    what it predicts
    """

    def __init__(
        self,
        path: Path,
        *,
        ema: bool = False,
        threads: int = 0,
        logits: bool = False,
        device: str | None = None,
    ) -> None:
        """As load() describes it."""
        self._device = None if device is None else device.encode()  # as long as the predictor
        options = _infer.PredictorOptions(
            ema=ema, threads=threads, logits=logits, device=self._device
        )
        pointer, error = Pointer(), ErrorStruct()
        status = library.ls_predictor_open(
            os.fsencode(path), ctypes.byref(options), ctypes.byref(pointer), ctypes.byref(error)
        )
        _check(error, status)
        self._pointer = pointer
        self._close = weakref.finalize(self, library.ls_predictor_close, pointer)
        self.path = os.fspath(path)
        self.inputs = self._inputs()
        self.outputs = self._outputs()

    def close(self) -> None:
        """Frees the network, while no call runs; it can't be used afterwards."""
        self._close()

    def _inputs(self) -> list[Field]:
        found = []
        for i in range(library.ls_predictor_ninputs(self._pointer)):
            f = library.ls_predictor_get_input(self._pointer, i)
            found.append(Field(f.name.decode(), _shape(f.dims), DTYPES[f.type]))
        return found

    def _outputs(self) -> list[Prediction]:
        found = []
        for i in range(library.ls_predictor_noutputs(self._pointer)):
            o = library.ls_predictor_get_output(self._pointer, i)
            shape: tuple[int, ...] = (o.rows, o.width) if o.rows > 1 else (o.width,)
            if o.kind != 1:  # a class has its width behind the rows; others have dimensions
                shape = _shape(o.dims)
            names = [o.classes[k].decode() for k in range(o.nclasses)]
            found.append(Prediction(o.name.decode(), _KINDS[o.kind], shape, names))
        return found

    def _collect(self, fields: Mapping[str, ArrayLike]) -> tuple[list[Array], int]:
        wrong = fields.keys() ^ {f.name for f in self.inputs}
        if wrong:
            raise TypeError(
                f"predict: the network reads {', '.join(f.name for f in self.inputs)}, "
                f"not {', '.join(fields) or 'nothing'}"
            )
        arrays = []
        for f in self.inputs:
            array = np.ascontiguousarray(fields[f.name], f.dtype)
            if array.shape[1:] != f.shape or array.ndim != 1 + len(f.shape):
                raise ValueError(
                    f"predict: {f.name} has the shape {array.shape}; the network reads [n, "
                    f"{', '.join(map(str, f.shape))}]"
                )
            arrays.append(array)
        lengths = {len(array) for array in arrays}
        if len(lengths) > 1:
            raise ValueError(f"predict: fields of {sorted(lengths)} samples")
        return arrays, lengths.pop() if lengths else 0

    def predict(self, **fields: ArrayLike) -> dict[str, NDArray[np.float32]]:
        """What the network says of n samples: [n, ...] of each output, by its name.

        fields    [n, ...] of each input, by its name
        """
        arrays, n = self._collect(fields)
        if not self._close.alive:
            raise Error(Status.EINVAL, "the network is closed")
        out = [as_output(np.empty((n, *o.shape), np.float32), "predict") for o in self.outputs]
        pointers = ctypes.c_void_p * max(len(arrays), 1), ctypes.c_void_p * max(len(out), 1)
        error = ErrorStruct()
        status = library.ls_predict(
            self._pointer, n, pointers[0](*(address(a) for a in arrays)),
            pointers[1](*(address(a) for a in out)), ctypes.byref(error),
        )  # fmt: skip
        _check(error, status)
        return {o.name: array for o, array in zip(self.outputs, out)}

    def __repr__(self) -> str:
        names = ", ".join(f.name for f in self.inputs), ", ".join(o.name for o in self.outputs)
        return f"<Network {self.path!r}: {names[0]} -> {names[1]}>"


def _writes(path: str) -> bool:
    """A published model, or a run or checkpoint with a tokenizer?"""
    if not os.path.isdir(path):
        return True
    return any(os.path.exists(os.path.join(path, n)) for n in ("tokenizer.json", "config.json"))


def load(path: Path, **options: Any) -> Any:
    """Loads what a run has trained, a checkpoint, or a published model (a directory or a GGUF file)
    into this process: a LanguageModel where it has a tokenizer, else a Network.

    ema         the average of the weights (optim.ema)
    template    of a language model: a file with a chat template in place of the model's
    settings    of a language model: changes of the config, {"infer.activations": "int8"}
    threads     of a network: of a call; 0: one for each core
    logits      of a network: outputs as the losses read them, not as probabilities
    device      what computes: "cuda", "opencl"; None: cores
    """
    kind = LanguageModel if _writes(os.fspath(path)) else Network
    return kind(path, **options)
