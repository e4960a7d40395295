"""A cluster in a process: the workload controllers and a simulated node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubewright.testing import ApiServer

from .objects import Objects


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(node=True, controllers="all,workloads") as running:
        yield running


@pytest.fixture
def objects(server: ApiServer) -> Iterator[Objects]:
    with server.namespace() as namespace:
        yield Objects(server, namespace)
