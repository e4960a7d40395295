"""One object of a live cluster, by what people type: ``deploy/web``, ``deployments.apps web``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from apimachinery.client.calls import UNSTRUCTURED, Call
from apimachinery.client.config import Config, ConfigError
from apimachinery.client.connection import Client
from apimachinery.client.endpoint import Request
from apimachinery.client.errors import ApiError, TransportError

DISCOVERY = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)


class NotThere(Exception):
    """The cluster cannot be reached, or has no such object; the text says which."""


@dataclass(frozen=True, slots=True)
class LiveKind:
    """A resource that a cluster serves."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()

    @property
    def resource(self) -> str:
        """As kubectl names it: ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str, name: str = "") -> str:
        """Where its objects are."""
        root = f"/apis/{quote(self.group)}" if self.group else "/api"
        scope = f"/namespaces/{quote(namespace, safe='')}" if self.namespaced and namespace else ""
        last = f"/{quote(name, safe='')}" if name else ""
        return f"{root}/{quote(self.version)}{scope}/{quote(self.plural)}{last}"


@contextmanager
def cluster(options: argparse.Namespace) -> Iterator[Client]:
    """A client of the cluster that ``--kubeconfig`` and ``--context`` name. Raises NotThere."""
    try:
        with Client(Config.load(options.kubeconfig, context=options.context)) as client:
            yield client
    except (ApiError, TransportError, ConfigError) as fault:
        raise NotThere(str(fault)) from None


def get(client: Client, path: str, accept: str = "application/json") -> Any:
    """The answer to a GET. Raises ApiError, TransportError."""
    return client.run(Call(Request("GET", path, {"Accept": accept}), UNSTRUCTURED.decode, repeatable=True))


def find_kind(client: Client, word: str) -> LiveKind:
    """The resource that a word names: plural, singular, short name or kind, with or without its group. Raises
    NotThere."""
    name, _, group = word.lower().partition(".")
    names: list[str] = []
    for own, version, resource in _served(client):
        if name in _names(resource) and group in ("", own):
            return _kind(own, version, resource)
        names.append(resource["resource"])
    near = [each for each in sorted(set(names)) if name[:3] and each.startswith(name[:3])]
    hint = f"; there are {', '.join(near[:8])}" if near else ""
    raise NotThere(f"the cluster serves no resource {word!r}{hint}")


def all_kinds(client: Client) -> list[LiveKind]:
    """Every resource, at its preferred version."""
    kinds: dict[str, LiveKind] = {}
    for group, version, resource in _served(client):
        kind = _kind(group, version, resource)
        kinds.setdefault(kind.resource, kind)
    return [*kinds.values()]


def _served(client: Client) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Group, version and resource of all that is served."""
    for root in ("/api", "/apis"):
        for found in get(client, root, DISCOVERY).get("items") or ():
            own = (found.get("metadata") or {}).get("name") or ""
            for resource, version in _resources(found):
                yield own, version, resource


def _resources(group: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """The resources of a group, those of its preferred version first."""
    for version in group.get("versions") or ():
        for resource in version.get("resources") or ():
            yield resource, version["version"]


def _names(resource: dict[str, Any]) -> set[str]:
    kind = (resource.get("responseKind") or {}).get("kind", "")
    return {
        resource["resource"],
        resource.get("singularResource", "").lower(),
        kind.lower(),
        *(resource.get("shortNames") or ()),
    } - {""}


def _kind(group: str, version: str, resource: dict[str, Any]) -> LiveKind:
    return LiveKind(
        group,
        version,
        resource["resource"],
        (resource.get("responseKind") or {}).get("kind", ""),
        resource.get("scope") == "Namespaced",
        frozenset(resource.get("verbs") or ()),
    )


def split_name(words: list[str]) -> tuple[str, str]:
    """The resource and the name of ``TYPE/NAME`` or ``TYPE NAME``. Raises NotThere."""
    resource, slash, name = words[0].partition("/")
    if len(words) == 2 and not slash:
        name = words[1]
    if not name or not resource or len(words) > 2 or (slash and len(words) == 2):
        raise NotThere(f"{' '.join(words)!r} names no object: write TYPE/NAME, such as deployments/web")
    return resource, name
