"""``kubewright explore``: a page that shows a cluster, served on loopback.

Exit codes: 0 ended by a signal; 2 the kubeconfig or the command line cannot be used; 3 the address cannot be
listened at.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
from pathlib import Path

from apimachinery.client.config import Config, ConfigError, Credential
from apimachinery.client.tls import make_tls
from apimachinery.http.listening import Listener
from apimachinery.http.protocol import ConnectionLimits
from kubewright.diagnostics import printable
from kubewright.tools.explore import page
from kubewright.tools.explore.application import BODY_BYTES, ExplorerApplication
from kubewright.tools.explore.guard import Guard
from kubewright.tools.explore.upstream import Upstream
from kubewright.tools.serve.ending import on_signals

OK, MISUSED, BROKEN = 0, 2, 3


def run(options: argparse.Namespace) -> int:
    """Serves until SIGINT or SIGTERM."""
    try:
        config = _config(options)
        if config.is_tls:
            make_tls(config, Credential(authority=config.certificate_authority))
        upstream = Upstream(config, login=bool(options.server))
    except ConfigError as fault:
        print(printable(f"kubewright explore: error: {fault}"), file=sys.stderr)
        return MISUSED
    try:
        return asyncio.run(_serve(upstream, options))
    except OSError as fault:
        print(
            printable(f"kubewright explore: error: --port {options.port}: {fault.strerror or fault}"),
            file=sys.stderr,
        )
        return BROKEN


def _config(options: argparse.Namespace) -> Config:
    """Raises ConfigError."""
    if not options.server:
        if options.certificate_authority:
            raise ConfigError("--certificate-authority: goes with --url; a kubeconfig names its own")
        return Config.load(options.kubeconfig, context=options.context)
    if options.kubeconfig or options.context:
        raise ConfigError("--url: the page logs in there, so give no kubeconfig")
    if not options.server.startswith(("http://", "https://")):
        raise ConfigError(f"--url {options.server}: begins with http:// or https://")
    authority = b""
    if options.certificate_authority:
        try:
            authority = Path(options.certificate_authority).read_bytes()
        except OSError as fault:
            raise ConfigError(f"--certificate-authority: {fault.strerror}") from None
    return Config(server=options.server.rstrip("/"), certificate_authority=authority)


class ExplorerServer:
    """The explorer of one cluster, on loopback. ``port`` 0 takes a free one."""

    def __init__(self, upstream: Upstream, port: int = 0) -> None:
        self.upstream = upstream
        self.guard = Guard()
        self._application = ExplorerApplication(upstream, self.guard)
        self._listener = Listener(self._application, ConnectionLimits(body_bytes=BODY_BYTES), port=port)

    async def start(self) -> None:
        """Listens when it returns. Raises OSError."""
        await self._listener.start()
        self.guard.listens_at(self._listener.port)

    async def stop(self) -> None:
        """Ends what is under way after a second."""
        await self._listener.stop(1.0)
        await self._application.close()

    @property
    def origin(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._listener.port}"

    @property
    def address(self) -> str:
        """Where the page is. The key is in the fragment, which no browser sends."""
        return f"{self.origin}/#{self.guard.key}"


async def _serve(upstream: Upstream, options: argparse.Namespace) -> int:
    server = ExplorerServer(upstream, options.port)
    await server.start()
    ended = asyncio.Event()
    on_signals(ended.set)
    if options.with_parent:
        _end_with_parent(asyncio.get_running_loop(), ended)
    if not page.is_built():
        print(f"kubewright explore: {page.HOW}", file=sys.stderr)
    print(f"explorer of {printable(upstream.config.server)}: {server.address}", flush=True)
    await ended.wait()
    await server.stop()
    return OK


def _end_with_parent(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """Ends when standard input does, which the server that started this process holds open."""

    def wait() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait, daemon=True).start()
