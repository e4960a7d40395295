"""A process that has read everything a server needs, and forks one for each program that is started meanwhile.

Most of a start is reading modules and tables. Suites start a server for each of their packages, so it pays to do that
once. The process has one thread, as a fork must; it ends its servers when it ends, and a server when whoever asked for
it goes away.
"""

from __future__ import annotations

import gc
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from kubewright.tools.envtest.handing import flush, receive
from kubewright.tools.envtest.kube_apiserver import serve

END_SECONDS = 10.0
_BY_SIGNAL = 128
"""What shells add to the number of the signal that ended a program."""


def can_fork() -> bool:
    """Whether servers can come from a warm process here."""
    return hasattr(os, "fork") and hasattr(socket, "AF_UNIX") and hasattr(socket, "send_fds")


class Warm:
    """The warm process. Use it in a ``with`` statement; ``run`` starts a command and servers as they are asked for."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "warm"
        self._servers: dict[int, socket.socket] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        preload()
        self._listener = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        self._listener.bind(str(self.path))
        self._listener.listen(64)
        ended, self._woken = socket.socketpair()
        for end in (ended, self._woken):
            end.setblocking(False)
            self._stack.enter_context(end)
        before = signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        self._stack.callback(signal.set_wakeup_fd, before)
        self._selector = self._stack.enter_context(selectors.DefaultSelector())
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(ended, selectors.EVENT_READ, lambda: ended.recv(4096))
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: object, trace: TracebackType | None) -> None:
        for server in self._servers:
            os.kill(server, signal.SIGTERM)
        for server, connection in self._servers.items():
            with suppress(ChildProcessError):
                os.waitpid(server, 0)
            connection.close()
        self._stack.close()

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Runs a command, and servers until it ends. Returns its exit code. Raises OSError where it cannot start."""
        running = subprocess.Popen(command, env=dict(environment))

        def pass_on(number: int, frame: FrameType | None) -> None:
            running.send_signal(number)

        handlers: dict[int, Any] = {
            signal.SIGCHLD: lambda *_: None,
            signal.SIGTERM: pass_on,
            # A terminal sends it to the command as well.
            signal.SIGINT: lambda *_: None,
        }
        for number, handler in handlers.items():
            self._stack.callback(signal.signal, number, signal.signal(number, handler))
        while running.poll() is None:
            for key, _ in self._selector.select(END_SECONDS):
                key.data()
            self._reap()
        return running.returncode if running.returncode >= 0 else _BY_SIGNAL - running.returncode

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(END_SECONDS)
        try:
            received = receive(connection)
        except (OSError, ValueError):
            received = None
        if received is None:
            connection.close()
            return
        files, request = received
        flush()
        server = os.fork()
        if server == 0:
            self._become(files, request)
        for file in files:
            os.close(file)
        self._servers[server] = connection
        # Whoever asked sends nothing more: what can be read is that it went away.
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._gone(server))
        with suppress(OSError):
            connection.sendall(b"%d\n" % server)

    def _become(self, files: list[int], request: Mapping[str, Any]) -> None:
        """Is the server, in a process of its own; never returns."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._listener.close()
            self._selector.close()
            for connection in self._servers.values():
                connection.close()
            for place, file in enumerate(files):
                os.dup2(file, place)
                os.close(file)
            os.environ.clear()
            os.environ.update(request["environment"])
            os.chdir(request["folder"])
            random.seed()
            code = serve(list(request["words"]))
        except KeyboardInterrupt:
            code = _BY_SIGNAL + signal.SIGINT
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            flush()
            os._exit(code)

    def _gone(self, server: int) -> None:
        self._selector.unregister(self._servers[server])
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGTERM)

    def _reap(self) -> None:
        for server in list(self._servers):
            ended, status = os.waitpid(server, os.WNOHANG)
            if not ended:
                continue
            connection = self._servers.pop(server)
            with suppress(KeyError):
                self._selector.unregister(connection)
            code = os.waitstatus_to_exitcode(status)
            with suppress(OSError):
                connection.sendall(b"%d\n" % (code if code >= 0 else _BY_SIGNAL - code))
            connection.close()


def preload() -> None:
    """Reads what every server reads, without starting a thread."""
    from importlib import import_module

    from apimachinery.server.catalog.served_package import ServedPackage
    from kubewright.tools.arguments.several import RELEASE

    for name in (
        "kubewright.tools.serve.command",
        "apimachinery.server.assembly.api",
        "kubewright.tools.envtest.flags",
    ):
        import_module(name)
    with suppress(ImportError):
        import_module("uvloop")
    ServedPackage("kubernetes_api", RELEASE)
    gc.collect()
    gc.freeze()
