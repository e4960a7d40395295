"""A toy server on a free port, on its own thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from tests.server.toy_api import ToyApi

from apimachinery.access.control import OPEN_TO_LOOPBACK
from apimachinery.server.process import Server, ServerOptions
from kubewright.testing.thread import ServerThread


@pytest.fixture(autouse=True)
def plain_logging() -> Iterator[None]:
    """Undoes what ``kubewright serve`` does to the project's logger."""
    yield
    logger = logging.getLogger("kubewright")
    logger.handlers.clear()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)


class Running:
    """A server on a thread."""

    def __init__(self, server: Server) -> None:
        self._thread = ServerThread(server)
        self.port = server.port
        self.server = server
        self.stop = self._thread.stop


@pytest.fixture
def serve() -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def start(**options) -> Running:
        build = options.pop("build", ToyApi)
        access = options.pop("access", None) or OPEN_TO_LOOPBACK
        running.append(Running(Server(ServerOptions(**options), access, build)))
        return running[-1]

    yield start
    for server in running:
        server.stop()
