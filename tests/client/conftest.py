"""One server of our own for all end-to-end tests of the client, with every package that is generated here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from apimachinery.client.config import Config
from kubewright.testing import ApiServer

PACKAGES = ("kubernetes_api", "backup_api", "flags_api", "messaging_api")


@pytest.fixture(scope="session")
def server() -> Iterator[ApiServer]:
    with ApiServer(packages=PACKAGES) as running:
        yield running


@pytest.fixture
def namespace(server: ApiServer) -> Iterator[str]:
    with server.namespace() as name:
        yield name


@pytest.fixture
def config(server: ApiServer, namespace: str) -> Config:
    """A connection whose default namespace is this test's own."""
    return Config.load(server.kubeconfig).with_namespace(namespace)
