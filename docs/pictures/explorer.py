"""The pictures of the explorer: its page over a server, in chromium driven by Playwright. See ``make.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
APPLIED = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 5
  minReadySeconds: 4
"""


def photograph(chromium: str, folder: Path) -> list[str]:
    """Writes the pictures; their names."""
    from playwright.sync_api import sync_playwright

    from apimachinery.client.config import Config
    from kubewright.testing.server import ApiServer
    from kubewright.testing.thread import ServerThread
    from kubewright.tools.explore.command import ExplorerServer
    from kubewright.tools.explore.upstream import Upstream

    with ApiServer() as cluster, sync_playwright() as playwright:
        _fill(cluster)
        thread = ServerThread(ExplorerServer(Upstream(Config.load(cluster.kubeconfig), login=False)))
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(f"{thread.server.address}/object/apps/deployments/default/web")
        page.locator(".line", has_text="replicas: 3").click()
        page.locator(".chosen").wait_for()
        page.screenshot(path=folder / "explorer-owners.png")
        page.goto(f"{thread.server.address}/object/apps/deployments/default/web?tab=edit")
        page.locator(".cm-line", has_text="kind: Deployment").wait_for()
        page.locator(".cm-content").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(APPLIED)
        page.get_by_role("button", name="Try it").click()
        page.locator(".remarks li").wait_for()
        page.screenshot(path=folder / "explorer-conflict.png")
        page.emulate_media(color_scheme="dark")
        page.goto(
            f"{thread.server.address}/object/autoscaling/horizontalpodautoscalers/default/web?tab=versions"
        )
        page.locator(".row.differs").first.wait_for()
        page.screenshot(path=folder / "explorer-versions.png")
        browser.close()
        thread.stop()
    return ["explorer-owners.png", "explorer-conflict.png", "explorer-versions.png"]


def _fill(cluster: Any) -> None:
    pod = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]},
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web", "team": "shop"}},
        "spec": spec,
    }
    cluster.request("PATCH", f"{DEPLOYMENTS}/web?fieldManager=kubectl", body, "application/apply-patch+yaml")
    scale = {"spec": {"replicas": 3}}
    path = f"{DEPLOYMENTS}/web/scale?fieldManager=autoscaler"
    cluster.request("PATCH", path, scale, "application/merge-patch+json")
    image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.30"}]}}}}
    path = f"{DEPLOYMENTS}/web?fieldManager=release-bot"
    cluster.request("PATCH", path, image, "application/strategic-merge-patch+json")
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": target,
            "maxReplicas": 8,
            "metrics": [{"type": "Resource", "resource": cpu}],
        },
    }
    cluster.request("POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", autoscaler)
