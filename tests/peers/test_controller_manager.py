"""The stock kube-controller-manager, with all its controllers, on this server: a Deployment becomes pods with accounts
and tokens, a Service gets its slices, quotas and budgets are counted, a namespace goes with all it holds.

Half a minute: runs in `make test-controllers` only.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

REFERENCE = Path(__file__).parents[3] / "shared/reference/reference.sh"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.thorough,
    pytest.mark.skipif(
        not REFERENCE.is_file(), reason="needs the ../shared folder's kube-controller-manager"
    ),
]
SECONDS = 60
TOKEN = "controllers-token"
ROOT = Path(__file__).parents[2]
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


class Cluster:
    """Requests of an administrator."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        request = urllib.request.Request(
            self._url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": kind},
        )
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=20) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, json.loads(refusal.read())

    def made(self, path: str, name: str, **fields: Any) -> Any:
        code, answer = self.ask("POST", path, {"metadata": {"name": name}, **fields})
        assert code == 201, answer
        return answer

    def until(self, path: str, holds: Callable[[Any], bool]) -> Any:
        """The answer to a GET as soon as it is as wanted."""
        ends = time.monotonic() + SECONDS
        while True:
            code, answer = self.ask("GET", path)
            if code == 200 and holds(answer):
                return answer
            assert time.monotonic() < ends, f"{path}: {code} {json.dumps(answer)[:2000]}"
            time.sleep(0.2)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("controllers")
    key, tokens, config = folder / "sa.key", folder / "tokens.csv", folder / "kubeconfig"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    tokens.write_text(f'{TOKEN},admin,admin-uid,"system:masters"\n')
    tokens.chmod(0o600)
    command = [
        sys.executable,
        "-m",
        "kubewright",
        "serve",
        "--storage",
        "memory://",
        "--port",
        "0",
        "--tls",
        "auto",
    ]
    command += ["--token-file", str(tokens), "--kubeconfig", str(config), "--controllers", "none"]
    command += ["--enable-admission-plugins", "ServiceAccount", "--cert-dir", str(folder / "certs")]
    command += ["--service-account-signing-key-file", str(key), "--service-account-key-file", str(key)]
    paths = {**os.environ, "PYTHONPATH": f"{ROOT / 'generator'}:{ROOT / 'generated'}"}
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, env=paths, stdout=subprocess.PIPE, stderr=log, text=True)
    assert server.stdout is not None
    url = ""
    for line in server.stdout:
        if line.startswith("serving on "):
            url = line.removeprefix("serving on ").partition(";")[0]
            break
    assert url, (folder / "server.log").read_text()
    subprocess.run(
        [REFERENCE, "start-controllers", folder, "*"], check=True, env={**paths, "KUBECONFIG_OF": str(config)}
    )
    controllers = int((folder / "controllers.pid").read_text())
    try:
        yield Cluster(url)
        os.kill(controllers, 0)  # It runs to the end.
        assert "panic" not in (folder / "controllers.log").read_text()
    finally:
        os.kill(controllers, signal.SIGTERM)
        server.terminate()
        server.wait(20)
        server.stdout.close()


def test_all_controllers_do_their_work(cluster: Cluster) -> None:
    cluster.made("/api/v1/namespaces", "x")
    core, apps = "/api/v1/namespaces/x", "/apis/apps/v1/namespaces/x"
    cluster.until(f"{core}/serviceaccounts/default", bool)
    cluster.until(f"{core}/configmaps/kube-root-ca.crt", bool)
    labels = {"matchLabels": {"a": "b"}}
    cluster.made(f"{apps}/deployments", "d", spec={"replicas": 2, "selector": labels, "template": TEMPLATE})
    pods = cluster.until(f"{core}/pods", lambda found: len(found["items"]) == 2)["items"]
    for pod in pods:
        assert pod["spec"]["serviceAccountName"] == "default"
        assert pod["spec"]["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"]["path"] == "token"

    # What a scheduler and a kubelet do.
    cluster.made("/api/v1/nodes", "n")
    ready = [{"type": "Ready", "status": "True"}]
    for number, pod in enumerate(pods):
        name = pod["metadata"]["name"]
        bound = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}}
        assert cluster.ask("POST", f"{core}/pods/{name}/binding", bound)[0] == 201
        address = f"10.1.0.{number + 1}"
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": ready}
        assert cluster.ask("PATCH", f"{core}/pods/{name}/status", {"status": status})[0] == 200

    cluster.made(f"{core}/services", "s", spec={"selector": {"a": "b"}, "ports": [{"port": 80}]})
    slices = "/apis/discovery.k8s.io/v1/namespaces/x/endpointslices"
    cluster.until(slices, lambda found: sum(len(each.get("endpoints") or ()) for each in found["items"]) == 2)

    cluster.made(f"{core}/resourcequotas", "q", spec={"hard": {"pods": "2"}})
    cluster.until(f"{core}/resourcequotas/q", lambda quota: quota["status"].get("used") == {"pods": "2"})
    code, refused = cluster.ask("POST", f"{core}/pods", {**TEMPLATE, "metadata": {"name": "third"}})
    assert code == 403 and "exceeded quota: q" in refused["message"]
    assert cluster.ask("DELETE", f"{core}/resourcequotas/q")[0] == 200

    budgets = "/apis/policy/v1/namespaces/x/poddisruptionbudgets"
    cluster.made(budgets, "b", spec={"minAvailable": 1, "selector": labels})
    cluster.until(f"{budgets}/b", lambda budget: budget["status"].get("disruptionsAllowed") == 1)
    codes = [
        cluster.ask("POST", f"{core}/pods/{name}/eviction", {"metadata": {"name": name}})[0]
        for name in (pod["metadata"]["name"] for pod in pods)
    ]
    assert codes == [201, 429]

    assert cluster.ask("PATCH", f"{apps}/deployments/d/scale", {"spec": {"replicas": 0}})[0] == 200
    for pod in pods:  # the kubelet again
        cluster.ask("DELETE", f"{core}/pods/{pod['metadata']['name']}?gracePeriodSeconds=0")
    assert cluster.ask("DELETE", core)[0] == 200
    ends = time.monotonic() + SECONDS
    while cluster.ask("GET", core)[0] != 404:
        assert time.monotonic() < ends, cluster.ask("GET", core)
        time.sleep(0.5)
