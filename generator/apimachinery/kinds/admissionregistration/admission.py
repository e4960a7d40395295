"""Checks of webhook configurations and admission policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from apimachinery.cel.syntax.parser import RESERVED
from apimachinery.cel.values.types import Type
from apimachinery.kinds import checks
from apimachinery.kinds.admissionregistration.policy_expressions import (
    BOOL,
    CONFIGURATION,
    PATCHES,
    STRING,
    TEXT_OR_NULL,
    Compiler,
    ExpressionFault,
)
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import (
    Json,
    lookup,
    numbered,
    of_missing,
    struct,
)
from apimachinery.meta import names
from apimachinery.meta.field_errors import (
    FieldError,
    Reason,
    duplicate,
    forbidden,
    invalid_value,
    not_supported,
)
from apimachinery.meta.field_errors import required as required_error

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")


def rule(value: Any, path: str) -> Errors:
    """Which operations on which resources."""
    if not isinstance(value, dict):
        return
    operations = value.get("operations") or []
    if not operations:
        yield required_error(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        yield invalid_value(
            f"{path}.operations", operations, "if '*' is present, must not specify other operations"
        )
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            yield not_supported(f"{path}.operations[{index}]", operation, OPERATIONS)
    for key, word in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        given = value.get(key) or []
        if not given:
            yield required_error(f"{path}.{key}")
        if len(given) > 1 and "*" in given:
            yield invalid_value(f"{path}.{key}", given, f"if '*' is present, must not specify other {word}")
        for index, item in enumerate(given):
            if key == "apiVersions" and not item:
                yield required_error(f"{path}.{key}[{index}]")
    yield from _resources(value.get("resources") or [], f"{path}.resources")
    scope = value.get("scope")
    if scope is not None and scope not in ("*", "Cluster", "Namespaced"):
        yield not_supported(f"{path}.scope", scope, ("*", "Cluster", "Namespaced"))


def named_rule(value: Json, path: str) -> Errors:
    """Which operations on which resources of which names."""
    seen = set()
    for index, name in enumerate(value.get("resourceNames") or ()):
        place = f"{path}.resourceNames[{index}]"
        yield from checks.each_fault(name, place, "path-segment")
        if name in seen:
            yield duplicate(place, name)
        seen.add(name)
    yield from rule(value, path)


def _resources(value: list[Any], path: str) -> Errors:
    """No resource is named twice, by itself and by a star."""
    if not value:
        yield required_error(path)
    of_resources, of_parts, plain = set(), set(), False
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if not item:
            yield required_error(place)
            continue
        resource, slash, part = item.partition("/")
        if not slash:
            plain = item != "*"
            continue
        if resource in of_resources:
            yield invalid_value(place, item, f"if '{resource}/*' is present, must not specify {item}")
        if part in of_parts:
            yield invalid_value(place, item, f"if '*/{part}' is present, must not specify {item}")
        if part == "*":
            of_resources.add(resource)
        if resource == "*":
            of_parts.add(part)
    if len(value) > 1 and "*/*" in value:
        yield invalid_value(path, value, "if '*/*' is present, must not specify other resources")
    if "*" in value and plain:
        detail = "if '*' is present, must not specify other resources without subresources"
        yield invalid_value(path, value, detail)


def param_kind(value: Any, path: str) -> Errors:
    """The kind of a policy's parameters."""
    if not isinstance(value, dict):
        return
    api_version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    if not api_version:
        yield required_error(f"{path}.apiVersion")
    elif api_version.count("/") > 1:
        yield invalid_value(
            f"{path}.apiVersion", api_version, f"unexpected GroupVersion string: {api_version}"
        )
    else:
        yield from _group_version(api_version, f"{path}.apiVersion")
    if not kind:
        yield required_error(f"{path}.kind")
    else:
        for detail in names.dns1035_label_faults(kind.lower()):
            yield invalid_value(
                f"{path}.kind", kind, f"may have mixed case, but should otherwise match: {detail}"
            )


def _group_version(text: str, path: str) -> Errors:
    group, _, version = text.rpartition("/")
    faults = names.dns1123_subdomain_faults(group) if group else []
    if faults:
        yield invalid_value(path, group, ",".join(faults))
    faults = names.dns1035_label_faults(version)
    if not version:
        yield invalid_value(path, text, "version must be specified")
    elif faults:
        yield invalid_value(path, version, ",".join(faults))


@of_missing
def match_resources(
    value: Any, path: str, optional: bool = False, operations: Sequence[str] = OPERATIONS
) -> Errors:
    """What a policy is about."""
    if not isinstance(value, dict):
        return
    if value.get("matchPolicy") not in (None, "Equivalent", "Exact"):
        yield not_supported(f"{path}.matchPolicy", value["matchPolicy"], ("Equivalent", "Exact"))
    for key in ("namespaceSelector", "objectSelector"):
        yield from checks.label_selector(value.get(key), f"{path}.{key}")
    for key in ("resourceRules", "excludeResourceRules"):
        for index, item in numbered(value, key):
            yield from named_rule(item, f"{path}.{key}[{index}]")
            few = key == "resourceRules" and len(operations) < len(OPERATIONS)
            for operation in item.get("operations") or () if few else ():
                if operation not in operations:
                    yield not_supported(f"{path}.{key}.operations", operation, operations)
    if not optional and not value.get("resourceRules"):
        yield required_error(f"{path}.resourceRules")


def match_conditions(value: Any, path: str) -> Errors:
    """Conditions have expressions and names that are unique."""
    given = value if isinstance(value, list) else []
    yield from checks.no_more_than(given, path, 64)
    seen = set()
    for index, condition in numbered({"": given}, ""):
        place = f"{path}[{index}]"
        if not str(condition.get("expression") or "").strip():
            yield required_error(f"{place}.expression")
        name = condition.get("name")
        if not name:
            yield required_error(f"{place}.name")
            continue
        for detail in names.qualified_name_faults(name):
            yield invalid_value(f"{place}.name", name, detail)
        if name in seen:
            yield duplicate(f"{place}.name", name)
        seen.add(name)


def variables(value: Any, path: str) -> Errors:
    """Variables have expressions and names that are identifiers."""
    for index, variable in numbered({"": value}, ""):
        place = f"{path}[{index}]"
        name = variable.get("name") or ""
        if not name.strip():
            yield required_error(f"{place}.name", "name is not specified")
        elif not is_cel_identifier(name):
            yield invalid_value(f"{place}.name", name, "must be a valid CEL identifier")
        if not str(variable.get("expression") or "").strip():
            yield required_error(f"{place}.expression", "expression is not specified")


def is_cel_identifier(text: str) -> bool:
    """Whether ``text`` names something in CEL."""
    return text.isascii() and text.isidentifier() and text not in RESERVED


@of_missing
def validations(value: Any, path: str) -> Errors:
    """A policy validates or annotates; what a validation says is one line."""
    spec = value if isinstance(value, dict) else {}
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        for key in ("validations", "auditAnnotations"):
            yield required_error(
                f"{path}.{key}", "validations or auditAnnotations must contain at least one item"
            )
    for index, validation in numbered(spec, "validations"):
        place = f"{path}.validations[{index}]"
        if not str(validation.get("expression") or "").strip():
            yield required_error(f"{place}.expression", "expression is not specified")
        message, text = validation.get("message") or "", validation.get("messageExpression") or ""
        if text and not text.strip():
            yield invalid_value(f"{place}.messageExpression", text, "must be non-empty if specified")
        if message and not message.strip():
            yield invalid_value(f"{place}.message", message, "must be non-empty if specified")
        elif any(end in message.strip() for end in "\n\r"):
            yield invalid_value(f"{place}.message", message, "must not contain line breaks")
        reason = validation.get("reason")
        if reason is not None and reason not in _REASONS:
            yield not_supported(f"{place}.reason", reason, _REASONS)


def audit_annotations(value: Any, path: str) -> Errors:
    """Audit annotations have keys, short ones, and expressions."""
    given = value if isinstance(value, list) else []
    if len(given) > 20:
        yield invalid_value(path, given, "must not have more than 20 auditAnnotations")
    seen = set()
    for index, annotation in numbered({"": given}, ""):
        place = f"{path}[{index}]"
        key = annotation.get("key") or ""
        if key in seen:
            yield duplicate(f"{place}.key", key)
        seen.add(key)
        if not str(annotation.get("valueExpression") or "").strip():
            yield required_error(f"{place}.valueExpression", "valueExpression is not specified")


def audit_keys(value: Json, path: str) -> Errors:
    """With the policy's name before it, the key of an audit annotation is a qualified name."""
    del path
    name = lookup(value, "metadata", "name") or ""
    for index, annotation in numbered(struct(value, "spec") or {}, "auditAnnotations"):
        full = f"{name}/{annotation.get('key') or ''}"
        for detail in names.qualified_name_faults(full):
            yield invalid_value(f"spec.auditAnnotations[{index}].key", full, detail)


def param_ref(value: Any, path: str) -> Errors:
    """Where a binding's parameters are: by name or by labels."""
    if not isinstance(value, dict):
        return
    name, selector = value.get("name"), value.get("selector")
    if name:
        yield from checks.string_format(name, f"{path}.name", "path-segment")
    if name and selector is not None:
        for key in ("name", "selector"):
            yield forbidden(f"{path}.{key}", "name and selector are mutually exclusive")
    elif not name and selector is None:
        yield required_error(path, "one of name or selector must be specified")
    yield from checks.label_selector(selector, f"{path}.selector")
    action = value.get("parameterNotFoundAction")
    if not action:
        yield required_error(f"{path}.parameterNotFoundAction")
    elif action not in ("Allow", "Deny"):
        yield not_supported(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow"))


@of_missing
def validation_actions(value: Any, path: str) -> Errors:
    """What a failed validation leads to."""
    given = value if isinstance(value, list) else []
    if not given:
        yield required_error(path, "at least one validation action is required")
    seen = set()
    for index, action in enumerate(given):
        if action not in ("Audit", "Deny", "Warn"):
            yield not_supported(f"{path}[{index}]", action, ("Audit", "Deny", "Warn"))
        if action in seen:
            yield duplicate(f"{path}[{index}]", action)
        seen.add(action)
    if {"Deny", "Warn"} <= seen:
        yield invalid_value(
            path,
            given,
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)",
        )


_PATCHES = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}


@of_missing
def mutations(value: Any, path: str) -> Errors:
    """A mutating policy mutates; each mutation says how by the field its type names."""
    given = value if isinstance(value, list) else []
    if not given:
        yield required_error(path, "mutations must contain at least one item")
    for index, mutation in numbered({"": given}, ""):
        place = f"{path}[{index}]"
        kind = mutation.get("patchType") or ""
        if not kind:
            yield required_error(f"{place}.patchType")
        elif kind not in _PATCHES:
            yield not_supported(f"{place}.patchType", kind, tuple(_PATCHES))
        for other, field in _PATCHES.items():
            patch = struct(mutation, field)
            if other == kind and patch is None:
                yield required_error(f"{place}.{field}", f"must be specified when patchType is {kind}")
            elif other == kind and patch is not None and not str(patch.get("expression") or "").strip():
                yield required_error(f"{place}.{field}.expression")
            elif other != kind and kind in _PATCHES and patch is not None:
                yield invalid_value(
                    f"{place}.{field}", f"{{{field}}}", f"must not be specified when patchType is {kind}"
                )


_PATCH_TYPES = {"applyConfiguration": CONFIGURATION, "jsonPatch": PATCHES}


def unusable(path: str, source: str, fault: ExpressionFault) -> FieldError:
    """The error for an expression that cannot be used."""
    if fault.internal:
        return FieldError(Reason.INTERNAL, path, str(fault))
    return invalid_value(path, source, str(fault))


def policy_expressions(value: Json, path: str, old: Json | None = None) -> Errors:
    """Every expression of a policy compiles and gives what it is there for; those stored before did once, and do again
    with the variables and parameters of then."""
    del path
    spec, before = struct(value, "spec") or {}, struct(old or {}, "spec") or {}
    same = (spec.get("paramKind") is None) == (before.get("paramKind") is None)
    same = same and (spec.get("variables") or []) == (before.get("variables") or [])
    stored = {source for _, source, _ in _expressions(before)} if same else set()
    compiler = Compiler(has_params=spec.get("paramKind") is not None, mutates="mutations" in spec)
    for index, variable in numbered(spec, "variables"):
        source = str(variable.get("expression") or "")
        if source.strip() and variable.get("name"):
            try:
                compiler.declare(variable["name"], source)
            except ExpressionFault as fault:
                yield unusable(f"spec.variables[{index}].expression", source, fault)
    # Conditions are evaluated before the rest of the policy, so they know neither variables nor patches.
    plain = Compiler(has_params=spec.get("paramKind") is not None)
    for place, source, wanted in _expressions(spec):
        if source.strip() and source not in stored:
            try:
                chosen = plain if place.startswith("spec.matchConditions") else compiler
                chosen.compile(source, wanted, asks=not place.endswith(".messageExpression"))
            except ExpressionFault as fault:
                yield unusable(place, source, fault)


def _expressions(spec: Json) -> Iterator[tuple[str, str, tuple[Type, ...]]]:
    """Path, text and wanted types of all expressions but variables, in the order in which they are reported.

    Validations are compiled with the blanks around them, all others without: a position counts from there.
    """
    for index, condition in numbered(spec, "matchConditions"):
        source = str(condition.get("expression") or "").strip()
        yield f"spec.matchConditions[{index}].expression", source, BOOL
    for index, validation in numbered(spec, "validations"):
        place = f"spec.validations[{index}]"
        yield f"{place}.expression", str(validation.get("expression") or ""), BOOL
        yield f"{place}.messageExpression", str(validation.get("messageExpression") or ""), STRING
    for index, annotation in numbered(spec, "auditAnnotations"):
        place = f"spec.auditAnnotations[{index}].valueExpression"
        yield place, str(annotation.get("valueExpression") or "").strip(), TEXT_OR_NULL
    for index, mutation in numbered(spec, "mutations"):
        field = _PATCHES.get(str(mutation.get("patchType")))
        if field is not None:
            patch, wanted = struct(mutation, field) or {}, _PATCH_TYPES[field]
            place = f"spec.mutations[{index}].{field}.expression"
            yield place, str(patch.get("expression") or "").strip(), wanted
