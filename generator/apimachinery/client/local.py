"""Apply without a server: what a server-side apply would make of an object, and the difference, told readably.

The merge is the server's own (apimachinery.merge), over the merge types of the generated package: so lists merge by
their keys, other managers' fields stand, what a manager gave up goes, and conflicts are the same. What only a server
adds (defaults, admission, validation, numbers it assigns) is not in the answer; ``apply(..., dry_run=True)`` asks it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from apimachinery.client.errors import ApplyConflict, BadRequest
from apimachinery.merge.apply import FieldOwnership, keep_times
from apimachinery.merge.errors import Conflicts, MergeError
from apimachinery.merge.field_set import FieldSet, from_paths, is_member, paths
from apimachinery.merge.fields_v1 import path_text
from apimachinery.merge.managed_fields import EntryError, decode
from apimachinery.merge.package import package_types
from apimachinery.merge.typed import MergeType, Misfit, compare_objects, extract_with_keys
from apimachinery.meta.errors import ApiError, Cause
from apimachinery.meta.resources import Resource
from apimachinery.typed import lossless
from apimachinery.typed.decoders import prepare
from apimachinery.typed.object import Object

if TYPE_CHECKING:
    from apimachinery.client.async_resource import AsyncResourceApi
    from apimachinery.client.resource import ResourceApi

T = TypeVar("T")

JsonObject: TypeAlias = dict[str, Any]
_ABSENT: Any = object()


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs. ``field`` reads ``.spec.containers[name="a"].image``; ``old`` is None for what is
    added, ``new`` for what is removed."""

    kind: Literal["added", "changed", "removed"]
    field: str
    old: Any = None
    new: Any = None

    def __str__(self) -> str:
        if self.kind == "added":
            return f"+ {self.field}: {_text(self.new)}"
        if self.kind == "removed":
            return f"- {self.field}: {_text(self.old)}"
        return f"~ {self.field}: {_text(self.old)} → {_text(self.new)}"


@dataclass(frozen=True, slots=True)
class Preview(Generic[T]):
    """What an apply would give: the object, as its class and as JSON, and how it differs from the live one.

    ``changes`` is in the order of the fields' paths and leaves managedFields out. As text: one change a line.
    """

    object: T
    json: JsonObject = field(repr=False)
    changes: tuple[FieldChange, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.changes))


class LocalApply(Generic[T]):
    """Apply, difference and extraction for the kind of one generated resource client, sync or async."""

    def __init__(
        self,
        api: ResourceApi[T] | AsyncResourceApi[T] | type[ResourceApi[T]] | type[AsyncResourceApi[T]],
    ) -> None:
        """``api`` is ``client.apps_v1.deployments`` or its class. Raises ``BadRequest`` for a dynamic one, which has
        no merge types."""
        if not (hasattr(api, "MODEL") and hasattr(api, "RESOURCE")):
            text = "local apply needs a generated client: a dynamic one does not know how its fields merge"
            raise _refused(text)
        self._model: type[Any] = api.MODEL
        self._resource: Resource = api.RESOURCE
        package = self._model.__module__.partition(".")[0]
        self._type: MergeType = package_types(package).named(self._resource.definition)
        has_status = any(sub.name == "status" for sub in self._resource.subresources)
        version = self._resource.api_version
        ignored: dict[str, FieldSet] = {version: from_paths([("status",)])} if has_status else {}
        self._has_status = has_status
        self._ownership = FieldOwnership(
            api_version=version, kind=self._resource.kind, type=self._type, ignored=ignored
        )

    def apply(
        self,
        live: T | Mapping[str, Any] | None,
        configuration: object,
        *,
        field_manager: str,
        force: bool = False,
    ) -> Preview[T]:
        """What ``field_manager`` applying ``configuration`` would make of ``live`` (None: nothing is there yet).

        Raises ``ApplyConflict`` unless ``force``, and ``BadRequest`` for a configuration or a live object that does
        not fit the kind. Neither is changed.
        """
        before, wanted = None if live is None else _json(live), _json(configuration)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        try:
            after = self._ownership.apply(before, wanted, field_manager, force=force, now=now)
        except Conflicts as refusal:
            raise _conflict(refusal) from None
        except MergeError as refusal:
            raise _refused(str(refusal)) from None
        if self._has_status:
            after = {**after, "status": (before or {}).get("status")}
            if after["status"] is None:
                del after["status"]
        if before is not None:
            after = keep_times(before, after)
        changes = tuple(self.diff(before or {}, after))
        prepare(self._model)
        try:
            made: T = msgspec.json.decode(msgspec.json.encode(after), type=self._model)
        except msgspec.ValidationError as error:
            raise _refused(f"the result is no {self._resource.kind}: {error}") from None
        if isinstance(made, Object):
            lossless.remember(made, msgspec.json.encode(after))
        return Preview(made, after, changes)

    def diff(self, old: T | Mapping[str, Any], new: T | Mapping[str, Any]) -> list[FieldChange]:
        """How two objects of the kind differ, field by field, items of lists told apart by their keys.

        managedFields are left out. Raises ``BadRequest`` for an object that does not fit the kind.
        """
        before, after = _without_entries(_json(old)), _without_entries(_json(new))
        try:
            delta = compare_objects(self._type, before, after)
        except Misfit:
            text = f"not a {self._resource.kind}: a list has an item twice, or a value the wrong type"
            raise _refused(text) from None
        found = [
            *(
                FieldChange("changed", path_text(p), _at(before, p), _at(after, p))
                for p in paths(delta.modified or {})
            ),
            *(FieldChange("added", path_text(p), None, _at(after, p)) for p in _topmost(delta.added or {})),
            *(
                FieldChange("removed", path_text(p), _at(before, p), None)
                for p in _topmost(delta.removed or {})
            ),
        ]
        return sorted(found, key=lambda change: change.field)

    def extract(
        self, live: T | Mapping[str, Any], *, field_manager: str, subresource: str = ""
    ) -> JsonObject:
        """The apply configuration that ``field_manager`` owns of ``live``: to change and apply again, as JSON.

        Holds apiVersion, kind and the name too. One that owns nothing by apply gets those alone. Raises
        ``BadRequest`` where managedFields cannot be read.
        """
        whole = _json(live)
        metadata = whole.get("metadata") or {}
        identity = {key: metadata[key] for key in ("name", "namespace") if metadata.get(key)}
        try:
            owners = decode(metadata.get("managedFields"))
        except EntryError as error:
            raise _refused(f"managedFields cannot be read: {error}") from None
        owned = next(
            (
                entry.fields
                for owner, entry in owners.items()
                if (owner.manager, owner.operation, owner.subresource)
                == (field_manager, "Apply", subresource)
            ),
            {},
        )
        found = (extract_with_keys(self._type, _without_entries(whole), owned) or {}) if owned else {}
        rest = {key: value for key, value in found.items() if key not in ("apiVersion", "kind", "metadata")}
        return {
            "apiVersion": self._resource.api_version,
            "kind": self._resource.kind,
            "metadata": {**identity, **(found.get("metadata") or {})},
            **rest,
        }


def _json(obj: object) -> JsonObject:
    if isinstance(obj, Mapping):
        return dict(obj)
    raw = lossless.encode(obj) if isinstance(obj, Object) else msgspec.json.encode(obj)
    value = msgspec.json.decode(raw)
    if not isinstance(value, dict):
        raise _refused(f"an object is needed, not {type(obj).__name__}")
    return value


def _without_entries(obj: JsonObject) -> JsonObject:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


def _topmost(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """The members that have no member above them: what came or went as a whole is reported once."""
    for element, node in fields.items():
        if element == ".":
            continue
        if is_member(node):
            yield (element,)
        else:
            for rest in _topmost(node):
                yield (element, *rest)


def _at(value: Any, path: Sequence[str]) -> Any:
    """The value at a path; None where an item cannot be found by its keys as they are."""
    for element in path:
        kind, rest = element[0], element[2:]
        if kind == "f":
            value = value.get(rest, _ABSENT) if isinstance(value, Mapping) else _ABSENT
        elif kind == "v":
            value = json.loads(rest)
        elif kind == "i":
            value = value[int(rest)] if isinstance(value, list) and int(rest) < len(value) else _ABSENT
        else:
            value = _item(value, json.loads(rest))
        if value is _ABSENT:
            return None
    return value


def _item(items: Any, keys: Mapping[str, Any]) -> Any:
    candidates = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    for item in candidates:
        # A key that an item leaves out has its default, which the path tells.
        if all(item.get(name, wanted) == wanted for name, wanted in keys.items()):
            return item
    return _ABSENT


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _refused(text: str) -> ApiError:
    return BadRequest(400, "BadRequest", text, has_details=False)


def _conflict(refusal: Conflicts) -> ApplyConflict:
    causes = tuple(Cause(c.reason, c.message, c.field) for c in refusal.causes)
    return ApplyConflict(409, "Conflict", str(refusal), causes=causes)
