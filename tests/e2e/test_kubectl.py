"""Stock kubectl against the server: the commands people type."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest


def installed() -> list[str]:
    """The oldest and the newest kubectl: ``kubectl`` itself, and ``kubectl.N.M`` beside it where there are some."""
    found = shutil.which("kubectl")
    if found is None:
        return []
    beside = [
        path
        for path in Path(found).resolve().parent.glob("kubectl.*")
        if re.search(r"\.\d+\.\d+$", path.name)
    ]
    beside.sort(key=lambda path: [int(part) for part in path.name.split(".")[1:]])
    return [str(beside[0]), str(beside[-1])] if beside else [found]


KUBECTLS = installed()
pytestmark = pytest.mark.skipif(not KUBECTLS, reason="needs kubectl")


@pytest.fixture(params=KUBECTLS or [""], ids=[Path(path).name for path in KUBECTLS] or ["none"])
def kubectl(request, server, namespace, tmp_path):
    """Runs kubectl in the test's namespace; gives (exit code, stdout, stderr)."""
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig), "HOME": str(tmp_path)}

    def run(*arguments: str, stdin: str = "", fails: bool = False, **extra: str) -> str:
        done = subprocess.run(
            [request.param, "-n", namespace, *arguments],
            input=textwrap.dedent(stdin),
            capture_output=True,
            text=True,
            timeout=60,
            env={**environment, **extra},
        )
        assert (done.returncode != 0) is fails, (
            f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done.stderr if fails else done.stdout

    return run


CONFIG_MAP = """
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: settings}
    data: {mode: fast, level: "1"}
"""
DEPLOYMENT = """
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: c, image: "nginx:1", ports: [{containerPort: 80}]}]}
"""


def test_create_get_delete(kubectl):
    assert kubectl("create", "configmap", "a", "--from-literal=k=v") == "configmap/a created\n"
    assert "already exists" in kubectl("create", "configmap", "a", fails=True)
    assert kubectl("get", "cm", "a", "-o", "jsonpath={.data.k}") == "v"
    assert kubectl("get", "configmap", "a", "-o", "name") == "configmap/a\n"
    header, line = kubectl("get", "cm", "a").splitlines()
    assert header.split() == ["NAME", "DATA", "AGE"] and line.split()[:2] == ["a", "1"]
    assert kubectl("delete", "cm", "a") == 'configmap "a" deleted\n'
    assert "NotFound" in kubectl("get", "cm", "a", fails=True)


def test_apply_on_the_client_side(kubectl):
    assert kubectl("apply", "-f", "-", stdin=CONFIG_MAP) == "configmap/settings created\n"
    assert kubectl("apply", "-f", "-", stdin=CONFIG_MAP) == "configmap/settings unchanged\n"
    changed = CONFIG_MAP.replace('level: "1"', 'size: "2"')
    assert kubectl("apply", "-f", "-", stdin=changed) == "configmap/settings configured\n"
    assert json.loads(kubectl("get", "cm", "settings", "-o", "json"))["data"] == {"mode": "fast", "size": "2"}


def test_apply_on_the_server_side_conflicts_and_force(kubectl):
    kubectl("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=CONFIG_MAP)
    other = CONFIG_MAP.replace("fast", "slow")
    said = kubectl("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=other, fails=True)
    assert 'conflict with "one": .data.mode' in said
    kubectl("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-", stdin=other)
    assert kubectl("get", "cm", "settings", "-o", "jsonpath={.data.mode}") == "slow"


def test_diff(kubectl):
    kubectl("apply", "-f", "-", stdin=CONFIG_MAP)
    assert kubectl("diff", "-f", "-", stdin=CONFIG_MAP) == ""
    kubectl("diff", "-f", "-", stdin=CONFIG_MAP.replace("fast", "slow"), fails=True)
    assert kubectl("get", "cm", "settings", "-o", "jsonpath={.data.mode}") == "fast"


def test_the_three_patches(kubectl):
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl(
        "patch",
        "deploy",
        "web",
        "-p",
        '{"spec":{"template":{"spec":{"containers":[{"name":"d","image":"x"}]}}}}',
    )
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].name}") == "d c"
    kubectl("patch", "deploy", "web", "--type=merge", "-p", '{"spec":{"replicas":3}}')
    operations = (
        '[{"op":"test","path":"/spec/replicas","value":3},{"op":"replace","path":"/spec/replicas","value":4}]'
    )
    kubectl("patch", "deploy", "web", "--type=json", "-p", operations)
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "4"


def test_label_annotate_scale_and_set(kubectl):
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert kubectl("label", "deploy", "web", "tier=front") == "deployment.apps/web labeled\n"
    assert kubectl("annotate", "deploy", "web", "note=x").startswith("deployment.apps/web annotate")
    assert kubectl("scale", "deploy", "web", "--replicas=5") == "deployment.apps/web scaled\n"
    kubectl("set", "image", "deploy/web", "c=nginx:2")
    shown = json.loads(kubectl("get", "deploy", "-l", "tier=front", "-o", "json"))["items"][0]
    assert shown["spec"]["replicas"] == 5
    assert shown["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"


def test_edit(kubectl, tmp_path):
    kubectl("apply", "-f", "-", stdin=CONFIG_MAP)
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/fast/edited/" "$1"\n')
    editor.chmod(0o755)
    assert kubectl("edit", "cm", "settings", EDITOR=str(editor)) == "configmap/settings edited\n"
    assert kubectl("get", "cm", "settings", "-o", "jsonpath={.data.mode}") == "edited"


def test_custom_resources(kubectl):
    widget = """
        apiVersion: e2e.example.com/v1
        kind: Widget
        metadata: {name: w}
        spec: {color: red}
    """
    assert kubectl("apply", "-f", "-", stdin=widget) == "widget.e2e.example.com/w created\n"
    header, line = kubectl("get", "wg").splitlines()
    assert header.split() == ["NAME", "SIZE"] and line.split() == ["w", "1"]
    assert 'supported values: "red", "blue"' in kubectl(
        "apply", "-f", "-", stdin=widget.replace("red", "green"), fails=True
    )
    assert kubectl("scale", "wg", "w", "--replicas=3") == "widget.e2e.example.com/w scaled\n"
    assert "size\t<integer>" in kubectl("explain", "widgets.spec")
    kubectl("patch", "wg", "w", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Done"}}')
    kubectl("wait", "--for=jsonpath={.status.phase}=Done", "wg/w", "--timeout=90s")


def test_discovery_and_raw(kubectl):
    assert "widgets" in kubectl("api-resources", "--api-group=e2e.example.com")
    assert "apps/v1" in kubectl("api-versions").splitlines()
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert "KIND:       Deployment" in kubectl("explain", "deployment")
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"


def test_delete_waits_for_finalizers(kubectl):
    kubectl("create", "configmap", "held")
    kubectl("patch", "cm", "held", "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    assert "timed out" in kubectl("delete", "cm", "held", "--timeout=1s", fails=True)
    kubectl("patch", "cm", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl("wait", "--for=delete", "cm/held", "--timeout=90s")


def test_watch(kubectl):
    kubectl("create", "configmap", "a")
    shown = kubectl("get", "cm", "-w", "-o", "name", "--request-timeout=1s")
    assert shown == "configmap/a\n"


def test_kustomize(kubectl, tmp_path):
    (tmp_path / "kustomization.yaml").write_text(
        "namePrefix: my-\nresources: [cm.yaml]\ncommonAnnotations: {by: kustomize}\n"
    )
    (tmp_path / "cm.yaml").write_text(textwrap.dedent(CONFIG_MAP))
    assert kubectl("apply", "-k", str(tmp_path)) == "configmap/my-settings created\n"


def test_prune(kubectl):
    both = (
        CONFIG_MAP.replace("name: settings", "name: one, labels: {set: x}")
        + "    ---"
        + CONFIG_MAP.replace("name: settings", "name: two, labels: {set: x}")
    )
    kubectl("apply", "-f", "-", stdin=both)
    one = CONFIG_MAP.replace("name: settings", "name: one, labels: {set: x}")
    said = kubectl(
        "apply", "--prune", "-l", "set=x", "--prune-allowlist=core/v1/ConfigMap", "-f", "-", stdin=one
    )
    assert "configmap/two pruned" in said
