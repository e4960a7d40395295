"""AdmissionReview (admission.k8s.io/v1 and v1beta1): what a webhook is asked, and what its answer means.

A v1 answer must repeat the uid and name its kind, a v1beta1 answer need not; only v1 has to name the type of a patch.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from apimachinery.kinds.hooks import Json
from apimachinery.meta.base64_parts import decode_base64
from apimachinery.server.admission.interface import Operation
from apimachinery.server.admission.policies.request_values import at_version, request_of
from apimachinery.server.catalog.served import Served
from apimachinery.server.network.webhook_calls import WebhookFailed
from apimachinery.wire.json import type_name

GROUP = "admission.k8s.io"
VERSIONS = ("v1", "v1beta1")


@dataclass(frozen=True, slots=True)
class ReviewVerdict:
    """A webhook's answer; ``patch`` is JSON text, empty where it has none."""

    allowed: bool
    patch: bytes = b""
    patch_type: str = ""
    status: Json | None = None
    annotations: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def review_of(operation: Operation, served: Served, version: str) -> Json:
    """The review of an operation, at the version that a rule matched."""
    user = operation.user
    assert user is not None, "reviews are for requests"
    known = request_of(operation, user, served)
    # A uid of its own for each call: an answer must be to this question.
    request: Json = {"uid": str(uuid.uuid4())}
    for name in ("kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource"):
        if name in known:
            request[name] = known[name]
    for name in ("name", "namespace", "operation", "userInfo"):
        if name in known:
            request[name] = known[name]
    request["object"] = at_version(operation, served, operation.obj)
    request["oldObject"] = at_version(operation, served, operation.old)
    request["dryRun"] = known["dryRun"]
    request["options"] = known.get("options")
    return {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": request}


def verdict_of(review: Json, answer: Json, *, mutating: bool) -> ReviewVerdict:
    """What an answer to a review means. Raises WebhookFailed."""
    response = _decoded(answer.get("response"))
    if response is None:
        raise _invalid("webhook response was absent")
    # Text without any patch is no patch.
    patch: bytes = response.get("patch") or b""
    patch_type = response.get("patchType")
    if review["apiVersion"] == f"{GROUP}/v1":
        _check_v1(review, answer, response)
        _check_patch(patch, patch_type, mutating=mutating)
    elif patch:
        patch_type = "JSONPatch"
    return ReviewVerdict(
        bool(response.get("allowed")),
        patch if mutating else b"",
        patch_type or "",
        response.get("status"),
        response.get("auditAnnotations") or {},
        tuple(response.get("warnings") or ()),
    )


def _invalid(why: str) -> WebhookFailed:
    return WebhookFailed(f"received invalid webhook response: {why}")


def _check_v1(review: Json, answer: Json, response: Json) -> None:
    wanted, got = review["request"]["uid"], response.get("uid") or ""
    if wanted != got:
        raise _invalid(f'expected response.uid="{wanted}", got "{got}"')
    group, _, version = (answer.get("apiVersion") or "/").rpartition("/")
    kind = answer.get("kind") or ""
    if (answer.get("apiVersion"), kind) != (review["apiVersion"], review["kind"]):
        raise _invalid(
            f"expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
        )


def _check_patch(patch: bytes, patch_type: str | None, *, mutating: bool) -> None:
    if not mutating:
        if patch:
            raise _invalid("validating webhook may not return response.patch")
        if patch_type is not None:
            raise _invalid("validating webhook may not return response.patchType")
    elif patch and patch_type is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


_TYPES: dict[str, tuple[type, str]] = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "status": (dict, "v1.Status"),
    "patch": (str, "[]uint8"),
    "patchType": (str, "v1.PatchType"),
    "auditAnnotations": (dict, "map[string]string"),
    "warnings": (list, "[]string"),
}


def _decoded(response: Any) -> Json | None:
    """The response with its values checked and its patch decoded. Raises WebhookFailed."""
    if response is None:
        return None
    if not isinstance(response, dict):
        raise _undecodable(response, "AdmissionReview.response", "v1.AdmissionResponse")
    found: Json = {}
    for name, (python_type, go_type) in _TYPES.items():
        value = response.get(name)
        if value is None:
            continue
        if not isinstance(value, python_type):
            raise _undecodable(value, f"AdmissionResponse.response.{name}", go_type)
        for item in _items(value) if go_type.endswith("]string") else ():
            if not isinstance(item, str):
                raise _undecodable(item, f"AdmissionResponse.response.{name}", "string")
        found[name] = value
    if "status" in found:
        _check_status(found["status"])
    if "patch" in found:
        found["patch"] = _bytes(found["patch"])
    return found


def _items(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else list(value)


def _check_status(status: Json) -> None:
    for name, (python_type, go_type) in _STATUS_TYPES.items():
        value = status.get(name)
        if value is not None and (not isinstance(value, python_type) or isinstance(value, bool)):
            raise _undecodable(value, f"Status.response.status.{name}", go_type)


_STATUS_TYPES: dict[str, tuple[type, str]] = {
    "code": (int, "int32"),
    "message": (str, "string"),
    "reason": (str, "v1.StatusReason"),
    "status": (str, "string"),
    "details": (dict, "v1.StatusDetails"),
}


def _undecodable(value: Any, place: str, go_type: str) -> WebhookFailed:
    fault = f"json: cannot unmarshal {type_name(value)} into Go struct field {place} of type {go_type}"
    return WebhookFailed(f"failed to call webhook: {fault}")


def _bytes(text: str) -> bytes:
    try:
        # Go's decoder skips line breaks within base64.
        return decode_base64(text.replace("\n", "").replace("\r", ""))
    except ValueError:
        where = next(
            (
                at
                for at, char in enumerate(text)
                if not (char.isascii() and (char.isalnum() or char in "+/="))
            ),
            len(text) // 4 * 4,
        )
        raise WebhookFailed(f"failed to call webhook: illegal base64 data at input byte {where}") from None
