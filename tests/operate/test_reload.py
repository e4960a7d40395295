"""Files that are read again while the server runs, and the end of a server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
from pathlib import Path

import pytest
from tests.server.toy_api import ToyApi

from apimachinery.access.authentication import read_token_file
from apimachinery.access.control import OPEN_TO_LOOPBACK
from apimachinery.http.tls import (
    TlsError,
    ensure_certificate,
    renew,
    server_context,
)
from apimachinery.metrics import Metrics
from apimachinery.server.operate.reload import Reload, Reloads
from apimachinery.server.process import Server, ServerOptions


def write(path: Path, text: str) -> None:
    """As an editor or a mounted Secret does it: another file in its place."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.chmod(0o600)
    part.replace(path)


def test_tokens_that_change_are_known_and_a_bad_file_leaves_the_old(tmp_path, caplog):
    path = tmp_path / "tokens.csv"
    write(path, "old,ann,1\n")
    tokens = read_token_file(path)
    metrics = Metrics()
    reloads = Reloads([Reload("token file", (path,), lambda: tokens.take(read_token_file(path)))], metrics)

    def known() -> list[str]:
        return [token for token in ("old", "new") if tokens.identify(token, ())]

    reloads.look()
    assert known() == ["old"]
    write(path, "not a line\n")
    reloads.look()
    reloads.look()
    assert known() == ["old"]
    assert len([record for record in caplog.records if "cannot be used" in record.message]) == 1
    path.unlink()
    reloads.look()
    assert known() == ["old"]
    write(path, "new,ann,1\n")
    reloads.look()
    assert known() == ["new"]
    shown = metrics.text()
    assert 'kubewright_file_reloads_total{file="token file",result="success"} 1' in shown


def handshake(context: ssl.SSLContext) -> bytes:
    """The certificate that a client is shown."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    back, forth = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(incoming, outgoing, server_side=True)
    asker = client.wrap_bio(back, forth)
    for _ in range(10):
        for side in (asker, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
        incoming.write(forth.read())
        back.write(outgoing.read())
    shown = asker.getpeercert(True)
    assert shown is not None
    return shown


def test_a_new_certificate_is_shown_and_half_of_one_is_not(tmp_path):
    certificate, key = ensure_certificate(tmp_path / "a", "127.0.0.1")
    context = server_context(certificate, key)
    first = handshake(context)
    other, other_key = ensure_certificate(tmp_path / "b", "127.0.0.1")
    write(certificate, other.read_text())
    with pytest.raises(TlsError):
        renew(context, certificate, key)
    assert handshake(context) == first
    write(key, other_key.read_text())
    renew(context, certificate, key)
    assert handshake(context) != first


async def read(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    return int(first[9:12]), headers, await reader.readexactly(int(headers.get("content-length", "0")))


class Slow(ToyApi):
    leave = False

    async def handle(self, request):
        while request.path == "/slow" and not Slow.leave:
            await asyncio.sleep(0.01)
        return await super().handle(request)


def test_the_end_of_a_server():
    """Not ready first, answering still; then who comes is sent away; what is under way ends; then nobody listens."""

    async def ask(port: int, path: str) -> tuple[int, dict[str, str], bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        try:
            return await read(reader)
        finally:
            writer.close()

    async def run() -> None:
        Slow.leave = False
        options = ServerOptions(shutdown_delay_seconds=3.0, send_retry_after=True, shutdown_seconds=200.0)
        server = Server(options, OPEN_TO_LOOPBACK, Slow)
        await server.start()
        assert (await ask(server.port, "/readyz"))[0] == 200
        stopping = asyncio.create_task(server.stop())
        await asyncio.sleep(0.05)
        status, headers, body = await ask(server.port, "/readyz")
        assert status == 500 and b"[-]shutdown failed: reason withheld" in body
        assert (await ask(server.port, "/livez"))[0] == 200
        assert (await ask(server.port, "/api/v1/namespaces/a/configmaps"))[0] == 200
        slow = asyncio.create_task(ask(server.port, "/slow"))
        async with asyncio.timeout(60):
            while status != 429:
                await asyncio.sleep(0.05)
                status, headers, body = await ask(server.port, "/api/v1/namespaces/a/configmaps")
        assert (status, headers["retry-after"], headers["connection"]) == (429, "5", "close")
        assert json.loads(body)["reason"] == "TooManyRequests"
        assert (await ask(server.port, "/livez"))[0] == 200
        Slow.leave = True
        assert (await slow)[0] == 404
        await stopping
        with pytest.raises(ConnectionRefusedError):
            await ask(server.port, "/livez")

    asyncio.run(run())


def test_files_are_followed(tmp_path, monkeypatch):
    from apimachinery.server.operate import reload

    monkeypatch.setattr(reload, "PERIOD_SECONDS", 0.01)
    path = tmp_path / "file"
    write(path, "a")
    seen: list[str] = []

    async def run() -> None:
        reloads = Reloads([Reload("f", (path,), lambda: seen.append(path.read_text()))], Metrics())
        task = asyncio.create_task(reloads.follow())
        await asyncio.sleep(0.05)
        for count, change in enumerate((lambda: write(path, "bb"), lambda: os.utime(path, (1, 1))), 1):
            change()
            async with asyncio.timeout(60):
                while len(seen) < count:
                    await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert seen == ["bb", "bb"]
