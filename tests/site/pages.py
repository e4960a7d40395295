"""Every page of the built site in headless Chromium: layout, links and anchors, contrast, and what was left as source.

    python -m tests.site.pages build/site

Exit codes: 0 nothing is wrong, 1 something is, 3 there is no Chromium.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SILENCE_SECONDS = 120
"""How long a browser that works may ask for nothing."""
HARNESS = "/check-of-pages.html"


class _Answers:
    """What the browser found, once it is done."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.value: dict[str, Any] = {}
        self.requests = 0


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *words: Any, answers: _Answers, harness: bytes, **options: Any) -> None:
        self._answers, self._harness = answers, harness
        super().__init__(*words, **options)

    def do_GET(self) -> None:
        """Serve the site, and the page that looks at its pages."""
        self._answers.requests += 1
        if self.path != HARNESS:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self._harness)))
        self.end_headers()
        self.wfile.write(self._harness)

    def do_POST(self) -> None:
        """Take the result."""
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self._answers.value = json.loads(content)
        self.send_response(204)
        self.end_headers()
        self._answers.ready.set()

    def log_message(self, *_: Any) -> None:
        """Say nothing: the problems are what is printed."""


def problems_of(site: Path) -> dict[str, Any]:
    """What is wrong with the pages of ``site``. Raises TimeoutError where the browser stops asking."""
    assert CHROMIUM is not None
    pages = ["/" + path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html"))]
    pages = [page for page in pages if page != "/404.html"]  # its links are those of the published address
    script = Path(__file__).with_suffix(".js").read_text().replace("PAGES", json.dumps(pages), 1)
    harness = f"<!doctype html><body><iframe height=900></iframe><script>{script}</script>".encode()
    answers = _Answers()
    handler = partial(_Handler, directory=str(site), answers=answers, harness=harness)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"]
        command += [f"--user-data-dir={profile}", "--no-first-run", "--disable-dev-shm-usage"]
        command += ["--proxy-server=direct://", f"http://127.0.0.1:{server.server_address[1]}{HARNESS}"]
        browser = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment()
        )
        try:
            requests = -1
            while not answers.ready.wait(SILENCE_SECONDS):
                if answers.requests == requests:
                    raise TimeoutError(f"the browser asked for nothing in {SILENCE_SECONDS} s")
                requests = answers.requests
        finally:
            browser.kill()
            browser.wait()
            server.shutdown()
            server.server_close()
    return answers.value


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}


def main(arguments: list[str]) -> int:
    """Prints the problems."""
    if CHROMIUM is None:
        print("no chromium on PATH: the pages are not looked at", file=sys.stderr)
        return 3
    found = problems_of(Path(arguments[0]))
    print(*found["problems"], sep="\n")
    print(f"{found['pages']} pages, {len(found['problems'])} problems", file=sys.stderr)
    return int(bool(found["problems"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
