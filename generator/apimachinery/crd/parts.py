"""What a CRD says besides its schemas: names, columns, subresources, selectable fields, conversion, approval.

Source: apiextensions' validation of CustomResourceDefinitions, in its order and words.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import SplitResult, urlsplit

from apimachinery.crd.field_path import FieldPathError, resolve_field_path
from apimachinery.crd.form import Schema
from apimachinery.meta.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid_value,
    not_supported,
    required,
    too_many,
)
from apimachinery.meta.names import dns1035_label_faults, dns1123_subdomain_faults
from apimachinery.meta.urls import url_fault

APPROVAL = "api-approved.kubernetes.io"
_APPROVAL_RULE = "https://github.com/kubernetes/enhancements/pull/1111"
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_REVIEW_VERSIONS = ("v1", "v1beta1")
_MAX_SELECTABLE = 8
_URL_FORM = "; desired format: https://host[/path]"


def names_faults(names: dict[str, Any], field: str) -> Iterator[FieldError]:
    """The faults of names that are there; that they are there is asked elsewhere."""
    for name in ("plural", "singular"):
        value = names.get(name) or ""
        if value and (faults := dns1035_label_faults(value)):
            yield invalid_value(f"{field}.{name}", value, ",".join(faults))
    for name in ("kind", "listKind"):
        value = names.get(name) or ""
        if value and (faults := dns1035_label_faults(value.lower())):
            detail = "may have mixed case, but should otherwise match: " + ",".join(faults)
            yield invalid_value(f"{field}.{name}", value, detail)
    yield from _label_faults(names.get("shortNames") or (), f"{field}.shortNames")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid_value(f"{field}.listKind", names["listKind"], "kind and listKind may not be the same")
    yield from _label_faults(names.get("categories") or (), f"{field}.categories")


def _label_faults(labels: Any, field: str) -> Iterator[FieldError]:
    for index, label in enumerate(labels):
        if faults := dns1035_label_faults(label):
            yield invalid_value(f"{field}[{index}]", label, ",".join(faults))


def warning_faults(deprecated: bool, warning: str | None, field: str) -> Iterator[FieldError]:
    """The faults of a version's deprecationWarning."""
    if warning is None:
        return
    if not deprecated:
        yield invalid_value(field, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode("utf-8", "surrogatepass")) > 256:
        yield invalid_value(field, warning, "must be <= 256 characters long")
    if not warning:
        yield invalid_value(field, warning, "must not be an empty string")
    position = 0
    for char in warning:
        if not char.isprintable():
            detail = "must only contain printable UTF-8 characters; non-printable character found at index"
            yield invalid_value(field, warning, f"{detail} {position}")
            break
        position += len(char.encode("utf-8", "surrogatepass"))


def subresource_faults(subresources: dict[str, Any] | None, field: str) -> Iterator[FieldError]:
    """The faults of the scale subresource's paths."""
    scale = (subresources or {}).get("scale")
    if scale is None:
        return
    for name, places in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        path = scale.get(name) or ""
        at = f"{field}.scale.{name}"
        if not path:
            if name != "labelSelectorPath":
                yield required(at)
        elif not path.startswith("."):
            yield invalid_value(at, path, "must be a simple json path starting with .")
        elif not path.startswith(places):
            where = places[0][:-1] if len(places) == 1 else "either .spec or .status"
            yield invalid_value(at, path, f"should be a json path under {where}")


def column_faults(columns: list[dict[str, Any]], field: str) -> Iterator[FieldError]:
    """The faults of additionalPrinterColumns."""
    for index, column in enumerate(columns):
        at = f"{field}[{index}]"
        if not column.get("name"):
            yield required(f"{at}.name")
        kind, form, path = column.get("type") or "", column.get("format") or "", column.get("jsonPath") or ""
        types = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not kind:
            yield required(f"{at}.type", types)
        elif kind not in _COLUMN_TYPES:
            yield invalid_value(f"{at}.type", kind, types)
        if form and form not in _COLUMN_FORMATS:
            yield invalid_value(f"{at}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not path:
            yield required(f"{at}.JSONPath")
        elif not path.startswith("."):
            yield invalid_value(f"{at}.JSONPath", path, "must be a simple json path starting with .")


def selectable_faults(
    fields: list[dict[str, Any]], schema: Schema, field: str, *, any_number: bool
) -> Iterator[FieldError]:
    """The faults of selectableFields against the version's schema; ``any_number`` of them where that is stored."""
    seen: set[str] = set()
    for index, each in enumerate(fields):
        path, at = each.get("jsonPath") or "", f"{field}[{index}].jsonPath"
        if not path:
            yield required(at)
            continue
        try:
            resolved, found = resolve_field_path(path, schema, brackets=False)
        except FieldPathError as error:
            yield invalid_value(at, path, f"is an invalid path: {error}")
            continue
        if resolved == "metadata" or resolved.startswith(("metadata.", "metadata[")):
            yield invalid_value(at, path, "must not point to fields in metadata")
        if found.get("type") not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            yield invalid_value(at, path, detail)
        if resolved in seen:
            yield duplicate(at, path)
        seen.add(resolved)
    if len(seen) > _MAX_SELECTABLE and not any_number:
        yield too_many(field, len(seen), _MAX_SELECTABLE)


def conversion_faults(
    conversion: dict[str, Any] | None, field: str, *, known_reviews: bool, bad_bundle_allowed: bool
) -> Iterator[FieldError]:
    """The faults of ``conversion``; the older type's names of its parts are shown, as the API server does."""
    if conversion is None:
        return
    strategy = conversion.get("strategy") or ""
    yield from choice_faults(strategy, ("None", "Webhook"), f"{field}.strategy")
    webhook = conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    at_client, at_reviews = f"{field}.webhookClientConfig", f"{field}.conversionReviewVersions"
    if strategy != "Webhook":
        detail = "should not be set when strategy is not set to Webhook"
        if client is not None:
            yield forbidden(at_client, detail)
        if reviews:
            yield forbidden(at_reviews, detail)
        return
    if client is None:
        yield required(at_client, "required when strategy is set to Webhook")
    else:
        yield from _client_faults(client, at_client)
        if client.get("caBundle") and not bad_bundle_allowed:
            yield from bundle_faults(client["caBundle"], f"{at_client}.caBundle")
    yield from _review_faults(reviews, at_reviews, known_reviews)


def choice_faults(value: str, choices: tuple[str, ...], field: str) -> Iterator[FieldError]:
    """The fault of a value that must be there and one of a few."""
    if not value:
        yield required(field)
    elif value not in choices:
        yield not_supported(field, value, choices)


def _client_faults(client: dict[str, Any], field: str) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(field, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_faults(url, f"{field}.url")
    elif service is not None:
        yield from _service_faults(service, f"{field}.service")


def _url_faults(url: str, field: str) -> Iterator[FieldError]:
    problem = url_fault(url)
    try:
        parts: SplitResult = urlsplit(url)
    except ValueError as error:
        problem = problem or str(error)
    if problem:
        yield required(field, f"url must be a valid URL: {problem}{_URL_FORM}")
        return
    if parts.scheme != "https":
        yield invalid_value(field, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}")
    user, _, host = parts.netloc.rpartition("@")
    if not host:
        yield invalid_value(field, host, f"host must be specified{_URL_FORM}")
    if "@" in parts.netloc:
        yield invalid_value(field, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid_value(field, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid_value(field, parts.query, "query parameters are not permitted in the URL")


def _service_faults(service: dict[str, Any], field: str) -> Iterator[FieldError]:
    # kube-apiserver takes the one for the other: a missing name is called a missing namespace.
    for name, said in (("namespace", "name"), ("name", "namespace")):
        if not service.get(name):
            yield required(f"{field}.{said}")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        yield invalid_value(
            f"{field}.port", port, "port is not valid: must be between 1 and 65535, inclusive"
        )
    path, at = service.get("path") or "", f"{field}.path"
    if path in ("", "/"):
        return
    if path == "//":
        yield invalid_value(at, path, "segment[0] may not be empty")
        return
    if not path.startswith("/"):
        yield invalid_value(at, path, "must start with a '/'")
    for index, segment in enumerate(path[1:].removesuffix("/").split("/")):
        if not segment:
            yield invalid_value(at, path, f"segment[{index}] may not be empty")
            continue
        for fault in dns1123_subdomain_faults(segment):
            yield invalid_value(at, path, f"segment[{index}]: {fault}")


_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")


def bundle_faults(bundle: str, field: str) -> Iterator[FieldError]:
    """The fault of a CA bundle without a certificate."""
    try:
        found = _PEM.search(base64.b64decode(bundle))
        good = found is not None and base64.b64decode(found[1], validate=False).startswith(b"\x30")
    except (binascii.Error, ValueError):
        good = False
    if not good:
        detail = "unable to load root certificates: unable to parse bytes as PEM block"
        yield invalid_value(field, bundle, detail)


def _review_faults(versions: list[str], field: str, known: bool) -> Iterator[FieldError]:
    if not versions:
        yield required(field)
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield invalid_value(f"{field}[{index}]", version, "duplicate version")
            continue
        seen.add(version)
        for fault in dns1035_label_faults(version):
            yield invalid_value(f"{field}[{index}]", version, fault)
    if known and not seen & set(_REVIEW_VERSIONS):
        yield invalid_value(field, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")


def is_protected(group: str) -> bool:
    """Is a group one of Kubernetes' own, where CRDs need an approval."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def approval(annotations: dict[str, str]) -> tuple[str, str]:
    """The state of a CRD's approval (missing, bypassed, approved, invalid), and what is reported about it."""
    said = annotations.get(APPROVAL) or ""
    if not said:
        return "missing", f'protected groups must have approval annotation "{APPROVAL}", see {_APPROVAL_RULE}'
    if said.startswith("unapproved"):
        return "bypassed", f'not approved: "{said}"'
    try:
        parts = urlsplit(said)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme and parts.netloc and " " not in said:
        return "approved", f"approved in {said}"
    return "invalid", (
        f'protected groups must have approval annotation "{APPROVAL}" with either a URL or a reason starting with '
        f'"unapproved", see {_APPROVAL_RULE}'
    )


def approval_faults(
    group: str, annotations: dict[str, str], old: dict[str, str] | None
) -> Iterator[FieldError]:
    """The fault of a missing or malformed approval; an update need not fix it."""
    if not is_protected(group):
        return
    state, said = approval(annotations)
    if old is not None and approval(old)[0] == state:
        return
    field = f"metadata.annotations[{APPROVAL}]"
    if state == "missing":
        yield required(field, said)
    elif state == "invalid":
        yield invalid_value(field, annotations[APPROVAL], said)
