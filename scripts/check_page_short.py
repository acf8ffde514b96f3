#!/usr/bin/env python3
"""check_page_short.py LOCKSTEP - the page of `lockstep watch` in headless Chromium: it shows two runs, and a line that is
written while it is open. Asks the driver itself, over HTTP, so that Debian's chromium and chromium-driver suffice; `make
check-page` (scripts/check_page.py) checks all else. Exits with 77 if one of them is missing.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

from browser import make_run, served, step_line

PROGRAM = os.path.abspath(sys.argv[1])
LIMIT = 240  # seconds until something that must happen is given up; no measure of speed
OPTIONS = {"binary": shutil.which("chromium"), "args": ["--headless=new", "--no-sandbox", "--disable-gpu"]}


def ask(url, body=None, method=None):
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, method=method), timeout=LIMIT) as answer:
        return json.load(answer)["value"]


def wait_for(what, get):
    end = time.monotonic() + LIMIT
    last = None
    while time.monotonic() < end:
        try:
            last = get()
        except OSError:
            last = None
        if last:
            print(f"ok: {what}")
            return last
        time.sleep(0.1)
    print(f"check_page_short.py: {what}: it did not happen in {LIMIT} s")
    sys.exit(1)


def started_driver():
    """The driver, and its port. It takes a free port of IPv6, and ends where that port of IPv4 is in use: then the next try."""
    for _ in range(20):
        driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        said = []
        for line in driver.stdout:
            said.append(line)
            if "successfully on port" in line:
                return driver, line.split("port ")[-1].strip(" .\n")
        driver.wait(LIMIT)
    print("check_page_short.py: the driver does not start: " + "".join(said))
    sys.exit(1)


def check(runs, url, driver):
    live = make_run(runs, "a", (3 + 2 / i for i in range(1, 301)))
    make_run(runs, "<img src=x onerror=alert(1)>", [3] * 40)
    session = wait_for("the browser starts", lambda: ask(driver + "/session", {"capabilities": {"alwaysMatch": {
        "browserName": "chrome", "goog:chromeOptions": OPTIONS}}}))["sessionId"]
    page = f"{driver}/session/{session}"

    def js(text):
        return ask(page + "/execute/sync", {"script": "return " + text, "args": []})

    try:
        ask(page + "/url", {"url": url})
        wait_for("the page lists both runs", lambda: js("document.querySelectorAll('#list tbody tr').length === 2"))
        wait_for("it has curves", lambda: js("[...document.querySelectorAll('#charts .key li')].length >= 2"))
        if js("document.querySelectorAll('img').length"):
            print("check_page_short.py: the name of a run became an element")
            sys.exit(1)
        with open(live, "a") as f:
            f.write(step_line(301, 1.23456))
        wait_for("a written line comes to the screen", lambda: js(
            "document.querySelector('#charts .key').textContent.includes('1.2346')"))
        js("document.querySelector('#tab8').click()")
        wait_for("a run's details", lambda: js("document.querySelector('#panel').textContent.includes('directory')"))
    finally:
        ask(page, method="DELETE")


def main():
    for tool in ("chromium", "chromedriver"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed (Debian's packages chromium and chromium-driver)")
            return 77
    with tempfile.TemporaryDirectory() as folder:
        runs = os.path.join(folder, "runs")
        os.makedirs(runs)
        driver, port = started_driver()
        try:
            with served(PROGRAM, "watch", runs, "--port", "0") as url:
                check(runs, url, f"http://127.0.0.1:{port}")
        finally:
            driver.terminate()
            driver.wait(LIMIT)
    return 0


sys.exit(main())
