"""The endpoints that a kubelet and Prometheus ask: ``/healthz``, ``/readyz``, ``/metrics``.

They answer from a thread, also in asyncio programs: a loop that hangs must not look as one whose probe hangs too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Check = Callable[[], str]
"""Gives what is wrong; empty while all is well."""


class Probes:
    """An HTTP server on ``port`` (0: a free one), on all interfaces as kubelets need it."""

    def __init__(
        self,
        port: int,
        *,
        checks: Mapping[str, Check],
        metrics: Callable[[], bytes] | None = None,
        remarks: Check = lambda: "",
        host: str = "",
    ) -> None:
        """``remarks`` gives what is wrong and no reason to be restarted: it follows the ``ok``."""
        self._checks = dict(checks)
        self._remarks = remarks
        self._metrics = metrics
        probes = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                code, body = probes.answer(self.path.partition("?")[0])
                self.send_response(code)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Logs nothing: probes come every few seconds."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def answer(self, path: str) -> tuple[int, bytes]:
        """Code and text for a path."""
        if path == "/metrics" and self._metrics is not None:
            return 200, self._metrics()
        check = self._checks.get(path)
        if check is None:
            return 404, b"not found\n"
        trouble = check()
        if trouble:
            return 500, f"{trouble}\n".encode()
        remark = self._remarks()
        return 200, f"ok\n{remark}\n".encode() if remark else b"ok\n"

    def start(self) -> Self:
        """Serves from now on."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ends it."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
