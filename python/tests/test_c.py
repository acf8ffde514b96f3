"""Prototypes, codes and names against the headers and the library."""

from __future__ import annotations

import ctypes
import re
import unittest
from typing import Any

import numpy as np
from launch import ROOT

from lockstep import Op, Status, _c, _infer, arrays

HEADERS = {
    name: re.sub(
        r"/\*.*?\*/|//[^\n]*", "", (ROOT / "include/lockstep" / name).read_text(), flags=re.S
    )
    for name in ("lockstep.h", "group.h", "virtual.h", "infer.h", "model.h")
}
NUMBERS = {
    "int": ctypes.c_int,
    "ls_dtype": ctypes.c_int,
    "ls_op": ctypes.c_int,
    "ls_status": ctypes.c_int,
    "size_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
    "double": ctypes.c_double,
    "bool": ctypes.c_bool,
    "int64_t": ctypes.c_int64,
    "ls_output_kind": ctypes.c_int,
    "ls_dims": _infer.Dims,
    "ls_counters": _c.CountersStruct,
    "ls_predictor_input": _infer.Input,
    "ls_predictor_output": _infer.Output,
    "void": None,
}
STRUCTS = {
    "ls_error": _c.ErrorStruct,
    "ls_group_options": _c.Options,
    "ls_meeting": _c.Meeting,
    "ls_counters": _c.CountersStruct,
    **_infer.STRUCTS,
}


def is_pointer(kind: Any) -> bool:
    is_function = isinstance(kind, type) and issubclass(kind, ctypes._CFuncPtr)
    return is_function or kind in (ctypes.c_void_p, ctypes.c_char_p) or hasattr(kind, "contents")


def declared(name: str) -> tuple[str, list[str]]:
    """A function's result and its arguments, as the headers have them."""
    for text in HEADERS.values():
        found = re.search(rf"^([a-z][\w ]*[ *]){name}\(([^)]*)\);", text, re.M)
        if found:
            words = " ".join(found[2].split())
            return found[1].strip(), [] if words == "void" else words.split(", ")
    raise AssertionError(f"{name} is not in the headers")


class Prototypes(unittest.TestCase):
    def matches(self, kind: Any, text: str, where: str) -> None:
        if "*" in text:
            self.assertTrue(is_pointer(kind), f"{where}: {text}")
        else:
            word = text.replace("const ", "").split()[0]
            self.assertIs(kind, NUMBERS[word], f"{where}: {text}")

    def test_functions(self) -> None:
        prototypes = {**_c.PROTOTYPES, **_infer.PROTOTYPES}
        self.assertGreater(len(prototypes), 45)
        for name, (result, arguments) in prototypes.items():
            want, texts = declared(name)
            self.matches(result, want, name)
            self.assertEqual(len(arguments), len(texts), name)
            for kind, text in zip(arguments, texts):
                self.matches(kind, text, name)

    def test_structs(self) -> None:
        for name, struct in STRUCTS.items():
            body = next(
                m[1]
                for t in HEADERS.values()
                for m in re.finditer(r"\{([^{}]*)\} (\w+);", t)
                if m[2] == name
            )
            body = re.sub(r"\w+ \(\*(\w+)\)\([^()]*\)", r"void *\1", body)  # to a function
            fields = []
            for line in body.replace("LS_UNSET", "").split(";"):
                kind, *names = re.split(r"[\s,]+", line.strip().replace("const ", ""))
                fields += [(kind, n) for n in names if n]
            self.assertEqual(
                [n.strip("*").split("[")[0] for _, n in fields], [f[0] for f in struct._fields_]
            )
            for (kind, field), (_, mine) in zip(fields, (f[:2] for f in struct._fields_)):
                if "[" in field:
                    self.assertEqual(ctypes.sizeof(mine), int(re.findall(r"\d+", field)[0]))
                else:
                    self.matches(mine, f"{kind} {field}", f"{name}.{field}")

    def test_dims(self) -> None:
        self.assertIn(f"enum {{ LS_MAX_DIMS = {_infer.MAX_DIMS} }};", HEADERS["model.h"])
        self.assertIn("int64_t of[LS_MAX_DIMS];", HEADERS["model.h"])


class Codes(unittest.TestCase):
    def test_dtypes(self) -> None:
        names = dict(zip(["f8", "f4", "f2", "b1"], ["f64", "f32", "f16", "bool"]))
        names |= {f"{kind}{n}": f"{kind}{8 * n}" for kind in "iu" for n in (1, 2, 4, 8)}
        for code, dtype in enumerate(arrays.DTYPES):
            found = _c.library.ls_dtype_name(code).decode()
            if dtype is None:
                self.assertEqual((found, code), ("bf16", arrays.BF16))
                continue
            parts = [dtype[n] for n in dtype.names] if dtype.names else [dtype]
            self.assertEqual(found, "_".join(names[p.str[1:]] for p in parts))
            self.assertEqual(_c.library.ls_dtype_size(code), dtype.itemsize, found)
        enum = re.search(r"ls_dtype \{(.*?)LS_NDTYPES", HEADERS["group.h"], re.S)
        assert enum
        self.assertEqual(len(re.findall(r"LS_\w+,", enum[1])), len(arrays.DTYPES))

    def test_pairs_of_other_names(self) -> None:
        same = np.dtype([("x", "f4"), ("at", "i4")])
        self.assertEqual(arrays.code_of(same, "test"), arrays.code_of(arrays.pair("f4"), "test"))
        with self.assertRaises(TypeError):
            arrays.code_of(np.dtype([("x", "f4"), ("at", "i8")]), "test")
        with self.assertRaises(TypeError):
            arrays.pair("u1")

    def test_ops(self) -> None:
        enum = re.search(r"ls_op \{(.*?)LS_NOPS", HEADERS["group.h"], re.S)
        assert enum
        self.assertEqual(re.findall(r"LS_(\w+),", enum[1]), [o.name for o in Op])
        for o in Op:
            self.assertEqual(_c.library.ls_op_name(o).decode(), o.name.lower())

    def test_statuses(self) -> None:
        found = re.findall(r"^ +LS_(\w+) = (-?\d+),", HEADERS["lockstep.h"], re.M)
        self.assertEqual(
            [(name, int(code)) for name, code in found], [(s.name, s.value) for s in Status]
        )


class Loading(unittest.TestCase):
    def test_missing(self) -> None:
        with self.assertRaisesRegex(ImportError, "set LOCKSTEP_LIBRARY"):
            _c.load("/nowhere/liblockstep.so")

    def test_another_library(self) -> None:
        with self.assertRaisesRegex(ImportError, "is not this package's library"):
            _c.load("libc.so.6")


if __name__ == "__main__":
    unittest.main()
