"""What is served: resources by group, version and plural; groups in the order of discovery.

Built-in resources come once, at the start; those of CustomResourceDefinitions come and go while the server runs.
Whatever is made from the whole (discovery, OpenAPI) is recreated when ``generation`` has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from apimachinery.meta.resources import Group
from apimachinery.server.catalog.options import RELEASE
from apimachinery.server.catalog.served import Served

CUSTOM_PRIORITY = 1000


@dataclass(slots=True)
class ServedGroup:
    """A group, its versions preferred first, and whether it is built in."""

    name: str
    versions: tuple[str, ...]
    priority: int
    builtin: bool
    resources: dict[tuple[str, str], Served] = field(default_factory=dict)


class Catalog:
    """All resources of a server, which answers as Kubernetes of ``release`` does."""

    def __init__(self, release: str = RELEASE) -> None:
        self._release = release
        self._groups: dict[str, ServedGroup] = {}
        self.generation = 0
        self._resources: dict[tuple[str, str, str], Served] = {}
        self._custom: dict[str, list[Served]] = {}
        self._owners: dict[str, dict[str, None]] = {}
        self._changed: set[str] = set()

    @property
    def groups(self) -> dict[str, ServedGroup]:
        """All groups by name. Those that have changed are put together when somebody looks, so that many definitions
        may come before that."""
        while self._changed:
            self._gather(self._changed.pop())
        return self._groups

    def add_group(self, group: Group, versions: tuple[str, ...], resources: Iterable[Served]) -> None:
        """Adds a built-in group with the versions that are served."""
        served = self._groups[group.name] = ServedGroup(group.name, versions, group.priority, True)
        for resource in resources:
            resource.release = self._release
            served.resources[resource.version, resource.plural] = resource
            self._resources[group.name, resource.version, resource.plural] = resource
        self.generation += 1

    def find(self, group: str, version: str, plural: str) -> Served | None:
        """A resource, None where there is none."""
        return self._resources.get((group, version, plural))

    def set_custom(self, owner: str, resources: list[Served]) -> None:
        """Puts the resources of a CustomResourceDefinition in place of those it had; an empty list takes them away."""
        old = self._custom.pop(owner, [])
        groups = {resource.group for resource in (*old, *resources)}
        for resource in old:
            self._resources.pop((resource.group, resource.version, resource.plural), None)
        if resources:
            self._custom[owner] = resources
        for resource in resources:
            resource.release = self._release
            self._resources[resource.group, resource.version, resource.plural] = resource
        for group in groups:
            owners = self._owners.setdefault(group, {})
            owners.pop(owner, None)
            if resources:
                owners[owner] = None
            self._changed.add(group)
        self.generation += 1

    def _gather(self, name: str) -> None:
        builtin = self._groups.get(name)
        if builtin is not None and builtin.builtin:
            return
        found = [r for owner in self._owners[name] for r in self._custom[owner] if r.group == name]
        if not found:
            self._groups.pop(name, None)
            del self._owners[name]
            return
        versions = sorted({resource.version for resource in found}, key=version_order)
        group = ServedGroup(name, tuple(versions), CUSTOM_PRIORITY, False)
        # Discovery lists a group's resources as their definitions are named.
        for resource in sorted(found, key=lambda r: r.plural):
            group.resources[resource.version, resource.plural] = resource
        self._groups[name] = group

    def in_order(self) -> list[ServedGroup]:
        """All groups but the core one, as discovery lists them."""
        named = [group for group in self.groups.values() if group.name]
        return sorted(named, key=lambda group: (-group.priority, group.name))

    def __iter__(self) -> Iterator[Served]:
        return iter(self._resources.values())


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sorts versions as discovery does: stable, beta, alpha, each from the newest; other names last."""
    import re

    match = re.fullmatch(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?", version)
    if match is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return (stage, -int(match[1]), -int(match[3] or 0), "")
