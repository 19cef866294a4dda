# SPDX-License-Identifier: Apache-2.0
"""Chromium, driven over a pipe by the DevTools protocol: https://chromedevtools.github.io/devtools-protocol/. Standard library only."""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe"]


def program():
    """The path of an installed browser, or None."""
    return next((p for p in map(shutil.which, NAMES) if p), None)


class Browser:
    """One page. Calls wait for their answer; an exception in the page is one here."""

    def __init__(self, limit=180):
        self.limit, self.n, self.left, self.events = limit, 0, b"", []
        self.home = tempfile.mkdtemp(prefix="molsieve-browser-")
        to_child, self.to = os.pipe()
        self.of, from_child = os.pipe()
        os.set_inheritable(to_child, True)
        os.set_inheritable(from_child, True)
        command = 'exec "$0" "$@" 3<&%d 4>&%d' % (to_child, from_child)
        self.p = subprocess.Popen(["bash", "-c", command, program(), *FLAGS, "--user-data-dir=" + self.home],
                                  pass_fds=(to_child, from_child), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()
        os.close(self.to)
        os.close(self.of)
        shutil.rmtree(self.home, ignore_errors=True)

    def message(self, until):
        """The next message of the browser."""
        while b"\0" not in self.left:
            if not select.select([self.of], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser did not answer in %d s" % self.limit)
            got = os.read(self.of, 1 << 16)
            if not got:
                raise RuntimeError("the browser ended")
            self.left += got
        one, self.left = self.left.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.n += 1
        ask = {"id": self.n, "method": method, "params": params}
        if self.session:
            ask["sessionId"] = self.session
        os.write(self.to, json.dumps(ask).encode() + b"\0")
        until = time.monotonic() + self.limit
        while True:
            m = self.message(until)
            if m.get("id") == self.n:
                assert "error" not in m, (method, m["error"])
                return m["result"]
            if "method" in m:
                self.events.append(m)

    def wait(self, method):
        """The parameters of the first event of this kind that was not waited for yet."""
        until = time.monotonic() + self.limit
        while True:
            for k, m in enumerate(self.events):
                if m["method"] == method:
                    return self.events.pop(k)["params"]
            m = self.message(until)
            if "method" in m:
                self.events.append(m)

    def open(self, path):
        self.events = [m for m in self.events if m["method"] != "Page.loadEventFired"]
        self.call("Page.navigate", url="file://" + path)
        self.wait("Page.loadEventFired")

    def size(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def js(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in r, (expression, r["exceptionDetails"])
        return r["result"].get("value")

    def complaints(self):
        """What the page did wrong: exceptions, and entries of the log such as violations of its policy."""
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded")
        return [m["params"] for m in self.events if m["method"] in kinds]
