"""The rights that a program needs, out of what it asked for: RBAC rules from the requests of a test run.

    with FaultProxy(lambda: server.port) as proxy:
        ...  # run the program against proxy.url
        print(cluster_role("my-controller", proxy.requests))

A test run shows what was asked for, not what may be: read the rules before you grant them.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qs, urlsplit

from kubewright.testing.faults import HttpRequest

Rule = dict[str, list[str]]
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
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
    path, query = urlsplit(request.target).path, parse_qs(urlsplit(request.target).query)
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        group, rest = "", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        return None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        rest = rest[2:]
    resource = "/".join([rest[0], *rest[2:3]])
    verb = _VERBS.get(request.method)
    if verb is None:
        return None
    if len(rest) == 1:
        watches = query.get("watch", [""])[0] in ("true", "1")
        verb = {"get": "watch" if watches else "list", "delete": "deletecollection"}.get(verb, verb)
    if resource.endswith(("/exec", "/attach", "/portforward")):
        return group, resource, list(dict.fromkeys([verb, "create"]))  # by GET too
    if verb == "patch" and request.content_type.startswith("application/apply-patch") and len(rest) == 2:
        return group, resource, ["patch", "create"]  # an apply may create
    return group, resource, [verb]
