"""``kubewright rbac``: who can do what, why, and the least roles of a run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from apimachinery.access.authorization import Attributes
from apimachinery.access.bindings import GROUP, KINDS
from apimachinery.wire import yaml
from kubewright.diagnostics import Diagnostics, printable
from kubewright.source.text import paths_below, read_documents
from kubewright.tools.arguments.parsing import nearest
from kubewright.tools.rbac.graph import NOBODY, AccessGraph, GrantChain, SubjectError, read_subject
from kubewright.tools.rbac.recording import read_audit, roles_of

OK, REFUSED, MISUSED = 0, 1, 2
_VERBS = frozenset(
    "get list watch create update patch delete deletecollection "
    "bind escalate impersonate approve sign attest use *".split()
)
"""The verbs that kube-apiserver asks for."""


def run(options: argparse.Namespace) -> int:
    """Answers. Returns 0, 1 for "no", 2 for what cannot be read."""
    try:
        if options.question == "record":
            return _record(options)
        graph = AccessGraph(_objects(options), bootstrap=bool(options.filename) and not options.no_bootstrap)
        return {"who-can": _who, "what-can": _what, "why": _why}[options.question](graph, options)
    except (SubjectError, ValueError) as fault:
        print(printable(f"kubewright rbac: error: {fault}"), file=sys.stderr)
        return MISUSED


def _objects(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    if options.filename:
        return [obj for path in options.filename for obj in _read(path)]
    return list(_live(options))


def _read(path: Path) -> Iterator[dict[str, Any]]:
    diagnostics = Diagnostics()
    documents = [
        document for file in paths_below(path, diagnostics) for document in read_documents(file, diagnostics)
    ]
    if diagnostics.has_errors:
        raise ValueError("; ".join(str(diagnostic) for diagnostic in diagnostics))
    for document in documents:
        if isinstance(document.value, dict):
            yield from _items(document.value)


def _items(obj: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The object, or those of a List."""
    items = obj.get("items")
    if not isinstance(items, list):
        yield obj
        return
    kind = str(obj.get("kind") or "").removesuffix("List")
    for item in items:
        if isinstance(item, dict):
            yield item if item.get("kind") else {**item, "kind": kind, "apiVersion": obj.get("apiVersion")}


def _live(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    from apimachinery.client.calls import UNSTRUCTURED, Call
    from apimachinery.client.config import Config, ConfigError
    from apimachinery.client.connection import Client
    from apimachinery.client.endpoint import Request
    from apimachinery.client.errors import ApiError, TransportError

    try:
        with Client(Config.load(options.kubeconfig, context=options.context)) as client:
            for plural in KINDS:
                listed = client.run(
                    Call(Request("GET", f"/apis/{GROUP}/v1/{plural}"), UNSTRUCTURED.decode, repeatable=True)
                )
                yield from _items(listed)
    except (ApiError, TransportError, ConfigError) as fault:
        raise ValueError(f"the roles of the cluster cannot be read: {fault}") from None


def _asked(options: argparse.Namespace) -> Attributes:
    if options.resource.startswith("/"):
        return Attributes(NOBODY, options.verb, path=options.resource, is_resource=False)
    _note_typos(options)
    plural, _, subresource = options.resource.partition("/")
    plural, dot, group = plural.partition(".")
    if not dot:
        group = _group_of(plural)
    return Attributes(NOBODY, options.verb, options.namespace, group, "", plural, subresource, options.name)


def _note_typos(options: argparse.Namespace) -> None:
    """Says what a verb and a resource were probably meant to be. Any may be asked for: others than we know may be
    served."""
    from apimachinery.server.catalog.served_package import ServedPackage

    known = {resource.plural for resource in ServedPackage("kubernetes_api").resources()}
    plural = options.resource.partition("/")[0].partition(".")[0]
    for word, all_known, what in ((options.verb, _VERBS, "verb"), (plural, known, "built-in resource")):
        if word not in all_known and (meant := nearest(word, all_known, 0.75)):
            print(f"kubewright rbac: note: {word} is no {what}{meant}", file=sys.stderr)


def _group_of(plural: str) -> str:
    """The group of a built-in resource, "" for what is none: ``deployments`` are those of apps."""
    from apimachinery.server.catalog.served_package import ServedPackage

    groups = [
        resource.group
        for resource in ServedPackage("kubernetes_api").resources()
        if resource.plural == plural
    ]
    return "" if not groups or "" in groups else groups[0]


def _who(graph: AccessGraph, options: argparse.Namespace) -> int:
    chains = list(graph.who_can(_asked(options), everywhere=options.all_namespaces))
    _print(chains, options)
    if options.format == "text":
        print("group:system:masters can, without any binding")
    return OK


def _user(options: argparse.Namespace) -> Any:
    from dataclasses import replace

    user = read_subject(options.subject)
    return replace(user, groups=(*user.groups, *options.group))


def _what(graph: AccessGraph, options: argparse.Namespace) -> int:
    _print(list(graph.what_can(_user(options), options.namespace)), options)
    return OK


def _why(graph: AccessGraph, options: argparse.Namespace) -> int:
    user, asked = _user(options), _asked(options)
    chains = list(graph.why(user, asked))
    if "system:masters" in user.groups:
        print("yes: members of system:masters can do everything")
        return OK
    if options.format == "text":
        print("yes" if chains else "no: no binding gives a rule that allows it")
    _print(chains, options)
    return OK if chains else REFUSED


def _print(chains: list[GrantChain], options: argparse.Namespace) -> None:
    if options.format == "json":
        shown = [
            {"subject": c.who, "binding": c.bound_by, "role": c.role, "rule": c.rule.shown()} for c in chains
        ]
        print(json.dumps(shown, indent=2))
        return
    # A subject may have any name.
    rows = [tuple(map(printable, (c.who, c.bound_by, c.role, c.rule.shown()))) for c in chains]
    if not rows:
        return
    head = ("SUBJECT", "BINDING", "ROLE", "RULE")
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(3)]
    for row in (head, *rows):
        print("  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[3]]))


def _record(options: argparse.Namespace) -> int:
    if options.audit == "-":
        deeds = list(read_audit(sys.stdin))
    else:
        with Path(options.audit).open(encoding="utf-8") as lines:
            deeds = list(read_audit(lines))
    manifests = roles_of(deeds, options.user, options.name, names=options.resource_names)
    if not manifests:
        users = sorted({deed.user for deed in deeds})
        known = f"; there are {', '.join(users[:10])}" if users else ""
        raise ValueError(f"--user {options.user}: {options.audit} has no requests of this user{known}")
    print("---\n".join(yaml.encode(manifest).decode() for manifest in manifests), end="")
    return OK
