"""Which HTTP server: one prepared body, 1 KB and 10 MB, with and without TLS, from wrk on the same machine.

    python tests/bench/http_servers.py [SECONDS] [SERVER …]

Servers: uvicorn, granian, hypercorn, protocol (a bare asyncio protocol over httptools: the floor of what Python pays).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

SMALL = b"x" * 1024
LARGE = b"x" * 10_000_000
PORT = 7690
SERVERS = ("uvicorn", "granian", "hypercorn", "protocol")


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body = LARGE if scope["path"] == "/large" else SMALL
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-length", str(len(body)).encode()), (b"content-type", b"application/json")],
        }
    )
    await send({"type": "http.response.body", "body": body})


def serve(name: str, certificate: str | None) -> None:
    here = "tests.bench.http_servers:app"
    pair = (
        {"ssl_certfile": f"{certificate}/tls.crt", "ssl_keyfile": f"{certificate}/tls.key"}
        if certificate
        else {}
    )
    if name == "uvicorn":
        import uvicorn

        uvicorn.run(app, port=PORT, http="httptools", loop="uvloop", log_level="error", **pair)
    elif name == "granian":
        from granian import Granian

        keys = {"ssl_cert": Path(pair["ssl_certfile"]), "ssl_key": Path(pair["ssl_keyfile"])} if pair else {}
        Granian(here, port=PORT, interface="asginl", log_enabled=False, **keys).serve()
    elif name == "hypercorn":
        import asyncio

        import uvloop
        from hypercorn.asyncio import serve as run
        from hypercorn.config import Config

        config = Config()
        config.bind = [f"127.0.0.1:{PORT}"]
        if pair:
            config.certfile, config.keyfile = pair["ssl_certfile"], pair["ssl_keyfile"]
        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
        asyncio.run(run(app, config))
    else:
        serve_protocol(pair)


def serve_protocol(pair: dict[str, str]) -> None:
    import asyncio
    import ssl

    import httptools
    import uvloop

    class Protocol(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport = transport
            self.parser = httptools.HttpRequestParser(self)
            self.url = b""

        def data_received(self, data):
            self.parser.feed_data(data)

        def on_url(self, url):
            self.url = url

        def on_header(self, name, value):
            pass

        def on_message_complete(self):
            body = LARGE if self.url == b"/large" else SMALL
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(
                body
            )
            self.transport.writelines((head, body))

    async def main() -> None:
        context = None
        if pair:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(pair["ssl_certfile"], pair["ssl_keyfile"])
        server = await asyncio.get_running_loop().create_server(Protocol, "127.0.0.1", PORT, ssl=context)
        await server.serve_forever()

    uvloop.run(main())


def rate(url: str, connections: int, seconds: int) -> str:
    out = subprocess.run(
        ["wrk", "-t2", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s", url],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = re.search(r"Requests/sec:\s+([\d.]+)", out)
    return found.group(1) if found else "?"


def measure(name: str, certificate: str | None, seconds: int) -> None:
    command = [sys.executable, __file__, "--serve", name, certificate or ""]
    environment = {**os.environ, "PYTHONPATH": "."}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    scheme = "https" if certificate else "http"
    try:
        wait_for(scheme)
        small = rate(f"{scheme}://127.0.0.1:{PORT}/", 32, seconds)
        large = rate(f"{scheme}://127.0.0.1:{PORT}/large", 4, seconds)
        print(f"{name:10s} {scheme:6s} 1 KB {small:>10s}/s   10 MB {large:>8s}/s", flush=True)
    finally:
        process.terminate()
        process.wait(10)


def wait_for(scheme: str) -> None:
    import ssl

    context = ssl._create_unverified_context() if scheme == "https" else None
    for _ in range(100):
        try:
            urllib.request.urlopen(f"{scheme}://127.0.0.1:{PORT}/", context=context, timeout=2).read()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3] or None)
        return
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-keyout",
                f"{folder}/tls.key",
                "-out",
                f"{folder}/tls.crt",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
            ],
            check=True,
            capture_output=True,
        )
        for name in sys.argv[2:] or SERVERS:
            for certificate in (None, folder):
                measure(name, certificate, seconds)


if __name__ == "__main__":
    main()
