"""What other servers serve behind this one, for discovery and OpenAPI to tell of. Whoever keeps it (``aggregation``)
replaces it as a whole and raises ``generation``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apimachinery.server.catalog.catalog import Catalog, version_order

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OtherVersion:
    """A group-version of another server: its entry in aggregated discovery, its OpenAPI v3 document as it came, with
    its hash, and what of its OpenAPI v2 document is to be merged. A document that did not come is None."""

    group: str
    version: str
    discovered: Json
    openapi_v3: tuple[str, bytes] | None = None
    openapi_v2: Json | None = None


@dataclass(slots=True)
class Others:
    """All of them by group and version; ``priorities`` are those of every group-version, this server's own as well."""

    versions: Mapping[tuple[str, str], OtherVersion] = field(default_factory=dict)
    priorities: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    generation: int = 0

    def in_order(self, catalog: Catalog) -> list[tuple[str, list[str]]]:
        """All groups but the core one with all their versions, as discovery lists them: by the highest priority of
        their versions, then by name; versions by their priority, then as Kubernetes orders them."""
        versions = {group.name: list(group.listed) for group in catalog.in_order()}
        highest = {group.name: group.priority for group in catalog.in_order()}
        for group, version in self.versions:
            listed = versions.setdefault(group, [])
            if version not in listed:
                listed.append(version)
        known: dict[str, int] = {}
        for (group, version), (priority, _) in self.priorities.items():
            if version in versions.get(group, ()):
                known[group] = max(known.get(group, 0), priority)
        highest |= known

        def place(group: str, version: str) -> tuple[Any, ...]:
            return (-self.priorities.get((group, version), (0, 0))[1], version_order(version))

        return [
            (name, sorted(versions[name], key=lambda version: place(name, version)))
            for name in sorted(versions, key=lambda name: (-highest.get(name, 0), name))
        ]
