#!/usr/bin/env python3
"""check_hostile.py LOCKSTEP [REQUESTS] - `lockstep watch` among careless and hostile clients.

REQUESTS damaged requests (500; 10,000 with all cases); names of other hosts; 200 streams; clients that read slowly, or never. It must go
on answering, open no file that a path names, stay small, and end after SIGTERM.
"""
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

PROGRAM = os.path.abspath(sys.argv[1])
REQUESTS = int(sys.argv[2]) if len(sys.argv) > 2 else 10000 if os.environ.get("LOCKSTEP_ALL_CASES") else 500
LIMIT = 120  # seconds until something that must happen is given up
SECRET = "the text of a file outside"
PATHS = ["/", "/runs", "/series", "/events", "/metrics", "/samples", "/ledger", "/compare", "/timeline", "/workers", "/checkpoints",
         "/difference", "/lost", "/page.js", "/../secret", "/%2e%2e/secret", "//secret", "/runs/../../secret", "/" + "a" * 5000]
QUERIES = ["", "run=0", "run=-1", "run=1e99", "run=nan", "run=0&columns=1e18", "run=0&columns=-5&smooth=-3", "run=0&from=inf&to=nan",
           "run=0,0,0,0,0,0,0,0,0,0", "run=0,1&name=%00%ff", "run=0&names=" + "x," * 500, "run=../secret", "step=1e30&run=0", "%", "&&==", "x=" + "b" * 3000]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "\x00", "G" * 300]


def fail(text):
    print(f"check_hostile.py: {text}")
    sys.exit(1)


def connect(port):
    s = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
    return s


def ask(port, path="/runs", host="localhost", method="GET"):
    """The answer to one request: its status and its text."""
    with connect(port) as s:
        s.sendall(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        text = b""
        while part := s.recv(1 << 16):
            text += part
    return int(text.split()[1]), text


def damaged(r):
    text = f"{r.choice(METHODS)} {r.choice(PATHS)}?{r.choice(QUERIES)} HTTP/{r.choice(['1.1', '1.0', '2.0', '9', ''])}\r\n"
    text += r.choice(["Host: localhost\r\n", "Host: 127.0.0.1:7007\r\n", "", "Host: evil.example\r\n", "Host: localhost\r\nHost: localhost\r\n"])
    text += r.choice(["", "Last-Event-ID: 1.1\r\n", "Content-Length: 99999999999\r\n", "Transfer-Encoding: chunked\r\n", "X: " + "y" * 9000 + "\r\n"])
    data = bytearray((text + "Connection: close\r\n\r\n").encode("latin-1"))
    for _ in range(r.choice([0, 0, 1, 3, 20])):
        data[r.randrange(len(data))] = r.randrange(256)
    return bytes(data[:r.choice([len(data), len(data), r.randrange(1, len(data))])])


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read()).group(1)) * 1024


def check_fuzz(port, watch):
    r = random.Random(7)
    for i in range(REQUESTS):
        with connect(port) as s:
            s.settimeout(0.001 if i % 50 else 0.05)
            try:
                s.sendall(damaged(r))
                if SECRET.encode() in s.recv(4096):
                    fail("a path of a URL was opened")
            except OSError:
                pass  # it has closed the connection, or waits for more
        if watch.poll() is not None:
            fail(f"it ended at request {i}")
    status, text = ask(port)
    if status != 200:
        fail(f"after {REQUESTS} damaged requests it answers {status}")
    print(f"ok: {REQUESTS} damaged requests")


def check_hosts(port):
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "", "localhost\t", "[::2]"):
        status, _ = ask(port, "/runs", host)
        if status not in (400, 403) and host != "localhost\t":
            fail(f"it answers {status} to the host '{host}'")
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:7007"):
        if ask(port, "/runs", host)[0] != 200:
            fail(f"it does not answer to '{host}'")
    if ask(port, "/runs", method="POST")[0] != 405:
        fail("POST is not refused")
    print("ok: other names of hosts are refused")


def open_streams(port, n):
    list_ = []
    for _ in range(n):
        s = connect(port)
        s.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        list_.append(s)
    for s in list_:
        if b"200" not in s.recv(4096)[:20]:
            fail("a stream is refused")
    return list_


def check_streams(port, watch, metrics):
    streams, before = open_streams(port, 200), resident(watch.pid)
    slow = []
    for _ in range(50):  # they ask for much, and read nothing
        s = connect(port)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(b"GET /series?run=0&columns=4000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        slow.append(s)
    for step in range(2001, 4001):
        with open(metrics, "a") as f:
            f.write(json.dumps({"step": step, "loss": 1.5, "seconds": 0.1}) + "\n")
    streams[0].settimeout(LIMIT)
    got = b""
    while b"4000" not in got:
        part = streams[0].recv(1 << 16)
        if not part:
            fail("a stream has ended")
        got = (got + part)[-100000:]
    if ask(port)[0] != 200:
        fail("with 200 streams it answers nobody else")
    grown = resident(watch.pid) - before
    if grown > 128 << 20:
        fail(f"200 streams and 50 slow readers take {grown >> 20} MB")
    print(f"ok: 200 streams, 50 clients that read nothing: {grown >> 20} MB more")
    return streams + slow


def main():
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "secret"), "w").write(SECRET)
        run = os.path.join(folder, "runs", "a")
        os.makedirs(run)
        open(os.path.join(run, "config.yaml"), "w").close()
        metrics = os.path.join(run, "metrics.jsonl")
        with open(metrics, "w") as f:
            for i in range(1, 2001):
                f.write(json.dumps({"step": i, "loss": 2 + 1 / i, "seconds": 0.1, "lr": 0.1}) + "\n")
        watch = subprocess.Popen([PROGRAM, "watch", os.path.join(folder, "runs"), "--port", "0"], stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True)
        try:
            port = int(watch.stdout.readline().strip().rstrip("/").split(":")[-1])
            check_fuzz(port, watch)
            check_hosts(port)
            open_ = check_streams(port, watch, metrics)
            began = time.monotonic()
            watch.send_signal(signal.SIGTERM)
            if watch.wait(LIMIT) != 0:
                fail(f"SIGTERM: it exits with {watch.returncode}")
            print(f"ok: it ends {time.monotonic() - began:.2f} s after SIGTERM")
            del open_
        finally:
            watch.kill()
            watch.wait()
    return 0


sys.exit(main())
