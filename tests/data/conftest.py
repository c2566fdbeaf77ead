import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Handler(BaseHTTPRequestHandler):
    """A file server whose behaviour a test chooses, answer by answer; by default an ordinary one with ranges."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        served = self.server.served
        requested = self.headers.get("Range")
        with served.guard:
            served.requests.append((self.path, requested))
            queue = served.behaviours.get(self.path, served.behaviours.get("*", []))
            behaviour = queue.pop(0) if len(queue) > 1 else (queue or ["plain"])[0]
        data = served.files.get(self.path)
        if data is None or behaviour == "missing":
            self.answer(404, b"no such file")
            return
        if behaviour == "failing":
            self.answer(500, b"out of order")
            return
        if behaviour == "wrong":
            data = data[:40] + bytes([data[40] ^ 255]) + data[41:]
        start = int(requested.removeprefix("bytes=").removesuffix("-")) if requested else 0
        if behaviour.startswith("rangeless"):
            start, requested = 0, None
        if requested and start >= len(data):
            self.answer(416, b"")
            return
        self.send_response(206 if requested else 200)
        if not behaviour.startswith("rangeless"):
            self.send_header("Accept-Ranges", "bytes")
        if requested:
            start += behaviour == "confused"
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        body = data[start:]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if behaviour in ("interrupted", "rangeless interrupted", "stalling"):
            self.send(body[: max(1, len(body) // 2)])
            if behaviour == "stalling":
                served.released.wait(5)
            self.close_connection = True
        elif behaviour == "slow":
            step = len(body) // 8 + 1
            for i in range(0, len(body), step):
                self.send(body[i : i + step])
                time.sleep(0.04)
        else:
            self.send(body)

    def answer(self, code, body):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send(self, body):
        self._count(len(body))  # before a client that has it all can read the count
        try:
            self.wfile.write(body)
            self.wfile.flush()
        except OSError:  # the client gave up, as some tests want
            self.close_connection = True
            self._count(-len(body))

    def _count(self, sent):
        with self.server.served.guard:
            self.server.served.sent += sent

    def log_message(self, *args):
        pass


class Served:
    def __init__(self, files):
        self.files = {f"/{path}": data for path, data in files.items()}
        self.behaviours, self.requests, self.sent = {}, [], 0
        self.guard, self.released = threading.Lock(), threading.Event()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.served = self
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        self.released.set()
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def serve():
    """Start a real HTTP server on loopback for some files."""
    running = []

    def start(files, behaviour=("plain",)):
        running.append(Served(files))
        running[-1].behaviours["*"] = list(behaviour)
        return running[-1]

    yield start
    for served in running:
        served.stop()


@pytest.fixture(autouse=True)
def isolated(monkeypatch, tmp_path):
    """Keep tests away from the machine's own data, cache, mirrors and package clients."""
    for name in ("BGD_DATA", "BGD_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BGD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BGD_MIRROR", "")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"
