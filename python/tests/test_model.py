"""Models loaded from Python, beside what the program says."""

from __future__ import annotations

import gc
import json
import subprocess
import threading
import unittest
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import trained
from launch import LIMIT_S, PROGRAM

import lockstep

TEMPLATE = (
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}a:{% endif %}"
)


def generated(run: Path, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(trained.lockstep("generate", str(run), "--json", *options))
    return found


class LanguageModel(unittest.TestCase):
    def setUp(self) -> None:
        self.run_folder = trained.text_run()
        self.model = lockstep.load(self.run_folder)

    def test_tokens(self) -> None:
        for text in ("hello", "naïve €", "", "two\nlines"):
            self.assertEqual(self.model.decode(self.model.encode(text)), text)
        said = json.loads(trained.lockstep("tokens", str(self.run_folder), "hello there", "--json"))
        self.assertEqual(self.model.encode("hello there").tolist(), said["ids"])
        self.assertEqual(self.model.decode([]), "")

    def test_logits(self) -> None:
        """Predictions of the next token are those of `lockstep predict`."""
        lines = trained.TOP / "lines.txt"
        texts = ["hello", "of the", "x"]
        lines.write_text("\n".join(texts) + "\n")
        said = trained.lockstep("predict", str(self.run_folder), str(lines), "--json", "--logits")
        for text, line in zip(texts, said.splitlines()):
            logits = self.model.logits(text)
            self.assertEqual(logits.shape, (len(self.model.encode(text)), self.model.vocab))
            (best,) = json.loads(line)["next"]
            self.assertEqual(best["logit"], float(f"{logits[-1].max():.9g}"))
        ids = self.model.encode("of the")
        self.assertTrue(np.array_equal(self.model.logits(ids), self.model.logits("of the")))

    def test_generate(self) -> None:
        """The same text as `lockstep generate`; loaded weights, no more than three lines."""
        for options, words in (
            ({"tokens": 30}, ["--tokens", "30"]),
            ({"tokens": 20, "temperature": 0, "seed": 4},
             ["--tokens", "20", "--temperature", "0", "--seed", "4"]),
            ({"tokens": 25, "top_k": 5, "top_p": 0.9, "min_p": 0.05, "penalty": 1.3},
             ["--tokens", "25", "--top-k", "5", "--top-p", "0.9", "--min-p", "0.05",
              "--repetition-penalty", "1.3"]),
            ({"tokens": 60, "stop": ["e", "t"]}, ["--tokens", "60", "--stop", "e", "--stop", "t"]),
            ({"tokens": 60, "stop": "e"}, ["--tokens", "60", "--stop", "e"]),
        ):  # fmt: skip
            with self.subTest(options):
                want = generated(self.run_folder, "--prompt", "the law", *words)
                text = self.model.generate("the law", **options)
                self.assertEqual((text.tokens, text.end), (want["tokens"], want["end"]))
                if "\ufffd" not in want["text"]:
                    self.assertEqual(text, want["text"])

    def test_average(self) -> None:
        want = generated(self.run_folder, "--prompt", "the", "--tokens", "12", "--ema")
        average = lockstep.load(self.run_folder, ema=True)
        self.assertEqual(average.generate("the", tokens=12).tokens, want["tokens"])
        self.assertFalse(np.array_equal(average.logits("the"), self.model.logits("the")))

    def test_pieces(self) -> None:
        pieces: list[str] = []
        text = self.model.generate("the", tokens=25, on_text=pieces.append)
        self.assertEqual("".join(pieces), text[: sum(map(len, pieces))])
        self.assertGreater(len(pieces), 3)
        count = 0

        def three(_: str) -> bool:
            nonlocal count
            count += 1
            return count < 3

        self.assertEqual(self.model.generate("the", tokens=25, on_text=three).end, "asked")
        self.assertEqual(count, 3)

    def test_an_error_of_the_listener(self) -> None:
        def bad(_: str) -> None:
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.model.generate("the", on_text=bad)
        self.assertEqual(self.model.generate("the", tokens=3).tokens, 3)

    def test_threads(self) -> None:
        want = self.model.generate("the", tokens=20, seed=7)
        found: list[str] = []
        threads = [
            threading.Thread(
                target=lambda: found.append(self.model.generate("the", tokens=20, seed=7))
            )
            for _ in range(4)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(found, [want] * 4)

    def test_refused(self) -> None:
        for error, text, call in (
            (TypeError, "tokens are a list of whole numbers", lambda m: m.logits([1.5])),
            (ValueError, "token 300; the model has 300", lambda m: m.decode([1, 300])),
            (ValueError, "token -1", lambda m: m.logits([-1])),
            (lockstep.Error, "33 tokens; the model reads 1 to 32", lambda m: m.logits([0] * 33)),
            (lockstep.Error, "0 tokens; the model reads", lambda m: m.logits([])),
            (ValueError, "top_p is -1; it must not be", lambda m: m.generate("a", top_p=-1)),
            (lockstep.Error, "top_p is 2; possible", lambda m: m.generate("a", top_p=2)),
            (ValueError, "at least 1 is written", lambda m: m.generate("a", tokens=0)),
            (ValueError, "has a zero byte", lambda m: m.generate("a\0")),
            (TypeError, "the prompt is of the type int; a text", lambda m: m.generate(5)),
            (TypeError, "message 1 is no dict with 'role'", lambda m: m.chat([{"role": "user"}])),
            (lockstep.Error, "stops: a text is empty", lambda m: m.generate("a", stop="")),
            (lockstep.Error, "in Python template=", lambda m: m.chat("hello")),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, text):
                call(self.model)

    def test_closed(self) -> None:
        model = lockstep.load(self.run_folder)
        model.close()
        model.close()
        with self.assertRaisesRegex(lockstep.Error, "the model is closed"):
            model.generate("a")

    def test_collected(self) -> None:
        model = lockstep.load(self.run_folder)
        gone = weakref.ref(model)
        model.generate("a", tokens=2, on_text=lambda _: None)
        del model
        gc.collect()
        self.assertIsNone(gone())

    def test_paths(self) -> None:
        checkpoint = lockstep.open(self.run_folder).checkpoint.path
        self.assertEqual(
            lockstep.load(checkpoint).generate("a", tokens=5), self.model.generate("a", tokens=5)
        )
        with self.assertRaisesRegex(lockstep.Error, "/nowhere"):
            lockstep.load("/nowhere")
        with self.assertRaisesRegex(lockstep.Error, "^settings model.width: the run is trained"):
            lockstep.load(self.run_folder, settings={"model.width": 48})
        with self.assertRaisesRegex(lockstep.Error, "^settings: unknown key 'model.widht'"):
            lockstep.load(self.run_folder, settings={"model.widht": 48})


class Chat(unittest.TestCase):
    def setUp(self) -> None:
        self.template = trained.TOP / "chat.jinja"
        self.template.write_text(TEMPLATE)
        self.model = lockstep.load(trained.text_run("llama"), template=self.template)

    def program(self, lines: str) -> list[str]:
        """What `lockstep chat` answers."""
        line = [PROGRAM, "chat", str(trained.text_run("llama")), "--template", str(self.template),
                "--json", "--tokens", "4", "--temperature", "0"]  # fmt: skip
        done = subprocess.run(line, input=lines, capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(answer)["answer"] for answer in done.stdout.splitlines()]

    def test_turns(self) -> None:
        first, second = self.program("hi\nwhy\n")
        options: dict[str, Any] = {"tokens": 4, "temperature": 0}
        self.assertEqual(self.model.chat("hi", **options), first)
        talk = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": first},
            {"role": "user", "content": "why"},
        ]
        self.assertEqual(self.model.chat(talk, **options), second)
        self.model.chat("something else", tokens=2)
        self.assertEqual(self.model.chat(talk, **options), second)

    def test_refused(self) -> None:
        with self.assertRaisesRegex(lockstep.Error, "message 1 is of 'king'"):
            self.model.chat([{"role": "king", "content": ""}, {"role": "user", "content": "a"}])
        with self.assertRaisesRegex(lockstep.Error, "there is no message"):
            self.model.chat([])
        with self.assertRaisesRegex(lockstep.Error, "the model's context 32"):
            self.model.chat("a long message of many words, which has no room in the context at all")
        with self.assertRaisesRegex(ValueError, "message 1 has a zero byte"):
            self.model.chat("a\0")


class Network(unittest.TestCase):
    def test_predictions(self) -> None:
        folder = trained.network_run()
        network = lockstep.load(folder)
        self.assertEqual([(f.name, f.shape) for f in network.inputs], [("x", (2,)), ("city", ())])
        (output,) = network.outputs
        self.assertEqual((output.name, output.kind, output.shape), ("label", "classes", (2,)))
        self.assertEqual(output.classes, ["ant", "bee"])
        rows = trained.TOP / "new.jsonl"
        cities = ["Bonn", "Jena", "Ulm"]
        x = np.array([[0.25, 1], [0.5, 0], [1, 1], [0, 0]], np.float32)
        city = np.array([0, 1, 2, 2], np.int32)
        rows.write_text(
            "".join(
                json.dumps({"x": a.tolist(), "city": cities[c]}) + "\n" for a, c in zip(x, city)
            )
        )
        said = trained.lockstep("predict", str(folder), str(rows), "--json", "--top", "2")
        found = network.predict(x=x, city=city)["label"]
        self.assertEqual(found.shape, (4, 2))
        for row, line in zip(found, said.splitlines()):
            for one in json.loads(line)["label"]:
                mine = row[output.classes.index(one["class"])]
                self.assertEqual(float(f"{mine:.9g}"), one["probability"])
        logits = lockstep.load(folder, logits=True, threads=1).predict(x=x, city=city)["label"]
        e = np.exp(logits.astype(np.float64))
        self.assertTrue(np.allclose(found, e / e.sum(1, keepdims=True), atol=1e-6))
        self.assertEqual(network.predict(x=x[:0], city=city[:0])["label"].shape, (0, 2))
        on_device = lockstep.load(folder, device="c").predict(x=x, city=city)["label"]
        self.assertTrue(np.array_equal(on_device, found))
        with self.assertRaisesRegex(lockstep.Error, "device"):
            lockstep.load(folder, device="abacus")

    def test_refused(self) -> None:
        network = lockstep.load(trained.network_run())
        with self.assertRaisesRegex(TypeError, "reads x, city, not x"):
            network.predict(x=[[1, 2]])
        with self.assertRaisesRegex(ValueError, r"x has the shape \(1, 3\); the network reads"):
            network.predict(x=[[1, 2, 3]], city=[1])
        with self.assertRaisesRegex(ValueError, r"fields of \[1, 2\] samples"):
            network.predict(x=[[1, 2]], city=[1, 2])
        with self.assertRaisesRegex(lockstep.Error, "'city' has 3; it must be"):
            network.predict(x=[[1, 2]], city=[3])
        network.close()
        with self.assertRaisesRegex(lockstep.Error, "closed"):
            network.predict(x=[[1, 2]], city=[1])


if __name__ == "__main__":
    unittest.main()
