"""browser.py - what the checks of pages share: a server, runs that it shows, and a page in headless Chromium, driven by selenium."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = None
try:
    from axe_selenium_python import Axe
except ImportError:
    Axe = None

LIMIT = 240  # seconds until something that must happen is given up; no measure of speed


def missing():
    """True, with the reason printed, where there is no browser."""
    if webdriver and shutil.which("chromium") and shutil.which("chromedriver"):
        return False
    print("skipped: Chromium, its driver or Python's selenium is missing")
    return True


def check(ok, what):
    if not ok:
        print(f"{os.path.basename(sys.argv[0])}: {what}")
        sys.exit(1)
    print(f"ok: {what}")


@contextlib.contextmanager
def served(*command):
    """Starts a server for the block, and gives the URL that it prints; pages that were opened in the block are closed."""
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield server.stdout.readline().strip()
    finally:
        while Page.opened:
            Page.opened.pop().driver.quit()
        server.terminate()
        server.wait(LIMIT)


def step_line(step, loss, seconds=0.01):
    return json.dumps({"step": step, "samples": 8, "view": 1, "workers": 2, "loss": loss, "lr": 0.001, "grad_norm": 1.5,
                       "seconds": seconds, "tokens_per_s": 51200}) + "\n"


def make_run(folder, name, losses):
    """A run as the page of `lockstep watch` sees one: a config, and lines. Returns their file."""
    path = os.path.join(folder, name)
    os.makedirs(path)
    open(os.path.join(path, "config.yaml"), "w").close()
    with open(os.path.join(path, "metrics.jsonl"), "w") as f:
        f.writelines(step_line(i, loss) for i, loss in enumerate(losses, 1))
    return f.name


class Page:
    opened = []

    def __init__(self, url, pictures=None, width=1280, height=1000, dark=False):
        self.pictures = pictures
        options = Options()
        for a in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
            options.add_argument(a)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        options.binary_location = shutil.which("chromium")
        self.driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        Page.opened.append(self)
        self.sent = []
        self.size(width, height)
        if dark:
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
                "features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        self.driver.get(url)

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def js(self, text):
        return self.driver.execute_script("return " + text)

    def wait(self, text, what, act=None):
        """Until the text is true; act() is done first, and again every two seconds."""
        end, again = time.monotonic() + LIMIT, 0
        while not self.js(text):
            if act and time.monotonic() > again:
                act()
                again = time.monotonic() + 2
            if time.monotonic() > end:
                self.picture("failed")
                check(False, what)
            time.sleep(0.02)
        print(f"ok: {what}")

    def picture(self, name):
        if self.pictures:
            self.driver.save_screenshot(os.path.join(self.pictures, name + ".png"))

    def complaints(self):
        return [x["message"] for x in self.driver.get_log("browser") if x["level"] == "SEVERE"]

    def requests(self):
        """All requests over HTTP, from the first on."""
        events = [json.loads(x["message"])["message"] for x in self.driver.get_log("performance")]
        self.sent += [e["params"]["request"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [r for r in self.sent if r["url"].startswith("http")]

    def hosts(self):
        return {r["url"].split("/")[2] for r in self.requests()}


def check_axe(page, what):
    if not Axe:
        print("skipped: axe-selenium-python is not installed")
        return
    axe = Axe(page.driver)
    axe.inject()
    bad = [v for v in axe.run()["violations"] if v["impact"] in ("serious", "critical")]
    check(not bad, f"axe finds nothing serious, {what}: " + "; ".join(
        f"{v['id']} {v['nodes'][0]['html'][:150]}" for v in bad))
