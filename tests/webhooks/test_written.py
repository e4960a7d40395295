"""Webhooks that users write: the programs of docs/webhooks.md; WEBHOOK_KUBECONFIG names another server than ours."""

from __future__ import annotations

import base64
import os
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from apimachinery.client import Config, DynamicResource, Forbidden, Invalid, NotFound, TransportError
from apimachinery.client.objects import DEFINITIONS
from apimachinery.http.tls import expires_soon
from apimachinery.meta.errors import ApiError
from apimachinery.webhook import Denied, Review, Webhooks, running
from apimachinery.webhook.certificates import SharedCertificate, made_for
from kubernetes_api.client import Client
from kubernetes_api.core_v1 import ConfigMap
from kubewright.testing import ApiServer

ROOT = Path(__file__).parents[2]
KUBECONFIG = os.environ.get("WEBHOOK_KUBECONFIG", "")
HERE = {"url": "https://127.0.0.1:PORT", "host": "127.0.0.1", "port": 0}
FLAGS = "flags.kubewright.dev"
Json = dict[str, Any]


def program(title: str) -> ModuleType:
    """A program of the page, imported."""
    text = (ROOT / "docs/webhooks.md").read_text()
    match = re.search(rf'^```python title="{title}"\n(.*?)^```$', text, re.M | re.S)
    assert match is not None
    lines = [
        line for line in match[1].splitlines() if line.strip() and not line.startswith(("from ", "import "))
    ]
    assert len(lines) <= 25
    module = ModuleType(title.removesuffix(".py"))
    exec(compile(match[1], title, "exec"), module.__dict__)  # noqa: S102 - what the page shows is what runs
    return module


@pytest.fixture(scope="module")
def config() -> Iterator[Config]:
    if KUBECONFIG:
        yield Config.load(KUBECONFIG)
        return
    with ApiServer() as server:
        yield Config.load(server.kubeconfig)


@pytest.fixture
def client(config: Config) -> Iterator[Client]:
    with Client(config) as made:
        yield made


@pytest.fixture
def namespace(client: Client) -> Iterator[str]:
    made = client.apply_all(
        [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"hooks-{os.urandom(4).hex()}"}}],
        field_manager="test",
    )
    name = made[0]["metadata"]["name"]
    yield name
    client.core_v1.namespaces.delete(name)


@pytest.fixture
def serve(client: Client) -> Iterator[Callable[[Webhooks], Any]]:
    served = []

    def start(webhooks: Webhooks) -> Any:
        server = webhooks.serve(client, **HERE)  # type: ignore[arg-type]
        served.append(server.start())
        return server

    yield start
    for server in served:
        server.uninstall()
        server.close()


def pods(client: Client) -> DynamicResource:
    return DynamicResource.of(client, "v1", "Pod")


def a_pod(name: str, **annotations: str) -> Json:
    metadata = {"name": name, "labels": {"proxy": "yes"}, "annotations": annotations}
    container = {"name": "a", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    return {"metadata": metadata, "spec": {"containers": [container], "automountServiceAccountToken": False}}


def test_the_sidecar_injector_of_the_page(
    client: Client, config: Config, namespace: str, serve: Callable[[Webhooks], Any]
) -> None:
    serve(program("sidecar.py").webhook)
    made = pods(client).create(a_pod("a", keep="1"), namespace=namespace)
    assert [each["name"] for each in made["spec"]["containers"]] == ["a", "proxy"]
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}
    pods(client).delete("a", namespace=namespace, grace_period_seconds=0)  # who does is of system:masters
    made = pods(client).create({**a_pod("b"), "metadata": {"name": "b"}}, namespace=namespace)
    assert len(made["spec"]["containers"]) == 1


def test_who_may_not(serve: Callable[[Webhooks], Any], namespace: str, client: Client) -> None:
    if KUBECONFIG:
        pytest.skip("the other server's users have no tokens here")
    webhooks = Webhooks("who.example.com")
    seen: list[Review[Json]] = []

    @webhooks.validating("configmaps", operations=["CREATE", "UPDATE", "DELETE"])
    def look(review: Review[Json], obj: Json) -> str | None:
        seen.append(review)
        review.warn("careful")
        assert review.client is client
        if obj["metadata"]["name"] == "bad":
            raise Denied("not this one", code=418, reason="Teapot")
        return "not that one" if review.operation == "DELETE" else None

    serve(webhooks)
    maps = client.core_v1.configmaps
    warned: list[str] = []
    client.on_warning = warned.append
    made = maps.create(ConfigMap(metadata={"name": "a", "namespace": namespace}), dry_run=True)  # type: ignore[arg-type]
    assert warned == ["careful"] and seen[-1].dry_run and seen[-1].old is None
    assert made.metadata and seen[-1].user.username == "admin"
    assert "system:masters" in seen[-1].user.groups
    with pytest.raises(
        ApiError, match=r'webhook "look.who.example.com" denied the request: not this one'
    ) as bad:
        maps.create(ConfigMap(metadata={"name": "bad", "namespace": namespace}))  # type: ignore[arg-type]
    assert (bad.value.code, bad.value.reason) == (418, "Teapot")
    maps.create(ConfigMap(metadata={"name": "a", "namespace": namespace}, data={"a": "b"}))  # type: ignore[arg-type]
    with pytest.raises(Forbidden, match="not that one"):
        maps.delete("a", namespace=namespace)
    assert seen[-1].operation == "DELETE" and (seen[-1].old or {})["data"] == {"a": "b"}  # type: ignore[index]
    with pytest.raises(ValueError, match=r"who.example.com has a validating webhook look already"):
        webhooks.validating("pods")(look)


def definition(versions: list[str], storage: str) -> Json:
    """A definition of the kind of the page, of both versions."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {
        "plural": "featureflags",
        "singular": "featureflag",
        "kind": "FeatureFlag",
        "listKind": "FeatureFlagList",
    }
    served = [
        {"name": each, "served": True, "storage": each == storage, "schema": schema} for each in versions
    ]
    spec = {"group": FLAGS, "scope": "Namespaced", "names": names, "versions": served}
    metadata = {"name": f"featureflags.{FLAGS}"}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": metadata, "spec": spec}


@pytest.fixture
def flags(client: Client) -> Iterator[Callable[[str], DynamicResource]]:
    """The kind, as somebody applied it with kubectl: client-side."""
    definitions = DynamicResource(client, DEFINITIONS)
    made = definitions.create(definition(["v1", "v1beta1"], "v1"), field_manager="kubectl-client-side-apply")
    client.wait(made, "condition=Established")
    yield lambda version: DynamicResource.of(client, f"{FLAGS}/{version}", "FeatureFlag")
    definitions.delete(made["metadata"]["name"])
    client.wait(made, "delete")


def a_flag(version: str, name: str, **spec: Any) -> Json:
    variants = [{"name": "on", "value": "true"}]
    stated = {"type": "boolean", "variants": variants, "defaultVariant": "on", **spec}
    kind = {"apiVersion": f"{FLAGS}/{version}", "kind": "FeatureFlag"}
    return {**kind, "metadata": {"name": name}, "spec": stated}


def test_the_conversion_of_the_page(
    client: Client, namespace: str, flags: Callable[[str], DynamicResource], serve: Callable[[Webhooks], Any]
) -> None:
    server = serve(program("conversion.py").webhook)
    old, new = flags("v1beta1"), flags("v1")
    made = old.create({**a_flag("v1beta1", "a", owner="me"), "status": {"x": 1}}, namespace=namespace)
    assert made["spec"]["owner"] == "me"
    seen = new.get("a", namespace=namespace)
    assert seen["spec"]["owners"] == ["me"] and "owner" not in seen["spec"] and seen["status"] == {"x": 1}
    seen["spec"]["owners"] = ["me", "you"]
    new.replace(seen)
    assert [each["spec"]["owner"] for each in old.list(namespace=namespace)] == ["me,you"]
    server.uninstall()
    stays = DynamicResource(client, DEFINITIONS).get(f"featureflags.{FLAGS}")
    assert stays["spec"]["conversion"] == {"strategy": "None"}
    assert new.get("a", namespace=namespace)["spec"]["owners"] == ["me", "you"]


def test_a_check_of_a_class_holds_for_all_versions(
    client: Client, namespace: str, flags: Callable[[str], DynamicResource], serve: Callable[[Webhooks], Any]
) -> None:
    webhooks = program("conversion.py").webhook
    v1 = __import__("flags_api.flags_v1", fromlist=["FeatureFlag"])

    @webhooks.validating(v1.FeatureFlag)
    def owned(review: Review[Any], flag: Any) -> Iterator[Any]:
        from apimachinery.webhook import required

        if not flag.spec.owners:
            yield required("spec.owners", "somebody has to care")

    serve(webhooks)
    flags("v1").create(a_flag("v1", "a", owners=["me"]), namespace=namespace)
    for version in ("v1", "v1beta1"):
        with pytest.raises(Invalid, match="Required value: somebody has to care") as refused:
            flags(version).create(a_flag(version, "b"), namespace=namespace)
        assert [cause.field for cause in refused.value.causes] == ["spec.owners"]
    flags("v1beta1").create(a_flag("v1beta1", "c", owner="me"), namespace=namespace)


def test_nothing_is_installed_where_a_part_cannot_be(
    client: Client, serve: Callable[[Webhooks], Any]
) -> None:
    webhooks = program("conversion.py").webhook
    webhooks.validating("configmaps")(called("never"))
    with pytest.raises(NotFound, match=f"featureflags.{FLAGS}"):  # the definition is not there
        serve(webhooks)
    with pytest.raises(NotFound):
        DynamicResource.of(client, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration").get(
            webhooks.name
        )
    kinds = [each["kind"] for each in webhooks.installation({"url": "https://x"}).configurations()]
    assert kinds == ["ValidatingWebhookConfiguration"]


def configurations(client: Client) -> DynamicResource:
    return DynamicResource.of(client, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")


def called(name: str) -> Callable[[Any, Any], None]:
    def function(review: Any, obj: Any) -> None:
        return None

    function.__name__ = name
    return function


def test_a_failed_half_is_taken_back(client: Client, flags: Callable[[str], DynamicResource]) -> None:
    webhooks = program("conversion.py").webhook
    webhooks.validating("configmaps", failurePolicy="Never")(called("wrong"))
    with pytest.raises(Invalid, match="failurePolicy"):
        webhooks.installation({"url": "https://127.0.0.1:1"}).install(client)
    name = f"featureflags.{FLAGS}"
    assert DynamicResource(client, DEFINITIONS).get(name)["spec"]["conversion"] == {"strategy": "None"}


def test_certificates_are_trusted_before_they_are_served(client: Client, namespace: str) -> None:
    published: list[bytes] = []
    old: list[bytes] = []

    def expiring(certificate: bytes) -> bool:
        return certificate in old

    def replica() -> SharedCertificate:
        return SharedCertificate(
            client, namespace, "hook-tls", "hook.svc", published.append, expiring=expiring
        )

    one, two = replica(), replica()
    first, key = one.load()
    assert two.load() == (first, key) and not published
    assert one.current() == (first, key) and published == [first]
    old.append(first)
    published.clear()
    second, _ = one.current()
    assert second != first
    assert {first, second} == parts(published[0]) and len(published) == 1
    assert two.current()[0] == second
    assert {first, second} == parts(published[-1])  # replicas may serve the first for a minute more
    old.append(second)
    third, _ = two.current()
    assert parts(published[-1]) == {first, second, third} and two.current()[0] == third
    assert parts(published[-1]) == {second, third}


def test_a_secret_that_waits_to_be_filled_gets_a_certificate(client: Client, namespace: str) -> None:
    secrets = DynamicResource.of(client, "v1", "Secret")
    secrets.create({"metadata": {"name": "empty"}, "data": {"kept": "eA=="}}, namespace=namespace)
    certificate, key = SharedCertificate(client, namespace, "empty", "hook.svc", lambda _: None).load()
    data = secrets.get("empty", namespace=namespace)["data"]
    assert {name: base64.b64decode(value) for name, value in data.items()} == {
        "kept": b"x",
        "tls.crt": certificate,
        "tls.key": key,
    }


def test_whatever_fails_the_certificate_is_looked_at_again(
    serve: Callable[[Webhooks], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "LOOK_SECONDS", 0.01)
    webhooks = Webhooks("looking.example.com")
    webhooks.validating("nothings.example.com")(called("check"))
    server = serve(webhooks)
    failures = [RuntimeError("once"), TransportError("twice", sent=False)]
    looked = threading.Event()

    def look() -> None:
        if failures:
            raise failures.pop()
        looked.set()

    monkeypatch.setattr(server, "_look", look)
    assert looked.wait(30)


def parts(bundle: bytes) -> set[bytes]:
    end = b"-----END CERTIFICATE-----\n"
    return {part + end for part in bundle.split(end) if part}


def test_a_renewed_certificate_is_served(client: Client, serve: Callable[[Webhooks], Any]) -> None:
    webhooks = Webhooks("renewed.example.com")
    webhooks.validating("nothings.example.com")(called("check"))
    server = serve(webhooks)
    before = ssl.get_server_certificate(("127.0.0.1", server.port), timeout=30)
    assert not expires_soon(before.encode())
    server.certificate._expiring = lambda certificate: certificate.decode() == before
    server._look()
    after = ssl.get_server_certificate(("127.0.0.1", server.port), timeout=30)
    assert after != before
    bundle = base64.b64decode(
        configurations(client).get(webhooks.name)["webhooks"][0]["clientConfig"]["caBundle"]
    ).decode()
    assert before in bundle and after in bundle
    assert made_for("x") != made_for("x")


def test_what_serve_must_know(client: Client) -> None:
    with pytest.raises(ValueError, match="service=NAMESPACE/NAME, or url="):
        Webhooks("a.example.com").serve(client)
    with pytest.raises(ValueError, match='"x" is not NAMESPACE/NAME'):
        Webhooks("a.example.com").serve(client, service="x")


def test_an_object_that_a_class_cannot_read_is_refused() -> None:
    webhooks = Webhooks("typed.example.com")
    webhooks.mutating(ConfigMap)(called("touch"))
    (answer,) = webhooks.answers().values()
    response = answer({"object": {"kind": "ConfigMap", "data": "text"}, "operation": "CREATE"})
    assert response["status"]["code"] == 422 and "cannot read the object" in response["status"]["message"]
    same = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "new": {"field": None}}
    assert answer({"object": same, "operation": "CREATE"}) == {"allowed": True}
