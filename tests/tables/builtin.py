"""Validation of built-in kinds: new objects, updates, and updates of subresources.

A line names the validating function; what it covers (metadata, the kind's own rules, one subresource's) follows from
the function's name. The same fault told twice counts once: Kubernetes looks at metadata from two places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from apimachinery.kinds.core import events, services
from apimachinery.meta.field_errors import FieldError
from apimachinery.meta.names import NAME_RULES
from apimachinery.meta.object_meta import validate_object_meta, validate_object_meta_update
from apimachinery.meta.release import rules_of
from apimachinery.meta.resources import Resource
from apimachinery.meta.strategies import Strategy
from kubernetes_api.registry import GROUP_VERSIONS

from . import faults
from .agreement import Answer, Line, Suite

_CALLS = re.compile(
    r"Validate(?P<kind>[A-Za-z]+?)(?P<subresource>Status|Approval|EphemeralContainers|Finalize)?Update$"
)
_ODD = {
    "ValidatePodResize": "resize",
    "ValidateJobUpdateStatus": "status",
}
_AS_ON_CREATE = frozenset(
    {
        "ValidateMutatingAdmissionPolicyBindingUpdate",
        "ValidateMutatingAdmissionPolicyUpdate",
        "ValidateMutatingWebhookConfigurationUpdate",
        "ValidateValidatingAdmissionPolicyBindingUpdate",
        "ValidateValidatingAdmissionPolicyUpdate",
        "ValidateValidatingWebhookConfigurationUpdate",
        "ValidatePersistentVolumeUpdate",
        "ValidateEndpointSlice",
        "ValidateEndpointSliceUpdate",
        "ValidateCSINodeUpdate",
        "ValidateVolumeAttachmentUpdate",
    }
)
"""Updates that look at metadata as on create; what may not change there is asked before them."""
_ALSO_AS_ON_CREATE = frozenset(
    {
        "ValidateControllerRevisionUpdate",
        "ValidateCertificateSigningRequestApprovalUpdate",
        "ValidateCertificateSigningRequestStatusUpdate",
        "ValidateCertificateSigningRequestUpdate",
        "ValidateConfigMapUpdate",
        "ValidateEndpointsUpdate",
        "ValidatePersistentVolumeClaimUpdate",
        "ValidatePodEphemeralContainersUpdate",
        "ValidatePodResize",
        "ValidatePodUpdate",
        "ValidateSecretUpdate",
        "ValidateIngressClassUpdate",
        "ValidateIngressUpdate",
        "ValidateRoleBindingUpdate",
        "ValidateDeviceClassUpdate",
        "ValidateVolumeAttributesClassUpdate",
        "ValidateStorageVersionMigrationUpdate",
    }
)
"""Updates that look at metadata both ways."""
_NO_METADATA = frozenset({"ValidateJobStatusUpdate", "ValidateServiceClusterIPsRelatedFields"})
_PARTS: dict[str, Callable[[Any, Any], Iterable[FieldError]]] = {
    "ValidateServiceClusterIPsRelatedFields": lambda obj, old: services.cluster_addresses(
        obj["spec"], (old or {}).get("spec") or {}
    ),
}
"""Functions that look at a part of an object: a fault elsewhere is none of theirs."""
_WITH_GATES_OFF = ("1.35", "1.34", "1.33", "1.31")
_OTHERS = frozenset({"ValidateNodeResources", "ValidatePodLogOptions"})
"""Parts that are no objects of the API."""


def _table(api_version: str, module: str, name: str) -> dict[Any, Any]:
    package = f"kubernetes_api.{GROUP_VERSIONS[api_version]}"
    if find_spec(f"{package}.{module}") is None:
        return {}
    return getattr(import_module(f"{package}.{module}"), name, {})


@cache
def _resource(api_version: str, kind: str) -> Resource | None:
    return next((each for each in _table_of_resources(api_version) if each.kind == kind), None)


def _table_of_resources(api_version: str) -> tuple[Resource, ...]:
    module = import_module(f"kubernetes_api.{GROUP_VERSIONS[api_version]}.resources")
    resources: tuple[Resource, ...] = module.RESOURCES
    return resources


def subresource_of(function: str) -> str:
    """The subresource that a validating function is for, empty for the object itself."""
    if function in _ODD:
        return _ODD[function]
    match = _CALLS.match(function)
    named = (match and match["subresource"]) or ""
    return named.lower()


def validated(line: Line) -> Iterator[Answer]:
    """One call of a validating function.

    Which version of events was asked for is not in the line, and the three have rules of their own: any's will do.
    Nor is it which feature gates the test had turned off: the rules of a release in which they were off will do.
    """
    answers = list(_answers(line, line["obj"], line.get("old")))
    for release in _WITH_GATES_OFF:
        if all(each.wanted == each.ours for each in answers):
            break
        with rules_of(release):
            older = list(_answers(line, line["obj"], line.get("old")))
        if all(each.wanted == each.ours for each in older):
            answers = older
    if line["obj"]["kind"] == "Event" and any(each.wanted != each.ours for each in answers):
        for other_answers in _other_versions(line):
            if all(each.wanted == each.ours for each in other_answers):
                answers = other_answers
                break
    yield from answers


def _other_versions(line: Line) -> Iterator[list[Answer]]:
    """An event as one of the other group; then as one of events.k8s.io/v1beta1: its fields, the rules of core."""
    others = [_other_event(each) if each else None for each in (line["obj"], line.get("old"))]
    yield list(_answers(line, *others))
    if line["func"] == "ValidateEventCreate":
        wanted = {each["text"]: each for each in line["errs"]}
        found = {f"{each.field}: {each.body}": each for each in events.new_event(line["obj"], "")}
        yield list(faults.compared(wanted.values(), found.values()))


_EVENT_FIELDS = {
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "involvedObject": "regarding",
    "lastTimestamp": "deprecatedLastTimestamp",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
}
"""Fields of core's events, and what they are called in events.k8s.io."""


def _other_event(event: Any) -> Any:
    core = event["apiVersion"] == "v1"
    names = _EVENT_FIELDS if core else {new: old for old, new in _EVENT_FIELDS.items()}
    other = {names.get(key, key): value for key, value in event.items()}
    return {**other, "apiVersion": "events.k8s.io/v1" if core else "v1"}


def _answers(line: Line, obj: Any, old: Any) -> Iterator[Answer]:
    api_version, kind = obj["apiVersion"], obj["kind"]
    function = line["func"]
    resource = _resource(api_version, kind)
    if resource is None or function in _OTHERS:
        return
    obj, old = deepcopy(obj), deepcopy(old)
    _shape(obj)
    if old is not None:
        _shape(old)
    strategy = _table(api_version, "strategies", "STRATEGIES").get(kind, Strategy())
    # Metadata of core's events is asked before their rules, and by those of events.k8s.io.
    stored = "get" in resource.verbs and (api_version, kind) != ("v1", "Event")
    found: list[FieldError] = []
    if stored and function not in _NO_METADATA:
        metadata = obj["metadata"]
        if old is not None and function not in _AS_ON_CREATE:
            found += validate_object_meta_update(metadata, old["metadata"], plain_finalizers=True)
        if old is None or function in _AS_ON_CREATE | _ALSO_AS_ON_CREATE:
            found += validate_object_meta(
                metadata,
                namespaced=resource.namespaced,
                name_rule=NAME_RULES[strategy.name],
                plain_finalizers=True,
            )
    own = _PARTS.get(function) or _own(api_version, kind, subresource_of(function))
    if own is not None:
        found += own(obj, old)
    wanted = {each["text"]: each for each in line["errs"]}
    distinct = {f"{each.field}: {each.body}": each for each in found}
    yield from faults.compared(wanted.values(), distinct.values())


def _shape(obj: Any) -> None:
    if obj.get("metadata") is None:
        obj["metadata"] = {}


def _own(api_version: str, kind: str, subresource: str) -> Callable[[Any, Any], Iterable[FieldError]] | None:
    if subresource:
        return _table(api_version, "validation", "SUBRESOURCE_VALIDATORS").get((kind, subresource))
    return _table(api_version, "validation", "VALIDATORS").get(kind)


SUITE = Suite("builtin", ("builtin-*.jsonl",), {"builtin": validated})
