"""Resources out of the paths of an OpenAPI document, as Kubernetes lays them out.

``/api/<version>`` or ``/apis/<group>/<version>``, then optionally ``namespaces/{namespace}``, then
``<plural>[/{name}[/<subresource>]]``. What an operation does its ``x-kubernetes-action`` says, and
``x-kubernetes-group-version-kind`` which object it takes. Paths without actions (discovery, health, logs) are
no resources. OpenAPI says no short names, categories or columns, and the singular is the kind in small letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import PrinterColumn, Resource, Subresource
from kubewright.ir.types import Json
from kubewright.location import Document, escape_pointer
from kubewright.source import markers

_PATH = re.compile(
    r"^/(?:api|apis/(?P<group>[^/{}]+))/(?P<version>[^/{}]+)"
    r"(?:/(?P<watch>watch))?"
    r"(?P<namespaced>/namespaces/\{namespace\})?"
    r"/(?P<plural>[^/{}]+)(?P<item>/\{name\})?(?:/(?P<sub>[^/{}]+))?(?:/\{path\})?/?$"
)
_VERBS = {
    "get": "get",
    "list": "list",
    "post": "create",
    "put": "update",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "deletecollection",
    "watch": "watch",
    "watchlist": "watch",
}
_CONNECT_VERBS = {"get": "get", "post": "create", "put": "update", "patch": "patch", "delete": "delete"}
_METHODS = ("get", "put", "post", "delete", "patch", "options", "head")
DEFAULT_COLUMNS = (
    PrinterColumn(name="Name", type="string", format="name"),
    PrinterColumn(name="Created At", type="date"),
)
"""What a server shows of a kind without columns of its own."""

Gvk = tuple[str, str, str]


@dataclass(slots=True)
class _Found:
    """What the paths of one resource (or subresource) have said so far."""

    pointer: str
    namespaced: bool = False
    verbs: set[str] = field(default_factory=set)
    kind: Gvk | None = None
    list_kind: str = ""


def read_resources(
    document: Document,
    definitions: Mapping[Gvk, str],
    list_kinds: Mapping[str, str],
    diagnostics: Diagnostics,
) -> tuple[Resource, ...]:
    """The resources of ``document``. ``definitions`` names the definition of each GVK; ``list_kinds`` the kind
    of each definition. A resource whose kind has no definition is an error."""
    found: dict[tuple[str, str, str, str], _Found] = {}
    paths = document.value.get("paths")
    for path, item in paths.items() if isinstance(paths, dict) else ():
        match = _PATH.match(path)
        if match and isinstance(item, dict):
            _read_path(document, path, item, match, found, list_kinds, diagnostics)
    return tuple(_resources(found, document, definitions, diagnostics))


def _read_path(
    document: Document,
    path: str,
    item: Json,
    match: re.Match[str],
    found: dict[tuple[str, str, str, str], _Found],
    list_kinds: Mapping[str, str],
    diagnostics: Diagnostics,
) -> None:
    place = f"/paths/{escape_pointer(path)}"
    key = (match["group"] or "", match["version"], match["plural"], match["sub"] or "")
    for method in _METHODS:
        operation = item.get(method)
        if not isinstance(operation, dict) or not isinstance(operation.get("x-kubernetes-action"), str):
            continue
        action = operation["x-kubernetes-action"]
        entry = found.setdefault(key, _Found(place))
        entry.namespaced |= bool(match["namespaced"])
        verb = _CONNECT_VERBS.get(method) if action == "connect" else _VERBS.get(action)
        if verb is None and action != "connect":
            diagnostics.error(
                "K103",
                f"x-kubernetes-action has the unknown value {action!r}",
                document.at(f"{place}/{method}/x-kubernetes-action"),
                f"one of: {', '.join([*_VERBS, 'connect'])}",
            )
        if verb:
            entry.verbs.add(verb)
        if action == "list":
            entry.list_kind = list_kinds.get(_answer(operation), "")
            if _has_watch_parameter(document, operation, item):
                entry.verbs.add("watch")
        kinds = markers.read_kinds(operation, f"{place}/{method}", document, diagnostics)
        if kinds:
            entry.kind = entry.kind or kinds[0]


def _answer(operation: Json) -> str:
    """The name of the definition a successful answer holds, or an empty string."""
    responses = operation.get("responses")
    answer = responses.get("200", responses.get(200)) if isinstance(responses, dict) else None
    if not isinstance(answer, dict):
        return ""
    schema = answer.get("schema")
    content = answer.get("content")
    if isinstance(content, dict):
        schema = next((body.get("schema") for body in content.values() if isinstance(body, dict)), None)
    target = schema.get("$ref") if isinstance(schema, dict) else None
    return target.rpartition("/")[2] if isinstance(target, str) else ""


def _has_watch_parameter(document: Document, operation: Json, item: Json) -> bool:
    given = [*_list(operation.get("parameters")), *_list(item.get("parameters"))]
    return any(_parameter(document, parameter).get("name") == "watch" for parameter in given)


def _parameter(document: Document, parameter: Json) -> Json:
    """``parameter`` with its reference followed, one step."""
    if not isinstance(parameter, dict):
        return {}
    target = parameter.get("$ref")
    if not isinstance(target, str) or not target.startswith("#/"):
        return parameter
    node = document.value
    for token in target[2:].split("/"):
        node = node.get(token.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _resources(
    found: dict[tuple[str, str, str, str], _Found],
    document: Document,
    definitions: Mapping[Gvk, str],
    diagnostics: Diagnostics,
) -> Iterator[Resource]:
    for (group, version, plural, sub), entry in found.items():
        if sub or entry.kind is None:
            continue
        definition = definitions.get(entry.kind)
        if definition is None:
            diagnostics.error(
                "K206",
                f"{plural} serves {entry.kind[2]}, which no definition is registered for",
                document.at(entry.pointer),
                f"add {markers.GROUP_VERSION_KIND} to its definition",
            )
            continue
        yield Resource(
            group=group,
            version=version,
            kind=entry.kind[2],
            plural=plural,
            singular=entry.kind[2].lower(),
            namespaced=entry.namespaced,
            verbs=tuple(sorted(entry.verbs)),
            definition=definition,
            location=document.at(entry.pointer),
            list_kind=entry.list_kind,
            subresources=tuple(
                Subresource(
                    name=name,
                    verbs=tuple(sorted(part.verbs)),
                    group=part.kind[0] if part.kind else group,
                    version=part.kind[1] if part.kind else version,
                    kind=part.kind[2] if part.kind else entry.kind[2],
                )
                for (g, v, p, name), part in sorted(found.items())
                if name and (g, v, p) == (group, version, plural)
            ),
            printer_columns=DEFAULT_COLUMNS,
        )
