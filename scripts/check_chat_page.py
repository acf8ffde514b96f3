#!/usr/bin/env python3
"""check_chat_page.py LOCKSTEP MODEL [PICTURES] - the page of `lockstep serve` in headless Chromium, driven by selenium.

Checks that a stream comes bit by bit, the keys (Enter, Shift+Enter, Esc, Tab), that a second turn has the first in it, New,
also during a reply, hostile messages, what the page says of errors, narrow and dark screens, accessibility (with axe, if
axe-selenium-python is installed), and that nothing is asked of another host. MODEL has a chat template. Writes screenshots
into the folder PICTURES. Exits with 77 if Chromium or selenium is missing.
"""
import json
import os
import sys
import time

from browser import LIMIT, Page, check, check_axe, missing, served

try:
    from selenium.webdriver import ActionChains, Keys
except ImportError:  # missing() says so
    pass

PROGRAM, MODEL = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PICTURES = sys.argv[3] if len(sys.argv) > 3 else None
KEY = "secret"
HOSTILE = "<script>document.title='hostile'</script><img src=x onerror=document.title='hostile'>\"'&"
RUNNING = "!document.querySelector('#stop').hidden"
IDLE = "document.querySelector('#stop').hidden && !document.querySelector('#send').disabled"
LAST = "([...document.querySelectorAll('.assistant p')].pop() || {textContent: ''}).textContent"
BAD = "([...document.querySelectorAll('.bad p')].pop() || {textContent: ''}).textContent"
TURNS = "document.querySelectorAll('.turn').length"


def write(page, words, key="\ue007"):
    """Writes into the box, which has the focus, and presses the key: Enter sends."""
    ActionChains(page.driver).send_keys(words).send_keys(key).perform()


def choose(page, seed):
    """Draws are those of the seed, and the model's most likely tokens."""
    page.driver.execute_script("document.querySelector('#temperature').value = 0; "
                               f"document.querySelector('#seed').value = {seed}; document.querySelector('#text').focus()")


def asked(page, count):
    """The messages of the last of so many requests; the browser's log may have it late."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        sent = [r["postData"] for r in page.requests() if r["url"].endswith("chat/completions")]
        if len(sent) >= count:
            return json.loads(sent[-1])["messages"]
        time.sleep(0.02)
    return check(False, f"{count} requests are sent")


def check_stream(page):
    check(page.js("document.activeElement.id") == "text", "the page begins in the box of messages")
    choose(page, 7)
    write(page, "Tell me a long story of the sea.")
    lengths, end = set(), time.monotonic() + LIMIT
    while time.monotonic() < end:
        state = page.js(f"[{RUNNING}, {LAST}.length]")
        if state[1] and state[0]:
            lengths.add(state[1])
        if len(lengths) >= 5:
            break
    check(len(lengths) >= 5, f"a reply comes bit by bit: {sorted(lengths)[:5]} characters")
    check(page.js("document.querySelector('#text').value") == "", "Enter sends, and empties the box")
    page.picture("chat_writing")
    write(page, "x")  # while a reply is written Enter keeps the words
    check(page.js("document.querySelector('#text').value") == "x" and page.js(TURNS) == 2, "one reply at a time")
    write(page, Keys.BACKSPACE, Keys.ESCAPE)
    page.wait(IDLE, "Esc stops")
    length = page.js(LAST + ".length")
    time.sleep(0.5)
    check(page.js(LAST + ".length") == length > 0, "and what was written stays")


def check_turns(page):
    first = page.js(LAST)
    write(page, "Say one word.")
    page.wait(f"{TURNS} === 4", "a second message")  # its reply may be over
    sent = asked(page, 2)
    check([m["role"] for m in sent] == ["user", "assistant", "user"] and sent[1]["content"] == first,
          "a second turn has the first in it")
    page.wait(IDLE, "its reply ends")
    write(page, "a")
    page.wait(f"{TURNS} === 6", "a third")
    ActionChains(page.driver).click(page.driver.find_element("css selector", "#new")).perform()
    page.wait(f"{TURNS} === 0 && {IDLE}", "New begins again, also during a reply")
    ActionChains(page.driver).key_down(Keys.SHIFT).send_keys("a", Keys.ENTER, "b").key_up(Keys.SHIFT).perform()
    check("\n" in page.js("document.querySelector('#text').value"), "Shift+Enter begins a line")
    write(page, "")
    page.wait(f"{TURNS} === 2 && {LAST} !== ''", "which is sent with the others")
    check([m["role"] for m in asked(page, 4)] == ["user"], "nothing of before is asked again")
    page.driver.execute_script("(b => b.hidden || b.click())(document.querySelector('#stop'))")
    page.wait(IDLE, "the button stops, too")


def check_hostile(page):
    write(page, "Repeat: " + HOSTILE)
    page.wait(f"[...document.querySelectorAll('.user p')].pop().textContent.includes(\"onerror=\") && {LAST} !== ''",
              "a hostile message is shown")
    page.wait(IDLE, "and answered")
    check(page.js("document.title") == "Lockstep" and
          page.js("document.querySelectorAll('main img, main script').length") == 0, "a hostile message is text")


def check_text(page):
    turns = page.js(TURNS)
    page.driver.execute_script("document.querySelector('#form').value = 'text'; document.querySelector('#text').focus()")
    write(page, "Once upon a time")
    page.wait(f"{TURNS} === {turns + 2} && {LAST} !== ''", "a text goes on")
    write(page, Keys.ESCAPE)
    page.wait(IDLE, "and stops")
    page.driver.execute_script("document.querySelector('#form').value = 'chat'; document.querySelector('#text').focus()")


def check_errors(page, url):
    check(not page.complaints(), "the console is clean")
    turns = page.js(TURNS)
    page.driver.execute_script("document.querySelector('#text').value = 'word '.repeat(3000)")
    write(page, "")
    page.wait(BAD + ".includes('context')", "a message that is too long is refused")
    print(f"    {page.js(BAD)}")
    write(page, "Say one word.")
    page.wait(f"{IDLE} && {TURNS} >= {turns + 4} && {LAST} !== ''", "and the chat goes on without it")
    page.picture("chat_error")
    page.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    write(page, "Who are you?")
    page.wait(BAD + ".includes('key is missing')", "a page without the key says what is missing")
    check(not [c for c in page.complaints() if "responded with a status of 40" not in c],
          "the console has the two refusals alone")
    page.driver.get(url)
    check("key is missing" in page.js("document.body.textContent"), "the page is not shown without the key")


def walk(page):
    """Tab reaches every control."""
    page.driver.execute_script("document.querySelector('#model').focus()")
    seen = ["model"]
    for _ in range(6):
        ActionChains(page.driver).send_keys(Keys.TAB).perform()
        seen.append(page.js("document.activeElement.id"))
    want = ["model", "form", "temperature", "seed", "new", "text", "send"]
    check(seen == want, f"Tab reaches the controls in order: {seen}")
    named = page.js("[...document.querySelectorAll('button, input, select, textarea')].every(e => e.labels?.length || "
                    "e.getAttribute('aria-label') || e.textContent.trim())")
    check(named, "each has a name")
    page.driver.execute_script("document.querySelector('#text').focus()")


def check_sizes(page, name):
    for width in (900, 1280):
        page.size(width, 900)
        high = page.js("[...document.querySelectorAll('header > *')].map(e => Math.round(e.getBoundingClientRect().top))")
        check(max(high) - min(high) < 20, f"one row of controls at {width} pixels: {high}")
        check(page.js("document.documentElement.scrollWidth") <= width, f"{width} pixels suffice")
        page.picture(f"{name}_{width}")
    page.size(320, 700)
    check(page.js("document.documentElement.scrollWidth") <= 320, "320 pixels suffice")
    check(page.js("document.querySelector('#send').getBoundingClientRect().right") <= 320, "and show the button that sends")
    check(page.js("document.querySelector('main').clientHeight") > 150, "and leave room for the chat")
    page.picture(name + "_320")
    page.size(1280, 1000)


def check_all(url):
    page = Page(f"{url}?token={KEY}", PICTURES)
    page.wait("document.querySelectorAll('#model option').length === 1", "the page knows the model")
    check_stream(page)
    check_turns(page)
    check_hostile(page)
    check_text(page)
    walk(page)
    check_axe(page, "light")
    check_sizes(page, "chat")
    dark = Page(f"{url}?token={KEY}", PICTURES, 900, 900, dark=True)
    dark.wait("document.querySelectorAll('#model option').length === 1", "a second page")
    choose(dark, 1)
    write(dark, "Who are you?")
    dark.wait(f"{LAST} !== '' && {IDLE}", "has a reply of its own")
    color = dark.js("getComputedStyle(document.body).backgroundColor")
    check(color == "rgb(18, 24, 31)", f"a dark screen is dark: {color}")
    check_axe(dark, "dark")
    check_sizes(dark, "chat_dark")
    check(not dark.complaints(), "its console is clean")
    check_errors(page, url)
    check(page.hosts() | dark.hosts() == {url.split("/")[2]}, "nothing is asked of another host")


def main():
    if missing():
        return 77
    with served(PROGRAM, "serve", MODEL, "--port", "0", "--context", "1024", "--key", KEY) as url:
        check_all(url.removesuffix("v1"))
    return 0


sys.exit(main())
