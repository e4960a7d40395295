"""Writes that are rights in themselves: roles and bindings, and the approval and signing of certificates.

These checks come last of everything that may change an object, so they see what would be stored.
"""

from __future__ import annotations

from apimachinery.meta.errors import forbidden
from apimachinery.meta.printing import go_quote
from apimachinery.server.access.authorization import MASTERS, Attributes, Chain, refusal
from apimachinery.server.access.escalation import Escalation
from apimachinery.server.access.rbac import GROUP, KINDS
from apimachinery.server.admission.interface import Operation
from apimachinery.server.http.messages import User
from apimachinery.server.request.target import WriteTarget

CERTIFICATES = "certificates.k8s.io"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"


class RoleEscalation:
    """Nobody writes a role or binding that gives more than he holds."""

    def __init__(self, escalation: Escalation) -> None:
        self._escalation = escalation

    def admit(self, operation: Operation) -> None:
        """Raises ApiError 403, 404."""
        target = operation.target
        served = target.served
        if (
            served.group != GROUP
            or operation.obj is None
            or target.user is None
            or served.plural not in KINDS
        ):
            return
        self._escalation.check(
            served.plural, target.namespace, target.name, target.user, operation.obj, operation.old
        )

    def validate(self, operation: Operation) -> None:
        """See Admission."""


class CreateRights:
    """An update or apply that creates needs the right to create as well as that to update or patch."""

    def __init__(self, authorizer: Chain) -> None:
        self._authorizer = authorizer

    def admit(self, operation: Operation) -> None:
        """See Admission."""

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        target = operation.target
        # Only the path of an update names what is created.
        if (
            operation.verb != "CREATE"
            or target.user is None
            or not target.name
            or MASTERS in target.user.groups
        ):
            return
        attributes = create_attributes(target, target.user)
        verdict = self._authorizer.decide(attributes)
        if verdict is None or not verdict.allowed:
            raise refusal(attributes, "" if verdict is None else verdict.reason)


def create_attributes(target: WriteTarget, user: User) -> Attributes:
    """What an update that creates asks for besides."""
    served = target.served
    return Attributes(
        user,
        "create",
        target.namespace,
        served.group,
        served.version,
        served.plural,
        target.subresource,
        target.name,
    )


class CertificateRights:
    """Who approves a request for a certificate needs ``approve`` on its signer, who signs it ``sign``; and nobody asks
    for a client certificate of the group system:masters."""

    def __init__(self, authorizer: Chain) -> None:
        self._authorizer = authorizer

    def admit(self, operation: Operation) -> None:
        """See Admission."""

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        target, obj, old = operation.target, operation.obj, operation.old
        served = target.served
        if (
            served.group != CERTIFICATES
            or served.plural != "certificatesigningrequests"
            or obj is None
            or target.user is None
        ):
            return
        if old is None:
            self._check_subject(operation)
            return
        signer = str((old.get("spec") or {}).get("signerName") or "")
        if target.subresource == "approval":
            self._require(operation, target.user, "approve", signer)
        elif target.subresource == "status":
            before, after = old.get("status") or {}, obj.get("status") or {}
            if before.get("certificate") != after.get("certificate") or _failed(before) != _failed(after):
                self._require(operation, target.user, "sign", signer)

    def _require(self, operation: Operation, user: User, verb: str, signer: str) -> None:
        if MASTERS in user.groups:
            return
        domain = signer.partition("/")[0]
        for name in (signer, f"{domain}/*"):
            attributes = Attributes(user, verb, "", CERTIFICATES, "*", "signers", "", name)
            verdict = self._authorizer.decide(attributes)
            if verdict is not None and verdict.allowed:
                return
        plural, name = operation.target.served.plural, operation.name
        why = f"user not permitted to {verb} requests with signerName {go_quote(signer)}"
        raise forbidden(plural, CERTIFICATES, name, why)

    def _check_subject(self, operation: Operation) -> None:
        from apimachinery.server.access.certificates import groups_of_request

        spec = (operation.obj or {}).get("spec") or {}
        if spec.get("signerName") == CLIENT_SIGNER and MASTERS in groups_of_request(spec.get("request")):
            plural = operation.target.served.plural
            why = f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
            raise forbidden(plural, CERTIFICATES, operation.name, why)


def _failed(status: dict[str, object]) -> bool:
    conditions = status.get("conditions")
    return isinstance(conditions, list) and any(c.get("type") == "Failed" for c in conditions)
