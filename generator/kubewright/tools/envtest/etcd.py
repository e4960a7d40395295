"""The program ``etcd`` of the assets: it answers /health, and tells kube-apiserver's stand-in that nothing is kept.

It runs without the site-packages, from the standard library alone, so that it starts in some milliseconds.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

USAGE = """Usage:
  etcd [flags]

An etcd that keeps nothing: the kube-apiserver beside it holds objects in memory. All flags of etcd are taken.

  --listen-client-urls 'http://localhost:2379'   addresses to answer /health on; the first counts
  --listen-peer-urls, --advertise-client-urls, --data-dir, --unsafe-no-fsync 'false', …
"""
FLAGS = ("unsafe-no-fsync",)
VERSION = "3.6.0-kubewright-memory"
"""What /version answers, by which an etcd of this sort is known."""
ANSWERS = {
    "/health": '{"health":"true","reason":""}',
    "/readyz": "ok",
    "/livez": "ok",
    "/version": f'{{"etcdserver":"{VERSION}","etcdcluster":"3.6.0","storage":"3.6.0"}}',
}
HEAD_BYTES = 8192
PATIENCE_SECONDS = 5.0
LOOK_SECONDS = 1.0
"""How often it looks whether the assets are still there."""


def usage() -> str:
    """The help, with the flags that envtest looks for."""
    return "\n".join([USAGE, *(f"  --{name}" for name in FLAGS)])


def main(words: list[str]) -> int:
    """Answers until it is ended. Returns the exit code."""
    if "--help" in words or "-h" in words:
        print(usage())
        return 0
    if "--version" in words:
        print(f"etcd Version: {VERSION}")
        return 0
    url = _value(words, "listen-client-urls") or "http://127.0.0.1:2379"
    place = url.split(",")[0].partition("://")[2].rstrip("/")
    host, _, port = place.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdecimal():
        print(
            f"error verifying flags, --listen-client-urls: {url!r} is not http://HOST:PORT", file=sys.stderr
        )
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        listener = socket.create_server((host, int(port)), family=_family(host))
    except OSError as fault:
        print(f"listen tcp {place}: {fault.strerror or fault}", file=sys.stderr)
        return 1
    # A suite that crashes leaves it behind; the command that made the folder removes that at its end.
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    with listener:
        listener.settimeout(LOOK_SECONDS)
        while True:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                if folder and not os.path.isdir(folder):  # noqa: PTH112 - pathlib takes longer than the rest
                    return 0
                continue
            with connection:
                try:
                    _answer(connection)
                except OSError:
                    continue


def _family(host: str) -> int:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _value(words: list[str], name: str) -> str:
    """The value of an option, ``-name=value`` or ``-name value``, of which Go takes one dash or two."""
    found = ""
    for place, word in enumerate(words):
        option, given, value = word.lstrip("-").partition("=")
        if word.startswith("-") and option == name:
            found = value if given else (words[place + 1] if place + 1 < len(words) else "")
    return found


def _answer(connection: socket.socket) -> None:
    connection.settimeout(PATIENCE_SECONDS)
    head = b""
    while b"\r\n\r\n" not in head and len(head) < HEAD_BYTES:
        part = connection.recv(HEAD_BYTES)
        if not part:
            return
        head += part
    words = head.split(b" ", 2)
    body = ANSWERS.get(words[1].partition(b"?")[0].decode("latin-1")) if len(words) == 3 else None
    status = "404 Not Found" if body is None else "200 OK"
    text = body or "404 page not found\n"
    kind = "application/json" if text.startswith("{") else "text/plain"
    lines = (
        f"HTTP/1.1 {status}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(text)}",
        "Connection: close",
        "",
        text,
    )
    connection.sendall("\r\n".join(lines).encode())


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(0)
