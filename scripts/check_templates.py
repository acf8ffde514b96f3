#!/usr/bin/env python3
"""Compares conversations as our templates write them with Hugging Face's transformers.

    check_templates.py LOCKSTEP MODEL [TEMPLATE...]
    check_templates.py --random RENDER [N [SEED]]

MODEL is a directory with a tokenizer and a chat template (lockstep import makes it). Each template,
the model's own and those given (by default those that the package trl has), writes the conversations
below: the text must be that of apply_chat_template(), byte for byte, or both must refuse. For
the model's own template, the token ids must be those of its tokenizer, too.

With --random, N expressions and N templates are drawn (random_templates.py; 3,000 if N is not
given), and rendered by RENDER, the program tests/template/render.c. What ours prints must be what
theirs prints; ours may refuse more.
"""
import datetime
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

import jinja2
import random_templates
from transformers import AutoTokenizer
from transformers.utils.chat_template_utils import _compile_jinja_template


def turns(*texts, system=None):
    roles = ["user", "assistant"]
    list_ = [{"role": roles[i % 2], "content": t} for i, t in enumerate(texts)]
    return ([{"role": "system", "content": system}] if system else []) + list_


CONVERSATIONS = [
    turns("Hi", "Hello."),
    turns("What is 1 + 1?", "2", "And {{ 2 }} + {% 2 %}?", "4", system="You are terse."),
    turns("  quotes: 'a' \"b\" \\ `c`\n", "line\n\nbreaks \t", system=" braces {a} [b] <c> "),
    turns("h\u00e9llo \u65e5\u672c\u8a9e \u0434\u0430 \u05e9\u05dc\u05d5\u05dd", "\U0001f642\u200d caf\u00e9 \u00a0"),
    turns("a", "b", "c", "d", "e", "f"),
    turns("think", "<think>\nwhy\n</think>\n\nso", "again", "<think>x</think>y"),
]
DATE = datetime.datetime(2024, 7, 26)  # of training samples


def theirs(template, messages, tokens):
    """The text, or None if the template refuses."""
    compiled = _compile_jinja_template(template)
    compiled.globals["strftime_now"] = DATE.strftime
    try:
        return compiled.render(messages=messages, add_generation_prompt=False, **tokens)
    except (jinja2.TemplateError, TypeError):
        return None


def ours(program, model, path, conversations):
    """For each conversation an object with its text and ids, or our message if it is refused."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        f.writelines(json.dumps({"messages": messages}) + "\n" for messages in conversations)
        f.flush()
        words = [program, "tokens", model, "--chat", f.name, "--loss", "all", "--json"]
        got = subprocess.run(words + (["--template", path] if path else []), capture_output=True,
                             text=True, encoding="utf-8", check=False)
    if got.returncode == 0:
        return [json.loads(line) for line in got.stdout.splitlines()]
    if len(conversations) == 1:
        return [got.stderr]
    return [ours(program, model, path, [c])[0] for c in conversations]


# What theirs prints of values without a text of their own: a place in memory, or a class's name.
OBJECTS = re.compile(r" at 0x|<Macro |<Namespace |<LoopContext |<bound method|dict_items\(|dict_keys\(")


class TooSlow(Exception):
    pass


def stop(*_):
    raise TooSlow


def theirs_of(environment, template, values):
    """The text, or an exception if the template fails or takes more than 3 seconds."""
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 3)
    try:
        return environment.from_string(template).render(**values)
    except Exception as e:  # pylint: disable=broad-except
        return e
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def check_random(render, n=3000, seed=1):
    environment = _compile_jinja_template("").environment
    environment.globals["strftime_now"] = DATE.strftime
    draw = random_templates.Templates(int(seed))
    same = refused = more = bad = 0
    with subprocess.Popen([render], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                          encoding="utf-8") as p:
        for i in range(2 * int(n)):
            template = draw.template() if i % 2 else draw.printed_expression()
            values = random_templates.TEMPLATE_VALUES if i % 2 else random_templates.EXPRESSION_VALUES
            want = theirs_of(environment, template, values)
            print(json.dumps({"template": template, "globals": values}), file=p.stdin, flush=True)
            got = json.loads(p.stdout.readline())
            if isinstance(got, dict):
                both = isinstance(want, Exception) or OBJECTS.search(want)
                refused += bool(both)
                more += not both
            elif got == want:
                same += 1
            elif not isinstance(want, TooSlow):
                print(f"{template!r}: {want!r}, and ours {got!r}")
                bad += 1
    print(f"random templates: {2 * int(n)}, the same: {same}, refused by both: {refused}, "
          f"by ours alone: {more}, different: {bad}")
    return bad > 0 or same < int(n) / 3


def main():
    if sys.argv[1] == "--random":
        return check_random(*sys.argv[2:])
    program, model, *paths = sys.argv[1:]
    if not paths:
        import trl
        paths = sorted(glob.glob(os.path.join(os.path.dirname(trl.__file__), "chat_templates/*.jinja")))
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokens = {k: getattr(tokenizer, k) for k in ("bos_token", "eos_token") if getattr(tokenizer, k)}
    compared = refused = bad = 0
    for path in [None] + paths:
        template = open(path, encoding="utf-8").read() if path else tokenizer.chat_template
        name = os.path.basename(path) if path else "the model's own"
        all_ours = ours(program, model, path, CONVERSATIONS)
        for i, (messages, got) in enumerate(zip(CONVERSATIONS, all_ours)):
            want = theirs(template, messages, tokens)
            if (want is None) != isinstance(got, str) or (want is not None and got["text"] != want):
                print(f"{name}, conversation {i + 1}: {want!r}, and ours {got!r}")
                bad += 1
            elif want is not None and not path:
                ids = tokenizer(want, add_special_tokens=False)["input_ids"]
                bad += got["ids"] != ids
                if got["ids"] != ids:
                    print(f"{name}, conversation {i + 1}: ids {ids}, and ours {got['ids']}")
            compared += 1
            refused += want is None
    print(f"templates: {1 + len(paths)}, texts compared: {compared}, refused by both: {refused}, different: {bad}")
    return bad > 0


sys.exit(main())
