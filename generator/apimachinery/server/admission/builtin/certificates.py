"""CertificateApproval, CertificateSigning, CertificateSubjectRestriction and ClusterTrustBundleAttest: who approves or
signs a request for a certificate, or attests to a bundle, holds a right on its signer; and nobody asks for a client
certificate of the group system:masters."""

from __future__ import annotations

from apimachinery.access.authorization import MASTERS, Attributes, Chain
from apimachinery.meta.errors import ApiError, forbidden
from apimachinery.meta.printing import go_quote
from apimachinery.server.admission.interface import Operation, Plugin

GROUP = "certificates.k8s.io"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
REQUESTS = frozenset({(GROUP, "certificatesigningrequests")})
BUNDLES = frozenset({(GROUP, "clustertrustbundles")})


class CertificateApproval(Plugin):
    """Who approves needs ``approve`` on the signer."""

    resources = REQUESTS

    def __init__(self, authorizer: Chain) -> None:
        self._authorizer = authorizer

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        old = operation.old
        if old is not None and operation.obj is not None and operation.target.subresource == "approval":
            _require(self._authorizer, operation, "approve", "requests with", _signer(old))


class CertificateSigning(Plugin):
    """Who writes the certificate, or that there will be none, needs ``sign`` on the signer."""

    resources = REQUESTS

    def __init__(self, authorizer: Chain) -> None:
        self._authorizer = authorizer

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        obj, old = operation.obj, operation.old
        if old is None or obj is None or operation.target.subresource != "status":
            return
        before, after = old.get("status") or {}, obj.get("status") or {}
        if before.get("certificate") != after.get("certificate") or _failed(before) != _failed(after):
            _require(self._authorizer, operation, "sign", "requests with", _signer(old))


class CertificateSubjectRestriction(Plugin):
    """Refuses requests for client certificates of the group that may do anything."""

    resources = REQUESTS

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        if operation.verb != "CREATE" or operation.obj is None or operation.target.user is None:
            return
        from apimachinery.access.certificates import groups_of_request

        spec = operation.obj.get("spec") or {}
        if spec.get("signerName") == CLIENT_SIGNER and MASTERS in groups_of_request(spec.get("request")):
            why = f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
            raise _refusal(operation, why)


class ClusterTrustBundleAttest(Plugin):
    """Who writes a bundle of a signer needs ``attest`` on it."""

    resources = BUNDLES

    def __init__(self, authorizer: Chain) -> None:
        self._authorizer = authorizer

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        if operation.obj is not None and (signer := _signer(operation.obj)):
            _require(self._authorizer, operation, "attest", "for", signer)


def _require(authorizer: Chain, operation: Operation, verb: str, what: str, signer: str) -> None:
    user = operation.target.user
    if user is None or MASTERS in user.groups:
        return
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        verdict = authorizer.settle(Attributes(user, verb, "", GROUP, "*", "signers", "", name))
        if verdict is not None and verdict.allowed:
            return
    raise _refusal(operation, f"user not permitted to {verb} {what} signerName {go_quote(signer)}")


def _refusal(operation: Operation, why: str) -> ApiError:
    return forbidden(operation.target.served.plural, GROUP, operation.name, why)


def _signer(obj: dict[str, object]) -> str:
    spec = obj.get("spec")
    return str(spec.get("signerName") or "") if isinstance(spec, dict) else ""


def _failed(status: dict[str, object]) -> bool:
    conditions = status.get("conditions")
    return isinstance(conditions, list) and any(c.get("type") == "Failed" for c in conditions)
