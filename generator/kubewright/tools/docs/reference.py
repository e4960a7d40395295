"""What reference pages say of an API, as data without any markup: group-versions, their types, the fields of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kubewright.ir.api import Api, Resource
from kubewright.ir.types import Definition, EmbeddedObject, Ref, Struct, Value
from kubewright.ir.versions import version_priority
from kubewright.ir.walk import children
from kubewright.tools.docs.wording import Table, facts, fields_of, is_deprecated, resolve, type_words

Facts = tuple[tuple[str, tuple[str, ...]], ...]
Link = tuple[str, str]
"""Text, and the anchor that it leads to, or nothing."""


@dataclass(frozen=True, slots=True)
class Row:
    """One field. ``children`` are the fields of an object that has no name; ``unfolds`` is the anchor of the type
    whose fields are below, where it has one."""

    name: str
    type: tuple[Link, ...]
    required: bool
    deprecated: bool
    doc: str
    facts: Facts
    rules: tuple[tuple[str, str], ...]
    children: tuple[Row, ...] = ()
    unfolds: str = ""


@dataclass(slots=True)
class KindEntry:
    """One type. ``kind`` says that objects of it exist; ``about`` are facts of the resource; ``used`` where it
    occurs."""

    anchor: str
    name: str
    api_version: str
    kind: bool
    doc: str
    type: tuple[Link, ...]
    deprecated: str
    about: Facts
    facts: Facts
    rules: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    words: str = ""
    versions: tuple[Link, ...] = ()
    used: list[Link] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DocumentedVersion:
    """The types of one group-version: kinds that are served, other registered kinds and parts. ``file`` is a name that
    is safe everywhere."""

    name: str
    file: str
    kinds: tuple[KindEntry, ...]
    parts: tuple[KindEntry, ...]


@dataclass(frozen=True, slots=True)
class ReferencePages:
    """Everything, by group and falling preference of the version."""

    title: str
    group_versions: tuple[DocumentedVersion, ...]


def reference(api: Api, title: str) -> ReferencePages:
    """The reference of ``api``."""
    return _Writer(api).write(title)


class _Writer:
    def __init__(self, api: Api) -> None:
        self.api = api
        self.table: Table = {definition.name: definition for definition in api.definitions}
        self.resources: dict[str, list[Resource]] = {}
        for resource in api.resources:
            self.resources.setdefault(resource.definition, []).append(resource)
        self.anchors: dict[str, str] = {}
        taken: set[str] = set()
        for definition in api.definitions:
            wanted = f"{definition.group or 'core'}.{definition.version}.{_short(definition.name)}"
            self.anchors[definition.name] = _unique(wanted, taken)

    def write(self, title: str) -> ReferencePages:
        entries = {definition.name: self._entry(definition) for definition in self.api.definitions}
        for definition in self.api.definitions:
            for path, name in _mentions(definition.value):
                link = (f"{entries[definition.name].name}{path}", self.anchors[definition.name])
                if link not in entries[name].used:
                    entries[name].used.append(link)
        groups: dict[tuple[str, str], list[Definition]] = {}
        for definition in self.api.definitions:
            groups.setdefault((definition.group, definition.version), []).append(definition)
        taken: set[str] = set()
        found = []
        for group, version in sorted(groups, key=self._order):
            members = [entries[d.name] for d in sorted(groups[group, version], key=lambda d: _short(d.name))]
            found.append(
                DocumentedVersion(
                    _api_version(group, version),
                    _unique(f"{group or 'core'}_{version}", taken),
                    tuple(entry for entry in members if entry.kind),
                    tuple(entry for entry in members if not entry.kind),
                )
            )
        return ReferencePages(title, tuple(found))

    def _order(self, pair: tuple[str, str]) -> tuple[bool, int, str, tuple[int, ...], str]:
        """Groups as discovery ranks them, most preferred version first; what serves nothing comes last."""
        group, version = pair
        ranks = {g.name: -g.priority for g in self.api.groups}
        served = any(r.group == group and r.version == version for r in self.api.resources)
        stage = version_priority(version)
        return (not served, ranks.get(group, 0), group, tuple(-n for n in stage[:3]), version)

    def _entry(self, definition: Definition) -> KindEntry:
        value = definition.value
        resources = self.resources.get(definition.name, [])
        whole = resolve(value, self.table)
        return KindEntry(
            anchor=self.anchors[definition.name],
            name=_short(definition.name),
            api_version=_api_version(definition.group, definition.version),
            kind=bool(resources) or self._is_kind(definition),
            doc=whole.doc,
            type=self._type(value),
            deprecated=_deprecation(resources, value),
            about=tuple(fact for resource in resources for fact in _about(resource)),
            facts=tuple(facts(whole)),
            rules=_rules(whole),
            rows=tuple(self._rows(value)),
            words=" ".join(word for r in resources for word in (r.plural, r.singular, *r.short_names)),
            versions=tuple(self._other_versions(definition, resources)),
        )

    def _is_kind(self, definition: Definition) -> bool:
        """Whether a description without any paths still says that objects of this type exist."""
        names = {member.wire_name for member in fields_of(definition.value, self.table)}
        return not self.api.resources and len(definition.kinds) == 1 and "metadata" in names - {"items"}

    def _other_versions(self, definition: Definition, resources: list[Resource]) -> Iterator[Link]:
        for name, others in self.resources.items():
            for other in others:
                if any(r.group == other.group and r.kind == other.kind for r in resources):
                    if name != definition.name:
                        yield other.version, self.anchors[name]

    def _rows(self, value: Value) -> Iterator[Row]:
        if isinstance(value.type, Ref):
            return
        for member in fields_of(value, {}):
            whole = resolve(member.value, self.table)
            inner = _inmost(member.value)
            yield Row(
                name=member.wire_name,
                type=self._type(member.value),
                required=member.required,
                deprecated=is_deprecated(whole),
                doc=whole.doc,
                facts=tuple(facts(whole)),
                rules=_rules(whole),
                children=tuple(self._rows(inner)),
                unfolds=self._unfolds(inner),
            )

    def _unfolds(self, value: Value) -> str:
        if isinstance(value.type, Ref) and fields_of(value, self.table):
            return self.anchors[value.type.name]
        return ""

    def _type(self, value: Value) -> tuple[Link, ...]:
        return tuple((text, self.anchors.get(name, "")) for text, name in type_words(value))


def _short(name: str) -> str:
    return name.rpartition(".")[2] or name


def _api_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version or "(no version)"


def _unique(wanted: str, taken: set[str]) -> str:
    """``wanted`` in characters that mean nothing in any markup or file system, and once only."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", wanted).lstrip(".-")[:120] or "_"
    name, number = safe, 2
    while name.lower() in taken:
        name, number = f"{safe}-{number}", number + 1
    taken.add(name.lower())
    return name


def _inmost(value: Value) -> Value:
    """The items of lists and values of maps that ``value`` is made of."""
    below = dict(children(value))
    while not isinstance(value.type, Struct | EmbeddedObject) and len(below) == 1:
        (value,) = below.values()
        below = dict(children(value))
    return value


def _mentions(value: Value) -> Iterator[tuple[str, str]]:
    """The definitions that ``value`` refers to, each with the path of the field."""
    stack = [("", value)]
    while stack:
        path, current = stack.pop()
        if isinstance(current.type, Ref):
            yield path, current.type.name
        stack += [(path + (step if step.startswith(".") else ""), inner) for step, inner in children(current)]


def _rules(value: Value) -> tuple[tuple[str, str], ...]:
    """Each CEL rule, and what it says to people."""
    return tuple((rule.rule, rule.message or rule.message_expression) for rule in value.constraints.rules)


def _deprecation(resources: list[Resource], value: Value) -> str:
    for resource in resources:
        if resource.deprecated or resource.deprecated_in:
            since = f" since {resource.deprecated_in}" if resource.deprecated_in else ""
            gone = f", gone in {resource.removed_in}" if resource.removed_in else ""
            instead = f"; use {resource.replacement}" if resource.replacement else ""
            return resource.deprecation_warning or f"Deprecated{since}{gone}{instead}"
    return "Deprecated" if is_deprecated(value) else ""


def _about(resource: Resource) -> Iterator[tuple[str, tuple[str, ...]]]:
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    place = "/namespaces/{namespace}" if resource.namespaced else ""
    yield "path", (f"{base}{place}/{resource.plural}",)
    yield "scope", ("namespaced" if resource.namespaced else "cluster",)
    if resource.short_names:
        yield "short names", resource.short_names
    if resource.categories:
        yield "categories", resource.categories
    yield "verbs", resource.verbs
    if resource.subresources:
        yield "subresources", tuple(part.name for part in resource.subresources)
    if resource.introduced:
        yield "since", (resource.introduced,)
    if not resource.served:
        yield "served", ("not unless asked for",)
    if resource.storage:
        yield "stored", ("in this version",)
