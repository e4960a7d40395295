"""``--explorer``: the page of ``kubewright explore``, for whoever logs in to this server.

It is a process of its own. So what it computes takes nothing of the server's time and memory, and it has no rights
of the server's: like any client it reaches the socket, with the token that the page sends. It ends with the server,
which holds its standard input open.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from pathlib import Path

END_SECONDS = 5.0


class ServedExplorer:
    """The process. ``start`` it once the server listens."""

    def __init__(self, port: int, authority: bytes, folder: Path) -> None:
        self._port, self._authority, self._folder = port, authority, folder
        self._process: asyncio.subprocess.Process | None = None

    @classmethod
    def of(cls, options: argparse.Namespace, authority: bytes, folder: Path) -> ServedExplorer | None:
        """None where nobody asks for it."""
        return cls(options.explorer_port, authority, folder) if options.explorer else None

    async def start(self, url: str) -> None:
        """Starts it; it prints its address to standard error. Raises OSError."""
        words = ["explore", "--url", url, "--port", str(self._port), "--with-parent"]
        if self._authority:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / "explorer-ca.crt"
            path.write_bytes(self._authority)
            words += ["--certificate-authority", str(path)]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "kubewright", *words, stdin=asyncio.subprocess.PIPE, stdout=sys.stderr
        )

    async def stop(self) -> None:
        """Ends it."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
