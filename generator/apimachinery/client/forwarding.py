"""A port of this machine that leads to a port of a pod, in threads. ``async_forwarding`` has the same for tasks."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from types import TracebackType
from typing import Final, Self

from apimachinery.client.calls import Target
from apimachinery.client.connection import Client
from apimachinery.client.endpoint import TransportError
from apimachinery.client.processes import Forwarded, forward
from apimachinery.meta.errors import ApiError

PIECE: Final = 1 << 16
LINGER_SECONDS: Final = 1.0
_log = logging.getLogger("kubewright.client")


class Forwarder:
    """Listens while its block runs: ``address`` is where. A connection that the pod does not take is closed, and its
    error is logged and kept in ``last_error``."""

    def __init__(self, client: Client, target: Target, name: str, port: int, local: tuple[str, int]) -> None:
        self._client = client
        self._target = target
        self._name = name
        self._remote = port
        self.address = local
        self.last_error: Exception | None = None
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []

    @property
    def port(self) -> int:
        """The port of this machine."""
        return self.address[1]

    def start(self) -> Self:
        """Listens when it returns. Raises ``OSError``."""
        self._listener = socket.create_server(self.address)
        self.address = self._listener.getsockname()[:2]
        self._spawn(self._accept, self._listener)
        return self

    def close(self) -> None:
        """Ends it, with all connections."""
        listener, self._listener = self._listener, None
        for each in [*self._open, *([listener] if listener is not None else [])]:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
        if listener is not None:
            listener.close()
        for thread in self._threads:
            thread.join(5)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _spawn(self, function: object, *arguments: object) -> None:
        thread = threading.Thread(target=function, args=arguments, name="kubewright-forward", daemon=True)  # type: ignore[arg-type]
        self._threads = [*(each for each in self._threads if each.is_alive()), thread]
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while self._listener is listener:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self._open.add(connection)
            self._spawn(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        over, left = threading.Event(), threading.Event()
        try:
            with connection, forward(self._client, self._target, self._name, self._remote) as pod:
                self._spawn(self._send, connection, pod, over, left)
                while data := pod.read():
                    connection.sendall(data)
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        except OSError:  # whoever connected is gone
            return
        except (ApiError, TransportError) as error:
            if self._listener is not None and not left.is_set():
                self.last_error = error
                _log.warning("forwarding to port %d of %s: %s", self._remote, self._name, error)
        finally:
            over.set()
            self._open.discard(connection)

    def _send(
        self, connection: socket.socket, pod: Forwarded, over: threading.Event, left: threading.Event
    ) -> None:
        with contextlib.suppress(OSError, TransportError):
            while data := connection.recv(PIECE):
                pod.write(data)
            over.wait(
                LINGER_SECONDS
            )  # the protocol has no half of a connection: what is on its way may arrive
            left.set()
            pod.close()
