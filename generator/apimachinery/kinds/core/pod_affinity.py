"""Where pods may run: node selectors, affinity between pods, how they spread, what they tolerate."""

from __future__ import annotations

import re
from typing import Any

from apimachinery.kinds import checks, gates
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import Json, numbered, struct
from apimachinery.kinds.formats import FORMATS
from apimachinery.meta.field_errors import duplicate, forbidden, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_IN = ("In", "NotIn")
_EXISTS = ("Exists", "DoesNotExist")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


def affinity(value: Any, path: str) -> Errors:
    """The affinity of a pod."""
    if not isinstance(value, dict):
        return
    nodes = struct(value, "nodeAffinity")
    if nodes is not None:
        place = f"{path}.nodeAffinity"
        if nodes.get(_REQUIRED) is not None:
            yield from node_selector(nodes[_REQUIRED], f"{place}.{_REQUIRED}")
        for index, term in numbered(nodes, _PREFERRED):
            at = f"{place}.{_PREFERRED}[{index}]"
            yield from _weight(term, at)
            yield from _term(struct(term, "preference") or {}, f"{at}.preference", check_values=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = struct(value, kind)
        if pods is None:
            continue
        for index, term in numbered(pods, _REQUIRED):
            yield from _pod_term(term, f"{path}.{kind}.{_REQUIRED}[{index}]")
        for index, weighted in numbered(pods, _PREFERRED):
            at = f"{path}.{kind}.{_PREFERRED}[{index}]"
            yield from _weight(weighted, at)
            yield from _pod_term(struct(weighted, "podAffinityTerm") or {}, f"{at}.podAffinityTerm")


def _weight(term: Json, path: str) -> Errors:
    weight = term.get("weight") or 0
    if not 1 <= weight <= 100:
        yield invalid_value(f"{path}.weight", weight, "must be in the range 1-100")


def node_selector(value: Any, path: str) -> Errors:
    """A selector of nodes has at least one term."""
    if not isinstance(value, dict):
        return
    if not value.get("nodeSelectorTerms"):
        yield required_error(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in numbered(value, "nodeSelectorTerms"):
        yield from _term(term, f"{path}.nodeSelectorTerms[{index}]")


def _term(term: Json, path: str, *, check_values: bool = True) -> Errors:
    for index, requirement in numbered(term, "matchExpressions"):
        yield from _node_requirement(requirement, f"{path}.matchExpressions[{index}]", check_values)
    for index, requirement in numbered(term, "matchFields"):
        yield from _field_requirement(requirement, f"{path}.matchFields[{index}]")


def _node_requirement(requirement: Json, path: str, check_values: bool) -> Errors:
    operator, values = requirement.get("operator") or "", requirement.get("values") or []
    if operator in _IN:
        if not values:
            yield required_error(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _EXISTS:
        if values:
            yield forbidden(
                f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required_error(f"{path}.values", detail)
    else:
        yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")
    yield from checks.each_fault(requirement.get("key") or "", f"{path}.key", "qualified-name")
    for index, text in enumerate(values if check_values else ()):
        yield from checks.each_fault(text, f"{path}.values[{index}]", "label-value")


def _field_requirement(requirement: Json, path: str) -> Errors:
    operator, values = requirement.get("operator") or "", requirement.get("values") or []
    if operator not in _IN:
        yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        yield required_error(
            f"{path}.values",
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )
    if requirement.get("key") != "metadata.name":
        yield invalid_value(f"{path}.key", requirement.get("key") or "", "not a valid field selector key")
        return
    for index, text in enumerate(values):
        yield from checks.each_fault(text, f"{path}.values[{index}]", "dns-subdomain")


def _pod_term(term: Json, path: str) -> Errors:
    yield from checks.label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    yield from checks.label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        yield from checks.each_fault(name, f"{path}.namespace", "dns-label")
    yield from _label_keys(term, path)
    key = term.get("topologyKey") or ""
    if not key:
        yield required_error(f"{path}.topologyKey", "can not be empty")
    yield from checks.each_fault(key, f"{path}.topologyKey", "qualified-name")


def _label_keys(term: Json, path: str) -> Errors:
    """Keys whose values are taken from the pod: they need a selector, and are not in it already."""
    selector = struct(term, "labelSelector")
    matched, unmatched = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    for name, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", unmatched)):
        if keys and selector is None:
            yield forbidden(f"{path}.{name}", "must not be specified when labelSelector is not set")
            continue
        for index, key in enumerate(keys):
            yield from checks.each_fault(key, f"{path}.{name}[{index}]", "qualified-name")
    if selector is not None:
        places = {key: index for index, key in enumerate(matched)}
        # A key taken from the pod is in matchExpressions already; twice means that the user wrote it too.
        seen = set(selector.get("matchLabels") or ())
        for _, expression in numbered(selector, "matchExpressions"):
            key = expression.get("key") or ""
            if key in places and key in seen:
                yield invalid_value(
                    f"{path}[{places[key]}]", key, "exists in both matchLabelKeys and labelSelector"
                )
            seen.add(key)
    for index, key in enumerate(matched):
        if key in unmatched:
            yield invalid_value(
                f"{path}.matchLabelKeys[{index}]", key, "exists in both matchLabelKeys and mismatchLabelKeys"
            )


def _above_zero(value: Any, path: str) -> Errors:
    if isinstance(value, int) and value <= 0:
        yield invalid_value(path, value, "must be greater than zero")


def topology_spread(value: Any, path: str) -> Errors:
    """How pods spread: one constraint for each key and action."""
    given = [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    pairs = [(each.get("topologyKey") or "", each.get("whenUnsatisfiable") or "") for each in given]
    last = {pair: index for index, pair in enumerate(pairs)}
    for index, constraint in enumerate(given):
        place, action = f"{path}[{index}]", pairs[index][1]
        yield from _above_zero(constraint.get("maxSkew") or 0, f"{place}.maxSkew")
        if not pairs[index][0]:
            yield required_error(f"{place}.topologyKey", "can not be empty")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            yield not_supported(f"{place}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        if last[pairs[index]] > index:
            text = f"{{{pairs[index][0]}, {action}}}"
            yield duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", text)
        domains = constraint.get("minDomains")
        if domains is not None:
            yield from _above_zero(domains, f"{place}.minDomains")
            if action != "DoNotSchedule":
                yield invalid_value(
                    f"{place}.minDomains",
                    domains,
                    f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}",
                )
        for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(key) not in (None, "Honor", "Ignore"):
                yield not_supported(f"{place}.{key}", constraint[key], ("Honor", "Ignore"))
        yield from _label_keys({**constraint, "mismatchLabelKeys": None}, place)
        yield from checks.label_selector(constraint.get("labelSelector"), f"{place}.labelSelector")


def tolerations(value: Any, path: str) -> Errors:
    """What a pod tolerates."""
    for index, toleration in enumerate(value if isinstance(value, list) else ()):
        if isinstance(toleration, dict):
            yield from _toleration(toleration, f"{path}[{index}]")


def unique_tolerations(value: Any, path: str) -> Errors:
    """What all pods of a class tolerate: nothing twice."""
    seen: list[Any] = []
    for index, toleration in enumerate(value if isinstance(value, list) else ()):
        if isinstance(toleration, dict):
            yield from _toleration(toleration, f"{path}[{index}]")
            same = [toleration.get(key) or "" for key in ("key", "operator", "value", "effect")]
            if same in seen:
                yield duplicate(f"{path}[{index}]", toleration)
            seen.append(same)


def _toleration(value: Json, path: str) -> Errors:
    key, operator, effect = value.get("key"), value.get("operator") or "", value.get("effect") or ""
    text = value.get("value") or ""
    if key:
        yield from checks.each_fault(key, f"{path}.key", "qualified-name")
    elif operator != "Exists":
        yield invalid_value(
            f"{path}.operator",
            operator,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    if value.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid_value(
            f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"
        )
    if operator in ("", "Equal"):
        faults = FORMATS["label-value"](text)
        if faults:
            yield invalid_value(f"{path}.operator", text, ";".join(faults))
    elif operator == "Exists":
        if text:
            yield invalid_value(f"{path}.operator", text, "value must be empty when `operator` is 'Exists'")
    elif operator in ("Lt", "Gt"):
        yield from _compared(operator, text, path)
    else:
        yield not_supported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect:
        yield from taint_effect(effect, f"{path}.effect")


def _compared(operator: str, text: str, path: str) -> Errors:
    if not gates.enabled("TaintTolerationComparisonOperators"):
        yield not_supported(f"{path}.operator", operator, ("Equal", "Exists", "Lt", "Gt"))
    elif not _INTEGER.fullmatch(text):
        yield invalid_value(f"{path}.value", text, "must be a valid decimal integer in canonical form")
    elif not -(2**63) <= int(text) < 2**63:
        yield invalid_value(f"{path}.value", text, f'strconv.ParseInt: parsing "{text}": value out of range')


def taint_effect(value: Any, path: str) -> Errors:
    """What a taint does to pods that do not tolerate it."""
    if not value:
        yield required_error(path)
    elif value not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
        yield not_supported(path, value, ("NoSchedule", "PreferNoSchedule", "NoExecute"))
