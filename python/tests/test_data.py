"""Data written from Python, read back by a reader of its own and by the program."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import trained

from lockstep import data

TOP = trained.TOP
NUMBERS = {"int": "i", "uint": "u", "float": "f"}


def needs(*names: str) -> Any:
    specs = {n: importlib.util.find_spec(n) for n in names}
    missing = [n for n, s in specs.items() if not s or not s.origin]  # a folder is no package
    return unittest.skipIf(missing, f"{', '.join(missing)} is not installed")


def value_of(encoding: str, raw: bytes) -> Any:
    """A value of MDS, as mosaicml-streaming's documentation has it."""
    if encoding == "str":
        return raw.decode()
    if encoding in ("bytes", "jpeg", "png"):
        return raw
    if not encoding.startswith("ndarray"):
        return np.frombuffer(raw, encoding)[0].item()
    ndims, width = raw[0] >> 2, 1 << (raw[0] & 3)
    shape = [int.from_bytes(raw[1 + i * width :][:width], "little") for i in range(ndims)]
    return np.frombuffer(raw[1 + ndims * width :], encoding.split(":")[1]).reshape(shape)


def samples(folder: Path) -> Iterator[dict[str, Any]]:
    """The samples of a data set."""
    for shard in json.loads((folder / "index.json").read_text())["shards"]:
        content = (folder / shard["raw_data"]["basename"]).read_bytes()
        assert len(content) == shard["raw_data"]["bytes"]
        (n,) = struct.unpack("<I", content[:4])
        assert n == shard["samples"]
        offsets = struct.unpack(f"<{n + 1}I", content[4 : 8 + 4 * n])
        head = json.loads(content[8 + 4 * n : offsets[0]])
        assert head.items() <= shard.items()
        columns = list(zip(head["column_names"], head["column_encodings"], head["column_sizes"]))
        for begin, end in zip(offsets, offsets[1:]):
            nlengths = sum(size is None for *_, size in columns)
            lengths = iter(struct.unpack(f"<{nlengths}I", content[begin : begin + 4 * nlengths]))
            at, sample = begin + 4 * nlengths, {}
            for name, encoding, size in columns:
                nbytes = size if size is not None else next(lengths)
                sample[name] = value_of(encoding, content[at : at + nbytes])
                at += nbytes
            assert at == end
            yield sample


def said(folder: Path, *options: str) -> dict[str, Any]:
    """What `lockstep data` says, after it has read every sample."""
    output = trained.lockstep("data", str(folder), "--json", "--check", *options)
    found: dict[str, Any] = json.loads(output)
    assert found.get("damaged", 0) == 0
    return found


def fields(folder: Path) -> dict[str, tuple[str, list[int], bool]]:
    return {
        f["name"]: (f["dtype"], f["shape"], f.get("list", False)) for f in said(folder)["fields"]
    }


def plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


class Test(unittest.TestCase):
    def setUp(self) -> None:
        self.out = Path(tempfile.mkdtemp(dir=TOP)) / "set"

    def expect(self, rows: list[dict[str, Any]]) -> None:
        found = [{k: plain(v) for k, v in sample.items()} for sample in samples(self.out)]
        self.assertEqual(found, rows)


class Rows(Test):
    def test_kinds(self) -> None:
        rows = [
            {"whole": 3, "real": 0.25, "text": "naïve", "yes": True, "label": "a", "three": [1, 2, 3],
             "bag": [7], "matrix": [[0.5, 1], [2, 3]]},
            {"whole": 2**53 + 1, "real": 1, "text": "", "yes": False, "label": "b",
             "three": [4, 5, 6], "bag": [], "matrix": [[1, 1], [1, 2]]},
            {"whole": -(2**63) + 1, "real": -8.5, "text": "x", "yes": True, "label": "a",
             "three": [7, 8, 9], "bag": [2**40, 1, 0], "matrix": [[4, 5], [6, 7.5]]},
        ]  # fmt: skip
        written = data.write(self.out, rows)
        self.expect([{**row, "yes": int(row["yes"])} for row in rows])
        self.assertEqual((written.samples, written.form, written.files), (3, "samples", 1))
        self.assertEqual(
            written.columns,
            {"whole": "int64", "real": "float32", "text": "str", "yes": "uint8", "label": "str",
             "three": "ndarray:int64", "bag": "ndarray:int64", "matrix": "ndarray:float32"},
        )  # fmt: skip
        self.assertEqual(
            fields(self.out),
            {"whole": ("i64", [], False), "real": ("f32", [], False), "text": ("i32", [], False),
             "yes": ("u8", [], False), "label": ("i32", [], False), "three": ("i64", [3], False),
             "bag": ("i64", [3], True), "matrix": ("f32", [2, 2], False)},
        )  # fmt: skip
        names = [(x["name"], x["count"]) for x in said(self.out)["labels"]]
        self.assertEqual(names, [("a", 2), ("b", 1)])

    def test_arrays(self) -> None:
        kinds = [f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)] + ["float16", "float32"]
        rows = [{k: np.array([[i, 2], [3, 4]], k) for k in kinds} for i in range(3)]
        rows = [{**row, **{f"one_{k}": row[k][0, 0] for k in kinds}} for row in rows]
        written = data.write(self.out, rows)
        self.assertEqual(written.columns["uint16"], "ndarray:uint16")
        self.assertEqual(written.columns["one_int8"], "int8")
        self.expect([{k: v.tolist() for k, v in row.items()} for row in rows])
        self.assertEqual(fields(self.out)["float16"], ("f16", [2, 2], False))

    def test_types(self) -> None:
        """float64 is kept where it is asked for, and ids in 32 bits."""
        rows = [{"x": 0.1, "ids": [1, 2]}, {"x": 1 / 3, "ids": [3]}]
        data.write(self.out, rows, types={"x": "float64", "ids": "ndarray:int32"})
        self.expect(rows)
        self.assertEqual(fields(self.out)["ids"], ("i32", [2], True))

    def test_shards(self) -> None:
        rows = [{"x": i, "text": "t" * (i % 50)} for i in range(1000)]
        written = data.write(self.out, (row for row in rows), shard=4000)
        self.assertGreater(written.files, 8)
        self.assertEqual(len(list(self.out.glob("shard.*.mds"))), written.files)
        self.assertEqual(sum(p.stat().st_size for p in self.out.glob("*.mds")), written.nbytes)
        self.assertTrue(all(p.stat().st_size < 6000 for p in self.out.glob("*.mds")))
        self.expect(rows)
        self.assertEqual(
            (said(self.out)["samples"], said(self.out)["files"]), (1000, written.files)
        )

    def test_trained(self) -> None:
        """A model learns from them: the label is whether x > y."""
        random = np.random.default_rng(1)
        rows = [
            {"x": a, "y": b, "label": "above" if a > b else "below"}
            for a, b in random.random((200, 2))
        ]
        written = data.write(self.out, rows)
        config = TOP / "mlp.yaml"
        config.write_text(
            "model: {kind: mlp, hidden: [8]}\ntrain: {steps: 60, batch: 40, virtual_workers: 2}\n"
            "optim: {lr: 0.05, warmup: 0}\n"
        )
        keys = [f"data.{k}={v}" for k, v in written.config["data"].items()]
        said = trained.lockstep(
            "train", str(config), "-o", str(TOP / "mlp"), *(w for k in keys for w in ("--set", k))
        )
        self.assertRegex(said, r"accuracy (1\.0|0\.[89])")


class Gaps(Test):
    rows = ({"x": 1.5, "city": "Ulm"}, {"x": None, "city": "Jena"}, {"x": float("nan"), "city": "Bonn"},
            {"x": 2.0, "city": None})  # fmt: skip

    def test_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "row 1 has no 'x'; `missing` says what becomes"):
            data.write(self.out, self.rows)
        self.assertFalse(self.out.exists())
        self.assertEqual(os.listdir(self.out.parent), [])

    def test_dropped(self) -> None:
        written = data.write(self.out, self.rows, missing="drop")
        self.assertEqual(written.dropped, 3)
        self.expect([{"x": 1.5, "city": "Ulm"}])

    def test_filled(self) -> None:
        data.write(self.out, self.rows, missing={"x": -1, "*": "drop"})
        self.expect(
            [{"x": 1.5, "city": "Ulm"}, {"x": -1, "city": "Jena"}, {"x": -1, "city": "Bonn"}]
        )

    def test_a_key_that_is_not_there(self) -> None:
        data.write(self.out, [{"x": 1, "y": 2}, {"x": 3}], missing={"y": 9})
        self.expect([{"x": 1, "y": 2}, {"x": 3, "y": 9}])

    def test_nothing_left(self) -> None:
        with self.assertRaisesRegex(ValueError, "a value is missing in every row"):
            data.write(self.out, [{"x": 1, "y": None}, {"x": None, "y": 1}], missing="drop")


class Refused(Test):
    def test_values(self) -> None:
        late = [{"x": 1}] * 1500
        for error, text, rows, options in (
            (ValueError, "there are no rows", [], {}),
            (TypeError, "rows are one dict", {"x": [1]}, {}),
            (TypeError, "row 0 is of the type int; rows are", [1], {}),
            (TypeError, "the type int has no rows", 7, {}),
            (TypeError, "row 1: 'x': is str; the values before it are int64", [{"x": 1}, {"x": "a"}], {}),
            (TypeError, "row 0: 'x': is of the type object", [{"x": object()}], {}),
            (TypeError, "row 0: 'x': is an object; give its members", [{"x": {"a": 1}}], {}),
            (TypeError, "row 0: 'x': ", [{"x": [[1], [2, 3]]}], {}),
            (TypeError, "row 0: 'x': is an array of <U1", [{"x": ["a", "b"]}], {}),
            (TypeError, "is an array of complex128", [{"x": np.ones(2, complex)}], {}),
            (ValueError, "row 1500: 'x': 0.5 does not fit int64; `types`", [*late, {"x": 0.5}], {}),
            (TypeError, "row 1500: 'x': is a str; the values before it are numbers", [*late, {"x": "a"}], {}),
            (ValueError, "row 1500 has 'y', which the first rows have not", [*late, {"x": 1, "y": 2}], {}),
            (ValueError, "300 does not fit uint8", [{"x": 300}], {"types": {"x": "uint8"}}),
            (ValueError, "'x': 9223372036854775808 does not fit int64", [{"x": np.uint64(2**63)}],
             {"types": {"x": "int64"}}),
            (ValueError, "a number that is NaN or infinite", [{"x": float("inf")}], {}),
            (ValueError, "a number that is NaN or infinite", [{"x": [1.0, float("nan")]}], {}),
            (ValueError, "a number that float32 can't hold", [{"x": 1e300}], {}),
            (ValueError, "has a zero byte", [{"x": "a\0"}], {}),
            (ValueError, "row 1: 'x': .* surrogates not allowed", [{"x": "a"}, {"x": "\ud800"}], {}),
            (ValueError, "row 0: .* surrogates not allowed", [{"text": "\ud800"}], {}),
            (ValueError, "row 0: 'x': 1180591620717411303424 does not fit int64", [{"x": 2**70}], {}),
            (ValueError, "has the type 'pkl'; possible are int8", [{"x": 1}], {"types": {"x": "pkl"}}),
            (ValueError, "there is no column 'z'; there are x", [{"x": 1}], {"columns": ["z"]}),
            (ValueError, "form is 'table'; possible are", [{"x": 1}], {"form": "table"}),
            (ValueError, "shard is 0 bytes", [{"x": 1}], {"shard": 0}),
            (ValueError, "tuples of 3 parts; `names`", [(1, 2, 3)], {}),
            (ValueError, "'y' has no value in the first 2 rows", [{"x": 1, "y": None}] * 2, {}),
        ):  # fmt: skip
            with self.subTest(text), self.assertRaisesRegex(error, text):
                data.write(self.out, rows, **options)
            self.assertEqual(os.listdir(self.out.parent), [])

    def test_exists(self) -> None:
        self.out.mkdir()
        data.write(self.out, [{"x": 1}])  # an empty one is taken
        with self.assertRaisesRegex(FileExistsError, "exists; remove it, or give another name"):
            data.write(self.out, [{"x": 2}])
        self.expect([{"x": 1}])

    def test_a_broken_source(self) -> None:
        def rows() -> Iterator[dict[str, int]]:
            yield from ({"x": i} for i in range(2000))
            raise OSError("the network is gone")

        with self.assertRaisesRegex(OSError, "the network is gone"):
            data.write(self.out, rows())
        self.assertEqual(os.listdir(self.out.parent), [])


class Words(Test):
    talks = (
        {
            "messages": [
                {"role": "user", "content": "hi"},
                {"role": "assistant", "content": "hello"},
            ]
        },
        {"messages": [{"role": "user", "content": "ü?"}, {"role": "assistant", "content": "no"}]},
    )

    def lines(self) -> list[Any]:
        texts = [p.read_text() for p in sorted(self.out.glob("*.jsonl"))]
        return [json.loads(line) for text in texts for line in text.splitlines()]

    def test_conversations(self) -> None:
        written = data.write(self.out, self.talks, shard=100)
        self.assertEqual((written.form, written.files), ("chat", 2))
        self.assertEqual(written.config["data"], {"path": str(self.out), "format": "chat"})
        self.assertEqual(self.lines(), list(self.talks))
        found = said(self.out)
        self.assertEqual((found["format"], found["samples"], found["messages"]), ("chat", 2, 4))

    def test_other_forms(self) -> None:
        for row, pairs in (
            ({"prompt": "a", "completion": "b"}, 0),
            ({"prompt": "a", "chosen": "b", "rejected": "c"}, 1),
            (
                {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]},
                0,
            ),
            ({"instruction": "a", "input": "", "output": "b"}, 0),
        ):
            out = self.out / str(len(list(self.out.parent.iterdir()))) / "-".join(row)
            self.assertEqual(data.write(out, [row]).form, "chat")
            found = said(out)
            self.assertEqual(
                (found["format"], found["samples"], found["pairs"]), ("chat", 1, pairs)
            )

    def test_texts(self) -> None:
        texts = [{"text": "one"}, {"text": "two\nlines"}, {"text": None}]
        written = data.write(self.out, texts, missing="drop")
        self.assertEqual((written.form, written.samples, written.dropped), ("text", 2, 1))
        self.assertEqual(self.lines(), texts[:2])
        self.assertEqual((said(self.out)["format"], said(self.out)["samples"]), ("text", 2))

    def test_columns(self) -> None:
        data.write(self.out, [{"text": "one", "url": "x"}], form="text", columns=["text"])
        self.assertEqual(self.lines(), [{"text": "one"}])

    @needs("pyarrow")
    def test_members_without_values(self) -> None:
        """Arrow has all members in each message."""
        import pyarrow as pa  # type: ignore[import-untyped,import-not-found,unused-ignore]

        talk = {"messages": [{"role": "user", "content": "hi", "name": None},
                             {"role": "assistant", "content": "yes", "name": "Bo"}]}  # fmt: skip
        data.write(self.out, pa.Table.from_pylist([talk]))
        self.assertNotIn("name", self.lines()[0]["messages"][0])
        self.assertEqual(self.lines()[0]["messages"][1]["name"], "Bo")


class Tables(Test):
    @needs("pyarrow")
    def test_arrow(self) -> None:
        import pyarrow as pa

        table = pa.table(
            {
                "id": pa.array([2**62 + 1, -5, 0], pa.int64()),
                "small": pa.array([1, 2, 3], pa.int16()),
                "real": pa.array([0.1, None, 2.5], pa.float64()),
                "half": pa.array([0.5, 1.5, 2.5], pa.float32()),
                "bag": pa.array([[1, 2**40], [], [3]], pa.list_(pa.int64())),
                "grid": pa.array([[[1, 2], [3, 4]]] * 3, pa.list_(pa.list_(pa.int32(), 2), 2)),
                "text": pa.array(["a", "b", "ç"]).dictionary_encode(),
                "flag": pa.array([True, False, True]),
                "raw": pa.array([b"ab", b"cd", b"\0f"]),
            }
        )
        written = data.write(self.out, table, missing={"real": -1}, types={"real": "float64"})
        want = table.to_pylist()
        want[1]["real"] = -1
        self.expect([{**row, "flag": int(row["flag"])} for row in want])
        self.assertEqual(written.columns["small"], "int16")
        self.assertEqual(written.columns["grid"], "ndarray:int32")
        found = fields(self.out)
        self.assertEqual(found["bag"], ("i64", [2], True))
        self.assertEqual(found["grid"], ("i32", [2, 2], False))
        self.assertEqual(found["raw"], ("u8", [2], False))
        self.assertEqual(found["small"], ("i16", [], False))

    @needs("pyarrow")
    def test_parquet(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq  # type: ignore[import-untyped,import-not-found,unused-ignore]

        folder = self.out.parent
        rows = [{"x": i / 4, "ids": list(range(i % 4)), "label": i % 3} for i in range(10000)]
        for part in range(2):
            pq.write_table(
                pa.Table.from_pylist(rows[part * 5000 :][:5000]), folder / f"p{part}.parquet",
                row_group_size=700,
            )  # fmt: skip
        written = data.write(self.out, folder / "p*.parquet", shard=100000)
        self.assertEqual((written.samples, written.columns["x"]), (10000, "float32"))
        self.expect(rows)
        self.assertEqual(said(self.out)["samples"], 10000)
        one = folder / "one"
        data.write(one, str(folder / "p0.parquet"), columns=["x", "label"])
        self.assertEqual(len(list(samples(one))), 5000)
        line = trained.lockstep("data", str(folder / "p0.parquet"), code=1)
        self.assertEqual(line, "")
        with self.assertRaisesRegex(FileNotFoundError, "no such file"):
            data.write(self.out / "x", folder / "q*.parquet")
        (folder / "x.csv").write_text("a,b\n1,2\n")
        with self.assertRaisesRegex(ValueError, r"x\.csv is no Parquet file \(.*\); CSV and"):
            data.write(self.out / "x", folder / "x.csv")

    @needs("pandas")
    def test_pandas(self) -> None:
        import pandas as pd  # type: ignore[import-untyped,import-not-found,unused-ignore]

        frame = pd.DataFrame(
            {
                "a": np.array([1, 2, 3], np.int32),
                "b": [0.5, np.nan, 1.5],
                "c": pd.array([2**60, None, 3], "Int64"),
                "d": pd.Categorical(["x", "y", "x"]),
                "e": [True, False, True],
                "f": [[1], [2, 3], []],
            },
            index=[5, 5, 9],
        )
        written = data.write(self.out, frame, missing={"b": 0, "c": 7})
        self.assertEqual(written.columns["a"], "int32")
        self.assertEqual(written.columns["c"], "int64")
        self.expect(
            [
                {"a": 1, "b": 0.5, "c": 2**60, "d": "x", "e": 1, "f": [1]},
                {"a": 2, "b": 0, "c": 7, "d": "y", "e": 0, "f": [2, 3]},
                {"a": 3, "b": 1.5, "c": 3, "d": "x", "e": 1, "f": []},
            ]
        )

    @needs("pandas", "pyarrow")
    def test_columns_of_arrow_in_pandas(self) -> None:
        import pandas as pd

        frame = pd.DataFrame(
            {"a": [1, None, 3], "b": ["x", "y", "x"], "c": [0.5, 1.5, 2.5], "d": [[1], [2, 3], []]}
        )
        kinds = {"a": "int32[pyarrow]", "b": "string[pyarrow]", "c": "double[pyarrow]"}
        frame = frame.astype(kinds)
        frame["e"] = pd.array([True, False, True], "bool[pyarrow]")
        written = data.write(self.out, frame, missing={"a": -1})
        self.assertEqual([written.columns[k] for k in "abce"], ["int32", "str", "float32", "uint8"])
        self.expect(
            [
                {"a": 1, "b": "x", "c": 0.5, "d": [1], "e": 1},
                {"a": -1, "b": "y", "c": 1.5, "d": [2, 3], "e": 0},
                {"a": 3, "b": "x", "c": 2.5, "d": [], "e": 1},
            ]
        )

    @needs("pandas")
    def test_odd_columns_of_pandas(self) -> None:
        import pandas as pd

        twice = pd.DataFrame([[1, 2, 0]], columns=["a", "a", "label"])
        with self.assertRaisesRegex(ValueError, "two columns are named 'a'; rename one"):
            data.write(self.out, twice)
        dates = pd.DataFrame({"when": pd.date_range("2024-01-01", periods=2)})
        with self.assertRaisesRegex(TypeError, "'when': is of the type Timestamp, .*write numbers"):
            data.write(self.out, dates)

    @needs("datasets", "PIL")
    def test_hugging_face(self) -> None:
        os.environ["HF_HOME"] = str(TOP / "hf")
        os.environ["HF_HUB_OFFLINE"] = "1"
        import datasets  # type: ignore[import-untyped,import-not-found,unused-ignore]

        pixels = [np.full((4, 6, 3), i, np.uint8) for i in range(5)]
        classes = datasets.ClassLabel(names=["no", "yes"])
        features = datasets.Features({"image": datasets.Image(), "label": classes})
        columns = {"image": pixels, "label": [0, 1, 1, 0, 1]}
        data.write(self.out, datasets.Dataset.from_dict(columns, features))
        self.assertEqual(fields(self.out)["image"], ("u8", [4, 6, 3], False))
        self.assertEqual([s["label"] for s in samples(self.out)], columns["label"])


class TorchLike:
    """A data set as torch has them: a map, which need not end by an IndexError."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> Any:
        return self.items[i % len(self.items)]


class Tensor:
    """What a tensor has that is used."""

    def __init__(self, array: Any) -> None:
        self.array, self.dtype, self.ndim = array, array.dtype, array.ndim

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        return self.array


class Sets(Test):
    def test_tuples(self) -> None:
        items = [(Tensor(np.arange(3, dtype=np.float32) + i), i % 2) for i in range(4)]
        data.write(self.out, TorchLike(items))
        self.expect([{"x": [i, i + 1.0, i + 2.0], "label": i % 2} for i in range(4)])
        out = self.out.parent / "named"
        data.write(out, TorchLike([(1, 2, 3)]), names=["a", "b", "c"])
        self.assertEqual(list(samples(out)), [{"a": 1, "b": 2, "c": 3}])

    @needs("torch")
    def test_torch(self) -> None:
        import torch  # type: ignore[import-not-found,unused-ignore]

        x, y = torch.arange(12.0).reshape(4, 3), torch.tensor([0, 1, 1, 0])
        data.write(self.out, torch.utils.data.TensorDataset(x, y))
        self.expect([{"x": a, "label": b} for a, b in zip(x.tolist(), y.tolist())])

    def test_pixels(self) -> None:
        """Arrays of bytes in two or three dimensions are images."""
        random = np.random.default_rng(0)
        items = [(random.integers(0, 256, (5, 4, 3), np.uint8), i) for i in range(3)]
        data.write(self.out, items)
        self.assertEqual(fields(self.out)["image"], ("u8", [5, 4, 3], False))
        for (pixels, _), sample in zip(items, samples(self.out)):
            self.assertTrue(np.array_equal(sample["image"], pixels))

    @needs("PIL")
    def test_images(self) -> None:
        from PIL import Image  # type: ignore[import-not-found,unused-ignore]

        random = np.random.default_rng(0)
        arrays = [random.integers(0, 256, (9, 7, 3), np.uint8) for _ in range(3)]
        images = [Image.fromarray(a) for a in arrays]
        data.write(self.out, [{"image": i, "label": k} for k, i in enumerate(images)])
        for array, sample in zip(arrays, samples(self.out)):
            self.assertTrue(
                np.array_equal(np.asarray(Image.open(io.BytesIO(sample["image"]))), array)
            )
        found = said(self.out)
        mean = np.mean([a.reshape(-1, 3).mean(0) for a in arrays], 0) / 255
        self.assertTrue(np.allclose(found["pixels"]["mean"], mean, atol=1e-6))

        def file_of(image: Any, kind: str) -> bytes:
            out = io.BytesIO()
            image.save(out, kind)
            return out.getvalue()

        path = TOP / "photo.jpg"
        path.write_bytes(file_of(images[1], "JPEG"))
        rows = [{"image": {"bytes": file_of(images[0], "PNG"), "path": None}},
                {"image": {"bytes": None, "path": str(path)}}]  # fmt: skip
        out = self.out.parent / "files"
        self.assertEqual(data.write(out, rows).columns, {"image": "jpeg"})
        self.assertEqual([s["image"][:3] for s in samples(out)], [b"\x89PN", b"\xff\xd8\xff"])
        self.assertEqual(fields(out)["image"], ("u8", [9, 7, 3], False))
        with self.assertRaisesRegex(TypeError, "an image of mode I;16; possible are 8 bits"):
            data.write(self.out / "x", [{"image": Image.fromarray(np.ones((2, 2), np.uint16))}])


class Line(Test):
    def test_progress(self) -> None:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            data.write(self.out, [{"x": i} for i in range(300)], progress=True)
        self.assertRegex(said.getvalue(), r"\[#{20}\] 300 of 300 rows, [\d,]+ a second\n$")
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            data.write(self.out.parent / "b", [{"x": i} for i in range(300)])
        self.assertEqual(said.getvalue(), "")

    def test_what_it_says(self) -> None:
        written = data.write(self.out, [{"x": 1}, {"x": None}], missing="drop")
        self.assertEqual(
            str(written),
            f"{self.out}: 1 sample in 1 file, 1 row left out; train on it with --set "
            f"data.path={self.out}",
        )

    def test_no_pandas_is_needed(self) -> None:
        text = (
            "import sys, lockstep\nlockstep.data.write(sys.argv[1], [{'x': 1}])\n"
            "print([m for m in ('pandas', 'pyarrow', 'lockstep._c') if m in sys.modules])"
        )
        line = [sys.executable, "-c", text, str(self.out)]
        done = subprocess.run(line, capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("[]\n", ""))


if __name__ == "__main__":
    unittest.main()
