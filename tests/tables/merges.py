"""Structured merge: schemas as structured-merge-diff writes them, its walks, and its updater."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from apimachinery.merge import field_set, fields_v1
from apimachinery.merge.compile import MergeTypes, SchemaError
from apimachinery.merge.errors import UnknownVersion
from apimachinery.merge.faults import explain
from apimachinery.merge.field_set import FieldSet, difference, union
from apimachinery.merge.managed_fields import APPLY, UPDATE, Managed, ManagedEntry, Owner
from apimachinery.merge.schema import (
    ABSENT,
    Either,
    Field,
    Kind,
    ListOf,
    ListType,
    MapOf,
    Ref,
    Scalar,
    Struct,
)
from apimachinery.merge.schema import Type as Declared
from apimachinery.merge.typed import Delta, MergeType, Misfit, extract_with_keys
from apimachinery.merge.updater import OwnedByOthers, Updater

from .agreement import TEXT, VALUE, VERDICT, Answer, Line, Suite

_SCHEMAS: dict[str, MergeTypes | str] = {}
_FORMS = ("list", "map")
_KINDS = frozenset(kind.value for kind in Kind)


def _declared(written: dict[str, Any]) -> Declared:
    """One type of a structured-merge-diff schema."""
    if name := written.get("namedType"):
        relation = written.get("elementRelationship")
        return Ref(name, None if relation is None else relation == "atomic")
    if relation := written.get("elementRelationship"):
        # A form written in place is held otherwise than it says itself.
        forms = {
            key: {**each, "elementRelationship": relation} for key, each in written.items() if key in _FORMS
        }
        if not forms:
            raise SchemaError("no type found matching: inlined type")
        return _declared(forms)
    forms: dict[str, Any] = {}
    if kind := written.get("scalar"):
        forms["scalar"] = Kind(kind) if kind in _KINDS else Kind.ANY
    if (items := written.get("list")) is not None:
        keys = tuple(items.get("keys") or ())
        associative = items.get("elementRelationship") == "associative"
        kind_of = (ListType.MAP if keys else ListType.SET) if associative else ListType.ATOMIC
        forms["list"] = ListOf(_declared(items.get("elementType") or {}), kind_of, keys)
    if (entries := written.get("map")) is not None:
        forms["map"] = _map(entries)
    if len(forms) == 1:
        only = next(iter(forms.values()))
        return Scalar(only) if isinstance(only, Kind) else only
    return Either(forms.get("scalar"), forms.get("list"), forms.get("map"))


def _map(written: dict[str, Any]) -> MapOf | Struct:
    atomic = written.get("elementRelationship") == "atomic"
    rest = _declared(written["elementType"]) if written.get("elementType") else None
    if not written.get("fields") and rest is not None:
        return MapOf(rest, atomic)
    fields = {
        field["name"]: Field(_declared(field["type"]), field.get("default", ABSENT))
        for field in written.get("fields") or ()
    }
    return Struct(fields, atomic, rest)


def prepare(lines: list[Line]) -> None:
    """Compiles the schemas that the other lines name."""
    for line in lines:
        if line["op"] == "schema":
            try:
                types = (yaml.load(line["yaml"], yaml.CSafeLoader) or {}).get("types") or ()
                _SCHEMAS[line["id"]] = MergeTypes({each["name"]: _declared(each) for each in types})
            except (yaml.YAMLError, ValueError, KeyError, AttributeError, TypeError) as error:
                _SCHEMAS[line["id"]] = str(error)


def _type(schema: str, name: str) -> MergeType:
    types = _SCHEMAS[schema]
    if isinstance(types, str):
        raise SchemaError(types)
    return types.named(name)


def _faults(type_: MergeType, value: Any, *, strict: bool) -> str | None:
    try:
        type_.owned(value, strict)
    except Misfit:
        return str(explain(type_, value, strict=strict))
    return None


def validate(line: Line) -> Iterator[Answer]:
    """``dup`` allows duplicate items."""
    ours = _faults(_type(line["schema"], line["type"]), line["value"], strict=not line["dup"])
    yield from _errors(line, ours)


def _errors(line: Line, ours: str | None) -> Iterator[Answer]:
    yield Answer(VERDICT, line.get("err") is not None, ours is not None)
    yield Answer(TEXT, line.get("err"), ours)


def toset(line: Line) -> Iterator[Answer]:
    """The fields that a value holds."""
    type_ = _type(line["schema"], line["type"])
    try:
        ours = type_.owned(line["value"], False)
    except Misfit:
        yield from _errors(line, str(explain(type_, line["value"], strict=False)))
        return
    yield from _errors(line, None)
    yield Answer(VALUE, line.get("out"), _shown(ours))


def _shown(fields: FieldSet | None) -> Any:
    return {} if fields is None else fields_v1.sort(fields)


def _two(line: Line, walk: str) -> Iterator[Answer]:
    type_ = _type(line["schema"], line["type"])
    ours, error = None, None
    try:
        ours = getattr(type_, walk)(line["value"], line["rhs"])
    except Misfit:
        error = next(
            (said for each in ("value", "rhs") if (said := _faults(type_, line[each], strict=False))),
            "misfit",
        )
    yield from _errors(line, error)
    if line.get("err") is None and error is None:
        yield Answer(VALUE, line.get("out"), _delta(ours) if walk == "compare" else ours)


def _delta(delta: Delta | None) -> list[Any]:
    """In the order of the recordings."""
    delta = delta or Delta(None, None, None)
    return [_shown(delta.modified), _shown(delta.added), _shown(delta.removed)]


def merge(line: Line) -> Iterator[Answer]:
    """One value over another."""
    yield from _two(line, "merge")


def compare(line: Line) -> Iterator[Answer]:
    """What changed."""
    yield from _two(line, "compare")


def remove(line: Line) -> Iterator[Answer]:
    """A value without fields."""
    type_ = _type(line["schema"], line["type"])
    yield Answer(VALUE, line["out"], type_.remove(line["value"], _set(line["set"]), keeps_empty=True))


def extract(line: Line) -> Iterator[Answer]:
    """A value with only some fields; ``keys``: with the keys of list items on the way."""
    type_, fields = _type(line["schema"], line["type"]), _set(line["set"])
    value = line["value"]
    ours = extract_with_keys(type_, value, fields) if line["keys"] else type_.extract(value, fields)
    yield Answer(VALUE, line["out"], ours)


def _set(fields: Any) -> FieldSet:
    return fields_v1.parse(fields or {})


def reconcile(line: Line) -> Iterator[Answer]:
    """A set of an older schema under this one; ``out`` where it changes."""
    given = _set(line["set"])
    ours = _type(line["schema"], line["type"]).reconcile(given) if given else given
    yield Answer(VALUE, line.get("out"), None if ours == given else _shown(ours))


_BINARY = {
    "Union": field_set.union,
    "Difference": field_set.difference,
    "RecursiveDifference": field_set.recursive_difference,
    "Intersection": field_set.intersection,
}


def sets(line: Line) -> Iterator[Answer]:
    """Operations of field sets."""
    a = _set(line["a"])
    ours = field_set.leaves(a) if line["fn"] == "Leaves" else _BINARY[line["fn"]](a, _set(line["b"]))
    yield Answer(VALUE, line["out"], _shown(ours))


class _Versions:
    """Test converters: objects stay as they are, at the versions a test accepts."""

    def __init__(self, type_: MergeType, accepted: set[str] | None) -> None:
        self._type, self._accepted = type_, accepted

    def type_of(self, api_version: str) -> MergeType:
        if self._accepted is not None and api_version not in self._accepted:
            raise UnknownVersion(api_version)
        return self._type

    def convert(self, value: Any, api_version: str) -> Any:
        self.type_of(api_version)
        return value


_PLAIN = ("*fixture.dummyConverter", "*merge_test.specificVersionConverter")


def _owner(name: str, version: str, applied: bool) -> Owner:
    return Owner(name, APPLY if applied else UPDATE, "" if applied else version)


def _changed(line: Line) -> Iterator[Answer]:
    if line["converter"] not in _PLAIN:
        return  # these convert between versions by rules of the test's own
    accepted = None
    if text := line.get("accepted"):
        accepted = set(text.strip("&{}[]").split())
    type_ = _type(line["new"]["schema"], line["new"]["type"])
    ignored = {version: _set(fields) for version, fields in (line.get("filter") or {}).items()}
    updater = Updater(_Versions(type_, accepted), ignored)
    version, name, applies = line["version"], line["manager"], line["op"] == "apply"
    managed: Managed = {
        _owner(each, *entry[:2]): ManagedEntry(entry[0], _set(entry[2]))
        for each, entry in line["managers"].items()
    }
    owner = _owner(name, version, applies)
    live, new = line["live"]["value"], line["new"]["value"]
    live = {} if live is None else live
    new = {} if new is None else new
    conflicts: list[str] | None = None
    try:
        if applies:
            merged, after = updater.apply(
                live, new, type_.owned(new) or {}, version, managed, owner, force=line["force"]
            )
        else:
            after, taken = updater.update(live, new, version, managed)
            merged = new
            last = after.pop(owner, None)
            fields = union(last.fields, taken) if last else taken
            if last:
                gone = type_.compare(live, new)
                fields = union(difference(last.fields, (gone.removed if gone else None) or {}), taken)
            if fields:
                after[owner] = ManagedEntry(version, fields)
    except OwnedByOthers as others:
        conflicts = sorted(
            f"{each.manager} {fields_v1.path_text(path)}"
            for each, fields in others.fields.items()
            for path in field_set.paths(fields)
        )
    yield Answer(VERDICT, line.get("conflicts") is not None, conflicts is not None)
    if conflicts is not None or line.get("conflicts") is not None:
        yield Answer(TEXT, sorted(line.get("conflicts") or ()), conflicts)
        return
    noop = applies and merged is live
    if not line.get("noop") or not noop:
        yield Answer(VALUE, line["live"]["value"] if line.get("noop") else line["out"], merged or None)
    yield Answer(
        "owners",
        line["outmanagers"],
        {
            each.manager: [entry.api_version, each.operation == APPLY, _shown(entry.fields)]
            for each, entry in after.items()
            if entry.fields
        },
    )


SUITE = Suite(
    "structured-merge",
    ("structured-merge.jsonl",),
    {
        "validate": validate,
        "toset": toset,
        "merge": merge,
        "compare": compare,
        "remove": remove,
        "extract": extract,
        "reconcile": reconcile,
        "set": sets,
        "apply": _changed,
        "update": _changed,
    },
    prepare,
)
