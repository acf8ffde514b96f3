#!/usr/bin/env python3
"""check_page.py LOCKSTEP [PICTURES] - the page of `lockstep watch` in headless Chromium, driven by selenium.

Checks live curves, zoom, a spike among many steps, a resumed run, hostile names, two pages, the keyboard,
narrow and dark screens, accessibility (with axe, if axe-selenium-python is installed) and the exported page. Prints how long a
written line takes to the screen. Writes screenshots into the folder PICTURES. Exits with 77 if Chromium or selenium is missing.
"""
import os
import subprocess
import sys
import tempfile
import time

from browser import LIMIT, Page, check, check_axe, make_run, missing, served, step_line

try:
    from selenium.webdriver import ActionChains, Keys
except ImportError:  # missing() says so
    pass

PROGRAM = os.path.abspath(sys.argv[1])
PICTURES = sys.argv[2] if len(sys.argv) > 2 else None
LINES = 300  # whose way to the screen is timed
HOSTILE = "<img src=x onerror=document.title='hostile'>\"'&"
SPIKE = 71234


def losses(steps, spike=None):
    return (97.25 if i == spike else 3 + 2 / (1 + i / 50) + i * 7919 % 97 * 1e-3 for i in range(1, steps + 1))


# A pixel of the first curve in the upper tenth of the loss chart.
HIGH = """(() => { const c = document.querySelector('#charts canvas'), g = c.getContext('2d');
    const d = g.getImageData(59, 12, c.width - 70, 18).data; let n = 0;
    for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 120 && Math.max(d[i], d[i + 2]) - Math.min(d[i], d[i + 2]) > 60) n++;
    return n > 0; })()"""
KEY = "(document.querySelector('#charts .key') || {textContent: ''}).textContent"


def check_live(page, path):
    took = []
    for i in range(LINES):
        value = 1.0001 + i / 1000
        with open(path, "a") as f:
            f.write(step_line(301 + i, value))
        began = time.monotonic()
        while f"{value:.5g}" not in page.js(KEY):
            if time.monotonic() - began > LIMIT:
                check(False, f"a written line comes to the screen: {page.js(KEY)}")
            time.sleep(0.01)
        took.append(time.monotonic() - began)
    took.sort()
    check(True, f"{LINES} written lines come to the screen: median {took[LINES // 2]:.2f} s, 99 of 100 within "
          f"{took[LINES * 99 // 100 - 1]:.2f} s, longest {took[-1]:.2f} s")


def check_zoom(page):
    canvas = page.driver.find_element("css selector", "#charts canvas")
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    ActionChains(page.driver).move_to_element_with_offset(canvas, -200, 0).click_and_hold().move_by_offset(
        150, 0).release().perform()
    page.wait("/from=\\d.*to=\\d/.test(location.hash)", "a drag zooms, and the URL has it")
    whole = "!/from=/.test(location.hash)"  # on a busy machine two clicks may be too far apart to be a double one
    page.wait(whole, "a double click shows the whole run", lambda: ActionChains(page.driver).double_click(canvas).perform())
    page.driver.execute_script("arguments[0].focus()", canvas)
    ActionChains(page.driver).send_keys(Keys.HOME).send_keys(Keys.ARROW_RIGHT).perform()
    page.wait("/^Loss, step/.test(document.querySelector('#news').textContent)", "arrows move the cursor, and it is said")
    ActionChains(page.driver).send_keys("l").perform()
    page.wait("/log=loss/.test(location.hash)", "L switches the axis")
    ActionChains(page.driver).send_keys("l").send_keys(Keys.ESCAPE).perform()


def check_back(page, path):
    text = open(path).read().splitlines(True)[:200]
    with open(path, "r+") as f:
        f.truncate(sum(map(len, text)))
    with open(path, "a") as f:
        f.write(step_line(201, 0.87654))
    page.wait(KEY + ".includes('0.87654')", "steps that were taken back are gone")
    page.driver.execute_script("document.querySelector('#charts details').open = true")
    rows = "[...document.querySelectorAll('#charts details tbody th')].map(t => +t.textContent.replace(/,/g, ''))"
    page.wait(f"{rows}.length === 21 && {rows}[20] === 201", "the axis ends at the last step")


def walk(page):
    """Tab reaches every control, each of which has a name."""
    page.driver.execute_script("document.activeElement.blur(); window.scrollTo(0, 0)")
    seen = set()
    for _ in range(60):
        ActionChains(page.driver).send_keys(Keys.TAB).perform()
        seen.add(page.js("(e => e.id || e.className || e.tagName)(document.activeElement)"))
    check({"x", "smooth", "whole", "pause", "link", "plot", "run", "which"} <= seen, f"Tab reaches the controls: {sorted(seen)}")


def main():
    if missing():
        return 77
    with tempfile.TemporaryDirectory() as folder:
        runs = os.path.join(folder, "runs")
        live = make_run(runs, "b", losses(300))
        make_run(runs, "a", losses(100000, SPIKE))
        make_run(runs, HOSTILE.replace("/", ""), losses(50))
        with served(PROGRAM, "watch", runs, "--port", "0") as url:
            check_all(url, folder, runs, live)
    return 0


def check_all(url, folder, runs, live):
    page = Page(url + "#solo=a", PICTURES)
    page.wait(KEY + ".length > 3", "the first curve is there")
    page.wait(HIGH, "one spike of 100,000 steps is seen")
    page.picture("spike")
    check(page.js("document.title") != "hostile" and page.js("document.querySelectorAll('img').length") == 0,
          "a hostile name is text")
    page.driver.get("about:blank")
    page.driver.get(url + "#solo=b")
    page.wait(KEY + ".startsWith('b ')", "the URL names the run that is shown alone")
    check_live(page, live)
    other = Page(url + "#solo=b", PICTURES, 320, 900, dark=True)
    other.wait(KEY + ".startsWith('b ')", "a second page")
    check_back(page, live)
    other.wait(KEY + ".includes('0.87654')", "both pages have the new step")
    check_zoom(page)
    walk(page)
    page.picture("page")
    check(other.js("document.documentElement.scrollWidth") <= 320, "320 pixels suffice")
    dark = other.js("getComputedStyle(document.body).backgroundColor")
    check(dark == "rgb(18, 24, 31)", f"a dark screen is dark: {dark}")
    other.picture("narrow")
    check_axe(page, "light")
    check_axe(other, "dark and narrow")
    make_run(runs, "c", losses(40))
    page.wait("document.querySelectorAll('#list tbody tr').length === 4", "a new run appears: c")
    check(page.hosts() == {url.split("/")[2]}, "nothing is asked of another host")
    check(not page.complaints() and not other.complaints(), "the browser complains of nothing")
    exported = os.path.join(folder, "page.html")
    subprocess.run([PROGRAM, "watch", runs, "--export", exported], check=True, stderr=subprocess.DEVNULL)
    alone = Page("file://" + exported, PICTURES)
    alone.wait("document.querySelectorAll('#list tbody tr').length === 4", "the exported page has the runs")
    alone.wait(KEY + ".length > 3", "and their curves")
    check(not alone.hosts() and not alone.complaints(), "without a server or a network")
    alone.picture("exported")


sys.exit(main())
