"""What is served: resources by group, version and plural; groups in the order of discovery.

Built-in resources come once, at the start; those of CustomResourceDefinitions come and go while the server runs.
Whatever is made from the whole (discovery, OpenAPI) is recreated when ``generation`` has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from apimachinery.meta.release import RELEASE
from apimachinery.meta.resources import Group
from apimachinery.server.catalog.family import BUILT_IN, CUSTOM, Family
from apimachinery.server.catalog.served import Served

CUSTOM_PRIORITY = 1000


@dataclass(slots=True)
class ServedGroup:
    """A group, its versions preferred first, and the family of its resources.

    Of a built-in group nothing is served but its own resources, whatever definitions say. As with kube-apiserver their
    versions are ``announced`` all the same, before the group's own, but for those that it has itself.
    """

    name: str
    versions: tuple[str, ...]
    priority: int
    family: Family
    resources: dict[tuple[str, str], Served] = field(default_factory=dict)
    announced: dict[tuple[str, str], Served] = field(default_factory=dict)

    @property
    def listed(self) -> tuple[str, ...]:
        """The versions that discovery lists."""
        if not self.announced:
            return self.versions
        return (*sorted({version for version, _ in self.announced}, key=version_order), *self.versions)

    def has_builtin(self, version: str) -> bool:
        """Whether a version is a built-in one."""
        return self.family.builtin and version in self.versions

    def of_version(self, version: str) -> list[Served]:
        """The resources that discovery lists of a version."""
        shown = self.resources if version in self.versions else self.announced
        return [resource for (at, _), resource in shown.items() if at == version]


class Catalog:
    """All resources of a server, which answers as Kubernetes of ``release`` does. ``claimed`` says which package has a
    group, also one that is not served."""

    def __init__(self, release: str = RELEASE) -> None:
        self._release = release
        self._groups: dict[str, ServedGroup] = {}
        self.claimed: dict[str, str] = {}
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
        served = self._groups[group.name] = ServedGroup(group.name, versions, group.priority, BUILT_IN)
        for resource in resources:
            resource.release = self._release
            served.resources[resource.version, resource.plural] = resource
            self._resources[group.name, resource.version, resource.plural] = resource
        self.generation += 1

    def find(self, group: str, version: str, plural: str) -> Served | None:
        """A resource, None where there is none."""
        return self._resources.get((group, version, plural))

    def preferred(self, group: str, plural: str) -> Served | None:
        """A resource at the first version of its group that has it, None where there is none."""
        versions = self.groups[group].versions if group in self.groups else ()
        found = (self._resources.get((group, version, plural)) for version in versions)
        return next((served for served in found if served is not None), None)

    def expire(self, prefix: str, seconds: int) -> None:
        """Has the storage end the objects of a prefix so long after they were written last."""
        for served in self:
            if served.prefix == prefix:
                served.ttl = seconds

    def custom(self, owner: str) -> list[Served]:
        """The resources of a CustomResourceDefinition, served or not."""
        return self._custom.get(owner, [])

    def described(self) -> list[Served]:
        """All resources that documents tell of: those that are served, and those that are only announced."""
        announced = (served for group in self.groups.values() for served in group.announced.values())
        return [*(served for served in self._resources.values() if not served.hidden), *announced]

    def set_custom(self, owner: str, resources: list[Served]) -> None:
        """Puts the resources of a CustomResourceDefinition in place of those it had; an empty list takes them away."""
        old = self._custom.pop(owner, [])
        groups = {resource.group for resource in (*old, *resources)}
        for resource in old:
            if not self._is_builtin(resource.group):
                self._resources.pop(resource.named, None)
        if resources:
            self._custom[owner] = resources
        for resource in resources:
            resource.release = self._release
            if not self._is_builtin(resource.group):
                self._resources[resource.named] = resource
        for group in groups:
            owners = self._owners.setdefault(group, {})
            owners.pop(owner, None)
            if resources:
                owners[owner] = None
            self._changed.add(group)
        self.generation += 1

    def _is_builtin(self, group: str) -> bool:
        found = self._groups.get(group)
        return found is not None and found.family.builtin

    def _gather(self, name: str) -> None:
        found = [r for owner in self._owners[name] for r in self._custom[owner] if r.group == name]
        if not found:
            del self._owners[name]
        found = [r for r in found if not r.hidden]
        # Discovery lists a group's resources as their definitions are named.
        by_name = {(r.version, r.plural): r for r in sorted(found, key=lambda r: r.plural)}
        if self._is_builtin(name):
            builtin = self._groups[name]
            announced = {at: r for at, r in by_name.items() if r.version not in builtin.versions}
            self._groups[name] = replace(builtin, announced=announced)
        elif found:
            versions = sorted({resource.version for resource in found}, key=version_order)
            self._groups[name] = ServedGroup(name, tuple(versions), CUSTOM_PRIORITY, CUSTOM, by_name)
        else:
            self._groups.pop(name, None)

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
