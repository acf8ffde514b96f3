#!/usr/bin/env python3
"""check_clients.py LOCKSTEP MODEL FOLDER [CLIENT...] - programs that people use ask `lockstep serve`, and get what OpenAI's API promises.

openai (answers, streams, responses, embeddings, tools, forms, errors, repeated requests), openai-agents, litellm, llm, lm-eval, promtool: each that is
installed, else it says so. MODEL has a chat template; files are written into FOLDER, which is emptied. The
programs are those beside the interpreter.
"""
import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request

import openai
import pydantic

try:
    import agents
except ImportError:
    agents = None

PROGRAM, MODEL, FOLDER = (os.path.abspath(p) for p in sys.argv[1:4])
BESIDE = os.path.dirname(sys.executable)
KEY = "secret"
LIMIT = 600  # seconds until something that must happen is given up; no measure of speed

# A template that writes tools as Hermes and Qwen do.
TEMPLATE = """{% if tools %}<|im_start|>system
Tools: <tools>{% for t in tools %}{{ t | tojson }}{% endfor %}</tools><|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}{% else %}{{ m.content }}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
TURNS = """<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
# Those of Mistral, with its ids, and of Qwen3-Coder.
OTHER_TEMPLATES = ["""{{ tools | tojson }}{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.tool_calls %}[TOOL_CALLS] [{% for c in m.tool_calls %}{% if c.id | length != 9 %}{{ raise_exception('nine') }}{% endif %}\
{{ (c.function | tojson)[:-1] }}, "id": "{{ c.id }}"}{% endfor %}]{% else %}{{ m.content }}{% endif %}""" + TURNS,
                   """{{ tools | tojson }}{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>
<function={{ c.function.name }}>
{% for k, v in c.function.arguments | items %}<parameter={{ k }}>
{{ v }}
</parameter>
{% endfor %}</function>
</tool_call>{% endfor %}{% else %}{{ m.content }}{% endif %}""" + TURNS]
WEATHER = {"type": "function", "function": {"name": "weather", "description": "The weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"]}}}


def check(ok, what):
    if not ok:
        sys.exit(f"check_clients.py: {what}")
    print(f"ok: {what}", flush=True)


class Server:
    def __init__(self, *words):
        self.process = subprocess.Popen([PROGRAM, "serve", MODEL, "--port", "0", "--name", "m", *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().strip()
        self.base = self.url.removesuffix("/v1")

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.process.terminate()
        self.process.wait(LIMIT)


def user(content):
    return [{"role": "user", "content": content}]


# ---- openai ----


def joined(stream):
    """A stream's texts in one piece for each choice, why each ended, and what was used."""
    texts, reasons, usage = {}, {}, None
    for event in stream:
        usage = event.usage or usage
        for c in event.choices:
            piece = c.text if hasattr(c, "text") else c.delta.content
            texts[c.index] = texts.get(c.index, "") + (piece or "")
            reasons[c.index] = c.finish_reason or reasons.get(c.index)
    return [texts[i] for i in sorted(texts)], [reasons[i] for i in sorted(reasons)], usage


def check_texts(client):
    check([m.id for m in client.models.list()] == ["m"], "openai: models")
    ask = dict(model="m", messages=user("Name three rivers."), max_tokens=24, seed=5, temperature=1, n=2)
    whole = client.chat.completions.create(**ask)
    texts, reasons, usage = joined(client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
    check(texts == [c.message.content for c in whole.choices] and reasons == [c.finish_reason for c in whole.choices]
          and usage == whole.usage, f"openai: a chat's stream is the whole answer: {texts[0][:40]!r}")
    check(texts[0] != texts[1], "openai: n answers differ")
    ask = dict(model="m", prompt=["Once upon a time", "The sea"], max_tokens=12, seed=5, logprobs=2, stop=["\n\n"])
    whole = client.completions.create(**ask)
    texts, reasons, usage = joined(client.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
    check(texts == [c.text for c in whole.choices] and reasons == [c.finish_reason for c in whole.choices] and
          usage == whole.usage, "openai: so are completions of two prompts")
    first = whole.choices[0].logprobs
    check(len(first.tokens) == len(first.token_logprobs) == len(first.top_logprobs) == 12, "openai: with logprobs")
    ask = dict(model="m", messages=user("Who are you?"), stop=["."], seed=1)
    with client.chat.completions.stream(**ask) as stream:
        seen = [e.type for e in stream]
        final = stream.get_final_completion()
    again = client.chat.completions.create(**ask)
    check("content.delta" in seen and final.choices[0].message.content == again.choices[0].message.content,
          "openai: the helper of streams, too")


def check_many(server):
    """Sixteen at once, and each alone."""
    async def all_of():
        async with openai.AsyncOpenAI(base_url=server.url, api_key="none") as client:
            asks = [dict(model="m", messages=user(f"Tell me about the number {i}."), max_tokens=16, seed=i) for i in range(16)]
            among = await asyncio.gather(*(client.chat.completions.create(**a) for a in asks))
            alone = [await client.chat.completions.create(**a) for a in asks]
            return [[c.choices[0].message.content for c in answers] for answers in (among, alone)]
    among, alone = asyncio.run(all_of())
    check(among == alone, "openai: AsyncOpenAI, 16 at once get what each gets alone")


def check_embeddings(client):
    texts = ["the sea", "a river", "the sea"]
    packed = client.embeddings.create(model="m", input=texts)  # the client asks for base64
    plain = client.embeddings.create(model="m", input=texts, encoding_format="float")
    a, b = ([d.embedding for d in e.data] for e in (packed, plain))
    worst = max(abs(x - y) for v, w in zip(a, b) for x, y in zip(v, w))
    check(worst <= 1e-8 and a[0] == a[2] != a[1], f"openai: embeddings of {len(a[0])} numbers, base64 as floats")


class City(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=20)
    inhabitants: int


def check_forms(client):
    answer = client.chat.completions.parse(model="m", messages=user("Name a city, as JSON."), response_format=City, seed=3,
                                           max_tokens=100)
    check(isinstance(answer.choices[0].message.parsed, City), f"openai: pydantic: {answer.choices[0].message.parsed!r}")
    check_tools(client)


def check_tools(client):
    ask = dict(model="m", messages=user("Is it raining in Oslo?"), tools=[WEATHER], tool_choice="required",
               parallel_tool_calls=False, seed=3, max_tokens=100)
    message = client.chat.completions.create(**ask).choices[0].message
    call = message.tool_calls[0]
    check(call.function.name == "weather" and list(json.loads(call.function.arguments)) == ["city"],
          f"openai: tools: {call.function.arguments}")
    with client.chat.completions.stream(**ask) as stream:
        streamed = stream.get_final_completion().choices[0].message.tool_calls[0]
    check(streamed.function.arguments == call.function.arguments and streamed.function.name == "weather",
          "openai: tools in a stream")
    turns = user("Is it raining in Oslo?") + [message.model_dump(exclude_none=True),
                                              {"role": "tool", "tool_call_id": call.id, "content": "no"}]
    answer = client.chat.completions.create(model="m", messages=turns, tools=[WEATHER], tool_choice="none", max_tokens=8)
    check(answer.choices[0].message.content, "openai: a tool's result is answered")


def check_other_forms(_):
    for i, text in enumerate(OTHER_TEMPLATES):
        template = os.path.join(FOLDER, f"template-{i}.jinja")
        with open(template, "w") as f:
            f.write(text)
        with Server("--context", "2048", "--template", template) as server:
            check_tools(openai.OpenAI(base_url=server.url, api_key="none", timeout=LIMIT))


# ---- openai's responses ----

EVENTS = ["created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.done",
          "content_part.done", "output_item.done", "function_call_arguments.delta", "function_call_arguments.done", "completed",
          "incomplete"]
FLAT = {"type": "function", **WEATHER["function"], "strict": True}


def streamed(client, ask):
    """The response that a stream ends with. Its events are numbered, in order, and no event comes twice in a row but deltas."""
    events = list(client.responses.create(**ask, stream=True))
    names = [e.type.removeprefix("response.") for e in events]
    kinds = [n for i, n in enumerate(names) if i == 0 or n != names[i - 1]]
    check([e.sequence_number for e in events] == list(range(len(events))) and set(names) <= set(EVENTS) and names[0] == "created"
          and len(kinds) == len(names) - sum(a == b and a.endswith("delta") for a, b in zip(names, names[1:])),
          f"openai: events of a response: {' '.join(kinds)}")
    pieces = {}
    for e in events:
        if e.type.endswith(".delta"):
            pieces[e.output_index] = pieces.get(e.output_index, "") + e.delta
    final = events[-1].response
    whole = {i: o.arguments if o.type == "function_call" else o.content[0].text for i, o in enumerate(final.output)}
    check(pieces == {i: t for i, t in whole.items() if t}, "openai: whose pieces are its texts")
    return final


def check_responses(client):
    chat = client.chat.completions.create(model="m", messages=[{"role": "system", "content": "Be short."}] +
                                          user("Name three rivers."), max_tokens=24, seed=5, temperature=1)
    ask = dict(model="m", instructions="Be short.", input="Name three rivers.", max_output_tokens=24, temperature=1,
               metadata={"a": "b"}, extra_body={"seed": 5})
    whole, text = client.responses.create(**ask), chat.choices[0].message.content
    check(whole.output_text == text and whole.usage.output_tokens == chat.usage.completion_tokens and whole.metadata == {"a": "b"},
          f"openai: a response is the chat's answer: {text[:40]!r}")
    final = streamed(client, ask)
    check(final.output_text == text and final.status == whole.status and final.usage.output_tokens == whole.usage.output_tokens,
          f"openai: {final.status}, streamed as whole")
    short = client.responses.create(model="m", input="Count.", max_output_tokens=2)
    check(short.status == "incomplete" and short.incomplete_details.reason == "max_output_tokens", "openai: a short one is incomplete")
    city = client.responses.parse(model="m", input="Name a city, as JSON.", text_format=City, max_output_tokens=100,
                                  extra_body={"seed": 3}).output_parsed
    check(isinstance(city, City), f"openai: responses.parse: {city!r}")
    turns = user("Is it raining in Oslo?")
    ask = dict(model="m", input=turns, tools=[FLAT], tool_choice="required", parallel_tool_calls=False, max_output_tokens=100,
               extra_body={"seed": 3})
    calls = [client.responses.create(**ask).output, streamed(client, ask).output,
             client.responses.create(**{**ask, "tool_choice": {"type": "function", "name": "weather"}}).output]
    check(all(len(c) == 1 and c[0].name == "weather" and c[0].arguments == calls[0][0].arguments for c in calls),
          f"openai: tools of responses: {calls[0][0].arguments}")
    turns += [calls[0][0].model_dump(), {"type": "function_call_output", "call_id": calls[0][0].call_id, "output": "no"}]
    answer = client.responses.create(model="m", input=turns, tools=[FLAT], tool_choice="none", max_output_tokens=8)
    check(answer.output_text, "openai: a result of a tool is answered")
    turns += [o.model_dump() for o in answer.output] + user("And now?")
    with client.responses.stream(model="m", input=turns, tools=[FLAT], tool_choice="none",
                                 extra_body={"stop": ["."], "seed": 1}) as stream:
        check(stream.until_done().get_final_response().output_text, "openai: the helper of streams")
    raised(openai.BadRequestError, "a response that goes on from a stored one", lambda: client.responses.create(
        model="m", input="x", previous_response_id=answer.id))
    raised(openai.BadRequestError, "an input that is too long", lambda: client.responses.create(model="m", input="word " * 5000))
    raised(openai.NotFoundError, "a response that was not stored", lambda: client.responses.retrieve(answer.id))


def raised(kind, what, ask):
    try:
        ask()
    except kind as e:
        check(type(e) is kind, f"openai: {what} is {kind.__name__}: {str(e)[:110]}")
        return e
    return check(False, f"openai: {what} is not refused")


def check_errors(server, client):
    chat = client.chat.completions.create
    e = raised(openai.BadRequestError, "a prompt that is too long", lambda: chat(model="m", messages=user("word " * 5000)))
    check(e.code == "context_length_exceeded" and e.type == "invalid_request_error", "openai: with its code")
    raised(openai.BadRequestError, "a value that can't be", lambda: chat(model="m", messages=user("x"), temperature=-1))
    raised(openai.BadRequestError, "a schema with an unknown keyword", lambda: chat(
        model="m", messages=user("x"), response_format={"type": "json_schema", "json_schema": {
            "name": "x", "schema": {"type": "object", "contains": {}}}}))
    raised(openai.NotFoundError, "another model", lambda: chat(model="other", messages=user("x")))
    raised(openai.NotFoundError, "another path", lambda: client.moderations.create(input="x"))
    slow = client.with_options(timeout=0.2, max_retries=0)
    raised(openai.APITimeoutError, "an answer that takes long", lambda: slow.chat.completions.create(
        model="m", messages=user("Count."), max_tokens=1500, extra_body={"ignore_eos": True}))
    check(chat(model="m", messages=user("x"), max_tokens=1).usage.completion_tokens == 1, "openai: and the next is answered")


def check_limits(_):
    """A key; a queue that is full, with and without patience: of a server of its own."""
    with Server("--texts", "1", "--queue", "1", "--context", "4096", "--key", KEY) as server:
        wrong = openai.OpenAI(base_url=server.url, api_key="wrong", max_retries=0)
        e = raised(openai.AuthenticationError, "a wrong key", wrong.models.list)
        check("key is missing or wrong" in e.message, f"openai: which says so: {e.message}")
        client = openai.OpenAI(base_url=server.url, api_key=KEY, max_retries=0)
        # Half a minute or more, until it is closed.
        long = dict(model="m", messages=user("Count."), max_tokens=4000, extra_body={"ignore_eos": True}, stream=True)
        first = client.chat.completions.create(**long)
        wait_for(server, "replies_running", 1)
        waits = threading.Thread(target=lambda: client.chat.completions.create(**long).close())
        waits.start()
        wait_for(server, "replies_waiting", 1)
        e = raised(openai.RateLimitError, "one too many", lambda: client.chat.completions.create(
            model="m", messages=user("x"), max_tokens=1))
        check(e.response.headers["retry-after"] == "1", "openai: which says when to try again")
        refused = number_of(server, "refused_total")

        def make_room():
            wait_for(server, "refused_total", refused + 1)
            first.close()
        ends = threading.Thread(target=make_room)
        ends.start()
        patient = client.with_options(max_retries=60).chat.completions.with_raw_response.create(
            model="m", messages=user("x"), max_tokens=1)
        check(patient.retries_taken > 0, f"openai: tried again {patient.retries_taken} times, and is answered")
        ends.join()
        waits.join()


def check_openai(server):
    client = openai.OpenAI(base_url=server.url, api_key="none", timeout=LIMIT)
    check_texts(client)
    check_many(server)
    check_embeddings(client)
    check_forms(client)
    check_responses(client)
    check_errors(server, client)


# ---- others ----


def check_agents(server):
    """openai-agents, which asks for responses: a tool is called, and its result answered."""
    if not agents:
        print("skipped: agents is not installed")
        return
    agents.set_tracing_disabled(True)
    cities = []

    @agents.function_tool
    def weather(city: str) -> str:
        """The weather of a city"""
        cities.append(city)
        return "no"

    async def run():
        async with openai.AsyncOpenAI(base_url=server.url, api_key="none", timeout=LIMIT) as client:
            agent = agents.Agent(name="a", instructions="Answer.", tools=[weather], model=agents.OpenAIResponsesModel("m", client),
                                 model_settings=agents.ModelSettings(tool_choice="required", max_tokens=60, temperature=0,
                                                                     parallel_tool_calls=False))
            whole = await agents.Runner.run(agent, "Is it raining in Oslo?")
            run = agents.Runner.run_streamed(agent, "Is it raining in Oslo?")
            events = [e.type async for e in run.stream_events()]
            return whole, run, events
    whole, run, events = asyncio.run(run())
    check(len(cities) == 2 and cities[0] == cities[1] and whole.final_output == run.final_output and "raw_response_event" in events,
          f"agents: weather({cities[0]!r}), then {whole.final_output[:40]!r}; the same in a stream")


def installed(name):
    path = os.path.join(BESIDE, name)
    if os.path.exists(path):
        return path
    print(f"skipped: {name} is not installed")
    return None


def ran(what, *words, **options):
    """A program's output, which must end well."""
    p = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT, **options)
    if p.returncode:
        check(False, f"{what}: exit {p.returncode}: {p.stdout[-800:]} {p.stderr[-1500:]}")
    return p.stdout


def metrics_of(server):
    r = urllib.request.Request(server.base + "/metrics", headers={"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(r, timeout=LIMIT) as answer:
        return answer.read().decode()


def number_of(server, name):
    return int(re.search(rf'\nlockstep_serve_{name}{{model="m"}} (\d+)\n', metrics_of(server))[1])


def wait_for(server, name, least):
    end = time.monotonic() + LIMIT
    while number_of(server, name) < least:
        if time.monotonic() > end:
            check(False, f"{name} is not {least}")
        time.sleep(0.05)


def check_promtool(server):
    promtool = shutil.which("promtool")
    if not promtool:
        print("skipped: promtool is not installed (Debian's package prometheus)")
        return
    text = metrics_of(server)
    told = subprocess.run([promtool, "check", "metrics"], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(told.returncode == 0 and not told.stdout, f"promtool: nothing to say of {text.count(chr(10))} lines {told.stdout}")


def check_litellm(server):
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it asks no other host
    try:
        import litellm
    except ImportError:
        print("skipped: litellm is not installed")
        return
    ask = dict(model="openai/m", api_base=server.url, api_key="none", messages=user("Name three rivers."), max_tokens=16, seed=5)
    whole = litellm.completion(**ask).choices[0].message.content
    pieces = [c.choices[0].delta.content or "" for c in litellm.completion(**ask, stream=True)]
    check(whole and "".join(pieces) == whole, f"litellm: a stream of {len(pieces)} pieces is the whole answer")
    vector = litellm.embedding(model="openai/m", api_base=server.url, api_key="none", input=["the sea"], encoding_format="float")
    check(len(vector.data[0]["embedding"]) > 10, "litellm: embeddings")
    try:
        litellm.completion(**{**ask, "messages": user("word " * 5000)})
        check(False, "litellm: a prompt that is too long is not refused")
    except litellm.ContextWindowExceededError:
        check(True, "litellm: a prompt that is too long is ContextWindowExceededError")


def check_llm(server):
    llm = installed("llm")
    if not llm:
        return
    home = os.path.join(FOLDER, "llm")
    os.makedirs(home)
    with open(os.path.join(home, "extra-openai-models.yaml"), "w") as f:
        f.write(f"- model_id: here\n  model_name: m\n  api_base: {server.url}\n")
    env = {**os.environ, "LLM_USER_PATH": home, "OPENAI_API_KEY": "none"}
    options = ["-m", "here", "-o", "seed", "5", "-o", "max_tokens", "16"]
    whole = ran("llm", llm, "prompt", *options, "--no-stream", "Name three rivers.", env=env)
    check(whole.strip() and ran("llm", llm, "prompt", *options, "Name three rivers.", env=env) == whole,
          "llm: a stream is the whole answer")
    check(ran("llm", llm, "prompt", *options, "-c", "And three seas.", env=env).strip(), "llm: a conversation goes on")


TASK = """task: colors
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/task.jsonl}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{answer}}}}"
metric_list: [{{metric: acc}}, {{metric: acc_norm}}]
"""


def write_task(folder):
    """Sums, and what things are: answers by choice."""
    r = random.Random(1)
    things = {"The color of grass is": "green", "The color of snow is": "white", "The color of blood is": "red",
              "The color of the sky is": "blue", "The color of coal is": "black", "The color of a lemon is": "yellow"}
    with open(os.path.join(folder, "task.jsonl"), "w") as f:
        for question, answer in things.items():
            choices = sorted(things.values())
            f.write(json.dumps({"question": question, "choices": choices, "answer": choices.index(answer)}) + "\n")
        for _ in range(18):
            a, b = r.randrange(2, 9), r.randrange(2, 9)
            choices = [str(a + b + d) for d in (-1, 0, 1, 2)]
            f.write(json.dumps({"question": f"{a} + {b} =", "choices": choices, "answer": 1}) + "\n")
    with open(os.path.join(folder, "colors.yaml"), "w") as f:
        f.write(TASK.format(folder=folder))


def samples_of(folder):
    """What a run of lm-eval has found: scores, and the logarithms of each choice's probability."""
    found = {}
    for base, _, names in os.walk(folder):
        for n in names:
            with open(os.path.join(base, n)) as f:
                if n.startswith("samples_"):
                    lines = [json.loads(line) for line in f]
                    found["samples"] = {s["doc_id"]: s["resps"] for s in lines}
                elif n.startswith("results_"):
                    found["scores"] = json.load(f)["results"]["colors"]
    return found


def check_lm_eval(server):
    program = installed("lm_eval")
    if not program:
        return
    folder = os.path.join(FOLDER, "lm_eval")
    os.makedirs(folder)
    write_task(folder)
    ran("lockstep export", PROGRAM, "export", MODEL, "--to", "safetensors", "--type", "bf16", "-o", f"{folder}/tokenizer")
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": f"{folder}/hf"}
    runs = []
    for at_once in (1, 8):
        ran("lm_eval", program, "--model", "local-completions", "--model_args",
            f"model=m,base_url={server.url}/completions,num_concurrent={at_once},max_retries=1,tokenizer_backend=huggingface,"
            f"tokenizer={folder}/tokenizer", "--tasks", "colors", "--include_path", folder, "--output_path",
            f"{folder}/{at_once}", "--log_samples", env=env)
        runs.append(samples_of(f"{folder}/{at_once}"))
    shutil.rmtree(f"{folder}/tokenizer")
    scores = {k: v for k, v in runs[0]["scores"].items() if k.startswith("acc")}
    count = sum(len(s) for s in runs[0]["samples"].values())
    check(runs[0]["samples"] == runs[1]["samples"] and count > 90,
          f"lm-eval: {count} log-likelihoods are equal to the bit with 1 and 8 requests at once")
    check(scores == {k: v for k, v in runs[1]["scores"].items() if k.startswith("acc")}, f"lm-eval: equal scores: {scores}")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    template = os.path.join(FOLDER, "template.jinja")
    with open(template, "w") as f:
        f.write(TEMPLATE)
    only = sys.argv[4:]
    with Server("--context", "2048", "--template", template) as server:
        for c in (check_openai, check_other_forms, check_agents, check_limits, check_promtool, check_litellm, check_llm, check_lm_eval):
            if not only or c.__name__.removeprefix("check_") in only:
                c(server)


main()
