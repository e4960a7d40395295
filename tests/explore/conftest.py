"""A server with a few objects, the explorer of it, and pages of that in one headless chromium."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from apimachinery.client.config import Config
from kubewright.testing.server import ApiServer
from kubewright.testing.thread import ServerThread
from tests.explore.browser import Explorer, chromium
from tests.explore.scripted import ScriptedCluster

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def cluster() -> Iterator[ApiServer]:
    with ApiServer() as server:
        pod = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        }
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
        for name in ("web", "other"):
            body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
            server.request("POST", f"{DEPLOYMENTS}?fieldManager=me", body)
        server.request("PATCH", f"{DEPLOYMENTS}/web/scale?fieldManager=hpa", {"spec": {"replicas": 3}}, MERGE)
        yield server


@pytest.fixture(scope="module")
def explorer(browser: Browser, cluster: ApiServer) -> Iterator[Explorer]:
    made = Explorer(browser, Config.load(cluster.kubeconfig))
    yield made
    made.close()


@pytest.fixture(scope="module")
def opened(explorer: Explorer) -> Iterator[Page]:
    page = explorer.open()
    yield page
    page.close()


@pytest.fixture
def page(explorer: Explorer, opened: Page) -> Iterator[Page]:
    explorer.faults.clear()
    yield opened
    assert explorer.faults == []


@pytest.fixture
def scripted(browser: Browser) -> Iterator[tuple[ScriptedCluster, Explorer]]:
    thread = ServerThread(ScriptedCluster())
    explorer = Explorer(browser, Config(server=thread.server.url))
    yield thread.server, explorer
    explorer.close()
    thread.stop()
