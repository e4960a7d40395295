"""``kubewright webhook``: the rules of a generated package as the answers of a webhook."""

from __future__ import annotations

import asyncio
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

from apimachinery.http.tls import ensure_certificate, renew, server_context
from apimachinery.merge import json_patch
from apimachinery.server.write.reviewing import PackageReviews
from apimachinery.webhook.serving import ReviewServer
from kubewright.cli import main
from kubewright.testing import ApiServer
from kubewright.tools.webhook import command

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


def test_a_manifest_has_webhooks_and_never_a_definition(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_text("x")
    where = ["--service", "ns/hook:8443", "--ca", str(tmp_path / "ca.crt")]
    assert main(["webhook", "--package", "messaging_api", "--manifest", *where]) == 0
    mutating, validating = yaml.safe_load_all(capsys.readouterr().out)
    assert (mutating["kind"], validating["kind"]) == (
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    )
    service = {"namespace": "ns", "name": "hook", "port": 8443, "path": "/default"}
    assert mutating["webhooks"][0]["clientConfig"] == {"service": service, "caBundle": "eA=="}
    assert main(["webhook", "--package", "flags_api", "--manifest", *where]) == 2
    said = capsys.readouterr()
    assert not said.out and "of several versions" in said.err and "use --install" in said.err


def test_webhooks_and_conversion_come_and_go_together(capsys: pytest.CaptureFixture[str]) -> None:
    """Next to a definition that was applied client-side, which stays."""
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    reviews = "/apis/admissionregistration.k8s.io/v1"
    with ApiServer(controllers="none") as server:
        words = ["webhook", "--package", "backup_api", "--kubeconfig", str(server.kubeconfig)]
        install = [*words, "--install", "--url", "https://127.0.0.1:1"]
        assert main(install) == 1  # the definition is not there
        assert "nothing is changed" in capsys.readouterr().err
        assert server.request("GET", f"{reviews}/mutatingwebhookconfigurations")["items"] == []
        for path in (ROOT / "specs/backup/crds").glob("*.yaml"):
            manifest = yaml.safe_load(path.read_text())
            server.request("POST", f"{crds}?fieldManager=kubectl-client-side-apply", manifest)
        for _ in range(2):
            assert main(install) == 0, capsys.readouterr().err
        place = f"{crds}/backupschedules.backup.kubewright.dev"
        conversion = server.request("GET", place)["spec"]["conversion"]
        assert conversion["webhook"]["clientConfig"]["url"] == "https://127.0.0.1:1/convert"
        for kind in ("mutating", "validating"):
            (found,) = server.request("GET", f"{reviews}/{kind}webhookconfigurations")["items"]
            assert found["webhooks"][0]["clientConfig"]["url"].startswith("https://127.0.0.1:1/")
        assert main([*words, "--uninstall"]) == 0
        assert server.request("GET", place)["spec"]["conversion"] == {"strategy": "None"}
        assert server.request("GET", f"{reviews}/mutatingwebhookconfigurations")["items"] == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--package", "flags_api"], "give --tls-cert and --tls-key"),
        (["--package", "messaging_api", "--manifest"], "--service NS/NAME or --url"),
        (["--package", "messaging_api", "--manifest", "--service", "x"], "'x' is not NS/NAME"),
        (["--package", "messaging_api", "--manifest", "--url", "http://x"], "does not begin with https://"),
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
    words = [
        sys.executable,
        "-m",
        "kubewright",
        "webhook",
        "--package",
        "backup_api",
        "--host",
        "127.0.0.1",
    ]
    words += ["--port", "0", "--tls-cert", str(certificate), "--tls-key", str(key)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "generator", ROOT / "generated"))),
    }
    process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        port = process.stderr.readline().partition("port ")[2].partition(":")[0]
        context = ssl.create_default_context(cafile=str(certificate))
        with urllib.request.urlopen(
            f"https://127.0.0.1:{port}/readyz", context=context, timeout=60
        ) as answer:
            assert answer.status == 200
        converts_between_versions(f"https://127.0.0.1:{port}", certificate)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        process.stderr.close()


def test_a_renewed_certificate_is_served_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of a renewal, and files that are away for a moment, leave the one that was read before."""
    monkeypatch.setattr(command, "CERTIFICATE_SECONDS", 0.01)
    old, new = (
        [path.read_bytes() for path in ensure_certificate(tmp_path / name, "127.0.0.1")] for name in "ab"
    )
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(old[0])
    key.write_bytes(old[1])
    context = server_context(certificate, key)

    async def story() -> None:
        read: asyncio.Queue[None] = asyncio.Queue()

        def read_again() -> None:
            read.put_nowait(None)
            renew(context, certificate, key)

        async def served() -> bytes:
            for _ in range(
                read.qsize() + 1
            ):  # the last of them begins after the files have changed, and is over
                await asyncio.wait_for(read.get(), 30)
            address = ("127.0.0.1", server.port)
            return (await asyncio.to_thread(ssl.get_server_certificate, address, timeout=30)).encode()

        server = ReviewServer({}, context)
        await server.start()
        reading = asyncio.create_task(command._read_again(read_again))
        try:
            assert await served() == old[0]
            certificate.write_bytes(new[0])
            assert await served() == old[0]
            certificate.unlink()
            assert await served() == old[0]
            certificate.write_bytes(new[0])
            key.write_bytes(new[1])
            assert await served() == new[0]
        finally:
            reading.cancel()
            await server.stop()

    asyncio.run(story())
    assert "kubewright webhook: " in capsys.readouterr().err


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
        until = time.monotonic() + 60
        server._wait_until_served(manifest)
        assert time.monotonic() < until
        server.request("POST", base.format("v1alpha1"), sample)
        shown = server.request("GET", f"{base.format('v1')}/{name}")
        assert shown["spec"]["schedule"]["cron"] == sample["spec"]["cron"]
        assert (
            server.request("GET", base.format("v1beta1"))["items"][0]["spec"]["cron"]
            == sample["spec"]["cron"]
        )
