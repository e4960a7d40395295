"""Tables of who may do what: roles, admission, flows, certificates, quotas."""

from __future__ import annotations

from apimachinery.kinds.cell import (
    NONE,
    UNSET,
    Cell,
    at,
    count_at,
    get,
    go_selector,
    of,
)
from apimachinery.kinds.durations import between
from apimachinery.meta.json import Json


def _role(binding: Json) -> str:
    reference = binding.get("roleRef") or {}
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


def _subjects(kind: str) -> Cell:
    def cell(binding: Json) -> str:
        names = []
        for subject in binding.get("subjects") or ():
            if subject.get("kind") == kind:
                prefix = f"{subject.get('namespace', '')}/" if kind == "ServiceAccount" else ""
                names.append(prefix + subject.get("name", ""))
        return ", ".join(names)

    return cell


def _quota(prefixes: bool) -> Cell:
    def cell(quota: Json) -> str:
        hard, used = get(quota, "status.hard") or {}, get(quota, "status.used") or {}
        names = sorted(name for name in hard if name.startswith("limits.") == prefixes)
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names)

    return cell


def _request_state(request: Json) -> str:
    conditions = [c.get("type") for c in get(request, "status.conditions") or ()]
    shown = next((kind for kind in ("Denied", "Approved") if kind in conditions), "Pending")
    if "Failed" in conditions:
        shown += ",Failed"
    return f"{shown},Issued" if get(request, "status.certificate") else shown


def _service_of(api_service: Json) -> str:
    service = get(api_service, "spec.service")
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"


def _available(api_service: Json) -> str:
    for condition in get(api_service, "status.conditions") or ():
        if condition.get("type") == "Available":
            reason = condition.get("reason")
            status = condition.get("status", "")
            return status if status == "True" or not reason else f"{status} ({reason})"
    return "Unknown"


def _param_kind(policy: Json) -> str:
    kind = get(policy, "spec.paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def _param_ref(binding: Json) -> str:
    reference = get(binding, "spec.paramRef")
    if not reference:
        return UNSET
    name = reference.get("name")
    if not name:
        selector = reference.get("selector")
        return UNSET if selector is None else go_selector(selector)
    return f"{reference.get('namespace') or '*'}/{name}"


POLICY: dict[str, dict[str, Cell]] = {
    "APIService": {"Service": _service_of, "Available": _available},
    "CertificateSigningRequest": {
        "SignerName": at("spec.signerName", NONE),
        "Requestor": at("spec.username"),
        "RequestedDuration": of("spec.expirationSeconds", lambda s: NONE if s is None else between(0, s)),
        "Condition": _request_state,
    },
    "FlowSchema": {
        "PriorityLevel": at("spec.priorityLevelConfiguration.name"),
        "MatchingPrecedence": at("spec.matchingPrecedence", 0),
        "DistinguisherMethod": at("spec.distinguisherMethod.type", NONE),
        "MissingPL": lambda obj: "?",
    },
    "MutatingAdmissionPolicy": {"Mutations": count_at("spec.mutations"), "ParamKind": _param_kind},
    "MutatingAdmissionPolicyBinding": {"PolicyName": at("spec.policyName"), "ParamRef": _param_ref},
    "MutatingWebhookConfiguration": {"Webhooks": count_at("webhooks")},
    "PriorityLevelConfiguration": {
        "Type": at("spec.type"),
        "NominalConcurrencyShares": at("spec.limited.nominalConcurrencyShares", NONE),
        "Queues": at("spec.limited.limitResponse.queuing.queues", NONE),
        "HandSize": at("spec.limited.limitResponse.queuing.handSize", NONE),
        "QueueLengthLimit": at("spec.limited.limitResponse.queuing.queueLengthLimit", NONE),
    },
    "ResourceQuota": {"Request": _quota(False), "Limit": _quota(True)},
    "RoleBinding": {
        "Role": _role,
        "Users": _subjects("User"),
        "Groups": _subjects("Group"),
        "ServiceAccounts": _subjects("ServiceAccount"),
    },
    "ValidatingAdmissionPolicy": {"Validations": count_at("spec.validations"), "ParamKind": _param_kind},
    "ValidatingAdmissionPolicyBinding": {"PolicyName": at("spec.policyName"), "ParamRef": _param_ref},
    "ValidatingWebhookConfiguration": {"Webhooks": count_at("webhooks")},
}
