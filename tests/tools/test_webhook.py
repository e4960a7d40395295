"""``kubewright webhook``: the rules of a generated package as the answers of a webhook."""

from __future__ import annotations

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from apimachinery.http.tls import ensure_certificate
from apimachinery.merge import json_patch
from apimachinery.server.reviewing.packages import PackageReviews
from kubewright.cli import main
from kubewright.testing import ApiServer

Json = dict[str, Any]
FLAGS = "flags.kubewright.dev"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def flags() -> PackageReviews:
    return PackageReviews(["flags_api"])


def flag(version: str, **spec: Any) -> Json:
    names = {"apiVersion": f"{FLAGS}/{version}", "kind": "FeatureFlag"}
    return {**names, "metadata": {"name": "f", "namespace": "default"}, "spec": spec}


def admission(obj: Json, old: Json | None = None) -> Json:
    kind = {"group": FLAGS, "version": obj["apiVersion"].rpartition("/")[2], "kind": obj["kind"]}
    return {"kind": kind, "name": "f", "object": obj, "oldObject": old}


def test_objects_are_converted_both_ways(flags: PackageReviews) -> None:
    old = flag("v1beta1", owner="me@example.com")
    response = flags.convert({"desiredAPIVersion": f"{FLAGS}/v1", "objects": [old, old]})
    assert response["result"] == {"status": "Success"}
    assert [obj["spec"]["owners"] for obj in response["convertedObjects"]] == [["me@example.com"]] * 2
    back = flags.convert({"desiredAPIVersion": f"{FLAGS}/v1beta1", "objects": response["convertedObjects"]})
    assert back["convertedObjects"][0]["spec"]["owner"] == "me@example.com"


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        (
            [{"apiVersion": f"{FLAGS}/v9", "kind": "FeatureFlag"}],
            "cannot be converted from flags.kubewright.dev/v9",
        ),
        ([{"apiVersion": f"{FLAGS}/v1beta1", "kind": "Nothing"}], "Nothing cannot be converted"),
        ([None], "object 0: is no object"),
    ],
)
def test_what_cannot_be_converted_is_said(flags: PackageReviews, objects: list[Any], text: str) -> None:
    response = flags.convert({"desiredAPIVersion": f"{FLAGS}/v1", "objects": objects})
    assert response["result"]["status"] == "Failure" and text in response["result"]["message"]


def test_defaults_are_a_patch_and_faults_a_status(flags: PackageReviews) -> None:
    obj = flag("v1", owners=["me"])
    response = flags.default(admission(obj))
    new = json_patch.apply(obj, json.loads(base64.b64decode(response["patch"])))
    assert new != obj and new["spec"]["owners"] == ["me"]
    assert flags.default(admission(new)) == {"allowed": True}
    refused = flags.validate(admission(new | {"spec": {}}))
    assert (refused["allowed"], refused["status"]["code"], refused["status"]["reason"]) == (
        False,
        422,
        "Invalid",
    )
    assert refused["status"]["details"]["causes"]


def test_the_manifest_names_every_kind_and_version(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_text("x")
    options = [
        "--package",
        "flags_api",
        "--manifest",
        "--service",
        "ns/hook:8443",
        "--ca",
        str(tmp_path / "ca.crt"),
    ]
    assert main(["webhook", *options]) == 0
    mutating, validating, *definitions = yaml.safe_load_all(capsys.readouterr().out)
    assert (mutating["kind"], validating["kind"]) == (
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    )
    hook = mutating["webhooks"][0]
    service = {"namespace": "ns", "name": "hook", "port": 8443, "path": "/default"}
    assert hook["clientConfig"] == {"service": service, "caBundle": "eA=="}
    assert hook["rules"][0]["apiVersions"] == ["v1", "v1beta1"]
    assert {d["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["path"] for d in definitions} == {
        "/convert"
    }


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--package", "flags_api"], "give --tls-cert and --tls-key"),
        (["--package", "flags_api", "--manifest"], "--service NS/NAME or --url"),
        (["--package", "flags_api", "--manifest", "--service", "x"], "'x' is not NS/NAME"),
        (["--package", "flags_api", "--manifest", "--url", "http://x"], "does not begin with https://"),
        (["--package", "no_such_package", "--manifest", "--url", "https://x"], "no_such_package"),
    ],
)
def test_what_cannot_be_served_is_said(
    options: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["webhook", *options]) == 2
    assert text in capsys.readouterr().err


def test_a_cluster_with_the_crds_converts_by_the_package(tmp_path: Path) -> None:
    certificate, key = ensure_certificate(tmp_path, "127.0.0.1")
    command = [
        sys.executable,
        "-m",
        "kubewright",
        "webhook",
        "--package",
        "backup_api",
        "--host",
        "127.0.0.1",
    ]
    command += ["--port", "0", "--tls-cert", str(certificate), "--tls-key", str(key)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "generator", ROOT / "generated"))),
    }
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        port = process.stderr.readline().partition("port ")[2].partition(":")[0]
        context = ssl.create_default_context(cafile=str(certificate))
        with urllib.request.urlopen(
            f"https://127.0.0.1:{port}/readyz", context=context, timeout=10
        ) as answer:
            assert answer.status == 200
        converts_between_versions(f"https://127.0.0.1:{port}", certificate)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        process.stderr.close()


def converts_between_versions(url: str, certificate: Path) -> None:
    manifest = yaml.safe_load((ROOT / "specs/backup/crds/backupschedules.yaml").read_text())
    client = {"url": f"{url}/convert", "caBundle": base64.b64encode(certificate.read_bytes()).decode()}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
    manifest["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    sample = yaml.safe_load((ROOT / "specs/backup/samples/backupschedule-v1alpha1.yaml").read_text())
    sample["metadata"]["namespace"] = "default"
    name = sample["metadata"]["name"]
    base = "/apis/backup.kubewright.dev/{}/namespaces/default/backupschedules"
    with ApiServer(controllers="none") as server:
        server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", manifest)
        until = time.monotonic() + 10
        server._wait_until_served(manifest)
        assert time.monotonic() < until
        server.request("POST", base.format("v1alpha1"), sample)
        shown = server.request("GET", f"{base.format('v1')}/{name}")
        assert shown["spec"]["schedule"]["cron"] == sample["spec"]["cron"]
        assert (
            server.request("GET", base.format("v1beta1"))["items"][0]["spec"]["cron"]
            == sample["spec"]["cron"]
        )
