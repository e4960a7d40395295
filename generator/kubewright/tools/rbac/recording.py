"""The least roles that a run needs: from what a user did, rules that allow it and no more.

What was done comes as ``Deed``s: from an audit log, or from a server for tests that was told to record. Deeds in a
namespace become a Role there, deeds on cluster-scoped objects and on paths a ClusterRole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apimachinery.access.authorization import Attributes, service_account_name
from apimachinery.access.bindings import GROUP
from apimachinery.access.rbac_rules import RbacRule

_NAMED = frozenset({"get", "update", "patch", "delete"})


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that a user did: a verb on a resource, or on a path."""

    user: str
    verb: str
    namespace: str = ""
    group: str = ""
    resource: str = ""
    name: str = ""
    path: str = ""


def deed_of(attributes: Attributes) -> Deed:
    """What an authorized request did."""
    if not attributes.is_resource:
        return Deed(attributes.user.name, attributes.verb, path=attributes.path)
    resource = attributes.resource
    if attributes.subresource:
        resource += "/" + attributes.subresource
    # A namespace itself is reached by its own name as namespace too; its rights belong to the cluster.
    namespace = "" if attributes.resource == "namespaces" else attributes.namespace
    return Deed(attributes.user.name, attributes.verb, namespace, attributes.group, resource, attributes.name)


def read_audit(lines: Iterable[str]) -> Iterator[Deed]:
    """The deeds of an audit log (JSON lines of audit.k8s.io/v1 Events): each request that was answered and not refused.

    Raises ValueError with the number of a line that is not an event.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError) as fault:
            raise ValueError(f"line {number}: not JSON: {fault}") from None
        if not isinstance(event, dict) or "verb" not in event:
            raise ValueError(f"line {number}: not an audit event: `verb` is missing")
        if event.get("stage") not in (None, "", "ResponseComplete", "ResponseStarted"):
            continue
        if (event.get("responseStatus") or {}).get("code", 200) in (401, 403):
            continue
        yield _of_event(event)


def _of_event(event: Mapping[str, Any]) -> Deed:
    user = str(((event.get("impersonatedUser") or event.get("user")) or {}).get("username") or "")
    ref = event.get("objectRef") or {}
    verb = str(event["verb"])
    if not ref.get("resource"):
        return Deed(user, verb, path=str(event.get("requestURI") or "").partition("?")[0])
    resource = str(ref["resource"])
    namespace = "" if resource == "namespaces" else str(ref.get("namespace") or "")
    if ref.get("subresource"):
        resource += f"/{ref['subresource']}"
    return Deed(user, verb, namespace, str(ref.get("apiGroup") or ""), resource, str(ref.get("name") or ""))


def rules_of(deeds: Iterable[Deed], *, names: bool = False) -> list[RbacRule]:
    """Rules that allow the deeds and no more, of one scope; ``names`` holds reads and writes of single objects to those
    that were touched."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    touched: dict[tuple[str, str], set[str]] = {}
    paths: dict[str, set[str]] = {}
    deeds = list(deeds)
    for deed in deeds:
        if names and deed.name and deed.verb in _NAMED:
            touched.setdefault((deed.group, deed.resource), set()).add(deed.name)
    for deed in deeds:
        if deed.path:
            paths.setdefault(deed.path, set()).add(deed.verb)
            continue
        key = deed.group, deed.resource
        only = tuple(sorted(touched[key])) if names and deed.name and deed.verb in _NAMED else ()
        verbs.setdefault((*key, only), set()).add(deed.verb)
    by_verbs: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, resource, only), held in sorted(verbs.items()):
        by_verbs.setdefault((group, tuple(sorted(held)), only), []).append(resource)
    rules = [
        RbacRule(held, (group,), tuple(resources), only)
        for (group, held, only), resources in by_verbs.items()
    ]
    by_path: dict[tuple[str, ...], list[str]] = {}
    for path, asked in sorted(paths.items()):
        by_path.setdefault(tuple(sorted(asked)), []).append(path)
    return rules + [RbacRule(asked, paths=tuple(found)) for asked, found in by_path.items()]


def roles_of(deeds: Iterable[Deed], user: str, name: str, *, names: bool = False) -> list[dict[str, Any]]:
    """Roles and bindings, as manifests, that let a user do what he did."""
    scopes: dict[str, list[Deed]] = {}
    for deed in deeds:
        if deed.user == user:
            scopes.setdefault(deed.namespace, []).append(deed)
    manifests = []
    for namespace in sorted(scopes):
        kind = "Role" if namespace else "ClusterRole"
        metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
        rules = [_manifest(rule) for rule in rules_of(scopes[namespace], names=names)]
        manifests.append({"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "rules": rules})
        manifests.append(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": f"{kind}Binding",
                "metadata": dict(metadata),
                "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
                "subjects": [_subject(user)],
            }
        )
    return manifests


def _manifest(rule: RbacRule) -> dict[str, Any]:
    parts = (
        ("apiGroups", rule.groups),
        ("resources", rule.resources),
        ("resourceNames", rule.names),
        ("nonResourceURLs", rule.paths),
        ("verbs", rule.verbs),
    )
    return {key: list(values) for key, values in parts if values}


def _subject(user: str) -> dict[str, str]:
    account = service_account_name(user)
    if account is not None:
        return {"kind": "ServiceAccount", "namespace": account[0], "name": account[1]}
    return {"kind": "User", "apiGroup": GROUP, "name": user}
