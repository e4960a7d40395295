"""Commands in containers: what they are given, what they did."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Pod = Mapping[str, Any]


class CommandInput:
    """What is sent to a command while it runs. Whoever reads waits for it, on the command's own thread."""

    def __init__(self) -> None:
        self._pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._read: bytes | None = None

    def feed(self, data: bytes) -> None:
        """Bytes came; from any thread."""
        if data:
            self._pieces.put(data)

    def end(self) -> None:
        """No more will come; harmless when repeated."""
        self._pieces.put(b"")

    def __iter__(self) -> Iterator[bytes]:
        """The pieces as they come, to the end."""
        while piece := self._pieces.get():
            yield piece

    def read(self) -> bytes:
        """Everything, to the end."""
        if self._read is None:
            self._read = b"".join(self)
        return self._read


@dataclass(frozen=True, slots=True)
class Command:
    """A command to be run in a container (empty: an attach)."""

    pod: Pod
    container: str
    argv: tuple[str, ...]
    input: CommandInput = field(default_factory=CommandInput)
    tty: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    """Those whose values other objects have (ConfigMaps, Secrets)."""

    @property
    def stdin(self) -> bytes:
        """Everything that is sent to it: waits for the end of that."""
        return self.input.read()


class ErrorOutput(bytes):
    """A piece of what a command says on stderr, among those on stdout."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did. ``stdout`` may be pieces: each is sent when it is there, those that are ``ErrorOutput`` on
    stderr."""

    stdout: bytes | Iterator[bytes] = b""
    stderr: bytes = b""
    exit_code: int = 0


Execute = Callable[[Command], Ran]
