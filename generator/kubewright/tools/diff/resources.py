"""Comparing two APIs: resources, versions, and the schemas of versions both have."""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.ir.api import Api, Resource
from kubewright.ir.versions import version_priority
from kubewright.location import Location
from kubewright.tools.diff.change import KINDS, ApiChange, Impact
from kubewright.tools.diff.roundtrip import api_version_of, compare_roundtrips, resource_path
from kubewright.tools.diff.schemas import Comparison
from kubewright.tools.diff.wire import compare_wire

Found = tuple[str, Resource, str, Location]
_LOSING = frozenset({"D201", "D222", "D229"})
_BREAKING = (Impact.BREAKS_WRITERS, Impact.BREAKS_STORED)


def compare(old: Api, new: Api, *, documentation: bool = False) -> list[ApiChange]:
    """Every change from ``old`` to ``new``, ordered by path and code."""
    changes = {
        ApiChange(KINDS[code], resource_path(resource), resource.version, message, location)
        for code, resource, message, location in _resources(old, new)
    }
    before = {d.name: d for d in old.definitions}
    after = {d.name: d for d in new.definitions}
    shared = Comparison(before, after, documentation)
    then = {(r.group, r.version, r.plural): r for r in old.resources}
    # A definition that several versions share is compared once: in the version that promises most.
    by_promise = sorted(new.resources, key=lambda r: version_priority(r.version)[0], reverse=True)
    for resource in by_promise:
        earlier = then.get((resource.group, resource.version, resource.plural))
        if earlier is None or earlier.definition not in before or resource.definition not in after:
            continue
        was, now = before[earlier.definition].value, after[resource.definition].value
        for code, path, message, location in shared.values("", was, now):
            changes.add(ApiChange(KINDS[code], _place(resource, path), resource.version, message, location))
    changes.update(compare_roundtrips(old, new))
    changes.update(compare_wire(old, new))
    return sorted(changes, key=lambda c: (c.path, c.kind.code, c.message))


def _place(resource: Resource, path: str) -> str:
    return f"{resource_path(resource)}: {path}" if path else resource_path(resource)


def _resources(old: Api, new: Api) -> Iterator[Found]:
    before, after = _by_plural(old), _by_plural(new)
    for key, versions in before.items():
        if key not in after:
            for resource in versions.values():
                yield "D101", resource, "resource removed", resource.location
            continue
        yield from _versions(versions, after[key], old, new)
    for key, versions in after.items():
        if key not in before:
            for resource in versions.values():
                yield "D151", resource, "resource added", resource.location


def _by_plural(api: Api) -> dict[tuple[str, str], dict[str, Resource]]:
    found: dict[tuple[str, str], dict[str, Resource]] = {}
    for resource in api.resources:
        found.setdefault((resource.group, resource.plural), {})[resource.version] = resource
    return found


def _versions(old: dict[str, Resource], new: dict[str, Resource], before: Api, after: Api) -> Iterator[Found]:
    for version, was in old.items():
        now = new.get(version)
        if now is None:
            judged = _succeeded(was, new, before, after)
            yield "D102", was, f"version {version} removed{_excuse(was)}{judged}", was.location
            if (was.storage or was.stored) and not was.introduced:
                said = f"version {version} removed, and objects may be stored in it: a server refuses the CRD until"
                yield (
                    "D117",
                    was,
                    f"{said} they are stored again and status.storedVersions lacks it",
                    was.location,
                )
            continue
        yield from _resource(was, now)
        if now.deprecated and not was.deprecated:
            if _has_successor(now, new, after):
                yield "D154", now, "deprecated", now.location
            else:
                yield "D116", now, "deprecated, and no version as stable is served", now.location
        elif was.deprecated and not now.deprecated:
            yield "D158", now, "no longer deprecated", now.location
    for version, now in new.items():
        if version not in old:
            yield "D152", now, f"version {version} added", now.location
    stored = [next((r for r in state.values() if r.storage), None) for state in (old, new)]
    if stored[0] is not None and stored[1] is not None and stored[0].version != stored[1].version:
        moved = f"storage version moved from {stored[0].version} to {stored[1].version}"
        known = stored[1].version in old
        said = (
            moved
            if known
            else f"{moved}, which the state before does not know: going back would lose objects"
        )
        yield "D106" if known else "D107", stored[1], said, stored[1].location


def _succeeded(gone: Resource, versions: dict[str, Resource], before: Api, after: Api) -> str:
    """What becomes of the objects of a removed version in the one that is stored now."""
    successor = next((r for r in versions.values() if r.storage), None)
    tables = [{d.name: d for d in state.definitions} for state in (before, after)]
    if successor is None or gone.definition not in tables[0] or successor.definition not in tables[1]:
        return ""
    values = tables[0][gone.definition].value, tables[1][successor.definition].value
    found = [*Comparison(tables[0], tables[1]).values("", *values)]
    lost = [path for code, path, *_ in found if code in _LOSING]
    refused = [path for code, path, *_ in found if code not in _LOSING and KINDS[code].impact in _BREAKING]
    said = [
        f"{word} {', '.join(dict.fromkeys(paths[:3]))}{f' and {len(paths) - 3} more' if len(paths) > 3 else ''}"
        for word, paths in (("drops", lost), ("may refuse or change what is at", refused))
        if paths
    ]
    if not said:
        return f"; {successor.version} takes every object as it is"
    return f"; of its objects {successor.version} {' and '.join(said)}"


def _has_successor(deprecated: Resource, versions: dict[str, Resource], state: Api) -> bool:
    """Whether a version as stable is there: of the resource, or what its life cycle names. Betas of built-in kinds
    count though a server serves them only when told to."""
    api_version, _, kind = deprecated.replacement.rpartition("/")
    named = [r for r in state.resources if api_version_of(r) == api_version and r.kind == kind]
    return any(
        (r.served or r.introduced)
        and not r.deprecated
        and version_priority(r.version)[0] >= version_priority(deprecated.version)[0]
        for r in (*versions.values(), *named)
    )


def _excuse(resource: Resource) -> str:
    return " (it was deprecated)" if resource.deprecated else ""


def _resource(was: Resource, now: Resource) -> Iterator[Found]:
    where = now.location
    if was.served and not now.served:
        yield "D103", now, f"version {now.version} is no longer served{_excuse(was)}", where
    if was.namespaced != now.namespaced:
        scopes = ["cluster-scoped", "namespaced"]
        yield "D104", now, f"scope changed from {scopes[was.namespaced]} to {scopes[now.namespaced]}", where
    if was.kind != now.kind:
        yield "D105", now, f"kind renamed from {was.kind} to {now.kind}", where
    for code, shown, before_name, after_name in (
        ("D118", "list kind", was.list_kind, now.list_kind),
        ("D119", "singular name", was.singular, now.singular),
    ):
        if before_name != after_name and before_name and was.kind == now.kind:
            yield code, now, f'{shown} changed from "{before_name}" to "{after_name}"', where
    yield from _columns(was, now)
    yield from _subresources(was, now)
    named = (
        ("D110", "D156", "selectable field", was.selectable_fields, now.selectable_fields),
        ("D111", "", "short name", was.short_names, now.short_names),
        ("D112", "", "category", was.categories, now.categories),
        ("D113", "D155", "verb", was.verbs, now.verbs),
        (
            "D114",
            "D157",
            "printer column",
            tuple(c.name for c in was.printer_columns),
            tuple(c.name for c in now.printer_columns),
        ),
    )
    for removed, added, what, before, after in named:
        for name in before:
            if name not in after:
                yield removed, now, f'{what} "{name}" removed', where
        for name in after if added else ():
            if name not in before:
                yield added, now, f'{what} "{name}" added', where


def _columns(was: Resource, now: Resource) -> Iterator[Found]:
    columns = {c.name: c for c in was.printer_columns}
    for column in now.printer_columns:
        before = columns.get(column.name)
        if before is not None and (before.type, before.json_path) != (column.type, column.json_path):
            yield "D159", now, f'printer column "{column.name}" shows something else', now.location


def _subresources(was: Resource, now: Resource) -> Iterator[Found]:
    before, after = {s.name: s for s in was.subresources}, {s.name: s for s in now.subresources}
    for name, earlier in before.items():
        later = after.get(name)
        if later is None:
            yield "D108", now, f"subresource {name} removed", now.location
            continue
        for verb in earlier.verbs:
            if verb not in later.verbs:
                yield "D113", now, f'verb "{verb}" of subresource {name} removed', now.location
        for verb in later.verbs:
            if verb not in earlier.verbs:
                yield "D155", now, f'verb "{verb}" of subresource {name} added', now.location
        objects = [f"{s.group}/{s.version}/{s.kind}".lstrip("/") for s in (earlier, later)]
        if objects[0] != objects[1] and was.kind == now.kind:
            said = f"subresource {name} takes {objects[1]}, no longer {objects[0]}"
            yield "D120", now, said, now.location
        for shown, attribute in (
            ("specReplicasPath", "spec_replicas_path"),
            ("statusReplicasPath", "status_replicas_path"),
            ("labelSelectorPath", "label_selector_path"),
        ):
            paths = getattr(earlier, attribute), getattr(later, attribute)
            if paths[0] != paths[1] and paths[0]:
                yield (
                    "D109",
                    now,
                    f'{shown} of {name} changed from "{paths[0]}" to "{paths[1]}"',
                    now.location,
                )
    for name in after:
        if name not in before:
            # With a status subresource, writes to the main resource no longer change status.
            code = "D115" if name == "status" else "D153"
            yield code, now, f"subresource {name} added", now.location
