"""Runs and checkpoints from Python, against the files and the program's own words."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import trained
from launch import ROOT

import lockstep


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


class Metrics(unittest.TestCase):
    def test_steps(self) -> None:
        folder = trained.text_run()
        table = lockstep.open(folder).metrics
        steps = [line for line in lines(folder) if "loss" in line]
        self.assertEqual(table["step"].tolist(), list(range(1, 21)))
        for name in ("loss", "lr", "grad_norm", "seconds"):
            self.assertEqual(table[name].tolist(), [line[name] for line in steps], name)
        self.assertEqual(table["workers"].dtype, np.int64)
        self.assertEqual(len(table), len(list(table)))

    def test_evaluations(self) -> None:
        folder = trained.text_run()
        metrics = lockstep.open(folder).metrics
        evaluated = metrics.having("val_loss")
        want = {line["step"]: line["val_loss"] for line in lines(folder) if "val_loss" in line}
        self.assertEqual(dict(zip(evaluated["step"].tolist(), evaluated["val_loss"])), want)
        self.assertEqual(sorted(want), [10, 20])
        self.assertTrue(math.isnan(metrics["val_loss"][0]))
        self.assertIn("val_bits_per_byte", evaluated)

    def test_starts(self) -> None:
        (start,) = lockstep.open(trained.text_run()).events
        self.assertEqual((start["step"], start["workers"]), (0, 2))

    def test_a_line_that_is_being_written(self) -> None:
        with tempfile.TemporaryDirectory() as top:
            shutil.copy(trained.text_run() / "config.yaml", top)
            text = (trained.text_run() / "metrics.jsonl").read_text()
            (Path(top) / "metrics.jsonl").write_text(text[: text.index('"step": 5,') + 7])
            self.assertEqual(lockstep.open(top).metrics["step"].tolist(), [1, 2, 3, 4])

    def test_no_such_column(self) -> None:
        with self.assertRaisesRegex(KeyError, "no column 'los'; there are step, epoch"):
            lockstep.open(trained.text_run()).metrics["los"]

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is not installed")
    def test_pandas(self) -> None:
        table = lockstep.open(trained.text_run()).metrics
        frame = table.frame()
        self.assertEqual(list(frame.columns), list(table))
        self.assertEqual(frame["loss"].tolist(), table["loss"].tolist())
        self.assertIn("<table", table._repr_html_() or "")


class Config(unittest.TestCase):
    def test_values(self) -> None:
        config = lockstep.open(trained.text_run()).config
        self.assertEqual(config["train"]["steps"], 20)
        self.assertEqual(config["optim"]["ema"], 0.9)
        self.assertEqual(config["model"]["kind"], "gpt2")
        self.assertEqual(config["optim"]["groups"], [])
        self.assertEqual(config["parallel"]["mesh.pipe"], 1)

    def test_lists_of_layers(self) -> None:
        model = lockstep.open(trained.network_run()).config["model"]
        self.assertEqual(
            model["layers"][1:4], [{"concat": ["x", "city_row"]}, {"linear": "8"}, "relu"]
        )
        self.assertEqual(model["loss"]["cross_entropy"]["of"], 'the "logits"')
        self.assertEqual(model["input"]["city"], {"type": "i32", "dims": []})

    @unittest.skipUnless(importlib.util.find_spec("yaml"), "PyYAML is not installed")
    def test_as_yaml_reads_it(self) -> None:
        import yaml  # type: ignore[import-untyped,unused-ignore]

        for folder in (trained.text_run(), trained.network_run()):
            want = yaml.safe_load((folder / "config.yaml").read_text())
            found = lockstep.open(folder).config
            for group, keys in want.items():
                for key, value in keys.items():
                    if isinstance(value, str) and not isinstance(found[group][key], str):
                        value = float(value)  # 1e-05 is a text in YAML 1.1
                    self.assertEqual(found[group][key], value, key)

    def test_another_file(self) -> None:
        with tempfile.TemporaryDirectory() as top:
            (Path(top) / "config.yaml").write_text("just words\n")
            with self.assertRaisesRegex(ValueError, "is no config that lockstep has written"):
                lockstep.open(top).config  # noqa: B018


class Weights(unittest.TestCase):
    def read(self, path: Path) -> dict[str, Any]:
        """Tensors by a reader of its own: every element by struct."""
        data = path.read_bytes()
        (n,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + n])
        found = {}
        for name, t in header.items():
            if name != "__metadata__":
                begin, end = (8 + n + at for at in t["data_offsets"])
                found[name] = t["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
        return found

    def test_values(self) -> None:
        run = lockstep.open(trained.text_run())
        for weights, name in ((run.weights, "model"), (run.checkpoint.optimizer, "optimizer")):
            want = self.read(Path(run.checkpoint.path) / f"{name}.safetensors")
            self.assertEqual(list(weights), list(want))
            for tensor, (shape, values) in want.items():
                self.assertEqual(list(weights[tensor].shape), shape)
                self.assertEqual(tuple(weights[tensor].ravel()), values, tensor)
        self.assertIn("wte.weight.ema", run.checkpoint.optimizer)

    def test_no_copies(self) -> None:
        weights = lockstep.open(trained.text_run()).weights
        a, b = weights["wte.weight"], weights["wte.weight"]
        self.assertTrue(np.shares_memory(a, b))
        with self.assertRaises(ValueError):
            a[0] = 0
        base: Any = a
        while not isinstance(base, np.memmap):
            base = base.base if isinstance(base, np.ndarray) else base.obj
        self.assertEqual(base.mode, "r")

    def test_frozen(self) -> None:
        folder = trained.TOP / "frozen"
        trained.lockstep(
            "train", "configs/tiny.yaml", "-o", str(folder), "--set", "train.steps=6", "--set",
            "train.freeze=wte.*",
        )  # fmt: skip
        weights, all_of_them = (
            lockstep.open(folder).weights,
            lockstep.open(trained.text_run()).weights,
        )
        self.assertEqual(set(weights), set(all_of_them))
        self.assertNotEqual(weights["wte.weight"].tolist(), all_of_them["wte.weight"].tolist())

    def test_published(self) -> None:
        folder = trained.TOP / "published"
        trained.lockstep(
            "export", str(trained.text_run("llama")), "--to", "safetensors", "--type", "f16", "-o",
            str(folder),
        )  # fmt: skip
        weights = lockstep.open(folder)
        self.assertEqual(weights.types["model.embed_tokens.weight"], "F16")
        self.assertEqual(weights["model.embed_tokens.weight"].dtype, np.float16)
        of_run = lockstep.open(trained.text_run("llama")).weights
        self.assertEqual(
            weights["model.embed_tokens.weight"].tolist(),
            of_run["model.embed_tokens.weight"].astype(np.float16).tolist(),
        )

    def test_damaged(self) -> None:
        good = (trained.text_run() / "checkpoints/step-20/model.safetensors").read_bytes()
        with tempfile.TemporaryDirectory() as top:
            path = Path(top) / "x.safetensors"
            for bad in (b"", good[:100], b"\xff" * 64, good[:8] + b"[" + good[9:]):
                path.write_bytes(bad)
                with self.assertRaisesRegex(ValueError, "is no safetensors file"):
                    lockstep.open(path)
            path.write_bytes(good[:-4])
            weights = lockstep.open(path)
            with self.assertRaisesRegex(ValueError, "has another size than its shape"):
                weights[list(weights)[-1]]

    def test_no_such_tensor(self) -> None:
        with self.assertRaisesRegex(KeyError, "no tensor 'wte'"):
            lockstep.open(trained.text_run()).weights["wte"]


class Checkpoints(unittest.TestCase):
    def test_list(self) -> None:
        run = lockstep.open(trained.text_run())
        self.assertEqual([c.step for c in run.checkpoints], [10, 20])
        self.assertEqual(run.checkpoint.step, 20)
        said = json.loads(trained.lockstep("ckpt", "hash", run.checkpoint.path, "--json"))
        self.assertEqual(run.checkpoint.hash, said["weights"])
        opened = lockstep.open(run.checkpoint.path)
        self.assertEqual((opened.step, opened.config), (20, run.config))

    def test_none(self) -> None:
        with tempfile.TemporaryDirectory() as top:
            shutil.copy(trained.text_run() / "config.yaml", top)
            run = lockstep.open(top)
            self.assertEqual((run.checkpoints, run.metrics.nrows), ([], 0))
            with self.assertRaisesRegex(FileNotFoundError, "has no checkpoint"):
                run.weights  # noqa: B018
            with self.assertRaisesRegex(FileNotFoundError, "has no best checkpoint"):
                run.best  # noqa: B018


class Reports(unittest.TestCase):
    def test_ledger_and_status(self) -> None:
        run = lockstep.open(trained.text_run())
        ledger = run.ledger()
        self.assertEqual((ledger["clean"], ledger["steps"]), (True, 20))
        self.assertEqual(run.status()["state"], "complete")

    def test_same_bits(self) -> None:
        found = lockstep.compare(trained.text_run(), lockstep.open(trained.text_run("gpt2", 1)))
        self.assertTrue(found.same)
        self.assertTrue(found.runs[1]["must_match"])
        self.assertIn("the same bits", repr(found))

    def test_other_bits(self) -> None:
        found = lockstep.open(trained.text_run()).compare(trained.text_run("llama"))
        self.assertFalse(found.same)
        self.assertIn("model.kind", [row["key"] for row in found.config])
        self.assertEqual(found.runs[1]["parted"], 1)

    def test_what_the_program_refuses(self) -> None:
        with self.assertRaisesRegex(lockstep.Error, "^/nowhere: "):
            lockstep.compare(trained.text_run(), "/nowhere")

    def test_timeline(self) -> None:
        (timeline,) = lockstep.open(trained.text_run()).timelines()
        content = json.loads((trained.text_run() / "trace.json").read_text())
        want = [e for e in content["traceEvents"] if e["ph"] == "X"]
        events = lockstep.open(trained.text_run() / "trace.json").events
        self.assertEqual(timeline.workers, 2)
        self.assertEqual(events["name"].tolist(), [e["name"] for e in want])
        self.assertEqual(set(events["step"]), {2, 3, 4})
        self.assertAlmostEqual(events["seconds"].sum(), sum(e["dur"] for e in want) * 1e-6)
        forward = events.where(events["kind"] == "Forward")
        self.assertGreater(len(set(forward["layer"])), 4)
        self.assertLessEqual(set(forward["layer"]), set(timeline.layers))


class Paths(unittest.TestCase):
    def test_nothing_there(self) -> None:
        with self.assertRaises(FileNotFoundError):
            lockstep.open("/nowhere/run")
        with tempfile.TemporaryDirectory() as top:
            with self.assertRaisesRegex(ValueError, "neither a run, a checkpoint, nor a model"):
                lockstep.open(top)
            (Path(top) / "model.gguf").write_text("")
            with self.assertRaisesRegex(ValueError, "has its weights as GGUF; `lockstep import"):
                lockstep.open(top)
            (Path(top) / "x.txt").write_text("")
            with self.assertRaisesRegex(ValueError, "a model, nor a timeline"):
                lockstep.open(Path(top) / "x.txt")
            path = Path(top) / "x.json"
            path.write_text("[1]")
            with self.assertRaisesRegex(ValueError, "is no timeline"):
                lockstep.open(path)

    def test_no_program(self) -> None:
        inside = os.path.join(os.path.dirname(lockstep.__file__), "bin", "lockstep")
        if os.path.exists(inside):
            self.skipTest("the package has the program")
        names = {"LOCKSTEP_PROGRAM", "LOCKSTEP_LIBRARY"}
        environment = {k: v for k, v in os.environ.items() if k not in names}
        text = "import lockstep._program as p; p.path()"
        done = subprocess.run(
            [sys.executable, "-c", text], env={**environment, "PATH": "/nowhere"},
            capture_output=True, text=True,
        )  # fmt: skip
        self.assertIn("set LOCKSTEP_PROGRAM to its path", done.stderr)

    def test_program_of_an_installed_library(self) -> None:
        """Found under the library's prefix; where there is none, by PATH."""
        inside = os.path.join(os.path.dirname(lockstep.__file__), "bin", "lockstep")
        if os.path.exists(inside):
            self.skipTest("the package has the program")
        with tempfile.TemporaryDirectory() as top:
            for place in ("prefix/bin", "prefix/lib", "other/bin", "other/lib"):
                (Path(top) / place).mkdir(parents=True)
            programs = [Path(top) / place / "bin/lockstep" for place in ("prefix", "other")]
            for program in programs:
                program.write_text("#!/bin/sh\n")
                program.chmod(0o755)
            text = "import lockstep._program as p; print(p.path())"
            environment = {k: v for k, v in os.environ.items() if k != "LOCKSTEP_PROGRAM"}
            for library, found in (("prefix/lib", programs[0]), ("nothing/lib", programs[1])):
                done = subprocess.run(
                    [sys.executable, "-c", text], capture_output=True, text=True,
                    env={**environment, "PATH": str(programs[1].parent),
                         "LOCKSTEP_LIBRARY": f"{top}/{library}/liblockstep.so.0"},
                )  # fmt: skip
                self.assertEqual(done.stdout.strip(), str(found), done.stderr)


class Notebook(unittest.TestCase):
    @unittest.skipUnless(
        all(importlib.util.find_spec(n) for n in ("nbclient", "ipykernel", "matplotlib")),
        "nbclient, ipykernel or matplotlib is not installed",
    )
    def test_cells(self) -> None:
        import nbclient  # type: ignore[import-not-found,unused-ignore]
        import nbformat  # type: ignore[import-not-found,unused-ignore]

        notebook = nbformat.read(ROOT / "examples/run.ipynb", 4)
        self.assertEqual(len(notebook.cells), 10)
        os.environ["RUN"] = str(trained.text_run())
        os.environ["OTHER"] = str(trained.text_run("gpt2", 1))
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
        drawn = [
            any("image/png" in o.get("data", {}) for o in cell.outputs)
            for cell in notebook.cells
            if cell.cell_type == "code"
        ]
        self.assertEqual(drawn, [False, False, True, True, True, True, True, True, False])
        (last,) = notebook.cells[-1].outputs
        self.assertIn("True, True", last["data"]["text/plain"])


if __name__ == "__main__":
    unittest.main()
