"""A headless Chromium, driven through its DevTools protocol over a pair of pipes."""

import base64
import hashlib
import json
import os
import select
import subprocess
import time
from pathlib import Path

# Flags of every run: nothing but what the page asks for goes over the network, and it may run as root.
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def key_digest(certificate: Path) -> str:
    """What Chromium is told to trust: the digest of the certificate's public key, base64."""
    key = subprocess.run(
        ["openssl", "x509", "-in", certificate, "-pubkey", "-noout"], check=True, capture_output=True
    ).stdout
    der = subprocess.run(
        ["openssl", "pkey", "-pubin", "-outform", "der"], input=key, check=True, capture_output=True
    ).stdout
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


class Browser:
    """One browser with one page. To be used with `with`."""

    def __init__(self, program: str, flags: list[str], errors: Path):
        from_us, self._out = os.pipe()
        self._in, to_us = os.pipe()
        # Chromium reads commands from descriptor 3 and writes to 4.
        pipes = f'exec "$@" 3<&{from_us} 4>&{to_us}'
        command = ["sh", "-c", pipes, "sh", program, "--headless", "--remote-debugging-pipe", *flags, "about:blank"]
        with errors.open("w") as log:
            self._process = subprocess.Popen(command, pass_fds=(from_us, to_us), stdout=log, stderr=log)
        os.close(from_us)
        os.close(to_us)
        self._last = 0
        self._left = b""
        self._page = None

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def open(self, url: str) -> None:
        """Opens a page without waiting for it."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._page = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.navigate", url=url)

    def wait_for(self, expression: str, seconds: float) -> str:
        """The value of `expression` on the page, once there is one; empty if that takes too long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            # While the page loads there may be no place to evaluate anything.
            answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
            if value := answer.get("result", {}).get("value"):
                return value
            time.sleep(0.1)
        return ""

    def screenshot(self, path: Path) -> None:
        """Writes a picture of the page, PNG."""
        picture = self._call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(picture))

    def _call(self, method: str, **parameters) -> dict:
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._page:
            message["sessionId"] = self._page
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read(60)
            if answer.get("id") != self._last:
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            return answer["result"]

    def _read(self, seconds: float) -> dict:
        """The next message, whatever it is."""
        until = time.monotonic() + seconds
        while b"\0" not in self._left:
            if not select.select([self._in], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            if not (data := os.read(self._in, 1 << 20)):
                raise EOFError("the browser is gone")
            self._left += data
        message, self._left = self._left.split(b"\0", 1)
        return json.loads(message)
