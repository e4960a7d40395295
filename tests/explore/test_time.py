"""Stories of time: what was, who changed it, and a deleted object brought back, in a headless chromium."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apimachinery.client.config import Config
from kubewright.testing.server import ApiServer
from tests.explore.browser import Explorer
from tests.explore.test_history import Keeping

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_bring_back_a_deleted_object(page: Page, explorer: Explorer, cluster: ApiServer) -> None:
    cluster.request("POST", CONFIG_MAPS, config_map("lost", a="1"))
    explorer.show(page, "/object/core/configmaps/default/lost")
    page.locator(".line", has_text='a: "1"').wait_for()
    cluster.request("DELETE", f"{CONFIG_MAPS}/lost")
    page.get_by_role("alert").filter(has_text="It was deleted").wait_for()
    page.get_by_role("link", name="Time", exact=True).click()
    page.get_by_role("button", name=re.compile("^Create it again")).click()
    page.locator(".line", has_text='a: "1"').wait_for()
    assert cluster.request("GET", f"{CONFIG_MAPS}/lost")["data"] == {"a": "1"}


def test_compare_two_times(page: Page, explorer: Explorer, cluster: ApiServer) -> None:
    cluster.request("POST", f"{CONFIG_MAPS}?fieldManager=first", config_map("old", a="1", b="1"))
    explorer.show(page, "/object/core/configmaps/default/old")
    page.locator(".line", has_text='a: "1"').wait_for()
    cluster.request("PATCH", f"{CONFIG_MAPS}/old?fieldManager=second", {"data": {"a": "2"}}, MERGE)
    page.locator(".line", has_text='a: "2"').wait_for()
    page.get_by_role("link", name="Time", exact=True).click()
    page.locator("tbody tr", has_text="second (Update)").wait_for()
    assert page.locator("tbody tr").count() == 2
    page.locator(".line.removed", has_text='a: "1"').wait_for()
    page.locator(".line.added", has_text='a: "2"').wait_for()


def test_the_time_line_of_a_namespace(browser: Browser, tmp_path: Path) -> None:
    with Keeping(storage=f"sqlite:///{tmp_path / 'x.db'}") as cluster:
        explorer = Explorer(browser, Config.load(cluster.kubeconfig))
        try:
            cluster.request("POST", f"{CONFIG_MAPS}?fieldManager=first", config_map("a", k="1"))
            page = explorer.open("/time?ns=default")
            page.get_by_role("row", name=re.compile("created ConfigMap a admin as first")).wait_for()
            live = {"metadata": {"name": "web", "labels": {"app": "w"}}, "spec": {"ports": [{"port": 80}]}}
            services = "/api/v1/namespaces/default/services"
            with page.expect_request(re.compile("/services.*limit")):
                cluster.request("POST", f"{services}?fieldManager=second", live)
            page.get_by_role("row", name=re.compile("created Service web admin as second")).wait_for()
            page.get_by_label("Changes with").fill("second")
            page.get_by_text("1 change", exact=True).wait_for()
            page.get_by_label("Namespace").fill("")
            page.get_by_label("Labels").fill("app=w")
            page.get_by_role("button", name="Show").click()
            page.get_by_text("1 change", exact=True).wait_for()
            page.get_by_role("link", name="default/web").click()
            page.get_by_role("radio", name="compare to version").first.wait_for()
            page.close()
            assert explorer.faults == []
        finally:
            explorer.close()


def test_what_a_page_sees_of_a_cluster_without_history(
    page: Page, explorer: Explorer, cluster: ApiServer
) -> None:
    explorer.show(page, "/time?labels=seen%3Dlive")
    page.get_by_text("This server keeps no history").wait_for()
    labelled = {"metadata": {"name": "seen", "labels": {"seen": "live"}}}
    row = page.get_by_role("row", name=re.compile("added ConfigMap default.seen me"))
    for number in range(50):  # it follows from some moment on
        cluster.request("POST", f"{CONFIG_MAPS}?fieldManager=me", {**labelled, "data": {"n": str(number)}})
        page.wait_for_timeout(100)
        if row.count():
            break
        cluster.request("DELETE", f"{CONFIG_MAPS}/seen")
    row.first.wait_for()


def test_an_audit_log_is_a_past(page: Page, explorer: Explorer, cluster: ApiServer) -> None:
    cluster.request("POST", CONFIG_MAPS, config_map("audited", a="3"))
    event = {
        "kind": "Event",
        "stage": "ResponseComplete",
        "verb": "update",
        "requestURI": f"{CONFIG_MAPS}/audited",
        "user": {"username": "jane"},
        "userAgent": "kubectl/v1.36",
        "objectRef": {"resource": "configmaps", "namespace": "default", "name": "audited"},
        "responseStatus": {"code": 200},
        "stageTimestamp": "2026-01-02T00:00:00Z",
        "responseObject": {
            **config_map("audited", a="2"),
            "metadata": {"name": "audited", "resourceVersion": "2"},
        },
    }
    other = {**event, "objectRef": {**event["objectRef"], "name": "other"}}  # type: ignore[dict-item]
    text = "\n".join(json.dumps(each) for each in (event, other)) + "\n"
    explorer.show(page, "/object/core/configmaps/default/audited?tab=time")
    page.get_by_label("Add an audit log").set_input_files(
        {"name": "audit.log", "mimeType": "text/plain", "buffer": text.encode()}
    )
    row = page.locator("tbody tr", has_text="jane as kubectl")
    row.wait_for()
    assert page.locator("tbody tr", has_text="other").count() == 0
    row.get_by_role("radio", name="compare from version 2").check()
    page.locator(".line.removed", has_text='a: "2"').wait_for()
    page.get_by_label("Add an audit log").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"no event\n"}
    )
    page.get_by_role("alert").filter(has_text="no audit events").wait_for()
