"""What people come to the explorer for, each story in a headless chromium against a server of ours."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apimachinery.client.config import Config
from kubewright.testing.server import ApiServer
from tests.explore.browser import Explorer
from tests.explore.scripted import END, ScriptedCluster
from tests.explore.test_time import CONFIG_MAPS, config_map

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


def write(page: Page, text: str) -> None:
    """Puts a text into the editor."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.locator(".cm-content").evaluate(
        """(element, text) => {
            const clipboardData = new DataTransfer();
            clipboardData.setData("text/plain", text);
            element.dispatchEvent(new ClipboardEvent("paste", {clipboardData, bubbles: true, cancelable: true}));
        }""",
        text,
    )


def apply(spec: str) -> str:
    return f"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n{spec}"


def test_find_a_kind(page: Page) -> None:
    page.get_by_role("heading", name="kinds").wait_for()
    page.locator("body").press("/")
    page.keyboard.type("deploy")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Deployment").wait_for()
    page.get_by_role("link", name="Schema").click()
    page.get_by_label("Fields with").fill("replicas")
    page.locator(".field", has_text="replicas").first.wait_for()
    assert "integer" in page.locator(".field", has_text="replicas").first.inner_text()


def test_versions_side_by_side(page: Page, explorer: Explorer, cluster: ApiServer) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
    }
    body: dict[str, Any] = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 4, "metrics": [metric]},
    }
    cluster.request("POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", body)
    explorer.show(page, "/kind/autoscaling/horizontalpodautoscalers?tab=versions")
    row = page.get_by_role("row", name="targetCPUUtilizationPercentage")
    row.wait_for()
    assert row.get_by_role("gridcell").all_inner_texts()[:2] == ["≠", ""], "v2 has no such field"
    assert page.get_by_role("columnheader").all_inner_texts() == ["", "v2", "v1"]
    assert page.get_by_role("row", name="maxReplicas").count() == 0, "only what differs, and what it is below"
    page.get_by_label("all lines").check()
    page.get_by_role("row", name="maxReplicas").wait_for()
    explorer.show(page, "/object/autoscaling/horizontalpodautoscalers/default/web?tab=versions")
    row = page.get_by_role("row", name="targetCPUUtilizationPercentage: 70")
    row.wait_for()
    assert row.get_by_role("gridcell").all_inner_texts()[1].strip() == ""
    row = page.get_by_role("row", name="apiVersion")
    assert row.get_by_role("gridcell").all_inner_texts()[1:] == [
        "apiVersion: autoscaling/v2",
        "apiVersion: autoscaling/v1",
    ]


def test_follow_a_rollout_live(page: Page, explorer: Explorer, cluster: ApiServer) -> None:
    explorer.show(page, "/kind/apps/deployments?ns=default")
    page.get_by_test_id("health").get_by_text("live").wait_for()
    row = page.get_by_role("row", name=re.compile("^other"))
    cluster.request("PATCH", f"{DEPLOYMENTS}/other", {"spec": {"replicas": 7}}, MERGE)
    row.filter(has_text="0/7").wait_for()
    cluster.request("PATCH", f"{DEPLOYMENTS}/other", {"spec": {"replicas": 8}}, MERGE)
    row.filter(has_text="0/8").wait_for()
    cluster.request("DELETE", f"{DEPLOYMENTS}/other")
    row.wait_for(state="detached")


def test_see_who_owns_replicas(page: Page, explorer: Explorer) -> None:
    explorer.show(page, "/object/apps/deployments/default/web")
    line = page.locator(".line", has_text="replicas: 3")
    line.wait_for()
    assert line.get_attribute("data-owners") == "hpa/scale"
    line.click()
    assert "hpa/scale by Update of apps/v1" in page.locator(".chosen").inner_text()
    page.get_by_role("button", name=re.compile("^hpa.scale")).click()
    assert "aside" not in (line.get_attribute("class") or "")
    assert "aside" in (page.locator(".line", has_text="image: nginx").get_attribute("class") or "")
    assert "nobody" in (page.locator(".line", has_text="uid:").get_attribute("class") or "")


def test_resolve_a_conflict(page: Page, explorer: Explorer, cluster: ApiServer) -> None:
    explorer.show(page, "/object/apps/deployments/default/web?tab=edit")
    page.locator(".cm-line", has_text="kind: Deployment").wait_for()
    write(page, apply("  replicas: 5\n"))
    page.get_by_role("button", name="Try it").click()
    remark = page.locator(".remarks li")
    remark.wait_for()
    assert remark.get_attribute("data-line") == "6"
    assert 'conflict with "hpa"' in remark.inner_text()
    page.get_by_label("take fields over").check()
    page.get_by_role("button", name="Try it").click()
    page.locator(".line.added", has_text="replicas: 5").wait_for()
    assert cluster.request("GET", f"{DEPLOYMENTS}/web")["spec"]["replicas"] == 3, "a dry run writes nothing"
    page.get_by_role("button", name="Write it").click()
    page.get_by_role("heading", name="Written").wait_for()
    assert cluster.request("GET", f"{DEPLOYMENTS}/web")["spec"]["replicas"] == 5


def test_a_dry_run_under_a_mutating_policy(page: Page, explorer: Explorer, cluster: ApiServer) -> None:
    mutation = {
        "expression": 'Object{metadata: Object.metadata{labels: Object.metadata.labels{by: "policy"}}}'
    }
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "reinvocationPolicy": "Never",
        "failurePolicy": "Fail",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": mutation}],
    }
    mutating = "MutatingAdmissionPolicy"
    api = "admissionregistration.k8s.io/v1"
    body: dict[str, Any] = {"apiVersion": api, "kind": mutating, "metadata": {"name": "by"}, "spec": spec}
    cluster.request("POST", f"{ADMISSION}/mutatingadmissionpolicies", body)
    body = {
        "apiVersion": api,
        "kind": f"{mutating}Binding",
        "metadata": {"name": "by"},
        "spec": {"policyName": "by"},
    }
    cluster.request("POST", f"{ADMISSION}/mutatingadmissionpolicybindings", body)
    try:
        explorer.show(page, "/object/apps/deployments/default/web?tab=edit&again=1")
        page.locator(".cm-line", has_text="kind: Deployment").wait_for()
        write(page, apply("  minReadySeconds: 4\n"))
        page.get_by_role("button", name="Try it").click()
        page.locator(".line.added", has_text="minReadySeconds: 4").wait_for()
        assert page.locator(".line.added", has_text="minReadySeconds").get_attribute("data-origin") == "you"
        assert page.locator(".line.added", has_text="by: policy").get_attribute("data-origin") == "admission"
    finally:
        cluster.request("DELETE", f"{ADMISSION}/mutatingadmissionpolicybindings/by")


def test_a_422_at_its_field(page: Page, explorer: Explorer) -> None:
    explorer.show(page, "/object/apps/deployments/default/web?tab=edit&again=2")
    page.locator(".cm-line", has_text="kind: Deployment").wait_for()
    write(page, apply("  minReadySeconds: 1\n  replicas: -1\n"))
    page.get_by_role("button", name="Try it").click()
    remark = page.locator(".remarks li", has_text="spec.replicas")
    remark.wait_for()
    assert remark.get_attribute("data-line") == "7"
    assert "greater than or equal to 0" in remark.inner_text()
    write(page, apply("  replicas: 5\n  repliacs: 5\n"))
    page.get_by_role("button", name="Try it").click()
    page.get_by_role("alert").filter(has_text="repliacs").first.wait_for()


def test_change_a_value_in_the_form(page: Page, explorer: Explorer, cluster: ApiServer) -> None:
    cluster.request("POST", CONFIG_MAPS, config_map("formed", a="1", b="2"))
    explorer.show(page, "/object/core/configmaps/default/formed?tab=form")
    page.get_by_label("data.a", exact=True).fill("9")
    page.get_by_role("button", name="Try it").click()
    page.locator(".line.added", has_text='a: "9"').wait_for()
    assert cluster.request("GET", f"{CONFIG_MAPS}/formed")["data"] == {"a": "1", "b": "2"}
    page.get_by_role("button", name="Write it").click()
    page.get_by_text("0 changed").wait_for()
    assert cluster.request("GET", f"{CONFIG_MAPS}/formed")["data"] == {"a": "9", "b": "2"}


def test_add_and_remove_fields_in_the_form(page: Page, explorer: Explorer, cluster: ApiServer) -> None:
    container = {"name": "c", "image": "nginx", "args": ["a", "b", "c"]}
    template = {"metadata": {"labels": {"app": "grown"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "grown"}}, "template": template}
    cluster.request(
        "POST", DEPLOYMENTS, {"metadata": {"name": "grown", "labels": {"old": "1"}}, "spec": spec}
    )
    explorer.show(page, "/object/apps/deployments/default/grown?tab=form")

    def add(to: str, field: str = "", key: str = "") -> None:
        page.get_by_role("button", name=f"Add to {to}", exact=True).click()
        if field:
            page.get_by_label("Field", exact=True).select_option(field)
        if key:
            page.get_by_label("Key", exact=True).fill(key)
        page.get_by_role("group", name="What to add").get_by_role("button", name="Add").click()

    one = "spec.template.spec.containers[0]"
    page.get_by_role("button", name="Add to spec", exact=True).wait_for()
    assert page.get_by_role("button", name="Remove spec.template", exact=True).count() == 0, "it is required"
    add("spec", "minReadySeconds")
    page.get_by_label("spec.minReadySeconds", exact=True).fill("7")
    add("metadata.labels", key="team/x~y")
    page.get_by_label("metadata.labels.team/x~y", exact=True).fill("shop")
    page.get_by_role("button", name="Remove metadata.labels.old").click()
    page.get_by_role("button", name=f"Remove {one}.args[1]").click()
    add(one, "ports")
    page.get_by_label(f"{one}.ports[0].containerPort", exact=True).fill("80")
    add(f"{one}.ports")
    page.get_by_label(f"{one}.ports[1].containerPort", exact=True).fill("81")
    add(one, "readinessProbe")
    add(f"{one}.readinessProbe", "httpGet")
    page.get_by_label(f"{one}.readinessProbe.httpGet.port", exact=True).fill("http")
    page.get_by_label(f"{one}.readinessProbe.httpGet.port", exact=True).fill("8080")
    page.get_by_role("button", name="Try it").click()
    # A port's protocol is a part of its key, and a label's value has no ~.
    page.get_by_role("alert").filter(has_text="team/x~y").wait_for()
    page.get_by_role("button", name="Remove metadata.labels.team/x~y").click()
    add("metadata.labels", key="example.com/team")
    page.get_by_label("metadata.labels.example.com/team", exact=True).fill("shop")
    page.get_by_role("button", name="Try it").click()
    page.locator(".line.added", has_text="example.com/team: shop").wait_for()
    assert "minReadySeconds" not in cluster.request("GET", f"{DEPLOYMENTS}/grown")["spec"]
    page.get_by_role("button", name="Write it").click()
    page.get_by_text("0 changed").wait_for()
    stored = cluster.request("GET", f"{DEPLOYMENTS}/grown")
    assert stored["metadata"]["labels"] == {"example.com/team": "shop"}
    assert stored["spec"]["minReadySeconds"] == 7
    own = stored["spec"]["template"]["spec"]["containers"][0]
    assert own["args"] == ["a", "c"]
    assert [each["containerPort"] for each in own["ports"]] == [80, 81]
    assert own["readinessProbe"]["httpGet"]["port"] == 8080


def test_a_form_does_not_overwrite_others(page: Page, explorer: Explorer, cluster: ApiServer) -> None:
    cluster.request("POST", CONFIG_MAPS, config_map("shared", a="1", b="2"))
    from playwright.sync_api import expect

    explorer.show(page, "/object/core/configmaps/default/shared?tab=form")
    page.get_by_label("data.a", exact=True).fill("9")
    cluster.request("PATCH", f"{CONFIG_MAPS}/shared", {"data": {"b": "3"}}, MERGE)
    page.get_by_role("status").filter(has_text="Somebody changed it meanwhile").wait_for()
    page.get_by_role("button", name="Try it").click()
    page.get_by_role("alert").first.wait_for()
    page.get_by_role("button", name="Begin anew").click()
    page.get_by_text("0 changed").wait_for()
    assert page.get_by_label("data.b", exact=True).input_value() == "3"
    cluster.request("PATCH", f"{CONFIG_MAPS}/shared", {"data": {"b": "4"}}, MERGE)
    expect(page.get_by_label("data.b", exact=True)).to_have_value("4")


def test_try_a_cel_rule(page: Page, explorer: Explorer) -> None:
    explorer.show(page, "/object/apps/deployments/default/web?tab=cel")
    page.get_by_label("Expression").fill("self.spec.replicas > 100 && self.none")
    page.get_by_test_id("value").filter(has_text="false").wait_for()
    row = page.locator("tbody tr").filter(has=page.get_by_text("self.spec.replicas", exact=True))
    assert re.search(r"\t[35]$", row.inner_text())
    assert "not evaluated" in page.locator("tbody tr", has_text="self.none").inner_text()
    page.get_by_label("Expression").fill("self.")
    page.get_by_role("alert").filter(has_text="Syntax error").wait_for()


def test_a_rule_of_a_policy(page: Page, explorer: Explorer, cluster: ApiServer) -> None:
    rules = [{"apiGroups": ["apps"], "apiVersions": ["*"], "operations": ["*"], "resources": ["deployments"]}]
    expression = "request.operation != 'UPDATE' || object.spec.replicas < 100"
    spec = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": expression}]}
    body = {"metadata": {"name": "few"}, "spec": spec}
    cluster.request("POST", f"{ADMISSION}/validatingadmissionpolicies", body)
    explorer.show(page, "/")
    page.get_by_role("heading", name="kinds").wait_for()
    explorer.show(page, "/object/apps/deployments/default/web?tab=cel")
    page.get_by_label("Rules for this kind").select_option(label=f"policy few: {expression}")
    page.get_by_test_id("value").filter(has_text="true").wait_for()
    row = page.locator("tbody tr").filter(has=page.get_by_text("object.spec.replicas < 100", exact=True))
    assert row.inner_text().endswith("true")


def test_a_policy_before_it_is_bound(page: Page, explorer: Explorer) -> None:
    explorer.show(page, "/play/policy")
    page.get_by_label("Objects").select_option("deployments.apps")
    write(page, "spec:\n  validations:\n  - expression: object.spec.replicas < 2\n    message: too many\n")
    page.get_by_role("button", name="Try it").click()
    row = page.get_by_test_id("trial").locator("tbody tr", has_text="default/web")
    row.wait_for()
    assert "refused" in row.inner_text() and "too many" in row.inner_text()
    page.get_by_label("Begin with").select_option("mutating")
    page.get_by_role("button", name="Try it").click()
    page.get_by_test_id("outcomes").filter(has_text="changed").wait_for()
    page.get_by_test_id("trial").locator(".line.added", has_text="team: none").first.wait_for()


def test_explain_a_denial(browser: Browser, cluster: ApiServer, tmp_path: Path) -> None:
    body: dict[str, Any] = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    rules = [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["list"]}]
    body |= {"metadata": {"name": "looks"}, "rules": rules}
    cluster.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", body)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looks"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "eve"}
    body = {**body, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]}
    del body["rules"]
    cluster.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", body)
    path = tmp_path / "kubeconfig"
    path.write_text(cluster.kubeconfig_for("eve"))
    explorer = Explorer(browser, Config.load(path))
    try:
        page = explorer.open("/kind/core/secrets?ns=default")
        page.get_by_role("link", name="Why?").click()
        page.get_by_test_id("verdict").filter(has_text="No: no binding").wait_for()
        page.get_by_label("Question").select_option("who-can")
        page.get_by_role("button", name="Ask").click()
        page.get_by_role("cell", name="ClusterRole cluster-admin").first.wait_for()
        page.close()
    finally:
        explorer.close()


def test_log_in_with_a_token_of_ones_own(browser: Browser) -> None:
    with ApiServer(tls=True) as cluster:
        token = json.loads(cluster.kubeconfig_text)["users"][0]["user"]["token"]
        config = Config.load(cluster.kubeconfig)
        anonymous = Config(server=config.server, certificate_authority=config.certificate_authority)
        explorer = Explorer(browser, anonymous, login=True)
        try:
            page = explorer.open("/kind/core/namespaces")
            addresses: list[str] = []
            page.on("request", lambda request: addresses.append(request.url))
            page.get_by_label("Your token").fill("wrong")
            page.get_by_role("button", name="Log in").click()
            page.get_by_role("alert").filter(has_text="Unauthorized").wait_for()
            page.get_by_label("Your token").fill(token)
            page.get_by_role("button", name="Log in").click()
            page.get_by_role("link", name="kube-system", exact=True).wait_for()
            stored = page.evaluate(
                "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
            )
            assert token not in stored
            assert addresses and not any(token in each for each in [*addresses, page.url])
            page.get_by_role("button", name="Requests").click()
            page.locator(".requests button").first.click()
            assert "$TOKEN" in page.locator(".requests dl").inner_text()
            assert token not in page.content(), "nor in what is shown to be copied"
            page.close()
        finally:
            explorer.close()


def test_ten_thousand_rows(scripted: tuple[ScriptedCluster, Explorer]) -> None:
    cluster, explorer = scripted
    cluster.rows = [cluster.row(f"c{number:05}") for number in range(10_000)]
    page = explorer.open("/kind/core/configmaps")
    page.get_by_test_id("count").filter(has_text="10000 of 10000").wait_for()
    assert page.locator("[role=row]").count() < 120, "only what is in sight is in the document"
    page.get_by_test_id("health").get_by_text("live").wait_for()
    for number in range(300):
        cluster.send("MODIFIED", cluster.row(f"c{number % 10:05}", str(number)))
    page.get_by_role("row", name=re.compile("c00009")).filter(has_text="299").wait_for()
    page.locator(".virtual").evaluate("each => { each.scrollTop = each.scrollHeight; }")
    page.get_by_role("link", name="c09999").wait_for()
    page.get_by_role("button", name="Name").click()
    page.get_by_role("button", name="Name ↑").click()
    page.locator(".virtual").evaluate("each => { each.scrollTop = 0; }")
    page.get_by_role("link", name="c09999").wait_for()
    page.get_by_label("Rows with").fill("c0777")
    page.get_by_test_id("count").filter(has_text="10 of 10000").wait_for()
    assert explorer.faults == []


def test_lost_connections_and_410_heal(scripted: tuple[ScriptedCluster, Explorer]) -> None:
    cluster, explorer = scripted
    cluster.rows = [cluster.row("a")]
    page = explorer.open("/kind/core/configmaps")
    live = page.get_by_test_id("health").get_by_text("live")
    live.wait_for()
    cluster.send("ADDED", cluster.row("b"))
    page.get_by_role("link", name="b", exact=True).wait_for()
    newest = str(cluster.version)
    # A watch that ends goes on from the last version; a server that is gone for a moment is asked again.
    cluster.broken = True
    cluster.say(END)
    health = page.get_by_test_id("health")
    health.get_by_text("connection lost").wait_for()
    health.evaluate(
        """element => {
            const said = window.healthSaid = [];
            const options = {characterData: true, childList: true, subtree: true};
            new MutationObserver(() => said.push(element.innerText)).observe(element, options);
        }"""
    )
    for _ in range(2):
        assert cluster.refusals.acquire(timeout=60), "it is asked again"
    assert "live" not in page.evaluate("window.healthSaid"), "nothing is live while watches are refused"
    cluster.broken = False
    live.wait_for()
    assert cluster.watched_from[-1] == newest
    assert cluster.lists == 1
    cluster.send("ADDED", cluster.row("c"))
    page.get_by_role("link", name="c", exact=True).wait_for()
    # Too old: the list is read again.
    cluster.rows = [cluster.row("d")]
    cluster.say({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}})
    page.get_by_role("link", name="d", exact=True).wait_for()
    page.get_by_role("link", name="a", exact=True).wait_for(state="detached")
    assert cluster.lists == 2


def test_a_tab_that_nobody_sees_lets_go_of_its_watch(scripted: tuple[ScriptedCluster, Explorer]) -> None:
    cluster, explorer = scripted
    cluster.rows = [cluster.row("a")]
    page = explorer.open()
    page.clock.install()
    explorer.show(page, "/kind/core/configmaps")
    page.get_by_test_id("health").get_by_text("live").wait_for()
    hide = """hidden => {
        Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    page.clock.fast_forward(10_000)
    with page.expect_response(lambda response: "watch=true" in response.url):
        page.evaluate(hide, False)
    cluster.send("ADDED", cluster.row("b"))
    page.get_by_role("link", name="b", exact=True).wait_for()
    assert len(cluster.watched_from) == 2 and len(set(cluster.watched_from)) == 1
    assert cluster.lists == 1


def test_the_requests_in_other_words(page: Page, explorer: Explorer, cluster: ApiServer) -> None:
    cluster.request("POST", CONFIG_MAPS, config_map("old"))
    explorer.show(page, "/object/core/configmaps/default/old")
    page.get_by_role("button", name="Requests").click()
    page.locator(".requests button", has_text="GET /api/v1/namespaces/default/configmaps/old").first.click()
    text = page.locator(".requests dl").inner_text()
    assert "curl -H" in text
    assert "kubectl get configmaps 'old' -n 'default'" in text
    assert 'Request("GET", "/api/v1/namespaces/default/configmaps/old"' in text
    page.get_by_role("button", name="Requests", exact=True).click()
