"""When has a page painted? Chromium visits it alone and tells, with nothing attached that would slow it down.

A browser with a debugger or a driver attached collects source positions for every error object that a script makes.
Plotly's script makes some while it is read, which then takes .6 s in place of .25 s. So a small extension watches the
page from inside, and tells this process when it has painted.
"""

import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from urllib.parse import parse_qs, urlsplit

_WATCH = """
const look = () => {
  if (!(%(painted)s)) { requestAnimationFrame(look); return; }
  const ms = performance.now();
  const tell = async () => {
    const answer = await fetch("http://127.0.0.1:%(port)d/?ms=" + ms);
    location.href = await answer.text();
  };
  setTimeout(tell, %(rest_ms)d);
};
requestAnimationFrame(look);
"""
REST_MS = 2_000
"""Before the first visit, for the browser to have started; after a paint, for what is drawn later and for caches."""


class Desk(ThreadingHTTPServer):
    """Sends the browser off, takes down when the page has painted, and sends it there again."""

    def __init__(self, url: str) -> None:
        super().__init__(("127.0.0.1", 0), _Clerk)
        self.url = url
        self.painted_ms: Queue[float] = Queue()


class _Clerk(BaseHTTPRequestHandler):
    server: Desk

    def do_GET(self) -> None:
        told = parse_qs(urlsplit(self.path).query)
        for ms in told.get("ms", []):
            self.server.painted_ms.put(float(ms))
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        start = f"<script>setTimeout(() => location.replace({json.dumps(self.server.url)}), {REST_MS})</script>"
        self.wfile.write((self.server.url if told else start).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Watched:
    """A Chromium with a profile of its own, which keeps what it has loaded between launches.

    Args:
        command: The browser and its flags.
        folder: An empty folder.
        painted: A JavaScript expression that is true once the page has painted.
    """

    def __init__(self, command: list[str], folder: Path, painted: str) -> None:
        self._command, self._folder, self._painted = command, folder, painted

    def visit(self, url: str, times: int = 1, *, within_s: float = 120.0) -> list[float]:
        """Launch the browser and visit a page; milliseconds from the beginning of each visit until it has painted.

        Raises:
            TimeoutError: It did not paint within `within_s`.
        """
        with Desk(url) as desk:
            threading.Thread(target=desk.serve_forever, daemon=True).start()
            flags = [
                "--headless=new",
                "--window-size=1440,900",
                f"--user-data-dir={self._folder / 'profile'}",
                f"--load-extension={self._extension(desk.server_port)}",
            ]
            words = [*self._command, *flags, f"http://127.0.0.1:{desk.server_port}/"]
            browser = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                return [desk.painted_ms.get(timeout=within_s) for _ in range(times)]
            except Empty as silence:
                raise TimeoutError(f"{url} had not painted after {within_s:g} s") from silence
            finally:
                browser.terminate()
                browser.wait(30)
                desk.shutdown()

    def _extension(self, port: int) -> Path:
        folder = self._folder / "watch"
        folder.mkdir(exist_ok=True)
        script = {
            "matches": ["http://127.0.0.1/*"],
            "exclude_globs": [f"http://127.0.0.1:{port}/*"],
            "js": ["watch.js"],
            "run_at": "document_start",
            "world": "MAIN",
        }
        manifest = {"manifest_version": 3, "name": "watch", "version": "1", "content_scripts": [script]}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        (folder / "watch.js").write_text(_WATCH % {"painted": self._painted, "port": port, "rest_ms": REST_MS})
        return folder
