"""Compares serving by `lockstep serve` and by llama.cpp's server, with the same weights as stored.

    compare_serve.py LOCKSTEP PYTHON MODEL.gguf OUT [--rounds N] [--clients 1,2,4,8,16] [--tokens N] [--weights ...]

LOCKSTEP is the program, PYTHON one that has xllamacpp, MODEL.gguf a model, which is also written with weights
in Q8_0 and bf16. Three servers run: Lockstep, Lockstep with `infer.activations: int8` (of weights in blocks; that is
how llama.cpp multiplies), and llama.cpp; each has all cores, and is measured while the others have nothing to do.
Clients send chats, each with words that no other has, one after the other, and read streams; servers alternate,
and a figure is the median over rounds. Then: one request alone and among 3 and 15 others, repeated, at
temperature 0 and at 1 with a seed, and how many different answers it got; a prompt of some 1,000 tokens, and
the same beginning with another end; the time from the start to the first answer of /health; the memory.
--weights Q4_1 is MODEL.gguf as it is. OUT/serve.json has all samples, OUT/serve.md the tables.
"""
import http.client
import itertools
import json
import os
import signal
import statistics
import subprocess
import threading
import time

from beside_llama import HERE, file_of, options, write

TEXTS = 16
QUESTIONS = ("Tell me about the history of Rome.", "What is a prime number?", "Write a short poem on the sea.",
             "How do plants grow?", "Explain gravity to a child.", "Name five rivers of Europe.",
             "What did Newton find?", "How does a bicycle stay upright?")
numbers = itertools.count(int(time.time()) % 100000 * 1000)


# ---- servers ----


class Server:
    """A program that listens at a port."""

    def __init__(self, name, command, port):
        self.name, self.port = name, port
        begin = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self.answers():
            if self.process.poll() is not None:
                raise SystemExit(f"{name} ended: {' '.join(command)}")
            time.sleep(0.002)
        self.start_seconds = time.perf_counter() - begin

    def answers(self):
        try:
            c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            c.request("GET", "/health")
            return c.getresponse().status == 200
        except OSError:
            return False

    def memory_mb(self):
        """Resident, of which shared pages of files are in `file`."""
        with open(f"/proc/{self.process.pid}/status") as f:
            kb = {line.split(":")[0]: line.split()[1] for line in f if line.startswith("Rss") or line.startswith("VmRSS")}
        return {"all": int(kb["VmRSS"]) / 1e3, "file": int(kb["RssFile"]) / 1e3}

    def close(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def servers_of(o, file):
    ours = [o.lockstep, "serve", file, "--name", "model", "--texts", str(TEXTS), "--context", "2048"]
    threads = len(os.sched_getaffinity(0))
    yield Server("lockstep", ours + ["--port", "18331"], 18331)
    if "bf16" not in file:
        yield Server("lockstep, int8", ours + ["--port", "18332", "--set", "infer.activations=int8"], 18332)
    yield Server("llama.cpp", [o.python, os.path.join(HERE, "llama_server.py"), file, "18333", str(TEXTS),
                               str(threads)], 18333)


# ---- requests ----


def chat(server, content, tokens, **fields):
    """The text, its tokens, and when its pieces came, in seconds from the request."""
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    body = {"model": "model", "messages": [{"role": "user", "content": content}], "max_tokens": tokens,
            "temperature": 0, "stream": True, "ignore_eos": True, "stream_options": {"include_usage": True}, **fields}
    begin = time.perf_counter()
    c.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = c.getresponse()
    if answer.status != 200:
        raise SystemExit(f"{server.name}: {answer.status} {answer.read()[:300]}")
    text, count, times = "", 0, []
    for line in answer:
        if not line.startswith(b"data: {"):
            continue
        piece = json.loads(line[6:])
        if piece.get("usage"):
            count = piece["usage"]["completion_tokens"]
        content = piece["choices"][0]["delta"].get("content") if piece["choices"] else None
        if content:
            text += content
            times.append(time.perf_counter() - begin)
    return text, count, times


def at_once(calls):
    results = [None] * len(calls)

    def run(i):
        results[i] = calls[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(calls))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def share(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def load(server, clients, o):
    """Each client sends two chats, one after the other."""

    def client(i):
        return [chat(server, f"{QUESTIONS[(i + k) % len(QUESTIONS)]} {next(numbers)}", o.tokens) for k in range(2)]

    begin = time.perf_counter()
    chats = [c for pair in at_once([lambda i=i: client(i) for i in range(clients)]) for c in pair]
    seconds = time.perf_counter() - begin
    between = [b - a for _, _, times in chats for a, b in zip(times, times[1:])]
    return {"tokens_per_second": sum(count for _, count, _ in chats) / seconds,
            "first": statistics.median(times[0] for _, _, times in chats),
            "between": statistics.median(between), "between_99": share(between, 0.99)}


def different_answers(server, tokens=48):
    """One request alone, among 3 and among 15 others, twice each, at two temperatures."""
    counts = {}
    for name, fields in (("0", {"temperature": 0}), ("1", {"temperature": 1, "seed": 7})):
        answers = []
        for others in (0, 3, 15, 0, 3, 15):
            calls = [lambda: chat(server, "Describe a journey to the moon.", tokens, **fields)[0]]
            calls += [lambda i=i: chat(server, f"{QUESTIONS[i % 8]} {next(numbers)}", tokens) for i in range(others)]
            answers.append(at_once(calls)[0])
        counts[name] = len(set(answers))
    return counts


def prefix(server):
    """The time to the first token of a long prompt, and of one that begins as it does."""
    text = " ".join(f"Line {next(numbers)} of the book says that all is well." for _ in range(45))
    return [chat(server, f"{text} {end}", 4)[2][0] for end in ("What does it say?", "Who says so?")]


def measure(o, file):
    servers = list(servers_of(o, file))
    result = {s.name: {"start": s.start_seconds, "idle_mb": s.memory_mb(), "loads": {}} for s in servers}
    try:
        for s in servers:
            load(s, 1, o)
        for _ in range(o.rounds):
            for clients in map(int, o.clients.split(",")):
                for s in servers:
                    samples = result[s.name]["loads"].setdefault(clients, [])
                    samples.append(load(s, clients, o))
        for s in servers:
            result[s.name]["busy_mb"] = s.memory_mb()
            result[s.name]["answers"] = different_answers(s)
            result[s.name]["prefix"] = prefix(s)
    finally:
        for s in servers:
            s.close()
    return result


# ---- results ----


def tables(samples):
    lines = ["| weights | clients | server | tokens/s | first token, ms | between tokens, ms | 99% | times llama.cpp |",
             "|---|---|---|---|---|---|---|---|"]
    for weights, servers in samples.items():
        for clients in servers["llama.cpp"]["loads"]:
            def figure(server, key):
                return statistics.median(s[key] for s in servers[server]["loads"][clients])
            for server in servers:
                speed = figure(server, "tokens_per_second")
                lines.append(f"| {weights} | {clients} | {server} | {speed:.1f} | {figure(server, 'first') * 1e3:.0f} | "
                             f"{figure(server, 'between') * 1e3:.1f} | {figure(server, 'between_99') * 1e3:.0f} | "
                             f"{speed / figure('llama.cpp', 'tokens_per_second'):.2f} |")
    lines += ["", "| weights | server | start, s | memory idle, MB (of it files) | after 16 clients | different answers at "
              "temperature 0 | at 1 | first token of 1,000, s | same beginning |", "|---|---|---|---|---|---|---|---|---|"]
    for weights, servers in samples.items():
        for name, s in servers.items():
            idle, busy = s["idle_mb"], s["busy_mb"]
            lines.append(f"| {weights} | {name} | {s['start']:.2f} | {idle['all']:.0f} ({idle['file']:.0f}) | "
                         f"{busy['all']:.0f} ({busy['file']:.0f}) | {s['answers']['0']} | {s['answers']['1']} | "
                         f"{s['prefix'][0]:.2f} | {s['prefix'][1]:.2f} |")
    return "\n".join(lines) + "\n"


def main():
    o = options(3, 32, clients="1,2,4,8,16", weights="Q4_1,Q8_0,BF16")
    samples = {}
    for weights in o.weights.split(","):
        samples[weights] = measure(o, o.model if weights == "Q4_1" else file_of(o, weights))
        print(tables({weights: samples[weights]}), flush=True)
    write(o, "serve", samples, tables(samples))


main()
