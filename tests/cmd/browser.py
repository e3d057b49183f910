#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""browser.py - a page in headless Chromium, on a phone and a desk, in light and dark

browser.py PAGE [DIR]: prints a line of JSON for each: what it asked the network for, what
the console said, elements that stand out to the side, ticks that overlap, and how it looks. With DIR,
screenshots are left there. It talks to the browser by its pipe, so nothing listens.
"""
import base64
import json
import os
import subprocess
import sys
import tempfile

CHROMIUM = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe"]

# Evaluated in the page, which itself may run no script.
LOOK = """(() => {
	const width = document.documentElement.clientWidth;
	const name = e => e.tagName + "." + e.className;
	const images = [...document.images];
	const style = getComputedStyle(document.body);
	const apart = spans => spans.every((s, i) => !i || s.getBoundingClientRect().left >=
		spans[i - 1].getBoundingClientRect().right);
	return {
		ticks: [...document.querySelectorAll(".ticks")].filter(t => !apart([...t.children]))
			.map(t => t.innerText),
		overflow: [...document.querySelectorAll("body *")].filter(e => {
			const box = e.getBoundingClientRect();
			return box.width && (box.right > width + 0.5 || box.left < -0.5);
		}).map(name).slice(0, 5),
		scroll: document.documentElement.scrollWidth - width,
		images: images.length,
		broken: images.filter(i => !i.naturalWidth).length,
		scripts: document.scripts.length,
		background: style.backgroundColor, color: style.color,
		text: document.body.innerText,
	};
})()"""


class Browser:
    """One page, and what happened since the last look."""

    def __init__(self, profile):
        (to, self.out), (self.into, back) = os.pipe(), os.pipe()

        def descriptors():
            low = [os.dup(fd) for fd in (to, back)]  # neither is 3 or 4 now
            low = [fd if fd > 4 else os.dup(fd) for fd in low]
            os.dup2(low[0], 3)
            os.dup2(low[1], 4)

        self.process = subprocess.Popen(
            [*CHROMIUM, f"--user-data-dir={profile}", "about:blank"], close_fds=False,
            preexec_fn=descriptors, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to)
        os.close(back)
        self.rest, self.number, self.events, self.session, self.url = b"", 0, [], None, None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page,
                                 flatten=True)["sessionId"]
        for domain in "Page", "Network", "Log", "Runtime":
            self.call(f"{domain}.enable")

    def message(self):
        while b"\0" not in self.rest:
            piece = os.read(self.into, 1 << 20)
            if not piece:
                sys.exit("the browser is gone")
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.out, json.dumps(request).encode() + b"\0")
        while (reply := self.message()).get("id") != self.number:
            self.events.append(reply)
        if "error" in reply:
            sys.exit(f"{method}: {reply['error']['message']}")
        return reply["result"]

    def load(self, url):
        self.events, self.url = [], url
        self.call("Page.navigate", url=url)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.message())

    def look(self):
        value = self.call("Runtime.evaluate", expression=LOOK, returnByValue=True)
        seen = value["result"]["value"]
        urls = [e["params"]["request"]["url"] for e in self.events
                if e.get("method") == "Network.requestWillBeSent"]
        seen["requests"] = [u for u in urls if u != self.url and not u.startswith("data:")]
        seen["console"] = [e["params"] for e in self.events
                           if e.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown")]
        return seen

    def shoot(self, path):
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        with open(path, "wb") as to:
            to.write(base64.b64decode(shot["data"]))

    def close(self):
        self.call("Browser.close")
        self.process.wait(30)


def main(page, folder=None):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        for width in 390, 1280:
            for scheme in "light", "dark":
                browser.call("Emulation.setDeviceMetricsOverride", width=width, height=844,
                             deviceScaleFactor=1, mobile=width < 600)
                browser.call("Emulation.setEmulatedMedia", features=[
                    {"name": "prefers-color-scheme", "value": scheme}])
                browser.load("file://" + os.path.abspath(page))
                print(json.dumps({"width": width, "scheme": scheme, **browser.look()}))
                if folder:
                    browser.shoot(os.path.join(folder, f"{width}-{scheme}.png"))
        browser.close()


main(*sys.argv[1:])
