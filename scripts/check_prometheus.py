#!/usr/bin/env python3
"""check_prometheus.py LOCKSTEP - a real Prometheus reads a run's metrics, and its alert on a stalled run fires.

Exits with 77 if prometheus or promtool is not installed. The rules and the scrape settings are those of
examples/prometheus, with shorter times.
"""
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = os.path.abspath(sys.argv[1])
LIMIT = 240  # seconds until something that must happen is given up; no measure of speed


def free_port():
    """A port below those that the system hands out by itself to others meanwhile."""
    while True:
        port = random.randrange(10000, 30000)
        with socket.socket() as s:
            try:
                s.bind(("", port))
                return port
            except OSError:
                pass


def fail(text):
    print(f"check_prometheus.py: {text}")
    sys.exit(1)


def wait_for(what, ask):
    """Calls ask() until it returns something true."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        try:
            answer = ask()
        except OSError:
            answer = None
        if answer:
            return answer
        time.sleep(0.2)
    fail(f"{what} did not happen in {LIMIT} s")


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def main():
    for tool in ("prometheus", "promtool"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed (Debian's package prometheus)")
            return 77
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(folder, processes)
        finally:
            for p in reversed(processes):
                if p.poll() is None:
                    os.killpg(p.pid, signal.SIGCONT)
                    os.killpg(p.pid, signal.SIGKILL)
                p.wait()
    return 0


def start(processes, folder, *words, stdout=subprocess.DEVNULL):
    cwd = folder if words[0] == "prometheus" else ROOT  # where the config's data are
    p = subprocess.Popen(words, cwd=cwd, start_new_session=True, stdout=stdout,
                         stderr=open(os.path.join(folder, f"log{len(processes)}"), "w"))
    processes.append(p)
    return p


def start_watch(processes, folder):
    """Returns its port, of those that are free, as it prints it."""
    p = start(processes, folder, PROGRAM, "watch", f"{folder}/runs", "--port", "0", stdout=subprocess.PIPE)
    return int(p.stdout.readline().decode().split("http://localhost:")[1].split("/")[0])


def start_prometheus(processes, folder):
    """Returns its port. Another program may take that first: then the next."""
    for _ in range(20):
        port = free_port()
        p = start(processes, folder, "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                  f"--web.listen-address=127.0.0.1:{port}")
        if wait_for("the start of prometheus", lambda: p.poll() is not None or ready(port)) == "ready":
            return port
    fail("prometheus does not start")


def ready(port):
    urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=10).read()
    return "ready"


def shorten(folder, port):
    """Writes the example's files, for this port and within seconds."""
    shown = os.path.join(ROOT, "examples/prometheus")
    rules = open(os.path.join(shown, "alerts.yml")).read()
    rules = rules.replace("> 300 and", "> 10 and").replace("for: 1m", "for: 0s")
    config = open(os.path.join(shown, "prometheus.yml")).read()
    config = config.replace("127.0.0.1:7007", f"127.0.0.1:{port}").replace("15s", "1s\n  evaluation_interval: 1s")
    for name, text in (("alerts.yml", rules), ("prometheus.yml", config)):
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
    subprocess.run(["promtool", "check", "config", "prometheus.yml"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)


def check(folder, processes):
    run = start(processes, folder, PROGRAM, "train", os.path.join(ROOT, "configs/tiny.yaml"), "-n", "1", "-o",
                f"{folder}/runs/a", "--set", "train.steps=1000000", "--set", "model.width=12")
    wait_for("the run's first step", lambda: os.path.exists(f"{folder}/runs/a/metrics.jsonl"))
    watched = start_watch(processes, folder)
    shorten(folder, watched)
    url = f"http://127.0.0.1:{watched}/metrics"

    def metrics():
        text = urllib.request.urlopen(url, timeout=10).read()
        return text if b"\nlockstep_step{" in text else None
    text = wait_for("an answer with a step", metrics)
    subprocess.run(["promtool", "check", "metrics"], input=text, check=True)
    api = f"http://127.0.0.1:{start_prometheus(processes, folder)}/api/v1/"

    def ask(query):
        return get(api + "query?" + urllib.parse.urlencode({"query": query}))["data"]["result"]

    def first_step():
        result = ask('lockstep_step{run="a"}')
        return result and int(result[0]["value"][1])
    begin = wait_for("a scraped step", first_step)
    wait_for("a later scraped step", lambda: (first_step() or 0) > begin)
    wait_for("the target's sign that it is up", lambda: [r["value"][1] for r in ask('up{job="lockstep"}')] == ["1"])
    wait_for("the state that the run is running", lambda: [
        r["value"][1] for r in ask('lockstep_run_state{run="a", state="running"}')] == ["1"])
    if [a for a in get(api + "alerts")["data"]["alerts"] if re.search("Stalled", a["labels"]["alertname"])]:
        fail("the alert fires before the run is stalled")
    os.killpg(run.pid, signal.SIGSTOP)
    alert = wait_for("the alert on the stalled run", lambda: [
        a for a in get(api + "alerts")["data"]["alerts"]
        if a["labels"]["alertname"] == "LockstepRunStalled" and a["state"] == "firing"])
    print(f"scraped from step {begin}; {alert[0]['annotations']['summary']}")


sys.exit(main())
