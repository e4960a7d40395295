"""Joins fragments like object files: one table of definitions, every reference resolved, order fixed.

- A definition that several fragments bring counts once if they agree (words and places aside: the first one's
  stay); their GVKs are united. Where they disagree it is an error: a model cannot be two types. Only of
  apimachinery's types, which every server brings in the release it was built with, the fuller one is taken.
- References that no fragment defines are looked up in the library fragments, as a linker does in an
  archive: only the members that are reached come in. That is how CRDs get ``ObjectMeta``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Api, Fragment, Group, Resource
from kubewright.ir.operations import Interface, Operation
from kubewright.ir.packages import APIMACHINERY, group_versions, package_of
from kubewright.ir.types import Definition, EmbeddedObject, Json, Ref, Struct, Value
from kubewright.ir.versions import version_priority
from kubewright.ir.walk import children, describe, referenced, values
from kubewright.location import Location

Library = Callable[[], Fragment | None]
"""Loaded only when a reference is left open."""


def link(
    name: str,
    fragments: Iterable[Fragment],
    diagnostics: Diagnostics,
    *,
    library: Library | None = None,
    facts: tuple[tuple[str, Json], ...] = (),
) -> Api:
    """The linked API. Problems go into ``diagnostics``; the result is sound only if there are none."""
    table: dict[str, Definition] = {}
    resources: dict[tuple[str, str, str], Resource] = {}
    groups: dict[str, Group] = {}
    interfaces: list[Interface] = []
    for fragment in fragments:
        groups |= {group.name: group for group in fragment.groups}
        for definition in fragment.definitions:
            _add_definition(table, definition, diagnostics)
        for resource in fragment.resources:
            _add_resource(resources, resource, diagnostics)
        if fragment.interface is not None:
            interfaces.append(fragment.interface)
    interface = _joined(interfaces)
    operations = interface.operations if interface else ()
    borrowed = _resolve(table, resources.values(), operations, library, diagnostics)
    _assign_group_versions(table)
    _refuse_alias_cycles(table, diagnostics)
    _refuse_shared_kinds(table, diagnostics)
    return Api(
        name=name,
        definitions=tuple(sorted(table.values(), key=lambda d: (d.group, d.version, d.name))),
        resources=tuple(resources[key] for key in sorted(resources)),
        groups=_rank_groups(groups, resources.values()),
        facts=facts,
        borrowed=borrowed,
        interface=interface,
    )


def _joined(interfaces: list[Interface]) -> Interface | None:
    """The operations of all documents as one: names that were used before get a number, and those of another server
    keep it."""
    if len(interfaces) < 2:
        return interfaces[0] if interfaces else None
    first = interfaces[0]
    operations: dict[str, Operation] = {}
    for interface in interfaces:
        server = interface.server if interface.server != first.server and "://" in interface.server else ""
        for operation in interface.operations:
            name, count = operation.name, 2
            while name in operations:
                name, count = f"{operation.name} {count}", count + 1
            operations[name] = replace(operation, name=name, server=operation.server or server)
    schemes = {scheme.name: scheme for interface in interfaces for scheme in interface.schemes}
    return replace(
        first,
        operations=tuple(operations.values()),
        schemes=tuple(schemes.values()),
        forms=frozenset().union(*(interface.forms for interface in interfaces)),
    )


def _add_definition(table: dict[str, Definition], new: Definition, diagnostics: Diagnostics) -> None:
    old = table.get(new.name)
    if old is None:
        table[new.name] = new
        return
    difference = find_difference(old.value, new.value)
    kept = old
    if difference and new.name.startswith(APIMACHINERY):
        kept = max(old, new, key=lambda definition: len(dict(children(definition.value))))
        diagnostics.warning(
            "K207",
            f"{new.name} is not the one at {old.value.location}: {difference}",
            new.value.location,
            "the one with more fields is taken: every server brings its own release of these types",
        )
    elif difference:
        diagnostics.error(
            "K204",
            f"{new.name} is described differently at {old.value.location}: {difference}",
            new.value.location,
            "read each type from one source, or make the sources agree",
        )
        return
    table[new.name] = replace(kept, kinds=tuple(sorted({*old.kinds, *new.kinds})))


def _rank_groups(groups: dict[str, Group], resources: Iterable[Resource]) -> tuple[Group, ...]:
    """All groups that serve something, by falling priority, then name; preferred version first."""
    versions: dict[str, set[str]] = {}
    for resource in resources:
        versions.setdefault(resource.group, set()).add(resource.version)
    for name, served in versions.items():
        if name not in groups:
            groups[name] = Group(
                name=name, versions=tuple(sorted(served, key=version_priority, reverse=True))
            )
    return tuple(sorted(groups.values(), key=lambda group: (-group.priority, group.name)))


def find_difference(old: Value, new: Value) -> str:
    """The first place where two descriptions differ, in words; empty where they agree. Order of fields, prose and
    places do not count."""
    stack = [("it", old, new)]
    while stack:
        name, left, right = stack.pop(0)
        ours, theirs = dict(children(left)), dict(children(right))
        if type(left.type) is not type(right.type) or (not ours and left.type != right.type):
            return f"{name} is {describe(left.type)} there, {describe(right.type)} here"
        for step in sorted(ours.keys() ^ theirs.keys()):
            return f"{name}{step} stands only {'there' if step in ours else 'here'}"
        if _required(left) != _required(right):
            return f"other fields of {name} are required"
        for what in ("default", "nullable", "merge", "constraints", "extensions"):
            if getattr(left, what) != getattr(right, what):
                return f"the {_WORDS.get(what, what)} of {name} differs"
        stack += [(f"{name}{step}", value, theirs[step]) for step, value in ours.items()]
    return ""


def _required(value: Value) -> set[str]:
    body = value.type.body if isinstance(value.type, EmbeddedObject) else value.type
    return {f.wire_name for f in body.fields if f.required} if isinstance(body, Struct) else set()


_WORDS = {"merge": "merge rule", "constraints": "validation"}


def _add_resource(
    resources: dict[tuple[str, str, str], Resource], new: Resource, diagnostics: Diagnostics
) -> None:
    key = (new.group, new.version, new.plural)
    old = resources.get(key)
    if old is None:
        resources[key] = new
    elif replace(old, location=new.location) != new:
        group_version = f"{new.group}/{new.version}".lstrip("/")
        diagnostics.error(
            "K205",
            f"resource {new.plural} of {group_version} is already defined at {old.location}",
            new.location,
            "keep one of the two",
        )


def _resolve(
    table: dict[str, Definition],
    resources: Iterable[Resource],
    operations: Iterable[Operation],
    library: Library | None,
    diagnostics: Diagnostics,
) -> frozenset[str]:
    """Brings in what is referred to and not there; the names of what came from the library."""
    archive: dict[str, Definition] | None = None
    borrowed: set[str] = set()
    pending = list(table.values())
    wanted = {r.definition: r.location for r in resources if r.definition not in table}
    for operation in operations:
        for value in operation.values():
            wanted |= {name: value.location for name in referenced(value) if name not in table}
    while pending or wanted:
        for definition in pending:
            for name in referenced(definition.value):
                if name not in table:
                    wanted.setdefault(name, _place_of(definition, name))
        pending = []
        if wanted and archive is None:
            fragment = library() if library else None
            archive = {d.name: d for d in fragment.definitions} if fragment else {}
        for name, location in wanted.items():
            member = (archive or {}).get(name)
            if member is None:
                diagnostics.error(
                    "K201",
                    f"cannot resolve the type {name!r}",
                    location,
                    "add the document that defines it to the sources",
                )
            else:
                table[name] = member
                pending.append(member)
                borrowed.add(name)
        wanted = {}
    return frozenset(borrowed)


def _place_of(definition: Definition, name: str) -> Location:
    for value in values(definition.value):
        if isinstance(value.type, Ref) and value.type.name == name:
            return value.location
    return definition.value.location


def _assign_group_versions(table: dict[str, Definition]) -> None:
    """Gives every definition whose source did not say it (no version) its group and version."""
    owners = group_versions((definition.name, definition.kinds) for definition in table.values())
    for name, definition in table.items():
        if not definition.version:
            group, version = owners[package_of(name)]
            table[name] = replace(definition, group=group, version=version)


def _refuse_alias_cycles(table: dict[str, Definition], diagnostics: Diagnostics) -> None:
    """Refuses chains of definitions that are nothing but references and lead back to themselves."""
    for name in sorted(table):
        seen = [name]
        node = table[name].value.type
        while isinstance(node, Ref) and node.name in table:
            if node.name in seen:
                if node.name == name and name == min(seen):
                    diagnostics.error(
                        "K202",
                        f"$ref cycle without a type: {' → '.join([*seen, name])}",
                        table[name].value.location,
                        "one of them must be an object, a list or a scalar",
                    )
                break
            seen.append(node.name)
            node = table[node.name].value.type


def _refuse_shared_kinds(table: dict[str, Definition], diagnostics: Diagnostics) -> None:
    """Refuses a GVK that two types claim. Types of meta/v1 are registered for many groups, and yield."""
    owner: dict[tuple[str, str, str], Definition] = {}
    for definition in sorted(table.values(), key=lambda d: d.name):
        if len(definition.kinds) != 1:
            continue
        kind = definition.kinds[0]
        if kind in owner:
            group_version = f"{kind[0]}/{kind[1]}".lstrip("/")
            diagnostics.error(
                "K203",
                f"{kind[2]} of {group_version} is claimed by {owner[kind].name} and by {definition.name}",
                definition.value.location,
                "a group, version and kind name one type",
            )
        owner.setdefault(kind, definition)
