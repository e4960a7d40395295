"""Random roles, bindings, users and questions, asked of two servers: ``-m tests.access.decisions URL TOKEN URL TOKEN``.

Everything is drawn from a seed. The roles and bindings are written to both servers, then every question goes to both as
a SubjectAccessReview. What is compared is ``allowed`` and ``denied``, and the words of a refusal; not those of an
allowance, because kube-apiserver names any of the bindings that allow.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import ssl
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import Any
from urllib.parse import urlsplit

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
VERBS = (
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "impersonate",
    "bind",
    "*",
)
GROUPS = ("", "apps", "batch", "shop.example.com", "*")
RESOURCES = (
    "pods", "pods/log", "secrets", "configmaps", "deployments", "deployments/scale", "orders", "orders/status",
    "*", "*/status", "*/scale", "pods/*", "users", "nodes",
)  # fmt: skip
NAMES = ("a", "b", "web", "db")
PATHS = (
    "/healthz",
    "/healthz/*",
    "/metrics",
    "/api",
    "/api/*",
    "/apis/apps/*",
    "*",
    "/x*",
    "/open/",
    "/logs*",
)
ASKED_PATHS = (
    "/healthz",
    "/healthz/etcd",
    "/metrics",
    "/api",
    "/api/",
    "/api/v1",
    "/apis/apps/v1",
    "/x",
    "/xyz",
    "/open",
    "/logs/1",
    "*",
)
USERS = (
    "ann",
    "bob",
    "cat",
    "system:serviceaccount:{p}0:robot",
    "system:serviceaccount:{p}1:robot",
    "system:anonymous",
    "",
)
SUBJECT_GROUPS = (
    "devs",
    "ops",
    "system:authenticated",
    "system:serviceaccounts",
    "system:serviceaccounts:{p}0",
    "system:unauthenticated",
)


class Side:
    """One server."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._target = urlsplit(url)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._local = local()

    def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        sent = {**self._headers, **(headers or {})}
        for attempt in range(3):
            connection = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = self._connect()
            try:
                connection.request(method, path, None if body is None else json.dumps(body), sent)
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read() or b"{}")
            except (http.client.HTTPException, OSError):
                self.close()
                if attempt == 2:
                    raise
        raise AssertionError

    def close(self) -> None:
        """Ends the connection of this thread."""
        if getattr(self._local, "connection", None) is not None:
            self._local.connection.close()
            self._local.connection = None

    def _connect(self) -> http.client.HTTPConnection:
        host, port = str(self._target.hostname), self._target.port
        if self._target.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return http.client.HTTPSConnection(host, port, context=context, timeout=60)
        return http.client.HTTPConnection(host, port, timeout=60)


class Draw:
    """What a seed draws; ``prefix`` begins every name that is made."""

    def __init__(self, seed: int, prefix: str) -> None:
        self.random = random.Random(seed)
        self.prefix = prefix
        self.namespaces = [f"{prefix}{number}" for number in range(4)]

    def some(self, values: tuple[str, ...], most: int = 3) -> list[str]:
        """A few of the values."""
        return self.random.sample(values, self.random.randint(1, most))

    def rule(self, namespaced: bool) -> dict[str, Any]:
        """A rule of a role."""
        if not namespaced and self.random.random() < 0.25:
            return {"verbs": self.some(("get", "post", "*", "delete")), "nonResourceURLs": self.some(PATHS)}
        rule: dict[str, Any] = {
            "verbs": self.some(VERBS),
            "apiGroups": self.some(GROUPS),
            "resources": self.some(RESOURCES),
        }
        if self.random.random() < 0.3:
            rule["resourceNames"] = self.some(NAMES)
        return rule

    def role(self, number: int, namespace: str) -> dict[str, Any]:
        """A role, with no rules now and then."""
        rules = [self.rule(bool(namespace)) for _ in range(self.random.choice((0, 1, 1, 2, 3)))]
        return {"metadata": {"name": f"{self.prefix}role{number}"}, "rules": rules}

    def subject(self, namespaced: bool) -> dict[str, Any]:
        """A subject of a binding."""
        kind = self.random.choice(("User", "Group", "ServiceAccount"))
        if kind == "ServiceAccount":
            subject = {"kind": kind, "name": self.random.choice(("robot", "other"))}
            if not namespaced or self.random.random() < 0.7:
                subject["namespace"] = self.random.choice(self.namespaces)
            return subject
        names = [name.format(p=self.prefix) for name in (USERS if kind == "User" else SUBJECT_GROUPS) if name]
        return {"kind": kind, "apiGroup": "rbac.authorization.k8s.io", "name": self.random.choice(names)}

    def binding(self, number: int, namespace: str, roles: int) -> dict[str, Any]:
        """A binding; now and then to a role that does not exist."""
        kind = self.random.choice(("Role", "ClusterRole")) if namespace else "ClusterRole"
        name = f"{self.prefix}role{self.random.randrange(roles + 2)}"
        return {
            "metadata": {"name": f"{self.prefix}binding{number}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [self.subject(bool(namespace)) for _ in range(self.random.randint(1, 3))],
        }

    def question(self) -> dict[str, Any]:
        """The spec of a review."""
        choice = self.random.choice
        spec: dict[str, Any] = {"user": choice(USERS).format(p=self.prefix)}
        groups = [
            group.format(p=self.prefix) for group in self.some(SUBJECT_GROUPS) if self.random.random() < 0.5
        ]
        spec["groups"] = groups or ["devs"]
        if self.random.random() < 0.2:
            spec["nonResourceAttributes"] = {
                "path": choice(ASKED_PATHS),
                "verb": choice(("get", "post", "delete", "")),
            }
            return spec
        resource, _, subresource = choice(RESOURCES).partition("/")
        spec["resourceAttributes"] = {
            "verb": choice(VERBS),
            "group": choice(GROUPS),
            "resource": resource,
            "subresource": subresource if self.random.random() < 0.8 else "",
            "name": choice(("", "", *NAMES, "zz")),
            "namespace": choice(("", *self.namespaces)),
        }
        return spec


def prepare(sides: list[Side], draw: Draw, roles: int, bindings: int) -> int:
    """Writes the same roles and bindings to both; how many."""
    objects = [("/api/v1/namespaces", {"metadata": {"name": namespace}}) for namespace in draw.namespaces]
    for scope in ("", *draw.namespaces):
        place = f"/namespaces/{scope}" if scope else ""
        head = "" if scope else "cluster"
        path = f"{RBAC}{place}/{head}role"
        objects += [(f"{path}s", draw.role(number, scope)) for number in range(roles)]
        objects += [(f"{path}bindings", draw.binding(number, scope, roles)) for number in range(bindings)]
    for path, body in objects:
        codes = {side.call("POST", path, body)[0] for side in sides}
        if codes != {201}:
            raise SystemExit(f"{path}: {codes} for {body}")
    return len(objects)


def clean(side: Side, draw: Draw) -> None:
    """Deletes what ``prepare`` wrote."""
    for kind in ("clusterroles", "clusterrolebindings"):
        for item in side.call("GET", f"{RBAC}/{kind}")[1]["items"]:
            if item["metadata"]["name"].startswith(draw.prefix):
                side.call("DELETE", f"{RBAC}/{kind}/{item['metadata']['name']}")
    for namespace in draw.namespaces:
        for kind in ("roles", "rolebindings"):
            side.call("DELETE", f"{RBAC}/namespaces/{namespace}/{kind}")
        side.call("DELETE", f"/api/v1/namespaces/{namespace}")


def run(options: argparse.Namespace) -> int:
    """Asks, compares and prints; 1 where answers differ."""
    sides = [Side(options.one, options.one_token), Side(options.other, options.other_token)]
    decisions = allowed = differences = 0
    began = time.monotonic()
    for seed in range(options.seed, options.seed + options.worlds):
        draw = Draw(seed, f"d{seed}x")
        objects = prepare(sides, draw, options.roles, options.bindings)
        time.sleep(options.settle)  # kube-apiserver's informers
        questions = [draw.question() for _ in range(options.questions)]

        def ask(spec: dict[str, Any]) -> list[dict[str, Any]]:
            return [side.call("POST", REVIEWS, {"spec": spec})[1].get("status", {}) for side in sides]

        with ThreadPoolExecutor(8) as pool:
            for spec, (one, other) in zip(questions, pool.map(ask, questions), strict=True):
                decisions += 1
                allowed += bool(other.get("allowed"))
                same = one.get("allowed") == other.get("allowed") and one.get("denied") == other.get("denied")
                if not one.get("allowed"):
                    same = same and words(one) == words(other)
                if not same:
                    differences += 1
                    if differences <= 10:
                        print(json.dumps(spec), "\n  one:  ", one, "\n  other:", other)
        for side in sides:
            clean(side, draw)
        print(
            f"world {seed}: {objects} objects, {decisions} decisions, {differences} differences", flush=True
        )
    took = time.monotonic() - began
    print(f"{decisions} decisions ({allowed} allowed), {differences} differences, {took:.0f} s")
    return 1 if differences else 0


def words(status: dict[str, Any]) -> tuple[list[str], str]:
    """A refusal's reason without the order of what it lists."""
    reason = status.get("reason", "").removeprefix("RBAC: ").strip("[]")
    return sorted(reason.split(", ")), status.get("evaluationError", "")


def main() -> int:
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("one", "one_token", "other", "other_token"):
        parser.add_argument(name)
    parser.add_argument("--worlds", type=int, default=5)
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--roles", type=int, default=12)
    parser.add_argument("--bindings", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settle", type=float, default=2.0)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
