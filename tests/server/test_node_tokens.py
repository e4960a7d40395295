"""NodeRestriction: a node asks for tokens of its own pods, for audiences that they name; for its own certificate."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from apimachinery.access.authorization import Attributes
from apimachinery.http.messages import User
from apimachinery.meta.errors import ApiError
from apimachinery.server.admission.builtin.node_restriction import NodeRestriction, _certificate

NODE = User("system:node:n1", groups=("system:nodes",))


class Held(dict[tuple[str, str], Any]):
    """Stored objects by name and namespace."""

    def get(self, name: str, namespace: str = "") -> Any:  # type: ignore[override]
        return super().get((name, namespace))


def pod(name: str, uid: str, node: str, *volumes: Any) -> Any:
    metadata = {"name": name, "namespace": "ns", "uid": uid}
    return {"metadata": metadata, "spec": {"nodeName": node, "volumes": [*volumes]}}


def projected(*sources: Any) -> Any:
    return {"name": "p", "projected": {"sources": [*sources]}}


PODS = [
    pod(
        "mine",
        "1",
        "n1",
        projected({"secret": {}}, {"serviceAccountToken": {"audience": "vault"}}),
        {"name": "d", "csi": {"driver": "inline.io"}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}},
        {"name": "e", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "u", "persistentVolumeClaim": {"claimName": "unbound"}},
    ),
    pod("other", "2", "n2"),
    pod("plain", "3", "n1", projected({"serviceAccountToken": {}})),
]
CLAIMS = {"claim": {"volumeName": "bound"}, "mine-e": {"volumeName": "own"}, "unbound": {}}
VOLUMES = {"bound": {"csi": {"driver": "claimed.io"}}, "own": {"csi": {"driver": "own.io"}}}
DRIVERS = {
    f"{name}.io": {"tokenRequests": [{"audience": name}]} for name in ("inline", "claimed", "own", "unused")
}


def plugin() -> Any:
    made: Any = NodeRestriction.__new__(NodeRestriction)
    made._pods = Held({(each["metadata"]["name"], "ns"): each for each in PODS})
    made._claims = Held({(name, "ns"): {"spec": spec} for name, spec in CLAIMS.items()})
    made._volumes = Held({(name, ""): {"spec": spec} for name, spec in VOLUMES.items()})
    made._drivers = Held({(name, ""): {"spec": spec} for name, spec in DRIVERS.items()})

    def settle(asked: Attributes) -> Any:
        return SimpleNamespace(allowed=True) if asked.resource == "granted" and asked.name == "s" else None

    made._authorizer = SimpleNamespace(settle=settle)
    made._checks = {("", "serviceaccounts"): made._account}
    return made


def ask(audiences: list[str], user: User = NODE, **ref: Any) -> None:
    """``ref`` is what the token is bound to."""
    served = SimpleNamespace(group="", plural="serviceaccounts")
    target = SimpleNamespace(served=served, namespace="ns", subresource="token", user=user)
    spec = {"audiences": audiences, **({"boundObjectRef": {"apiVersion": "v1", **ref}} if ref else {})}
    operation = SimpleNamespace(
        verb="CREATE", target=target, obj={"spec": spec}, old=None, name="s", user=user
    )
    plugin().admit(operation)


@pytest.mark.parametrize("audience", ["vault", "inline", "claimed", "own", "granted"])
def test_audiences_of_the_pod_are_given(audience: str) -> None:
    ask([audience], kind="Pod", name="mine", uid="1")


def test_no_audience_is_that_of_the_server() -> None:
    ask([], kind="Pod", name="plain", uid="3")
    with pytest.raises(ApiError, match='audience "" not found in pod spec volume'):
        ask([], kind="Pod", name="mine", uid="1")


@pytest.mark.parametrize(
    ("audiences", "ref", "why"),
    [
        (["vault"], {}, "node requested token not bound to a pod"),
        (["vault"], {"kind": "Secret", "name": "mine", "uid": "1"}, "not bound to a pod"),
        (["vault"], {"kind": "Pod", "uid": "1"}, "not bound to a pod"),
        (["vault"], {"kind": "Pod", "name": "mine"}, "a pod binding without a uid"),
        (["vault"], {"kind": "Pod", "name": "none", "uid": "1"}, 'pod "none" not found'),
        (["vault"], {"kind": "Pod", "name": "mine", "uid": "2"}, r"\(2\) does not match the UID in record"),
        (["vault"], {"kind": "Pod", "name": "other", "uid": "2"}, "scheduled on a different node"),
        (["vault", "own"], {"kind": "Pod", "name": "mine", "uid": "1"}, "may only request 0 or 1 audiences"),
        (["unused"], {"kind": "Pod", "name": "mine", "uid": "1"}, 'audience "unused" not found in pod spec volume'),
    ],
)  # fmt: skip
def test_what_is_refused(audiences: list[str], ref: dict[str, Any], why: str) -> None:
    with pytest.raises(ApiError, match=why):
        ask(audiences, **ref)


@pytest.mark.parametrize("user", [User("n1", groups=("system:nodes",)), User("system:node:n1"), User("a")])
def test_others_are_not_held_to_it(user: User) -> None:
    ask(["unused"], user)


def test_a_node_without_a_name() -> None:
    with pytest.raises(ApiError, match="could not determine node from user"):
        ask(["vault"], User("system:node:", groups=("system:nodes",)))


@pytest.mark.parametrize("name", ["system:node:n1", "system:node:n2"])
@pytest.mark.parametrize(
    "signer", ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet", "a.io/b"]
)
def test_certificates_are_for_its_own_name(name: str, signer: str) -> None:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(subject)
        .sign(ec.generate_private_key(ec.SECP256R1()), SHA256())
    )
    request = base64.b64encode(made.public_bytes(Encoding.PEM)).decode()
    obj = {"spec": {"signerName": signer, "request": request}}
    why = _certificate("n1", SimpleNamespace(verb="CREATE", obj=obj))  # type: ignore[arg-type]
    is_own = name == "system:node:n1" or signer == "a.io/b"
    assert why == ("" if is_own else "can only create a node CSR with CN=system:node:n1")
