"""Handing a server over to the warm process: its words and files go there, its exit code comes back."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType

REQUEST_BYTES = 1 << 20


def hand_over(path: str, words: list[str]) -> int | None:
    """Runs a server in the warm process until it ends. Returns its exit code, None where that process is gone."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
        # First the files, then what to do with them: a message with files is one byte.
        socket.send_fds(connection, [b"f"], [0, 1, 2])
        folder = os.getcwd()  # noqa: PTH109 - pathlib takes as long to import as all the rest
        request = {"words": words, "folder": folder, "environment": dict(os.environ)}
        connection.sendall(json.dumps(request).encode() + b"\n")
        answers = connection.makefile("rb")
        started = answers.readline()
    except OSError:
        return None
    if not started:
        return None
    server = int(started)

    def pass_on(number: int, frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(server, number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    code = answers.readline()
    return int(code) if code else 1


def receive(connection: socket.socket) -> tuple[list[int], dict[str, object]] | None:
    """The files and the request of a caller; None for one that went away."""
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    data = b""
    while not data.endswith(b"\n"):
        part = connection.recv(1 << 16)
        if not part or len(data) > REQUEST_BYTES:
            for each in files:
                os.close(each)
            return None
        data += part
    return list(files), json.loads(data)


def flush() -> None:
    """Writes what is buffered; the files may be gone."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
