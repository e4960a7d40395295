"""Two tenants on one server: the latency of the quiet one while the other floods it.

    python tests/bench/tenants.py URL NOISY-TOKEN QUIET-TOKEN NAMESPACE [--connections 100] [--seconds 6]

The noisy tenant makes creates (dry run) on all his connections as fast as they are answered; the quiet one reads one
object every 20 ms. First the quiet one is alone, then both are there. Both need rights in the namespace, and are
processes of their own. It prints milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import ssl
import time
import urllib.parse
from typing import Any

PERIOD = 0.02


class Line:
    """One connection."""

    def __init__(self, url: str, token: str) -> None:
        self._url = urllib.parse.urlsplit(url)
        self._token = token
        self._reader: Any = None
        self._writer: Any = None

    async def open(self) -> None:
        tls = None
        if self._url.scheme == "https":
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        self._reader, self._writer = await asyncio.open_connection(
            self._url.hostname, self._url.port, ssl=tls
        )

    async def ask(self, method: str, path: str, body: bytes = b"") -> int:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = 0
        for line in answer.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        await self._reader.readexactly(length)
        return int(answer[9:12])


def flood(url: str, token: str, namespace: str, connections: int, until: Any, counts: Any) -> None:
    async def one(number: int) -> None:
        line = Line(url, token)
        await line.open()
        obj = {"metadata": {"name": f"n{number}"}, "data": {"key": "v" * 500}}
        body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", **obj}).encode()
        while not until.is_set():
            code = await line.ask("POST", f"/api/v1/namespaces/{namespace}/configmaps?dryRun=All", body)
            counts[0 if code == 201 else 1 if code == 429 else 2] += 1

    async def run() -> None:
        await asyncio.gather(*(one(number) for number in range(connections)))

    asyncio.run(run())


async def quiet(url: str, token: str, namespace: str, seconds: float) -> list[float]:
    line, took = Line(url, token), []
    await line.open()
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        began = time.perf_counter()
        code = await line.ask("GET", f"/api/v1/namespaces/{namespace}/configmaps/quiet")
        took.append((time.perf_counter() - began) * 1000)
        assert code in (200, 404), code
        await asyncio.sleep(PERIOD)
    return sorted(took[5:])


def shown(took: list[float]) -> str:
    middle, late = took[len(took) // 2], took[int(len(took) * 0.99)]
    return f"median {middle:7.2f}  99% {late:7.2f}  worst {took[-1]:7.2f}  ({len(took)} reads)"


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("url", "noisy", "quiet", "namespace"):
        parser.add_argument(name)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=6.0)
    options = parser.parse_args()
    asked = (options.url, options.quiet, options.namespace, options.seconds)
    print("alone     ", shown(asyncio.run(quiet(*asked))))
    until, counts = multiprocessing.Event(), multiprocessing.Array("l", 3)
    noisy = (options.url, options.noisy, options.namespace, options.connections, until, counts)
    process = multiprocessing.Process(target=flood, args=noisy)
    process.start()
    time.sleep(2)
    before = list(counts)
    both = asyncio.run(quiet(*asked))
    served = [(now - then) / options.seconds for now, then in zip(counts, before, strict=True)]
    until.set()
    process.join(10)
    print("with noise", shown(both))
    print(f"noise      {served[0]:.0f} served/s, {served[1]:.0f} turned away/s, {served[2]:.0f} failed/s")


if __name__ == "__main__":
    main()
