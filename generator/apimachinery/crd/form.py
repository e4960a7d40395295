"""The form in which CRDs are checked: one schema for all versions where they agree.

Theory. kube-apiserver checks an internal type, older than v1: what all versions have alike (schema,
subresources, columns, selectable fields) is once at the top, and faults in it are named there
(``spec.validation.…``); only where versions differ it is at each. Values of that type are printed in
faults with Go's field names. Schemas are normalized first, so that a key that is there is set: nulls,
empties and unknown keywords are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]

MAX_DEPTH = 150

_POINTERS = tuple(
    (
        "$ref maximum minimum maxLength minLength maxItems minItems multipleOf maxProperties minProperties default "
        "example x-kubernetes-preserve-unknown-fields x-kubernetes-list-type x-kubernetes-map-type"
    ).split()
)
_FLAGS = tuple(
    (
        "exclusiveMaximum exclusiveMinimum uniqueItems nullable x-kubernetes-embedded-resource "
        "x-kubernetes-int-or-string"
    ).split()
)
_PLAIN = tuple(
    (
        "id $schema description type format title pattern enum required externalDocs x-kubernetes-list-map-keys "
        "x-kubernetes-validations"
    ).split()
)
_SEVERAL = ("allOf", "oneOf", "anyOf")
_NAMED = ("properties", "patternProperties", "definitions")


class TooDeepError(ValueError):
    """A schema that nests deeper than ``MAX_DEPTH`` levels."""


def normalize_schema(raw: dict[str, Any] | None, depth: int = 0) -> Schema:
    """A schema with only what is set; null is the schema that sets nothing. Raises ``TooDeepError``."""
    if depth > MAX_DEPTH:
        raise TooDeepError(f"must not nest deeper than {MAX_DEPTH} levels")
    inner = depth + 1
    found: Schema = {}
    for key, value in (raw or {}).items():
        if value is None:
            continue
        if key in _POINTERS:
            found[key] = value
        elif key in _FLAGS or key in _PLAIN:
            if value:
                found[key] = value
        elif key in _SEVERAL:
            if value:
                found[key] = [normalize_schema(each, inner) for each in value]
        elif key in _NAMED:
            if value:
                found[key] = {name: normalize_schema(value[name], inner) for name in sorted(value)}
        elif key == "not":
            found[key] = normalize_schema(value, inner)
        elif key == "items":  # any scalar decodes to neither a schema nor a list of them
            found[key] = _either(value if isinstance(value, (dict, list)) else [], inner)
        elif key in ("additionalProperties", "additionalItems"):
            found[key] = _either(value, inner)
        elif key == "dependencies":
            found[key] = {name: _dependency(value[name], inner) for name in sorted(value)}
    return found


def _either(value: Any, depth: int) -> Any:
    """A schema, or the list of schemas or boolean that may stand for one."""
    if isinstance(value, dict):
        return normalize_schema(value, depth)
    if isinstance(value, list):
        return [normalize_schema(each, depth) for each in value]
    return value


def _dependency(value: Any, depth: int) -> Any:
    """A schema or a list of names."""
    return normalize_schema(value, depth) if isinstance(value, dict) else value or []


@dataclass(slots=True)
class Parts:
    """What a version may have of its own: each None or empty where it has none."""

    schema: Schema | None = None
    has_validation: bool = False
    subresources: dict[str, Any] | None = None
    columns: list[dict[str, Any]] = field(default_factory=list)
    selectable: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Version(Parts):
    """One version, without what it has in common with all others."""

    name: str = ""
    served: bool = False
    storage: bool = False
    deprecated: bool = False
    warning: str | None = None


@dataclass(slots=True)
class CheckedForm:
    """A CRD's spec as it is checked; ``common`` is what its versions have alike."""

    group: str
    scope: str
    names: dict[str, Any]
    versions: list[Version]
    common: Parts
    conversion: dict[str, Any] | None
    preserve: bool
    no_versions: bool

    @property
    def version(self) -> str:
        """The first version's name, which is at the top too."""
        return self.versions[0].name if self.versions else ""

    def schemas(self) -> list[Schema]:
        """Every schema there is, each once."""
        held = (self.common, *self.versions)
        return [each.schema for each in held if each.schema is not None]


def read_form(crd: dict[str, Any]) -> CheckedForm:
    """Bring a CRD into the form of its checks. Raises ``TooDeepError``."""
    spec = crd.get("spec") or {}
    versions = [_read_version(each) for each in spec.get("versions") or ()]
    common = Parts()
    if versions:
        _hoist(versions, common, lambda each: (each.has_validation, each.schema), _take_schema)
        _hoist(versions, common, lambda each: each.subresources, _take_subresources)
        _hoist(versions, common, lambda each: each.columns, _take_columns)
        _hoist(versions, common, lambda each: each.selectable, _take_selectable)
    return CheckedForm(
        group=spec.get("group") or "",
        scope=spec.get("scope") or "",
        names=spec.get("names") or {},
        versions=versions,
        common=common,
        conversion=spec.get("conversion"),
        preserve=bool(spec.get("preserveUnknownFields")),
        no_versions=spec.get("versions") is None,
    )


def _read_version(raw: dict[str, Any]) -> Version:
    validation = raw.get("schema")
    schema = (validation or {}).get("openAPIV3Schema")
    return Version(
        schema=None if schema is None else normalize_schema(schema),
        has_validation=validation is not None,
        subresources=raw.get("subresources"),
        columns=raw.get("additionalPrinterColumns") or [],
        selectable=raw.get("selectableFields") or [],
        name=raw.get("name") or "",
        served=bool(raw.get("served")),
        storage=bool(raw.get("storage")),
        deprecated=bool(raw.get("deprecated")),
        warning=raw.get("deprecationWarning"),
    )


def _hoist(
    versions: list[Version],
    common: Parts,
    part: Callable[[Version], Any],
    take: Callable[[Parts, Parts], None],
) -> None:
    first = part(versions[0])
    if all(part(each) == first for each in versions):
        take(versions[0], common)
        for each in versions:
            take(_NOTHING, each)


_NOTHING = Parts()


def _take_schema(source: Parts, target: Parts) -> None:
    target.schema, target.has_validation = source.schema, source.has_validation


def _take_subresources(source: Parts, target: Parts) -> None:
    target.subresources = source.subresources


def _take_columns(source: Parts, target: Parts) -> None:
    target.columns = list(source.columns)


def _take_selectable(source: Parts, target: Parts) -> None:
    target.selectable = list(source.selectable)
