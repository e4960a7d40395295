"""Checks of roles, bindings and access reviews."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import (
    Json,
    lookup,
    numbered,
    of_missing,
    struct,
)
from apimachinery.meta.field_errors import forbidden, invalid_value
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.object_meta import METADATA_ORDER
from apimachinery.meta.printing import InOrder


def kept_role(value: Any, path: str, old: Any) -> Errors:
    """A binding keeps its role."""
    if value != old and isinstance(value, dict):
        shown = {key: value.get(key[0].lower() + key[1:]) or "" for key in ("Kind", "Name")}
        yield invalid_value(path, {"APIGroup": value.get("apiGroup") or "", **shown}, "cannot change roleRef")


@of_missing
def review(value: Any, path: str) -> Errors:
    """A review is about a resource or about a path."""
    spec = value if isinstance(value, dict) else {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        shown = (
            {"Path": other.get("path", ""), "Verb": other.get("verb", "")}
            if isinstance(other, dict)
            else other
        )
        yield invalid_value(
            f"{path}.nonResourceAttributes",
            shown,
            "cannot be specified in combination with resourceAttributes",
        )
    if resource is None and other is None:
        yield invalid_value(
            f"{path}.resourceAttributes",
            None,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )
    for key, check in (("fieldSelector", _field_requirement), ("labelSelector", _label_requirement)):
        selector = struct(spec, "resourceAttributes", key)
        if selector is not None:
            yield from _selector(selector, f"{path}.resourceAttributes.{key}", check)


def _selector(selector: Json, path: str, check: Callable[[Json, str], Errors]) -> Errors:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        yield invalid_value(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")
    if not raw and not requirements:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        yield required_error(f"{path}.requirements", detail)
    for index, requirement in numbered(selector, "requirements"):
        yield from check(requirement, f"{path}.requirements[{index}]")


def _label_requirement(requirement: Json, path: str) -> Errors:
    yield from checks.selector_requirement(requirement, path, known_operator=False)


def _field_requirement(requirement: Json, path: str) -> Errors:
    operator, values = requirement.get("operator"), requirement.get("values")
    if not requirement.get("key"):
        yield required_error(f"{path}.key", "must be specified")
    if operator in ("In", "NotIn") and not values:
        yield required_error(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield forbidden(f"{path}.values", detail)


def nameless(value: Any, path: str, namespaced: bool = False) -> Errors:
    """A review is not an object: its metadata says nothing, or which namespace it is about."""
    allowed = {"managedFields", "namespace"} if namespaced else {"managedFields"}
    metadata = value if isinstance(value, dict) else {}
    if any(item for key, item in metadata.items() if key not in allowed):
        detail = "must be empty except for namespace" if namespaced else "must be empty"
        shown = {key: metadata[key] for key in METADATA_ORDER if metadata.get(key)}
        shown |= {key: dict(sorted(shown[key].items())) for key in ("labels", "annotations") if key in shown}
        yield invalid_value(path, InOrder(shown), detail)


@of_missing
def someone(value: Any, path: str) -> Errors:
    """A review of another subject names a user or groups."""
    spec = value if isinstance(value, dict) else {}
    if not spec.get("user") and not spec.get("groups"):
        yield invalid_value(f"{path}.user", "", "at least one of user or group must be specified")


def own_namespace(value: Json, path: str) -> Errors:
    """A local review is about its own namespace."""
    del path
    resource = lookup(value, "spec", "resourceAttributes")
    asked = lookup(resource, "namespace") or ""
    if resource is not None and asked != (lookup(value, "metadata", "namespace") or ""):
        yield invalid_value("spec.resourceAttributes.namespace", asked, "must match metadata.namespace")
    other = lookup(value, "spec", "nonResourceAttributes")
    if other is not None:
        yield invalid_value("spec.nonResourceAttributes", other, "disallowed on this kind of request")


def aggregated(value: Any, path: str) -> Errors:
    """The roles that another one takes together; a selector that cannot be read is said once more."""
    for index, selector in enumerate(value if isinstance(value, list) else ()):
        place = f"{path}[{index}]"
        faults = list(checks.label_selector(selector, place))
        yield from faults
        if faults:
            yield invalid_value(place, None, "invalid label selector.")
