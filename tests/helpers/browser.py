"""A real Chromium, driven over the WebDriver protocol by plain HTTP requests."""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import requests

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MISSING = [
    name for name, found in (("chromium", BROWSER), ("chromedriver (package chromium-driver)", DRIVER)) if not found
]
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
]


class Browser:
    """One browser with one window."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.driver = subprocess.Popen([str(DRIVER), f"--port={port}"], stdout=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}"
        self.http = requests.Session()
        self.http.trust_env = False  # no proxy between this process and its own child
        try:
            self._wait()
            options = {"binary": BROWSER, "args": [*QUIET, f"--user-data-dir={folder}"]}
            match = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
            session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": match}})["sessionId"]
        except BaseException:
            self.driver.kill()
            self.driver.wait()
            raise
        self.url += f"/session/{session}"

    def close(self) -> None:
        try:
            self._call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(timeout=20)
            self.http.close()

    def open(self, path: Path, width: int, *, dark: bool = False) -> None:
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.cdp("Emulation.setEmulatedMedia", features=[scheme])
        self._call("POST", "/url", {"url": path.as_uri()})

    def script(self, text: str) -> Any:
        return self._call("POST", "/execute/sync", {"script": text, "args": []})

    def log(self, kind: str) -> list[dict[str, Any]]:
        """What has been logged since the last call."""
        return self._call("POST", "/se/log", {"type": kind})

    def screenshot(self) -> bytes:
        return base64.b64decode(self._call("GET", "/screenshot"))

    def pdf(self) -> bytes:
        return base64.b64decode(self._call("POST", "/print", {}))

    def cdp(self, command: str, **parameters: Any) -> Any:
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def _wait(self) -> None:
        for _ in range(100):
            try:
                self._call("GET", "/status")
                return
            except requests.ConnectionError:
                time.sleep(0.1)
        raise RuntimeError("chromedriver does not answer")

    def _call(self, verb: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self.http.request(verb, self.url + path, json=body, timeout=120)
        value = answer.json()["value"]
        if not answer.ok:
            raise RuntimeError(f"{verb} {path}: {value}")
        return value
