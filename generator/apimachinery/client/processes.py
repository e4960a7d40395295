# Made from async_processes.py by build/plain.py: edit that one.
"""Commands, attachments and ports of pods, over websockets or SPDY, awaited."""

from __future__ import annotations

import contextlib
import io
import posixpath
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import msgspec

from apimachinery.client.bodies import TransportError
from apimachinery.client.calls import Target, query
from apimachinery.client.channels import (
    ERROR,
    PORT_FORWARD,
    REMOTE_COMMAND,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    ChannelSocket,
    ExecResult,
    exit_code_of,
)
from apimachinery.client.closing import Closing
from apimachinery.client.connection import Client
from apimachinery.client.errors import ApiError
from apimachinery.client.links import Wire
from apimachinery.client.spdy import (
    SpdyPlan,
    SpdySocket,
    chosen,
    may_lack_websockets,
    plan_of_command,
    plan_of_port,
)


class Channels:
    """Channels to a pod, over a websocket, or SPDY where the server has none."""

    def __init__(self, wire: Wire, socket: ChannelSocket | SpdySocket) -> None:
        self._wire = wire
        self._socket = socket

    @classmethod
    def open(cls, client: Client, target: str, protocols: Sequence[str], plan: SpdyPlan) -> Self:
        """Opens them. Raises ``ApiError`` where the server refuses, ``TransportError``."""
        try:
            return cls._over(ChannelSocket(protocols), client, target)
        except ApiError as error:
            if not may_lack_websockets(error):
                raise
            refusal = error
        try:
            return cls._over(SpdySocket(plan), client, target)
        except ApiError as error:
            raise chosen(refusal, error) from None

    @classmethod
    def _over(cls, socket: ChannelSocket | SpdySocket, client: Client, target: str) -> Self:
        wire = client._dial()
        made = cls(wire, socket)
        try:
            socket.begin(wire.host, wire.prefix + target, wire.headers)
            while not socket.open:
                made._flush()
                socket.receive_data(wire.read())
            made._flush()
        except BaseException:
            wire.close()
            raise
        return made

    def send(self, channel: int, data: bytes) -> None:
        """Sends bytes on a channel."""
        self._socket.send(channel, data)
        self._flush()

    def end(self, channel: int) -> None:
        """Says that nothing more comes on a channel, where the protocol can."""
        self._socket.end_channel(channel)
        self._flush()

    def receive(self) -> tuple[int, bytes] | None:
        """The next message: its channel and bytes; None at the end."""
        while not self._socket.messages and not self._socket.ended:
            self._socket.receive_data(self._wire.read())
            self._flush()
        return self._socket.messages.pop(0) if self._socket.messages else None

    def close(self) -> None:
        """Ends it."""
        self._socket.close()
        with contextlib.suppress(TransportError):  # the other side was faster
            self._flush()
        self._wire.close()

    def _flush(self) -> None:
        data = self._socket.take_outgoing()
        if data:
            self._wire.write(data)


class Process(Closing):
    """A command under way in a container, or an attachment to what runs there."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self.exit_code: int | None = None

    def read(self) -> tuple[int, bytes] | None:
        """The next output: ``STDOUT`` or ``STDERR`` and bytes; None when the command has ended (``exit_code``).

        Raises ``ApiError`` where it could not be run.
        """
        while (found := self._channels.receive()) is not None:
            channel, data = found
            if channel == ERROR:
                self.exit_code = exit_code_of(data)
            elif channel in (STDOUT, STDERR) and data:
                return found
        return None

    def write(self, data: bytes) -> None:
        """Sends bytes to its stdin."""
        self._channels.send(STDIN, data)

    def end_stdin(self) -> None:
        """Ends its stdin (over SPDY, and websockets of v5)."""
        self._channels.end(STDIN)

    def resize(self, width: int, height: int) -> None:
        """Says how large the terminal is."""
        self._channels.send(RESIZE, msgspec.json.encode({"Width": width, "Height": height}))

    def wait(self) -> ExecResult:
        """Reads to the end. Raises ``TransportError`` where the connection ended before the command did."""
        output: dict[int, list[bytes]] = {STDOUT: [], STDERR: []}
        while (found := self.read()) is not None:
            output[found[0]].append(found[1])
        if self.exit_code is None:
            raise TransportError("the connection ended before the command did", sent=True)
        return ExecResult(self.exit_code, b"".join(output[STDOUT]), b"".join(output[STDERR]))

    def close(self) -> None:
        """Hangs up."""
        self._channels.close()


class Forwarded(Closing):
    """A connection to a port of a pod."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._greeted: set[int] = set()

    def read(self) -> bytes:
        """What the port sent; empty at the end. Raises ``ApiError`` with what the node says of the port."""
        while (found := self._channels.receive()) is not None:
            channel, data = found
            if channel not in self._greeted:
                self._greeted.add(channel)
                data = data[2:]  # the port's number
            if not data:
                continue
            if channel == 1:
                raise ApiError(500, "InternalError", data.decode("utf-8", "replace"), has_details=False)
            return data
        return b""

    def write(self, data: bytes) -> None:
        """Sends bytes to the port."""
        self._channels.send(0, data)

    def close(self) -> None:
        """Ends the connection."""
        self._channels.close()


def start(
    client: Client,
    target: Target,
    name: str,
    argv: Sequence[str] | None,
    *,
    container: str = "",
    stdin: bool = False,
    tty: bool = False,
) -> Process:
    """Runs ``argv`` in a container, or attaches to it where that is None."""
    flags = query(container=container, stdin=stdin, stdout=True, stderr=not tty, tty=tty, command=argv)
    plan = plan_of_command(stdin=stdin, tty=tty)
    path = target.path(name, "attach" if argv is None else "exec") + flags
    return Process(Channels.open(client, path, REMOTE_COMMAND, plan))


def execute(
    client: Client, target: Target, name: str, argv: Sequence[str], container: str, stdin: bytes | None
) -> ExecResult:
    """Runs a command to its end, with ``stdin`` as its input."""
    process = start(client, target, name, argv, container=container, stdin=stdin is not None)
    try:
        if stdin is not None:
            process.write(stdin)
            process.end_stdin()
        return process.wait()
    finally:
        process.close()


def forward(client: Client, target: Target, name: str, port: int) -> Forwarded:
    """Connects to a port of a pod."""
    path = target.path(name, "portforward") + query(ports=port)
    return Forwarded(Channels.open(client, path, PORT_FORWARD, plan_of_port(port)))


def copy_to(client: Client, target: Target, name: str, local: Path, remote: str, container: str) -> None:
    """Copies a file or folder into a container, as ``kubectl cp``: by its ``tar``."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(local, arcname=posixpath.basename(remote.rstrip("/")))
    folder = posixpath.dirname(remote.rstrip("/")) or "/"
    result = execute(client, target, name, ["tar", "xmf", "-", "-C", folder], container, packed.getvalue())
    _check(result)


def copy_from(client: Client, target: Target, name: str, remote: str, local: Path, container: str) -> None:
    """Copies a file or folder out of a container. What the container's ``tar`` says is not trusted: nothing is
    written outside ``local``, and no links or devices are made."""
    folder, base = posixpath.split(remote.rstrip("/"))
    result = execute(client, target, name, ["tar", "cf", "-", "-C", folder or "/", base], container, None)
    _check(result)
    with tarfile.open(fileobj=io.BytesIO(result.stdout)) as tar:
        for member in tar:
            _unpack(tar, member, base, local)


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, base: str, local: Path) -> None:
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if parts[:1] != [base] or ".." in parts:
        return
    path = local.joinpath(*parts[1:])
    found = tar.extractfile(member) if member.isreg() else None
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
    elif found is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(found.read())


def _check(result: ExecResult) -> None:
    if result.exit_code:
        said = result.stderr.decode("utf-8", "replace").strip()
        text = f"tar in the container ended with {result.exit_code}: {said}"
        raise ApiError(500, "InternalError", text, has_details=False)
