"""Type checks of policies: their expressions against the kinds that they are about, as warnings in the status.

``object``, ``oldObject`` and ``params`` get the types of their schemas. A kind is checked where rules name its group,
version and resource, without wildcards. A variable that does not compile has any type. Source: KEP-3488.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from apimachinery.cel.schemas.schema_types import SchemaTypes
from apimachinery.cel.values import types as t
from apimachinery.cel.values.types import Type
from apimachinery.kinds.admissionregistration.policy_expressions import (
    BOOL,
    STRING,
    Compiler,
    ExpressionFault,
    PolicyTypes,
)

MOST_KINDS = 10
Json = dict[str, Any]
Gvk = tuple[str, str, str]
SchemaOf = Callable[[Gvk], Mapping[str, Any] | None]
"""The schema of a kind with all references resolved; None where it has none that can be."""
_PREFIX = "compilation failed: "


class _Types:
    """The types of policies together with those of schemas."""

    def __init__(self, schemas: Iterable[SchemaTypes]) -> None:
        self._schemas = tuple(schemas)

    def over(self, policy: PolicyTypes) -> _Both:
        """Asks a policy's types first."""
        return _Both(policy, self._schemas)


class _Both:
    def __init__(self, policy: PolicyTypes, schemas: tuple[SchemaTypes, ...]) -> None:
        self._policy = policy
        self._schemas = schemas

    def find_type(self, type_name: str) -> Type | None:
        return self._policy.find_type(type_name)

    def field_type(self, type_name: str, field: str) -> Type | None:
        for schema in self._schemas:
            if type_name in schema.objects:
                return schema.field_type(type_name, field)
        return self._policy.field_type(type_name, field)

    def construct(self, type_name: str, fields: dict[str, Any]) -> Any:
        return self._policy.construct(type_name, fields)


def warnings_of(spec: Json, kinds: Iterable[Gvk], schema_of: SchemaOf) -> list[Json]:
    """The ``expressionWarnings`` of a policy that is about ``kinds``."""
    checkers: list[tuple[Gvk, Compiler]] = []
    for gvk in kinds:
        compiler = _compiler(spec, gvk, schema_of)
        if compiler is not None:
            checkers.append((gvk, compiler))
    found = []
    for place, source, wanted in _expressions(spec):
        said = []
        for (group, version, kind), compiler in checkers:
            try:
                compiler.compile(source, wanted, asks=not place.endswith(".messageExpression"))
            except ExpressionFault as fault:
                said.append(f"{group}/{version}, Kind={kind}: {str(fault).removeprefix(_PREFIX)}\n")
        if said:
            found.append({"fieldRef": place, "warning": "\n".join(said)})
    return found


def _expressions(spec: Json) -> Iterator[tuple[str, str, tuple[Type, ...]]]:
    for number, validation in enumerate(spec.get("validations") or ()):
        place = f"spec.validations[{number}]"
        yield f"{place}.expression", validation.get("expression") or "", BOOL
        if validation.get("messageExpression"):
            yield f"{place}.messageExpression", validation["messageExpression"], STRING


def _compiler(spec: Json, gvk: Gvk, schema_of: SchemaOf) -> Compiler | None:
    schema = schema_of(gvk)
    if schema is None:
        return None
    # The names of types are seen by nobody.
    of_object = SchemaTypes(schema, name="object.type")
    if of_object.root is None:
        return None
    variables = {"object": of_object.root.type, "oldObject": of_object.root.type}
    schemas = [of_object]
    if (params := spec.get("paramKind")) is not None:
        group, _, version = (params.get("apiVersion") or "").rpartition("/")
        param_schema = schema_of((group, version, params.get("kind") or ""))
        of_params = None if param_schema is None else SchemaTypes(param_schema, name="params.type")
        if of_params is not None and of_params.root is not None:
            variables["params"] = of_params.root.type
            schemas.append(of_params)
        else:
            variables["params"] = t.DYN
    compiler = Compiler(has_params=params is not None, typed=variables, types=_Types(schemas).over)
    for variable in spec.get("variables") or ():
        with contextlib.suppress(ExpressionFault):
            compiler.declare(variable.get("name") or "", variable.get("expression") or "")
    return compiler


def kinds_of(spec: Json, find: Callable[[str, str, str], Gvk | None]) -> list[Gvk]:
    """The kinds that a policy's rules name, by group, version and kind; ``find`` knows the kind of a resource."""
    found: set[Gvk] = set()
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        count = 0
        for group in sorted(_named(rule.get("apiGroups"), "*")):
            for version in sorted(_named(rule.get("apiVersions"), "*")):
                for resource in sorted(_named(rule.get("resources"), "*/")):
                    gvk = find(group, version, resource)
                    if gvk is not None:
                        found.add(gvk)
                        count += 1
                        if count == MOST_KINDS:
                            return sorted(found)
    return sorted(found)


def _named(words: Any, wild: str) -> list[str]:
    return [word for word in words or () if not any(char in word for char in wild)]


def resolved(definitions: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """A definition with its references replaced by what they name; None where it holds itself or something unknown."""
    try:
        whole: Mapping[str, Any] = _resolved(definitions, {"$ref": f"#/definitions/{name}"}, ())
    except (KeyError, RecursionError):
        return None
    return whole


_SHORT = {"Quantity": {}, "IntOrString": {"x-kubernetes-int-or-string": True}}
"""What has no one type: CEL sees nothing of the first, anything of the second."""


def _resolved(definitions: Mapping[str, Any], schema: Any, above: tuple[str, ...]) -> Any:
    if not isinstance(schema, dict):
        return schema
    if (reference := schema.get("$ref")) is not None:
        name = reference.removeprefix("#/definitions/")
        if name in above:
            raise KeyError(name)
        short = _SHORT.get(name.rpartition(".")[2])
        if short is not None:
            return short
        return _resolved(definitions, definitions[name], (*above, name))
    found = dict(schema)
    for key in ("items", "additionalProperties"):
        if key in found:
            found[key] = _resolved(definitions, found[key], above)
    if isinstance(found.get("properties"), dict):
        found["properties"] = {
            key: _resolved(definitions, value, above) for key, value in found["properties"].items()
        }
    return found
