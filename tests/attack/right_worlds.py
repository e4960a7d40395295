"""What ``rights`` plays: roles, bindings, labels, aggregation, and requests of accounts and nodes, from a seed."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

Json = dict[str, Any]
GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
CERTIFICATES = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
STRATEGIC, OPERATIONS = "application/strategic-merge-patch+json", "application/json-patch+json"
ACCOUNTS, LABELS = 4, ("one", "two", "")
KINDS = {
    "clusterroles": "ClusterRole",
    "roles": "Role",
    "clusterrolebindings": "ClusterRoleBinding",
    "rolebindings": "RoleBinding",
}
VERBS = (
    "get", "create", "update", "patch", "delete", "escalate", "bind", "impersonate", "approve", "sign", "*",
    "impersonate:user-info", "impersonate:serviceaccount", "impersonate-on:user-info:create",
    "impersonate-on:serviceaccount:create",
)  # fmt: skip
RESOURCES = (
    ("", "pods"), ("", "secrets"), ("", "nodes"), ("", "users"), ("", "groups"), ("", "serviceaccounts"),
    ("", "serviceaccounts/token"), ("authentication.k8s.io", "userextras/scopes"), ("authentication.k8s.io", "uids"),
    ("authentication.k8s.io", "users"), ("authentication.k8s.io", "serviceaccounts"),
    ("certificates.k8s.io", "certificatesigningrequests"), ("certificates.k8s.io", "signers"),
    ("certificates.k8s.io", "certificatesigningrequests/approval"),
    ("certificates.k8s.io", "certificatesigningrequests/status"),
    (GROUP, "clusterroles"), (GROUP, "roles"), (GROUP, "clusterrolebindings"), ("*", "*"),
)  # fmt: skip
SIGNERS = (
    "kubernetes.io/kube-apiserver-client",
    "kubernetes.io/kube-apiserver-client-kubelet",
    "example.com/own",
)
SUBJECTS = (
    ("ann", ""),
    ("ann", "system:masters"),
    ("system:node:n1", "system:nodes"),
    ("system:node:n2", "system:nodes"),
)


@cache
def signing_request(name: str, group: str) -> str:
    """A request for a certificate, as a CertificateSigningRequest holds it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    names = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if group:
        names.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


@dataclass
class Step:
    """One request. ``actor`` is the number of an account, None for the administrator; ``stays``: what it writes is
    tried dry before."""

    actor: int | None
    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    stays: bool = True
    what: str = ""


class World:
    """What a seed draws; ``prefix`` begins every name."""

    def __init__(self, seed: int, prefix: str) -> None:
        self.chance = random.Random(seed)
        self.prefix = prefix
        self.spaces = (f"{prefix}a", f"{prefix}b")
        self.names = [f"{prefix}{name}" for name in ("r0", "r1", "r2", "r3", "r4")]

    def path(self, plural: str, space: str = "") -> str:
        """Of the objects of a kind of roles or bindings."""
        return f"{RBAC}/{plural}" if plural.startswith("cluster") else f"{RBAC}/namespaces/{space}/{plural}"

    def rule(self) -> Json:
        """A rule of a role."""
        chosen = self.chance.sample(RESOURCES, self.chance.choice((1, 1, 2)))
        rule: Json = {
            "verbs": self.chance.sample(VERBS, self.chance.choice((1, 2, 3))),
            "apiGroups": sorted({group for group, _ in chosen}),
            "resources": [resource for _, resource in chosen],
        }
        if self.chance.random() < 0.2:
            rule["resourceNames"] = self.chance.sample([*self.names, "ann", *SIGNERS], 2)
        return rule

    def role(self, plural: str) -> Json:
        """A role's rules, labels and aggregation."""
        body: Json = {"rules": [self.rule() for _ in range(self.chance.choice((0, 1, 1, 2)))]}
        if self.chance.random() < 0.4:
            body["metadata"] = {"labels": self.labels()}
        if plural == "clusterroles" and self.chance.random() < 0.2:
            body["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": self.labels()}]}
        return body

    def labels(self) -> dict[str, str]:
        """What aggregation goes by."""
        return {f"example.com/{self.prefix}": self.chance.choice(LABELS)}

    def subject(self) -> Json:
        """A subject of a binding."""
        if self.chance.random() < 0.15:
            return {"kind": "Group", "apiGroup": GROUP, "name": f"system:serviceaccounts:{self.spaces[0]}"}
        name = f"u{self.chance.randrange(ACCOUNTS)}"
        return {"kind": "ServiceAccount", "name": name, "namespace": self.spaces[0]}

    def binding(self, plural: str) -> Json:
        """What a binding binds to whom."""
        kinds = ("ClusterRole",) if plural == "clusterrolebindings" else ("ClusterRole", "Role")
        name = self.chance.choice([*self.names, f"{self.prefix}none", "view", "cluster-admin"])
        ref = {"apiGroup": GROUP, "kind": self.chance.choice(kinds), "name": name}
        return {"roleRef": ref, "subjects": [self.subject() for _ in range(self.chance.choice((0, 1, 1, 2)))]}

    # Steps.

    def first(self) -> Iterator[Step]:
        """What the administrator makes of it: all may write roles and bindings, none has ``escalate`` or ``bind``."""
        for space in self.spaces:
            yield Step(None, "POST", "/api/v1/namespaces", {"metadata": {"name": space}})
        for number in range(ACCOUNTS):
            path = f"/api/v1/namespaces/{self.spaces[0]}/serviceaccounts"
            yield Step(None, "POST", path, {"metadata": {"name": f"u{number}"}})
        for node in ("n1", "n2"):
            yield Step(None, "POST", "/api/v1/nodes", {"metadata": {"name": self.prefix + node}})
        writes = ["get", "list", "create", "update", "patch", "delete"]
        writer = f"{self.prefix}writer"
        rules = [{"apiGroups": [GROUP], "verbs": writes, "resources": list(KINDS)}]
        yield Step(None, "POST", self.path("clusterroles"), {"metadata": {"name": writer}, "rules": rules})
        ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": writer}
        group = {"kind": "Group", "apiGroup": GROUP, "name": f"system:serviceaccounts:{self.spaces[0]}"}
        body = {"metadata": {"name": writer}, "roleRef": ref, "subjects": [group]}
        yield Step(None, "POST", self.path("clusterrolebindings"), body)
        for plural in ("clusterroles", "roles", "clusterrolebindings", "rolebindings"):
            for name in self.names:
                body = self.role(plural) if plural.endswith("roles") else self.binding(plural)
                body["metadata"] = {**body.get("metadata", {}), "name": name}
                yield Step(None, "POST", self.path(plural, self.chance.choice(self.spaces)), body)

    def step(self) -> Step:
        """The next."""
        draws = (
            self._write,
            self._label,
            self._delete,
            self._impersonate,
            self._sign,
            self._token,
            self._ask,
            self._node,
        )
        return self.chance.choices(draws, (30, 12, 3, 15, 10, 6, 14, 10))[0]()

    def _actor(self) -> int:
        return self.chance.randrange(ACCOUNTS)

    def _write(self) -> Step:
        plural = self.chance.choice(list(KINDS))
        path, name = self.path(plural, self.chance.choice(self.spaces)), self.chance.choice(self.names)
        body = self.role(plural) if plural.endswith("roles") else self.binding(plural)
        metadata = {**body.pop("metadata", {}), "name": name}
        whole = {"apiVersion": f"{GROUP}/v1", "kind": KINDS[plural], "metadata": metadata, **body}
        match self.chance.choice(("POST", "PUT", MERGE, STRATEGIC, OPERATIONS, "apply")):
            case "POST":
                return Step(self._actor(), "POST", path, whole, what="right")
            case "PUT":
                return Step(self._actor(), "PUT", f"{path}/{name}", whole, what="right")
            case "apply":
                query = f"fieldManager=m{self.chance.randrange(2)}&force=true"
                return self._patch(f"{path}/{name}?{query}", whole, APPLY)
            case kind:
                some = dict(self.chance.sample(sorted(body.items()), self.chance.randint(1, len(body))))
                return self._patch(f"{path}/{name}", some, kind)

    def _patch(self, path: str, some: Json, kind: str) -> Step:
        sent: Any = some
        if kind == OPERATIONS:
            sent = [{"op": "add", "path": f"/{key}", "value": value} for key, value in some.items()]
        return Step(self._actor(), "PATCH", path, sent, {"Content-Type": kind}, what="right")

    def _label(self) -> Step:
        plural = self.chance.choice(list(KINDS))
        path = f"{self.path(plural, self.chance.choice(self.spaces))}/{self.chance.choice(self.names)}"
        metadata = self.chance.choice(
            (
                {"labels": self.labels()},
                {"labels": None},
                {"annotations": {"a": self.chance.choice("bcd")}},
                {"finalizers": None},
            )
        )
        if plural == "clusterroles" and self.chance.random() < 0.2:
            # It outlives the world, and what is taken from it would be missing in the next.
            path, metadata = f"{RBAC}/clusterroles/cluster-admin", {"labels": self.labels()}
        kind = self.chance.choice((MERGE, STRATEGIC, OPERATIONS))
        if kind == OPERATIONS:
            ((field, value),) = metadata.items()
            operations = [{"op": "add", "path": f"/metadata/{field}", "value": value}]
            return Step(self._actor(), "PATCH", path, operations, {"Content-Type": kind}, what="right")
        return Step(
            self._actor(), "PATCH", path, {"metadata": metadata}, {"Content-Type": kind}, what="right"
        )

    def _delete(self) -> Step:
        plural = self.chance.choice(list(KINDS))
        path = self.path(plural, self.chance.choice(self.spaces))
        return Step(self._actor(), "DELETE", f"{path}/{self.chance.choice(self.names)}")

    def _impersonate(self) -> Step:
        account = f"system:serviceaccount:{self.spaces[0]}:u{self._actor()}"
        headers = {
            "Impersonate-User": self.chance.choice(["ann", account, f"system:node:{self.prefix}n1", "admin"])
        }
        for name, values in (
            ("Impersonate-Group", ("devs", "system:masters", "system:nodes")),
            ("Impersonate-Uid", ("1",)),
            ("Impersonate-Extra-Scopes", ("x",)),
            ("Impersonate-Extra-Example.com%2fscopes", ("x",)),
        ):
            if self.chance.random() < 0.15:
                headers[name] = self.chance.choice(values)
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        return Step(self._actor(), "POST", path, {}, headers, stays=False, what="who")

    def _sign(self) -> Step:
        name = f"{self.prefix}c{self.chance.randrange(3)}"
        match self.chance.choice(("create", "create", "approve", "sign", "delete")):
            case "create":
                request = signing_request(*self.chance.choice(SUBJECTS))
                spec = {
                    "request": request,
                    "signerName": self.chance.choice(SIGNERS),
                    "usages": ["client auth"],
                }
                actor = self.chance.choice((None, self._actor()))
                return Step(actor, "POST", CERTIFICATES, {"metadata": {"name": name}, "spec": spec})
            case "approve":
                condition = {"type": "Approved", "status": "True", "reason": "x", "message": "y"}
                path, status = f"{CERTIFICATES}/{name}/approval", {"conditions": [condition]}
            case "sign":
                path, status = f"{CERTIFICATES}/{name}/status", {"certificate": None, "conditions": [
                    {"type": "Failed", "status": "True", "reason": "x", "message": "y"}]}  # fmt: skip
            case _:
                return Step(None, "DELETE", f"{CERTIFICATES}/{name}")
        return Step(self._actor(), "PATCH", path, {"status": status}, {"Content-Type": MERGE})

    def _token(self) -> Step:
        path = f"/api/v1/namespaces/{self.spaces[0]}/serviceaccounts/u{self._actor()}/token"
        return Step(self._actor(), "POST", path, {"spec": {}}, stays=False, what="token")

    def _ask(self) -> Step:
        group, resource = self.chance.choice(RESOURCES)
        resource, _, subresource = resource.partition("/")
        spec = {
            "verb": self.chance.choice(VERBS), "group": group, "resource": resource, "subresource": subresource,
            "namespace": self.chance.choice(("", *self.spaces)), "name": self.chance.choice(("", *self.names, "ann")),
        }  # fmt: skip
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        return Step(
            self._actor(), "POST", path, {"spec": {"resourceAttributes": spec}}, stays=False, what="may"
        )

    def _node(self) -> Step:
        """The administrator as a node: of the world, or of a group that it may not be in."""
        node, other = self.chance.sample([self.prefix + "n1", self.prefix + "n2"], 2)
        groups = self.chance.choice(("system:nodes", "system:nodes", "devs"))
        headers = {"Impersonate-User": f"system:node:{node}", "Impersonate-Group": groups}
        space = self.spaces[0]
        owner = self.chance.choice((node, other))
        metadata: Json = {"name": "mirror", "annotations": {"kubernetes.io/config.mirror": "x"}}
        volume = self.chance.choice(
            (
                {"emptyDir": {}},
                {"secret": {"secretName": "s"}},
                {"csi": {"driver": "d.io"}},
                {"hostPath": {"path": "/x"}},
            )
        )
        spec = {
            "nodeName": owner,
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "v", **volume}],
        }
        request = signing_request(*self.chance.choice(SUBJECTS))
        csr = {"request": request, "signerName": self.chance.choice(SIGNERS[:2]), "usages": ["client auth"]}
        label = self.chance.choice(
            ("node-restriction.kubernetes.io/x", "kubernetes.io/os", "own", "a.k8s.io/b")
        )
        bound = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "none", "uid": "u"}}
        step = self.chance.choice(
            (
                Step(None, "POST", f"/api/v1/namespaces/{space}/pods", {"metadata": metadata, "spec": spec}),
                Step(None, "PATCH", f"/api/v1/nodes/{owner}", {"metadata": {"labels": {label: "x"}}}),
                Step(None, "PATCH", f"/api/v1/nodes/{owner}", {"spec": {"taints": []}}),
                Step(None, "GET", f"/api/v1/namespaces/{space}/secrets/s", stays=False),
                Step(None, "GET", f"/api/v1/namespaces/{space}/configmaps", stays=False),
                Step(
                    None,
                    "POST",
                    f"/api/v1/namespaces/{space}/serviceaccounts/u0/token",
                    {"spec": bound},
                    stays=False,
                ),
                Step(None, "POST", CERTIFICATES, {"metadata": {"name": f"{self.prefix}node"}, "spec": csr}),
                Step(None, "DELETE", f"/api/v1/nodes/{owner}"),
            )
        )
        if step.method == "PATCH":
            headers["Content-Type"] = MERGE
        step.headers = headers
        # What a node does for good would be done once.
        return (
            step
            if not step.stays
            else Step(None, step.method, dry(step.path), step.body, headers, stays=False)
        )


def dry(path: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}dryRun=All"
