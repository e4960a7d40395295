"""``kubewright scaffold webhook``: what it writes is valid, is what the generated package's webhook says of itself, and
converts, fills in and validates where it is applied."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from apimachinery.http.tls import ensure_certificate
from apimachinery.meta.errors import ApiError
from kubewright.testing import ApiServer
from kubewright.testing.ports import free_ports
from tests.tools.test_scaffold_controller import CODE, run

NAME = "shop-webhook"
WHERE = f"deploy/{NAME}"


@pytest.fixture
def group(tmp_path: Path) -> Path:
    run(tmp_path, *"kubewright scaffold group shop --domain example.com --output .".split())
    run(tmp_path, *"kubewright scaffold kind Widget --version v1alpha1".split())
    run(tmp_path, *"kubewright scaffold version v1beta1 --kind Widget".split())
    run(tmp_path, "kubewright", "scaffold", "webhook")
    return tmp_path


def read(path: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def test_what_it_writes_is_valid_and_listed(group: Path) -> None:
    written = sorted(path.name for path in (group / WHERE).iterdir())
    assert written == [
        *("Dockerfile", "certificate.yaml", "configurations.yaml", "conversion-widgets.yaml"),
        *("deployment.yaml", "kustomization.yaml"),
    ]
    files = [f"{WHERE}/{name}" for name in ("deployment.yaml", "configurations.yaml")]
    run(group, "kubewright", "validate", "--strict", *files)
    assert read(group / "kustomization.yaml")[0]["components"] == [WHERE]
    component = read(group / WHERE / "kustomization.yaml")[0]
    assert component["kind"] == "Component" and component["patches"] == [{"path": "conversion-widgets.yaml"}]
    assert all((group / WHERE / name).is_file() for name in component["resources"])
    assert "already exists" in run(group, "kubewright", "scaffold", "webhook", fails=1)


def test_a_folder_without_kinds_has_no_webhook(tmp_path: Path) -> None:
    run(tmp_path, *"kubewright scaffold group shop --domain example.com --output .".split())
    assert "has no CRD of the group" in run(tmp_path, "kubewright", "scaffold", "webhook", fails=2)


AS_INSTALLED = f"""
import json
from apimachinery.server.write.reviewing import PackageReviews
from kubewright.tools.webhook.manifest import configurations, injected
client = {{"service": {{"namespace": "default", "name": "{NAME}", "port": 443}}}}
found = configurations(PackageReviews(["shop_api"]).resources(), client, "Fail")
print(json.dumps([injected(each, "default/{NAME}") for each in found]))
"""
"""What ``kubewright webhook --install`` writes."""


@pytest.mark.slow
def test_it_does_what_its_manifests_say(group: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The package is generated and served as the image serves it; the manifests lead to it by a URL instead of the
    Service, with its authority instead of cert-manager's."""
    run(group, "kubewright", "generate")
    env = os.environ | {"PYTHONPATH": f"{CODE}{os.pathsep}{group / 'generated'}"}
    kubewright = [sys.executable, "-m", "kubewright"]
    said = subprocess.run(
        [sys.executable, "-c", AS_INSTALLED], env=env, capture_output=True, check=True, timeout=60
    ).stdout
    assert json.loads(said) == read(group / WHERE / "configurations.yaml")

    certificate, key = ensure_certificate(tmp_path_factory.mktemp("tls"), "127.0.0.1")
    [port] = free_ports(1)
    command = (group / WHERE / "Dockerfile").read_text().partition("CMD ")[2]
    paths = {"/tls/tls.crt": str(certificate), "/tls/tls.key": str(key)}
    arguments = [paths.get(word, word) for word in yaml.safe_load(command)[1:]]
    process = subprocess.Popen([*kubewright, *arguments, "--host", "127.0.0.1", "--port", str(port)], env=env)
    try:
        _wait(port, certificate)
        authority = base64.b64encode(certificate.read_bytes()).decode()
        with ApiServer() as server:
            _apply(server, group, authority, f"https://127.0.0.1:{port}")
            _is_asked(server, process)
    finally:
        process.terminate()
        process.wait(60)


def _wait(port: int, certificate: Path) -> None:
    context = ssl.create_default_context(cafile=str(certificate))
    for _ in range(200):
        try:
            with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", context=context, timeout=60):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError("the webhook did not start")


def _led(config: dict[str, Any], authority: str, url: str) -> dict[str, Any]:
    return {"caBundle": authority, "url": url + config["service"]["path"]}


def _apply(server: ApiServer, group: Path, authority: str, url: str) -> None:
    (crd,) = read(group / "crds/widgets.yaml")
    (patch,) = read(group / WHERE / "conversion-widgets.yaml")
    conversion = patch["spec"]["conversion"]
    conversion["webhook"]["clientConfig"] = _led(conversion["webhook"]["clientConfig"], authority, url)
    crd["spec"]["conversion"] = conversion
    crds = group / "with-converter.yaml"
    crds.write_text(yaml.safe_dump(crd))
    server.create_crds(crds)
    for configuration in read(group / WHERE / "configurations.yaml"):
        for hook in configuration["webhooks"]:
            hook["clientConfig"] = _led(hook["clientConfig"], authority, url)
        plural = f"{configuration['kind'].lower()}s"
        server.request("POST", f"/apis/{configuration['apiVersion']}/{plural}", configuration)


def _is_asked(server: ApiServer, process: subprocess.Popen[bytes]) -> None:
    path = "/apis/shop.example.com/{}/namespaces/default/widgets"
    widget = {"kind": "Widget", "metadata": {"name": "w"}, "spec": {"mode": "Active"}}
    made = server.request(
        "POST", path.format("v1beta1"), {"apiVersion": "shop.example.com/v1beta1", **widget}
    )
    assert made["apiVersion"] == "shop.example.com/v1beta1"
    old = server.request("GET", path.format("v1alpha1") + "/w")
    assert (old["apiVersion"], old["spec"]) == ("shop.example.com/v1alpha1", made["spec"])
    process.terminate()
    process.wait(60)
    widget["metadata"] = {"name": "v"}
    with pytest.raises(ApiError, match=r'failed calling webhook "default\.shop\.example\.com"'):
        server.request("POST", path.format("v1beta1"), {"apiVersion": "shop.example.com/v1beta1", **widget})
