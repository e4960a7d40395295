"""Everything that requests can do, as operations: what both versions of OpenAPI are made from, so they agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from apimachinery.meta.gvk import GVK
from apimachinery.meta.resources import Subresource
from apimachinery.server.catalog.served import Served
from apimachinery.server.describe.families import (
    ANY,
    DOCUMENTED,
    JSON_TYPE,
    PROTOBUF_TYPE,
    STREAMED,
    YAML_TYPE,
)
from apimachinery.server.describe.openapi_parameters import Parameter, of_path, of_verb
from apimachinery.server.request.codecs import MEDIA_TYPES

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
STATUS = f"{META}Status"
_DELETE_OPTIONS, _PATCH, _EVENT = f"{META}DeleteOptions", f"{META}Patch", f"{META}WatchEvent"
_VERSION_INFO = "io.k8s.apimachinery.pkg.version.Info"

_GROUP_TYPES = (JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE)
_METHODS = {
    "get": "get",
    "list": "get",
    "create": "post",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
}
_METHODS["deletecollection"] = "delete"
_WORDS = {"get": "read", "update": "replace", "deletecollection": "delete"}
_ACTIONS = {"create": "post", "update": "put"}
_CODES = {"create": (200, 201, 202), "update": (200, 201), "delete": (200, 202)}
# Of these kinds a deletion answers with the object, not with a Status.
_SHOWN_WHEN_DELETED: Mapping[str, frozenset[str]] = {
    "": frozenset(
        {
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ResourceQuota",
            "Service",
            "ServiceAccount",
        }
    ),
    "resource.k8s.io": frozenset(
        {"DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceTaintRule"}
    ),
    "storage.k8s.io": frozenset(
        {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"}
    ),
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. ``body`` and ``answer`` name definitions: an empty ``body`` is none, an empty
    ``answer`` is text. ``codes`` are those with an answer; ``action`` and ``gvk`` are empty for what is no resource.
    """

    path: str
    method: str
    id: str
    tag: str
    description: str
    answer: str
    produces: tuple[str, ...] = MEDIA_TYPES
    consumes: tuple[str, ...] = ANY
    codes: tuple[int, ...] = (200,)
    body: str = ""
    body_required: bool = False
    parameters: tuple[Parameter, ...] = ()
    action: str = ""
    gvk: GVK | None = None


def definition_name(served: Served) -> str:
    """The schema's name of a resource's kind: a group's names reversed, for custom ones."""
    if served.resource.definition:
        return served.resource.definition
    return f"{'.'.join(reversed(served.group.split('.')))}.{served.version}.{served.kind}"


def _joined(text: str, *, capital: bool) -> str:
    """The letters and digits of a text, a capital after whatever else there was (``ToValidOperationID``)."""
    made: list[str] = []
    for place, letter in enumerate(text):
        if letter.isalpha() or letter == "_" or (place and letter.isdigit()):
            made.append(letter.upper() if capital else letter)
            capital = False
        else:
            capital = True
    return "".join(made)


def _group_words(group: str) -> str:
    return group.removesuffix(".k8s.io") or "core"


def _tag(group: str, version: str) -> str:
    return f"{_joined(_group_words(group), capital=False)}_{_joined(version, capital=False)}"


def _named(word: str, group: str, version: str, rest: str) -> str:
    """An operationId; the same for every operation of a resource but for its verb and the end."""
    at = _joined(_group_words(group), capital=True) + _joined(version, capital=True)
    return f"{word}{at}{_joined(rest, capital=True)}"


def of_resource(served: Served, names: Mapping[GVK, str]) -> Iterator[Operation]:
    """Everything that a resource answers to; ``names`` are definitions by the kind that they describe."""
    root = f"/apis/{served.group}/{served.version}" if served.group else f"/api/{served.version}"
    scoped = f"{root}/namespaces/{{namespace}}" if served.namespaced else root
    listed, item = f"{scoped}/{served.plural}", f"{scoped}/{served.plural}/{{name}}"
    for verb in sorted(served.verbs - {"watch"}):
        yield _of_verb(served, verb, item if verb in ("get", "update", "patch", "delete") else listed)
    if served.namespaced and "list" in served.verbs:
        yield _of_verb(served, "list", f"{root}/{served.plural}")
    for sub in served.resource.subresources:
        yield from _of_subresource(served, sub, f"{item}/{sub.name}", names)
    if DOCUMENTED[served.family].watches and "watch" in served.verbs:
        for path in dict.fromkeys((item, listed, f"{root}/{served.plural}")):
            yield _watched(served, path, root)


def _of_verb(served: Served, verb: str, path: str) -> Operation:
    shown = definition_name(served)
    answer = shown
    if verb == "list":
        answer = f"{shown.rpartition('.')[0]}.{served.list_kind}"
    elif verb == "deletecollection" or (
        verb == "delete" and served.kind not in _SHOWN_WHEN_DELETED.get(served.group, ())
    ):
        answer = STATUS
    words = {
        "list": ("list or watch" if DOCUMENTED[served.family].watches and "watch" in served.verbs else "list")
        + f" objects of kind {served.kind}",
        "create": f"create {_article(served.kind)}",
        "delete": f"delete {_article(served.kind)}",
        "deletecollection": f"delete collection of {served.kind}",
        "get": f"read the specified {served.kind}",
        "update": f"replace the specified {served.kind}",
        "patch": f"partially update the specified {served.kind}",
    }
    end = ("Collection" if verb == "deletecollection" else "") + _scope(served, path) + served.kind
    if served.namespaced and "{namespace}" not in path:
        end += "ForAllNamespaces"
    return _operation(served, verb, path, end, words[verb], shown, answer)


def _scope(served: Served, path: str) -> str:
    return "Namespaced" if served.namespaced and "{namespace}" in path else ""


def _article(kind: str) -> str:
    if kind.endswith("s") and not kind.endswith("ss"):
        return kind  # a plural
    return f"{'an' if kind[:1] in 'AEIOU' else 'a'} {kind}"


def _operation(
    served: Served,
    verb: str,
    path: str,
    end: str,
    description: str,
    shown: str,
    answer: str,
    gvk: GVK | None = None,
    subresource: str = "",
) -> Operation:
    documented = DOCUMENTED[served.family]
    kind = gvk or GVK(served.group, served.version, served.kind)
    body = {"create": shown, "update": shown, "patch": _PATCH, "delete": _DELETE_OPTIONS}.get(verb, "")
    if verb == "deletecollection" and documented.clears_by_options:
        body = _DELETE_OPTIONS
    query = of_verb(verb, subresource if verb == "get" else "", documented.parameters)
    return Operation(
        path=path,
        method=_METHODS[verb],
        id=_named(_WORDS.get(verb, verb), served.group, served.version, end),
        tag=_tag(served.group, served.version),
        description=description,
        answer=answer,
        produces=documented.listed if verb == "list" else documented.types,
        consumes=documented.patches if verb == "patch" else documented.consumes,
        codes=documented.patched if verb == "patch" else _CODES.get(verb, (200,)),
        body=body,
        body_required=body not in ("", _DELETE_OPTIONS),
        parameters=(*query, *of_path(path, kind.kind)),
        action=_ACTIONS.get(verb, verb),
        gvk=kind,
    )


def _of_subresource(
    served: Served, sub: Subresource, path: str, names: Mapping[GVK, str]
) -> Iterator[Operation]:
    own = GVK(served.group, served.version, served.kind)
    said = GVK(sub.group, sub.version or served.version, sub.kind) if sub.kind else own
    shown = names.get(said, definition_name(served))
    gvk = said if DOCUMENTED[served.family].names_subresources else own
    end = f"{_scope(served, path)}{served.kind}{sub.name[:1].upper()}{sub.name[1:]}"
    if said.kind.endswith("Options"):
        yield from _connected(served, sub, path, gvk, end)
        return
    for verb in sub.verbs:
        if verb not in _METHODS:
            continue
        if verb == "create":
            words = f"create {sub.name} of {_article(served.kind)}"
        else:
            word = {"get": "read", "update": "replace", "patch": "partially update"}.get(verb, verb)
            words = f"{word} {sub.name} of the specified {served.kind}"
        made = _operation(served, verb, path, end, words, shown, shown, gvk, sub.name)
        if sub.name == "log":
            made = replace(made, answer="", produces=("text/plain", *made.produces))
        yield made


def _connected(served: Served, sub: Subresource, path: str, gvk: GVK, end: str) -> Iterator[Operation]:
    """Connections to what is elsewhere: a proxy takes every method, and a path of its own."""
    methods: tuple[str, ...] = ("get", "post")
    places = {path: ""}
    if sub.name == "proxy":
        methods = ("get", "put", "post", "delete", "options", "head", "patch")
        places[f"{path}/{{path}}"] = "WithPath"
    for at, suffix in places.items():
        for method in methods:
            yield Operation(
                path=at,
                method=method,
                id=_named("connect", served.group, served.version, f"{method.capitalize()}{end}{suffix}"),
                tag=_tag(served.group, served.version),
                description=f"connect {method.upper()} requests to {sub.name} of {served.kind}",
                answer="",
                produces=ANY,
                parameters=(*of_verb("connect", sub.name), *of_path(at, gvk.kind)),
                action="connect",
                gvk=gvk,
            )


def _watched(served: Served, path: str, root: str) -> Operation:
    """The old form of a watch, by its path."""
    one = path.endswith("{name}")
    end = _scope(served, path) + served.kind + ("" if one else "List")
    if served.namespaced and "{namespace}" not in path:
        end += "ForAllNamespaces"
    return Operation(
        path=f"{root}/watch{path.removeprefix(root)}",
        method="get",
        id=_named("watch", served.group, served.version, end),
        tag=_tag(served.group, served.version),
        description="",
        answer=_EVENT,
        produces=STREAMED,
        parameters=(*of_verb("list"), *of_path(path, served.kind)),
        action="watch" if one else "watchlist",
        gvk=GVK(served.group, served.version, served.kind),
    )


def of_version(group: str, version: str) -> Operation:
    """Discovery of a group-version."""
    return Operation(
        path=f"/apis/{group}/{version}/" if group else f"/api/{version}/",
        method="get",
        id=_named("get", group, version, "APIResources"),
        tag=_tag(group, version),
        description="get available resources",
        answer=f"{META}APIResourceList",
        consumes=MEDIA_TYPES,
    )


def of_group(group: str) -> Operation:
    """Discovery of a group."""
    words = _group_words(group)
    return Operation(
        path=f"/apis/{group}/",
        method="get",
        id=f"get{_joined(words, capital=True)}APIGroup",
        tag=_joined(words, capital=False),
        description="get information of a group",
        answer=f"{META}APIGroup",
        produces=_GROUP_TYPES,
        consumes=_GROUP_TYPES,
    )


def of_roots(*, issuer: bool) -> Iterator[Operation]:
    """What no group has; ``issuer`` says whether tokens are issued here."""
    groups: dict[str, Any] = {"produces": _GROUP_TYPES, "consumes": _GROUP_TYPES}
    listed = "get available API versions"
    yield Operation("/api/", "get", "getCoreAPIVersions", "core", listed, f"{META}APIVersions", **groups)
    yield Operation("/apis/", "get", "getAPIVersions", "apis", listed, f"{META}APIGroupList", **groups)
    info: dict[str, Any] = {"answer": _VERSION_INFO, "produces": (JSON_TYPE,), "consumes": (JSON_TYPE,)}
    yield Operation("/version/", "get", "getCodeVersion", "version", "get the version of this server", **info)
    if not issuer:
        return
    name = "getServiceAccountIssuerOpenID"
    about = "how tokens of service accounts are verified (OpenID Connect discovery)"
    path = "/.well-known/openid-configuration/"
    yield Operation(path, "get", f"{name}Configuration", "WellKnown", about, "", (JSON_TYPE,), ())
    about = "the keys that verify tokens of service accounts (JSON Web Key Set)"
    keys = ("application/jwk-set+json",)
    yield Operation("/openid/v1/jwks/", "get", f"{name}Keyset", "openid", about, "", keys, ())
