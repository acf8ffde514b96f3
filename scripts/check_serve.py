#!/usr/bin/env python3
"""Attacks `lockstep serve`, and finds its answers unchanged:

    check_serve.py LOCKSTEP [--seconds N] [--requests N]

A small model is trained and served with little memory for keys and values, so that replies give their pages
back. Threads then send, for N seconds and until N requests are done, all at once: requests that are well formed,
whose answers must be those that the server gave when it was asked nothing else; requests with fields of any
type and size; bytes that are no HTTP; clients that go away in the middle; clients that read a stream by single
bytes; connections that send half a request and stay. At the end the server has no more files and not much
more memory than after the first part, answers as at the beginning, and ends by SIGTERM within seconds. Then
three workers write the replies, under the same attack, while again and again one of them is killed.
"""
import argparse
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PORT_LINE = "http://"


def options():
    p = argparse.ArgumentParser()
    p.add_argument("lockstep")
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--requests", type=int, default=3000)
    p.add_argument("--seed", type=int, default=1)
    p.set_defaults(killed=False)
    return p.parse_args()


def fail(text):
    sys.exit(f"check_serve: {text}")


# ---- the server ----


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children") as f:
                found += [int(word) for word in f.read().split()]
        except OSError:  # it has just ended
            pass
    return found


class Server:
    def __init__(self, lockstep, run, extra=(), workers=1):
        self.process = subprocess.Popen([lockstep, "serve", run, "--port", "0", "--cache-mb", str(workers), "--texts",
                                         str(3 * workers), "--workers", str(workers), "--queue", "4", "--name", "m", *extra],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if PORT_LINE not in line:
            fail(f"the server says: {line}{self.process.stderr.read()}")
        self.port = int(line.split(":")[2].split("/")[0])
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def memory_kb(self):
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(next(line.split()[1] for line in f if line.startswith("RssAnon")))

    def alive(self):
        return self.process.poll() is None

    def workers(self):
        """The children of the process that forks them."""
        pids = []
        for child in children(self.process.pid):
            pids += children(child)
        return pids

    def end(self):
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(120)
        except subprocess.TimeoutExpired:
            fail("SIGTERM does not end the server")
        return code, time.monotonic() - begin


def post(port, path, body, timeout=120):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        c.request("POST", path, body if isinstance(body, (bytes, str)) else json.dumps(body),
                  {"Content-Type": "application/json"})
        r = c.getresponse()
        return r.status, r.read()
    finally:
        c.close()


# ---- requests that must be answered alike ----


def good_requests():
    prompts = ["Once upon a time", "In the beginning", "x", "And he said unto them, Go", "The end of all " * 6]
    for i, prompt in enumerate(prompts):
        for temperature in (0, 1):
            yield {"prompt": prompt, "max_tokens": 6 + 5 * i, "temperature": temperature, "seed": 11 + i, "logprobs": 2,
                   "n": 1 + i % 2}
    yield {"prompt": [1, 2, 3, 4], "max_tokens": 4, "temperature": 0, "echo": True, "logprobs": 1}


def essence(answer):
    d = json.loads(answer)
    return json.dumps([d["choices"], d["usage"]["completion_tokens"]])


def is_cut_off(answer):
    """Did the server give the reply up after several workers died writing it?"""
    return any(c["finish_reason"] == "abort" for c in json.loads(answer)["choices"])


def streamed(port, request):
    """The texts of a stream, in one piece for each choice; None if one is cut off."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    c.request("POST", "/v1/completions", json.dumps({**request, "stream": True}), {"Content-Type": "application/json"})
    r = c.getresponse()
    texts, cut_off = {}, False
    for line in r:
        if line.startswith(b"data: {"):
            cut_off = cut_off or is_cut_off(line[6:])
            for choice in json.loads(line[6:])["choices"]:
                texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
    c.close()
    return r.status, None if cut_off else [texts.get(i, "") for i in range(request.get("n", 1))]


# ---- attacks ----


def any_value(r, depth=0):
    kinds = [lambda: None, lambda: True, lambda: r.randrange(-5, 40), lambda: r.random() * 10 - 2, lambda: 1e300,
             lambda: -(2**63), lambda: 2**64, lambda: "", lambda: "é\u0000\ud7ff😀" * r.randrange(4),
             lambda: "a" * r.randrange(3000), lambda: r.choice(["m", "stop", "json_object", "user", "auto"])]
    if depth < 3:
        kinds += [lambda: [any_value(r, depth + 1) for _ in range(r.randrange(5))],
                  lambda: {r.choice(FIELDS): any_value(r, depth + 1) for _ in range(r.randrange(4))}]
    return r.choice(kinds)()


FIELDS = ["prompt", "messages", "model", "max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "min_p", "n",
          "seed", "stop", "stop_token_ids", "ignore_eos", "min_tokens", "logit_bias", "frequency_penalty", "presence_penalty",
          "repetition_penalty", "logprobs", "top_logprobs", "stream_options", "echo", "suffix", "best_of", "response_format",
          "tools", "tool_choice", "user", "role", "content", "include_usage", "type", "input", "tokens", "encoding_format",
          "guided_regex", "structured_outputs"]
PATHS = ["/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/v1/embeddings", "/v1/models", "/x"]


def wild(port, r):
    body = {f: any_value(r) for f in r.sample(FIELDS, r.randrange(6))}
    if r.random() < 0.5:
        body["prompt"] = "Go on"
    if r.random() < 0.7:
        body["max_tokens"] = r.randrange(8)
    text = json.dumps(body).encode()
    if r.random() < 0.2:
        text = bytearray(text)
        for _ in range(r.randrange(1, 6)):
            text[r.randrange(len(text))] = r.randrange(256)
        text = bytes(text)
    status, answer = post(port, r.choice(PATHS), text)
    if status >= 500 and status != 503:
        fail(f"{status} for {text[:500]}: {answer[:300]}")
    if status != 200 and b'"error"' not in answer:
        fail(f"{status} without a reason for {text[:500]}: {answer[:300]}")


def raw(port, data, wait=0.05):
    with socket.create_connection(("127.0.0.1", port), timeout=120) as s:
        try:
            s.sendall(data)
            s.settimeout(wait)
            s.recv(65536)
        except OSError:
            pass


def garbage(port, r):
    head = r.choice([b"", b"GET / HTTP/1.1\r\n", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"])
    raw(port, head + bytes(r.randrange(256) for _ in range(r.randrange(400))))


def leaves(port, r):
    body = json.dumps({"prompt": "Go on " * r.randrange(1, 8), "max_tokens": 60, "stream": r.random() < 0.5, "ignore_eos": True})
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    raw(port, (head + body).encode(), r.random() * 0.1)


def reads_slowly(port, r):
    body = json.dumps({"prompt": "Go on", "max_tokens": 20, "stream": True, "ignore_eos": True})
    with socket.create_connection(("127.0.0.1", port), timeout=120) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        s.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        for _ in range(r.randrange(400)):
            if not s.recv(1):
                return
            time.sleep(0.001)


# ---- all at once ----


class Attack:
    def __init__(self, server, want, o):
        self.server, self.want, self.o = server, want, o
        self.done, self.compared, self.refused, self.cut_off = 0, 0, 0, 0
        self.lock = threading.Lock()
        self.failure = None
        self.end = time.monotonic() + o.seconds

    def count(self, compared=0, refused=0, cut_off=0):
        with self.lock:
            self.done += 1
            self.compared += compared
            self.refused += refused
            self.cut_off += cut_off

    def good(self, r):
        request, want = r.choice(self.want)
        if r.random() < 0.3 and "echo" not in request:
            status, texts = streamed(self.server.port, {k: v for k, v in request.items() if k != "logprobs"})
            answer, cut_off = texts, status == 200 and texts is None
            same = status != 200 or texts == [c["text"] for c in json.loads(want)[0]]
        else:
            status, answer = post(self.server.port, "/v1/completions", request)
            cut_off = status == 200 and is_cut_off(answer)
            same = status != 200 or essence(answer) == want
        if status not in (200, 429):
            fail(f"{status} for {request}")
        if cut_off and not self.o.killed:
            fail(f"{request} is cut off")
        if not same and not cut_off:
            fail(f"another answer for {request}: {answer}; {want} is right")
        self.count(compared=status == 200 and not cut_off, refused=status == 429, cut_off=cut_off)

    def run(self, kind, seed):
        r = random.Random(seed)
        try:
            while not self.failure and (time.monotonic() < self.end or self.done < self.o.requests):
                if not self.server.alive():
                    fail("the server has ended")
                if kind == "good":
                    self.good(r)
                else:
                    kind(self.server.port, r)
                    self.count()
        except (SystemExit, Exception) as e:  # the first failure ends all
            self.failure = self.failure or f"{getattr(kind, '__name__', kind)}: {e or type(e).__name__}"


def attack(server, want, o):
    a = Attack(server, want, o)
    kinds = ["good"] * 6 + [wild] * 4 + [garbage] * 2 + [leaves] * 3 + [reads_slowly] * 3
    threads = [threading.Thread(target=a.run, args=(k, o.seed * 100 + i)) for i, k in enumerate(kinds)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if a.failure:
        fail(f"{a.failure} ({a.done} requests were done, {server.files()} files are open)")
    return a


def half_open(server, n):
    """Connections that say little, and stay while others are answered."""
    held = []
    for i in range(n):
        s = socket.create_connection(("127.0.0.1", server.port), timeout=120)
        s.sendall([b"", b"POST /v1/comp", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"][i % 3])
        held.append(s)
    return held


def post_until_room(port, request):
    """Again while the queue is full, of requests of clients that have gone."""
    end = time.monotonic() + 120
    status, answer = post(port, "/v1/completions", request)
    while status == 429 and time.monotonic() < end:
        time.sleep(0.05)
        status, answer = post(port, "/v1/completions", request)
    return status, answer


def check_all(server, want, what):
    for request, before in want:
        status, answer = post_until_room(server.port, request)
        if status != 200 or essence(answer) != before:
            fail(f"{what}: another answer ({status}) for {request}")


def kill_workers(server, until, r, killed):
    while not until.wait(0.2):
        workers = server.workers()
        if not workers:
            continue
        killed.append(r.choice(workers))
        try:
            os.kill(killed[-1], signal.SIGKILL)
        except ProcessLookupError:  # it is the last one that was killed
            killed.pop()


def attack_workers(o, run, want):
    """Returns how many answers were compared, how many were given up after several workers died writing them, and how many
    workers were killed."""
    server = Server(o.lockstep, run, workers=3)
    until, killed = threading.Event(), []
    killer = threading.Thread(target=kill_workers, args=(server, until, random.Random(o.seed), killed))
    killer.start()
    try:
        a = attack(server, want, argparse.Namespace(seconds=o.seconds / 2, requests=o.requests // 2, seed=o.seed + 7, killed=True))
    finally:
        until.set()
        killer.join()
    check_all(server, want, "after workers were killed")
    code, _ = server.end()
    if code != 0:
        fail(f"exit code {code} after {len(killed)} workers were killed")
    return a.compared, a.cut_off, len(killed)


def settled(server, files):
    end = time.monotonic() + 120
    while server.files() > files and time.monotonic() < end:
        time.sleep(0.05)
    return server.files()


def main():
    o = options()
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run")
        subprocess.run([o.lockstep, "train", "configs/tiny.yaml", "--set", "train.steps=5", "--set", "model.context=256", "-o", run], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server = Server(o.lockstep, run)
        files = server.files()
        want = []
        for request in good_requests():
            status, answer = post(server.port, "/v1/completions", request)
            if status != 200:
                fail(f"{status} for {request}: {answer[:300]}")
            want.append((request, essence(answer)))
        first = attack(server, want, argparse.Namespace(seconds=o.seconds / 4, requests=o.requests // 4, seed=o.seed, killed=False))
        memory = server.memory_kb()
        second = attack(server, want, o)
        held = half_open(server, 500)
        check_all(server, want, "beside 500 connections")
        for s in held:
            s.close()
        check_all(server, want, "at the end")
        open_files = settled(server, files + 2)
        grown = (server.memory_kb() - memory) / 1e3
        if open_files > files + 2:
            fail(f"{open_files} files are open; {files} were at the beginning")
        if grown > 40:
            fail(f"{grown:.0f} MB more memory than after the first part")
        code, seconds = server.end()
        if code != 0:
            fail(f"SIGTERM: exit code {code} after {seconds:.1f} s")
        again = Server(o.lockstep, run, ["--step-tokens", "7"])
        check_all(again, want, "after a restart, with other steps")
        again.end()
        compared, cut_off, killed = attack_workers(o, run, want)
        print(f"{first.done + second.done} requests, {first.compared + second.compared} answers compared, "
              f"{first.refused + second.refused} refused by the queue's limit, 500 connections held, "
              f"{open_files - files:+d} files, {grown:+.1f} MB, ended in {seconds:.1f} s; "
              f"{compared} answers of three workers compared, of which {killed} were killed, {cut_off} given up")


main()
