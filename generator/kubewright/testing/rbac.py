"""The rights that a program needs, out of what it asked for: RBAC rules from the requests of a test run.

    with FaultProxy(lambda: server.port) as proxy:
        ...  # run the program against proxy.url
        print(cluster_role("my-controller", proxy.requests))

A test run shows what was asked for, not what may be: read the rules before you grant them.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qs, unquote, urlsplit

from apimachinery.meta.asked import AskedPath
from kubewright.testing.faults import HttpRequest

Rule = dict[str, list[str]]
_ORDER = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


def rules_of(requests: Iterable[HttpRequest]) -> list[Rule]:
    """The fewest rules that grant the requests, without names of objects; by group and resource, in order."""
    needed: dict[tuple[str, str], set[str]] = {}
    for request in requests:
        found = _read(request)
        if found is not None:
            group, resource, verbs = found
            needed.setdefault((group, resource), set()).update(verbs)
    gathered: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), granted in sorted(needed.items()):
        gathered.setdefault((group, tuple(verb for verb in _ORDER if verb in granted)), []).append(resource)
    return [
        {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
        for (group, verbs), resources in gathered.items()
    ]


def cluster_role(name: str, requests: Iterable[HttpRequest]) -> str:
    """A ClusterRole with those rules, as YAML."""
    import yaml

    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules_of(requests),
    }
    text: str = yaml.safe_dump(role, sort_keys=False)
    return text


def _read(request: HttpRequest) -> tuple[str, str, list[str]] | None:
    """Group, resource (with its subresource) and verbs; None for a path of no resource."""
    target = urlsplit(request.target)
    scope = AskedPath(request.method, unquote(target.path)).scope
    if scope is None or not scope.verb:
        return None
    group, verb = scope.group, scope.verb
    resource = f"{scope.resource}/{scope.subresource}" if scope.subresource else scope.resource
    if not scope.name:
        watches = parse_qs(target.query).get("watch", [""])[0] in ("true", "1")
        verb = {"get": "watch" if watches else "list", "delete": "deletecollection"}.get(verb, verb)
    if resource.endswith(("/exec", "/attach", "/portforward")):
        return group, resource, list(dict.fromkeys([verb, "create"]))  # by GET too
    if (
        verb == "patch"
        and request.content_type.startswith("application/apply-patch")
        and not scope.subresource
    ):
        return group, resource, ["patch", "create"]  # an apply may create
    return group, resource, [verb]
