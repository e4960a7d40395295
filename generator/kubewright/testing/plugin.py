"""The pytest plugin: servers, namespaces, clients and a kubeconfig as fixtures.

Options of the ini file: ``kubewright_crds`` (files and folders of CRDs, one a line, relative to the root folder),
``kubewright_controllers`` (``all``, ``none`` or names).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from apimachinery.client.connection import Client
    from apimachinery.queue.clock import FakeClock
    from kubewright.testing.faults import FaultProxy
    from kubewright.testing.history import History
    from kubewright.testing.server import ApiServer


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the ini options."""
    parser.addini(
        "kubewright_crds", "files and folders of CRDs that every server starts with", "paths", default=[]
    )
    parser.addini("kubewright_controllers", "loops that every server runs: all, none or names", default="all")


def _server_class() -> type[ApiServer]:
    try:
        from kubewright.testing import ApiServer
    except ModuleNotFoundError as missing:
        pytest.fail(str(missing), pytrace=False)
    return ApiServer


def _make(config: pytest.Config) -> ApiServer:
    return _server_class()(
        crds=[Path(path) for path in config.getini("kubewright_crds")],
        controllers=str(config.getini("kubewright_controllers")),
    )


@pytest.fixture(scope="session")
def kubewright_server(pytestconfig: pytest.Config) -> Iterator[ApiServer]:
    """One server for all tests of the session (of each worker, where tests run in parallel)."""
    with _make(pytestconfig) as server:
        yield server


@pytest.fixture
def kubewright_private_server(pytestconfig: pytest.Config) -> Iterator[ApiServer]:
    """A fresh, empty server for one test: for what is not in a namespace."""
    with _make(pytestconfig) as server:
        yield server


@pytest.fixture
def kubewright_server_factory(pytestconfig: pytest.Config) -> Iterator[Callable[..., ApiServer]]:
    """Makes servers with options of their own (see ``ApiServer``), running, and stops them after the test."""
    make = _server_class()
    started: list[ApiServer] = []

    def start(**options: object) -> ApiServer:
        started.append(make(**options).start())  # type: ignore[arg-type]
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def kubewright_namespace(kubewright_server: ApiServer) -> Iterator[str]:
    """The name of a new namespace of the session's server, deleted after the test."""
    with kubewright_server.namespace() as name:
        yield name


@pytest.fixture
def kubewright_kubeconfig(kubewright_server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kubeconfig of the session's server; KUBECONFIG names it during the test."""
    monkeypatch.setenv("KUBECONFIG", str(kubewright_server.kubeconfig))
    return kubewright_server.kubeconfig


@pytest.fixture
def kubewright_client(kubewright_server: ApiServer) -> Iterator[Client]:
    """A client of the session's server."""
    with kubewright_server.client() as client:
        yield client


@pytest.fixture
def kubewright_faults(kubewright_server: ApiServer) -> Iterator[FaultProxy]:
    """A proxy to the session's server that makes faults (``kubewright.testing.faults``); none until it is told to."""
    from kubewright.testing.faults import FaultProxy

    with FaultProxy(lambda: kubewright_server.port) as proxy:
        yield proxy


@pytest.fixture
def kubewright_fault_client(kubewright_faults: FaultProxy, kubewright_namespace: str) -> Iterator[Client]:
    """A client that reaches the session's server through that proxy, in the test's namespace."""
    from apimachinery.client.config import Config
    from kubewright.testing.server import sync_client_class

    with sync_client_class()(Config(server=kubewright_faults.url, namespace=kubewright_namespace)) as client:
        yield client


@pytest.fixture
def kubewright_history() -> History[Any]:
    """Keeps and checks what an informer's handler hears."""
    from kubewright.testing.history import History

    return History()


@pytest.fixture
def kubewright_clock() -> FakeClock:
    """A clock for work queues and elections that stands still until ``advance``."""
    from apimachinery.queue.clock import FakeClock

    return FakeClock()
