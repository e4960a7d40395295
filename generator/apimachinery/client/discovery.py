"""Which resources a server has: how a kind known only at run time finds its path, scope and verbs.

Source: the APIResourceList that every group-version answers (/api/v1, /apis/GROUP/VERSION).
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

import msgspec

from apimachinery.client.calls import Call
from apimachinery.client.endpoint import Request
from apimachinery.client.errors import UNDECODABLE, NotFound, UnreadableAnswer
from apimachinery.meta.gvk import GroupVersion
from apimachinery.meta.resources import Resource


class _Served(msgspec.Struct, rename="camel"):
    name: str
    kind: str
    namespaced: bool = False
    singular_name: str = ""
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()


class _ServedList(msgspec.Struct):
    resources: tuple[_Served, ...] = ()


_read: Final = msgspec.json.Decoder(_ServedList).decode


def served(api_version: str) -> Call[tuple[Resource, ...]]:
    """GET of the resources of a group-version (``v1``, ``apps/v1``), without subresources.

    The call raises ``NotFound`` where the server has no such group-version.
    """
    group, version = GroupVersion.parse(api_version)
    path = f"/apis/{quote(group)}/{quote(version)}" if group else f"/api/{quote(version)}"

    def decode(raw: bytes) -> tuple[Resource, ...]:
        try:
            found = _read(raw)
        except UNDECODABLE as error:
            raise UnreadableAnswer("an APIResourceList", error) from None
        return tuple(
            Resource(
                group=group,
                version=version,
                kind=entry.kind,
                plural=entry.name,
                singular=entry.singular_name,
                namespaced=entry.namespaced,
                verbs=entry.verbs,
                short_names=entry.short_names,
            )
            for entry in found.resources
            if "/" not in entry.name
        )

    return Call(Request("GET", path), decode, repeatable=True)


def find_kind(resources: tuple[Resource, ...], api_version: str, kind: str) -> Resource:
    """The resource of ``kind``. Raises ``NotFound`` naming the kinds that there are."""
    there = {resource.kind: resource for resource in resources}
    if kind in there:
        return there[kind]
    text = (
        f"{api_version} has no kind {kind}; the server serves {', '.join(sorted(there)) or 'nothing there'}"
    )
    raise NotFound(404, "NotFound", text, kind=kind, has_details=False)
