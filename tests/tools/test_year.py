"""A year of a project from the command line: ``year.yaml`` is played against a server that holds its objects all the
time, with the conversions of the project as its webhook."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from apimachinery.conversion.versions import Converter
from apimachinery.http.tls import ensure_certificate, server_context
from apimachinery.meta.errors import ApiError
from apimachinery.webhook.serving import ReviewServer
from kubewright.diagnostics import Diagnostics
from kubewright.testing import ApiServer
from kubewright.testing.definitions import CRDS_PATH
from kubewright.testing.thread import ServerThread
from kubewright.tools.migrate.conversions import tables_of_crds
from tests.tools.command import kubewright
from tests.tools.test_scaffold import contents
from tests.tools.test_scaffold_changes import is_sound

STEPS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "year.yaml").read_text().replace("{shop}", "<shop>").replace("{old}", "<old>")
)
GROUP = "shop.example.com"


@dataclass(slots=True)
class Year:
    """The project, and the server with its objects."""

    server: ApiServer
    shop: Path
    webhook: dict[str, Any]
    converter: Converter = field(default_factory=lambda: Converter([]))

    def convert(self, request: dict[str, Any]) -> dict[str, Any]:
        """What the project's webhook answers."""
        review = self.converter.review({"request": request})
        response: dict[str, Any] = review["response"]
        return response

    def command(self, text: str) -> tuple[int, str]:
        words = [
            word.replace("<shop>", str(self.shop)).replace("<old>", str(self.old))
            for word in shlex.split(text)
        ]
        if words[0] == "scaffold" and "--output" not in words:
            words += ["--output", str(self.shop)]
        code, out, err = kubewright(*words)
        assert "Traceback" not in err, err
        return code, out + err

    @property
    def old(self) -> Path:
        return self.shop.parent / "old.yaml"

    def objects(self, plural: str, version: str, name: str = "", group: str = GROUP) -> str:
        last = f"/{name}" if name else ""
        return f"/apis/{group}/{version}/namespaces/default/{plural}{last}"


def run(year: Year, step: dict[str, Any]) -> None:
    code, said = year.command(step["run"])
    assert code == 0, said
    if "says" in step:
        assert step["says"] in year.old.read_text()
    if step["run"].startswith("scaffold") and (year.shop / "crds").is_dir():
        is_sound(year.shop)
        diagnostics = Diagnostics()
        year.converter = Converter(tables_of_crds([year.shop / "crds"], year.shop, diagnostics))
        assert not diagnostics.has_errors


def wrong(year: Year, step: dict[str, Any]) -> None:
    before = contents(year.shop)
    code, said = year.command(step["wrong"])
    assert code in (1, 2) and [text for text in step["says"] if text not in said] == [], said
    assert contents(year.shop) == before


def edit(year: Year, step: dict[str, Any]) -> None:
    """What somebody edits by hand and should not have: the command says so, and the edit is taken back."""
    path = year.shop / step["edit"]
    text = path.read_text()
    assert text.count(step["from"]) == 1
    path.write_text(text.replace(step["from"], step["to"]))
    code, said = year.command(step["command"])
    path.write_text(text)
    assert code in (1, 2) and [each for each in step["says"] if each not in said] == [], said


def apply(year: Year, step: dict[str, Any]) -> None:
    crd = yaml.safe_load((year.shop / f"crds/{step.get('apply') or step['refused']}.yaml").read_text())
    if len(crd["spec"]["versions"]) > 1:
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": year.webhook}
    path = f"{CRDS_PATH}/{crd['metadata']['name']}"
    try:
        crd["metadata"]["resourceVersion"] = year.server.request("GET", path)["metadata"]["resourceVersion"]
    except ApiError:
        year.server.request("POST", CRDS_PATH, crd)
    else:
        year.server.request("PUT", path, crd)
    year.server._wait_until_served(crd)


def refused(year: Year, step: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refusal:
        apply(year, step)
    assert refusal.value.code == 422 and step["says"] in str(refusal.value)


def create(year: Year, step: dict[str, Any]) -> None:
    obj = {
        "apiVersion": f"{GROUP}/{step['create']}", "kind": "Widget",
        "metadata": {"name": step["name"]}, "spec": step["spec"],
    }  # fmt: skip
    year.server.request("POST", year.objects("widgets", step["create"]), obj)
    if not year.old.exists():
        year.old.write_text("# kept since the first release\n" + yaml.safe_dump(obj, sort_keys=False))


def read(year: Year, step: dict[str, Any]) -> None:
    place = year.objects(step.get("plural", "widgets"), step["read"], step["name"], step.get("group", GROUP))
    spec = year.server.request("GET", place)["spec"]
    assert {key: spec.get(key) for key in step["has"]} == step["has"]


def stored(year: Year, step: dict[str, Any]) -> None:
    crd = year.server.request("GET", f"{CRDS_PATH}/widgets.{GROUP}")
    assert crd["status"]["storedVersions"] == step["stored"]


def cluster(year: Year, step: dict[str, Any]) -> None:
    command = f"migrate --from-cluster --kubeconfig {year.server.kubeconfig} {step['cluster']}"
    code, said = year.command(command)
    assert (code, step["says"] in said) == (step["code"], True), said


def rewrite(year: Year, step: dict[str, Any]) -> None:
    """The objects of the old kind as those of the new one, as ``kubectl get -o yaml`` and ``kubectl create`` do it."""
    listed = year.server.request("GET", year.objects("widgets", step["rewrite"]))
    items = [{**item, "apiVersion": listed["apiVersion"], "kind": "Widget"} for item in listed["items"]]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    options = ("--crds", year.shop / "crds", "--rules", year.shop)
    code, out, err = kubewright("migrate", "-", *options, "--write", stdin=text)
    assert code == 0, err
    new = json.loads(out)["items"]
    assert sorted(item["metadata"]["name"] for item in new) == step["names"]
    group, _, version = step["to"].rpartition("/")
    for item in new:
        item["metadata"] = {"name": item["metadata"]["name"]}
        assert (item["apiVersion"], item["kind"]) == (step["to"], "Gizmo")
        year.server.request("POST", year.objects(step["plural"], version, group=group), item)


def delete(year: Year, step: dict[str, Any]) -> None:
    year.server.request("DELETE", f"{CRDS_PATH}/{step['delete']}")


DEEDS = (run, wrong, edit, apply, refused, create, read, stored, cluster, rewrite, delete)


@pytest.fixture
def year(tmp_path: Path) -> Iterator[Year]:
    certificate, key = ensure_certificate(tmp_path / "tls", "127.0.0.1")
    webhook = ReviewServer({}, server_context(certificate, key))
    thread = ServerThread(webhook)
    client = {
        "url": f"https://127.0.0.1:{webhook.port}/convert",
        "caBundle": base64.b64encode(certificate.read_bytes()).decode(),
    }
    try:
        with ApiServer() as server:
            asked = {"conversionReviewVersions": ["v1"], "clientConfig": client}
            made = Year(server, tmp_path / "shop", asked)
            webhook.application.answers["/convert"] = made.convert
            yield made
    finally:
        thread.stop()


def test_a_year_of_a_project(year: Year) -> None:
    for step in STEPS:
        deed = next(deed for deed in DEEDS if deed.__name__ in step)
        try:
            deed(year, step)
        except AssertionError as fault:
            raise AssertionError(f"{step}: {fault}") from fault
    is_sound(year.shop)
    left = [name for name in contents(year.shop) if "widget" in name and not name.startswith("generated")]
    assert left == ["conversions/widgets.yaml"], "old manifests are still rewritten"


CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: orders.shop.example.com}
spec:
  group: shop.example.com
  scope: Cluster
  names: {kind: Order, plural: orders}
  versions:
  - {name: v1, served: true, storage: true, schema: &any {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: true, deprecated: true, storage: false, schema: *any}
  - {name: v1alpha1, served: false, storage: false, schema: *any}
"""
FINDINGS = {
    "v1": [],
    "v1beta1": ["warning M002 Order of shop.example.com/v1beta1 is deprecated; use shop.example.com/v1"],
    "v1alpha1": ["error M001 Order of shop.example.com/v1alpha1 is gone; use shop.example.com/v1"],
    "v0": ["error M003 Order of shop.example.com/v0 is gone; use shop.example.com/v1"],
}


@pytest.mark.parametrize("version", FINDINGS)
def test_migrate_knows_the_versions_of_custom_kinds(version: str, tmp_path: Path) -> None:
    (tmp_path / "crd.yaml").write_text(CRD)
    text = f"apiVersion: {GROUP}/{version}\nkind: Order\nmetadata: {{name: a}}\n"
    command = ("migrate", "-", "--format", "json")
    code, out, _ = kubewright(*command, "--crds", tmp_path / "crd.yaml", stdin=text)
    found = json.loads(out)["findings"]
    assert [f"{each['severity']} {each['code']} {each['message']}" for each in found] == FINDINGS[version]
    assert code == bool(found)
    assert kubewright(*command, stdin=text)[0] == 0, "without its CRD nobody knows the kind"


def test_rules_need_their_crds(tmp_path: Path) -> None:
    code, _, err = kubewright("migrate", "-", "--rules", tmp_path, stdin="")
    assert (code, err) == (2, "kubewright migrate: --rules needs --crds, the definitions of its kinds\n")


@pytest.mark.parametrize(
    ("api_version", "kind", "hint"),
    [
        ("serving.knative.dev/v1", "Service", "give its CRD by --crds"),
        ("networking.example.com/v1", "Ingress", "give its CRD by --crds"),
        ("networking.k8s.oi/v1", "Ingress", "write apiVersion: networking.k8s.io/v1"),
        ("apps/v1beta7", "Deployment", "write apiVersion: apps/v1"),
        ("apps/v1", "Service", "write apiVersion: v1"),
    ],
)
def test_hints_keep_custom_kinds_and_built_in_ones_apart(api_version: str, kind: str, hint: str) -> None:
    text = f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n"
    code, out, _ = kubewright("validate", "-", stdin=text)
    assert code == 1 and f"hint: {hint}" in out, out
