"""Users and their rights: roles, bindings, aggregation, impersonation, reviews, tokens, and who may grant what."""

from __future__ import annotations

from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import words
from tests.differential.draw.kinds import BY_KIND, CUSTOM, Kind
from tests.differential.draw.words import Dice, damaged, metadata

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_GROUP = "rbac.authorization.k8s.io"
_NOTICED = 0.4
"""Seconds until a kube-apiserver has heard of a role."""
_KINDS = [*(BY_KIND[kind] for kind in ("ConfigMap", "ConfigMap", "Secret", "Pod", "Deployment", "ServiceAccount", "Role", "RoleBinding")), CUSTOM[0]]  # fmt: skip
_VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
_URLS = [
    "/healthz",
    "/version",
    "/apis",
    "/metrics",
    "/metrics/*",
    "/nothing",
    "/own-{own}/*",
    "*",
    "/own-{own}",
]
_SUBS = ["pods/log", "pods/exec", "deployments/scale", "serviceaccounts/token", "*/scale", "pods/*", "configmaps/status"]  # fmt: skip
_DEFAULTS = ["view", "edit", "admin", "cluster-admin", "system:discovery", "system:basic-user", "system:node", "none-{own}"]  # fmt: skip
_USER, _TEAM = "u-{own}", "g-{own}"
_IDENTITIES: list[dict[str, str]] = [
    {"Impersonate-User": _USER},
    {"Impersonate-User": _USER},
    {"Impersonate-User": _USER, "Impersonate-Group": _TEAM},
    {"Impersonate-User": "other", "Impersonate-Group": _TEAM},
    {"Impersonate-User": "system:serviceaccount:{ns}:sa"},
    {"Impersonate-User": "system:anonymous"},
    {"Impersonate-User": "boss", "Impersonate-Group": "system:masters"},
    {"Impersonate-User": _USER, "Impersonate-Uid": "1", "Impersonate-Extra-Scopes": "a"},
    {"Impersonate-User": _USER, "Impersonate-Group": "system:unauthenticated"},
    {"Impersonate-User": "system:serviceaccount:{ns}:sa", "Impersonate-Group": _TEAM},
]
_ODD_IDENTITIES: list[dict[str, str]] = [
    {"Impersonate-Group": _TEAM},
    {"Impersonate-User": ""},
    {"Impersonate-Uid": "1"},
    {"Impersonate-Extra-A": "b"},
    {"Impersonate-User": "system:serviceaccount:x"},
    {"Impersonate-User": "system:serviceaccount:{ns}:"},
    {"Impersonate-User": "system:node:n"},
    {"Impersonate-User": _USER, "Impersonate-Extra-example.com%2fa": "b"},
    {"Impersonate-User": _USER, "Impersonate-Extra-A%zz": "b"},
    {"Authorization": "Bearer nothing"},
    {"Authorization": "Basic YTpi"},
    {"Authorization": "Bearer "},
    {"Authorization": ""},
]


def draw(dice: Dice, name: str) -> Conversation:
    """Roles and bindings, then what people try with them."""
    kind = dice.one(_KINDS)
    steps: list[Step] = [
        {
            "method": "POST",
            "path": "/api/v1/namespaces/{ns}/serviceaccounts",
            "body": {"metadata": {"name": "sa"}},
        }
    ]
    steps.append({"method": "POST", "path": kind.collection(), "body": kind.make(dice, "a")})
    for number in range(dice.randint(1, 3)):
        steps += _grant(dice, kind, number)
    steps.append({"sleep": _NOTICED})
    draws = [_act, _review, _rules, _escalate, _rights, _self, _tokens, _url, _impersonate]
    chosen = dice.choices(draws, [22, 14, 7, 16, 14, 4, 8, 5, 6], k=dice.randint(12, 20))
    for make in chosen:
        steps += make(dice, kind)
    return Conversation("access", name, steps, [kind.crd] if kind.crd else [])


def _as(dice: Dice, step: Step, odd: float = 0.06) -> Step:
    """A step that somebody else takes."""
    identity = dice.one(_ODD_IDENTITIES if dice.chance(odd) else _IDENTITIES)
    return {**step, "headers": {**step.get("headers", {}), **identity}}


def _group_of(kind: Kind) -> str:
    return "" if kind.path == "/api/v1" else kind.path.split("/")[2]


def _rule(dice: Dice, kind: Kind) -> dict[str, Any]:
    if dice.chance(0.12):
        return {
            "nonResourceURLs": dice.some(_URLS, 1, 2),
            "verbs": dice.one([["get"], ["*"], ["get", "post"]]),
        }
    rule: dict[str, Any] = {
        "apiGroups": dice.one([[_group_of(kind)], [_group_of(kind)], ["", _group_of(kind)], ["*"], ["nope"]]),
        "resources": dice.one([[kind.plural], [kind.plural], [kind.plural, dice.one(_SUBS)], ["*"], [f"{kind.plural}/status"], ["roles", "rolebindings"], ["serviceaccounts", "serviceaccounts/token"]]),
        "verbs": dice.one([dice.some(_VERBS, 1, 4), ["get", "list"], ["*"], ["bind", "escalate"], ["impersonate"], ["create", "update", "patch", "delete", "get"]]),
    }  # fmt: skip
    if dice.chance(0.25):
        rule["resourceNames"] = dice.one([["a"], ["a", "b"], ["x"]])
    return rule


def _role(dice: Dice, kind: Kind, which: str, name: str, wrong: float = 0.0) -> dict[str, Any]:
    body: dict[str, Any] = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": which,
        "metadata": metadata(dice, name, wrong),
    }
    body["metadata"].pop("finalizers", None)
    body["rules"] = [_rule(dice, kind) for _ in range(dice.randint(0 if wrong else 1, 3))]
    if which == "ClusterRole" and dice.chance(0.2):
        selector = dice.one(
            [
                {"matchLabels": {"own": "{own}"}},
                {"matchExpressions": [{"key": "own", "operator": "Exists"}]},
                {},
            ]
        )
        body["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return damaged(dice, body, 1) if dice.chance(wrong) else body


def _subjects(dice: Dice) -> list[Any]:
    found: list[Any] = [
        {"kind": "User", "name": _USER, "apiGroup": _GROUP},
        {"kind": "Group", "name": _TEAM, "apiGroup": _GROUP},
        {"kind": "ServiceAccount", "name": "sa", "namespace": "{ns}"},
        {"kind": "User", "name": _USER},
        {"kind": "Group", "name": "system:serviceaccounts:{ns}"},
    ]
    return dice.some(found, 1, 3)


def _binding(
    dice: Dice, which: str, name: str, role: str, role_kind: str, wrong: float = 0.0
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": which,
        "metadata": metadata(dice, name, wrong),
    }
    body["metadata"].pop("finalizers", None)
    body |= {"roleRef": {"apiGroup": _GROUP, "kind": role_kind, "name": role}, "subjects": _subjects(dice)}
    return damaged(dice, body, 1) if dice.chance(wrong) else body


def _named(which: str, name: str) -> tuple[str, str]:
    """The collection of a role or binding, and its name there."""
    plural = f"{which.lower()}s"
    return (f"{_RBAC}/{plural}", f"{name}-{{own}}") if which.startswith("Cluster") else (f"{_RBAC}/namespaces/{{ns}}/{plural}", name)  # fmt: skip


def _grant(dice: Dice, kind: Kind, number: int) -> list[Step]:
    role_kind = dice.one(["Role", "Role", "ClusterRole"])
    path, name = _named(role_kind, f"r{number}")
    steps: list[Step] = []
    if dice.chance(0.8):
        steps.append({"method": "POST", "path": path, "body": _role(dice, kind, role_kind, name)})
    else:
        role_kind, name = "ClusterRole", dice.one(_DEFAULTS)
    which = "ClusterRoleBinding" if role_kind == "ClusterRole" and dice.chance(0.4) else "RoleBinding"
    path, bound = _named(which, f"b{number}")
    steps.append({"method": "POST", "path": path, "body": _binding(dice, which, bound, name, role_kind)})
    return steps


def _act(dice: Dice, kind: Kind) -> list[Step]:
    other = dice.one([kind, kind, kind, dice.one(_KINDS[:-1])])
    name = dice.one(["a", "a", "b", "x"])
    item, collection = other.item(name), other.collection(dice.one(["{ns}", "{ns}", "{ns}", "default"]))
    step: Step = dice.one(
        [
            {"method": "GET", "path": item},
            {"method": "GET", "path": collection},
            {"method": "GET", "path": collection, "query": {"fieldSelector": f"metadata.name={name}"}},
            {"method": "GET", "path": collection, "query": {"watch": "true", "timeoutSeconds": "1"}},
            {"method": "POST", "path": collection, "body": other.make(dice, name)},
            {"method": "PUT", "path": item, "body": other.make(dice, name)},
            {"method": "PATCH", "path": item, "body": {"metadata": {"labels": {"p": "1"}}}, "headers": {"Content-Type": words.PATCH_TYPES["merge"]}},
            {"method": "PATCH", "path": item, "body": other.make(dice, name), "query": {"fieldManager": "m"}, "headers": {"Content-Type": words.PATCH_TYPES["apply"]}},
            {"method": "DELETE", "path": item},
            {"method": "DELETE", "path": collection},
            {"method": "GET", "path": f"{item}/{dice.one(['status', 'scale', 'log', 'nothing'])}"},
            {"method": "POST", "path": f"{item}/{dice.one(['eviction', 'binding', 'exec', 'token'])}", "body": {}},
            {"method": dice.one(["GET", "DELETE", "HEAD", "OPTIONS"]), "path": dice.one(["/api/v1/nodes/none", "/api/v1/namespaces/{ns}", "/apis/apps/v1/nothings", "/apis/nope/v1/things", "/api/v1/namespaces/{ns}/nothings/x", "/api/v1"]), "query": {"dryRun": "All"}},
        ]
    )  # fmt: skip
    step = _as(dice, step)
    if step.get("body") == {} and dice.chance(0.5):
        step["query"] = {"dryRun": "All"}
    return [step]


def _attributes(dice: Dice, kind: Kind) -> dict[str, Any]:
    if dice.chance(0.2):
        return {
            "nonResourceAttributes": {"path": dice.one(_URLS), "verb": dice.one(["get", "post", "", "*"])}
        }
    found: dict[str, Any] = {
        "verb": dice.one([*_VERBS, "*", "", "impersonate", "bind", "fly"]),
        "group": dice.one([_group_of(kind), _group_of(kind), "*", "nope", "apps"]),
        "resource": dice.one([kind.plural, kind.plural, "*", "nodes", "pods", ""]),
        "namespace": dice.one(["{ns}", "{ns}", "", "default"]),
    }
    for key, values in (
        ("name", ["a", "b", "x"]), ("subresource", ["status", "log", "*", "scale"]), ("version", ["v1", "*"]),
        ("fieldSelector", [{"rawSelector": "metadata.name=a"}, {"requirements": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}, {"requirements": [{"key": "a", "operator": "Is"}]}, {}, {"rawSelector": "a=1", "requirements": [{"key": "a", "operator": "Exists"}]}]),
        ("labelSelector", [{"rawSelector": "a in (1"}, {"requirements": [{"key": "a", "operator": "DoesNotExist"}]}, {"requirements": [{"key": "", "operator": "In"}]}]),
    ):  # fmt: skip
        if dice.chance(0.2 if "Selector" not in key else 0.06):
            found[key] = dice.one(values)
    return {
        "resourceAttributes": {key: value for key, value in found.items() if value != "" or dice.chance(0.3)}
    }


def _review(dice: Dice, kind: Kind) -> list[Step]:
    which = dice.one(
        ["SubjectAccessReview", "SubjectAccessReview", "SelfSubjectAccessReview", "LocalSubjectAccessReview"]
    )
    spec = _attributes(dice, kind)
    if which != "SelfSubjectAccessReview":
        for key, values in (("user", [_USER, "other", "system:serviceaccount:{ns}:sa", ""]), ("groups", [[_TEAM], ["system:masters"], ["system:authenticated"], []]),
                            ("extra", [{"a": ["b"]}, {}]), ("uid", ["1"])):  # fmt: skip
            if dice.chance({"user": 0.9, "groups": 0.4}.get(key, 0.1)):
                spec[key] = dice.one(values)
    if dice.chance(0.05):
        spec |= _attributes(dice, kind)
    within = "/namespaces/{ns}" if which.startswith("Local") else ""
    body: Any = {"apiVersion": "authorization.k8s.io/v1", "kind": which, "spec": spec}
    if dice.chance(0.1):
        body["metadata"] = metadata(dice, "x", 0.3)
    if dice.chance(0.12):
        body = damaged(dice, body, 1)
    step: Step = {
        "method": "POST",
        "path": f"/apis/authorization.k8s.io/v1{within}/{which.lower()}s",
        "body": body,
    }
    if dice.chance(0.1):
        step["query"] = dice.one([{"dryRun": "All"}, {"fieldValidation": "Strict"}, {"fieldManager": "x"}])
    if dice.chance(0.1):
        step["headers"] = {"Accept": dice.one(words.ACCEPTS[:13])}
    return [_as(dice, step) if which.startswith("Self") or dice.chance(0.15) else step]


def _rules(dice: Dice, kind: Kind) -> list[Step]:
    body: Any = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": dice.one(["{ns}", "{ns}", "{ns}", "default", "none", ""])}}  # fmt: skip
    if dice.chance(0.1):
        body = damaged(dice, body, 1)
    step: Step = {
        "method": "POST",
        "path": "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        "body": body,
    }
    return [_as(dice, step, 0.02)]


def _escalate(dice: Dice, kind: Kind) -> list[Step]:
    """Somebody grants what they may or may not hold."""
    which = dice.one(["Role", "ClusterRole", "RoleBinding", "RoleBinding", "ClusterRoleBinding"])
    path, name = _named(which, dice.one(["e", "r0", "b0"]))
    if "Binding" in which:
        role_kind = dice.one(["Role", "ClusterRole"]) if which == "RoleBinding" else "ClusterRole"
        role = (
            dice.one(["r0", "r1", "none"])
            if role_kind == "Role"
            else dice.one([*_DEFAULTS, "r0-{own}", "r1-{own}"])
        )
        body = _binding(dice, which, name, role, role_kind, 0.08)
    else:
        body = _role(dice, kind, which, name, 0.08)
    step: Step = dice.one(
        [
            {"method": "POST", "path": path, "body": body},
            {"method": "PUT", "path": f"{path}/{name}", "body": body},
            {"method": "PATCH", "path": f"{path}/{name}", "body": body, "query": {"fieldManager": "m", "force": "true"}, "headers": {"Content-Type": words.PATCH_TYPES["apply"]}},
            {"method": "PATCH", "path": f"{path}/{name}", "body": {key: value for key, value in body.items() if key in ("rules", "subjects", "roleRef")}, "headers": {"Content-Type": words.PATCH_TYPES["merge"]}},
        ]
    )  # fmt: skip
    if dice.chance(0.15):
        step.setdefault("query", {})["dryRun"] = "All"
    return [_as(dice, step, 0.02), {"sleep": _NOTICED}]


def _rights(dice: Dice, kind: Kind) -> list[Step]:
    """Roles and bindings as an administrator reads and changes them."""
    which = dice.one(["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"])
    path, name = _named(which, dice.one(["r0", "b0", "r1", "b1", "e"]))
    item, query = f"{path}/{name}", {"fieldSelector": f"metadata.name={name}"}
    body = (
        _binding(dice, which, name, "view", "ClusterRole", 0.15)
        if "Binding" in which
        else _role(dice, kind, which, name, 0.15)
    )
    step: Step = dice.one(
        [
            {"method": "GET", "path": item, "headers": {"Accept": dice.one(words.ACCEPTS[:20])}},
            {"method": "GET", "path": path, "query": query, "headers": {"Accept": dice.one(words.ACCEPTS[:20])}},
            {"method": "POST", "path": path, "body": body},
            {"method": "PUT", "path": item, "body": body},
            {"method": "PATCH", "path": item, "body": body, "query": {"fieldManager": "m2"}, "headers": {"Content-Type": words.PATCH_TYPES["apply"]}},
            {"method": "PATCH", "path": item, "body": {"roleRef": {"name": "other"}}, "headers": {"Content-Type": words.PATCH_TYPES["merge"]}},
            {"method": "PATCH", "path": item, "body": {"subjects": [{"kind": "User", "name": "z"}]}, "headers": {"Content-Type": words.PATCH_TYPES["strategic"]}},
            {"method": "DELETE", "path": item},
            {"method": "DELETE", "path": path, "query": query},
        ]
    )  # fmt: skip
    return [step, {"sleep": _NOTICED}] if step["method"] != "GET" else [step]


def _self(dice: Dice, kind: Kind) -> list[Step]:
    body: Any = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    if dice.chance(0.3):
        body["metadata"] = metadata(dice, "x", 0.3)
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    step: Step = {"method": dice.one(["POST", "POST", "POST", "GET"]), "path": path, "body": body}
    return [_as(dice, step)]


def _tokens(dice: Dice, kind: Kind) -> list[Step]:
    """Tokens of service accounts: asked for, and reviewed."""
    spec: dict[str, Any] = {}
    for key, values in (
        ("expirationSeconds", [600, 3600, 599, 1 << 32, (1 << 32) + 1, 0, -1, None, "600"]),
        ("audiences", [["a"], ["a", "b"], [], [""], "a", ["https://kubernetes.default.svc"]]),
        ("boundObjectRef", [{"kind": "Pod", "apiVersion": "v1", "name": "none"}, {"kind": "Secret", "apiVersion": "v1", "name": "none"}, {"kind": "ConfigMap", "apiVersion": "v1", "name": "a"}, {}, {"kind": "Node", "apiVersion": "v1", "name": "none"},
                            {"kind": "Pod", "apiVersion": "v2", "name": "a"}, {"kind": "Pod", "apiVersion": "v1", "name": "a", "uid": "x"}]),
    ):  # fmt: skip
        if dice.chance(0.35):
            spec[key] = dice.one(values)
    path = f"/api/v1/namespaces/{{ns}}/serviceaccounts/{dice.one(['sa', 'sa', 'sa', 'none'])}/token"
    body: Any = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    if dice.chance(0.1):
        body["metadata"] = metadata(dice, dice.one(["sa", "x"]), 0.2)
    if dice.chance(0.08):
        body = damaged(dice, body, 1)
    ask: Step = {"method": dice.one(["POST"] * 9 + ["GET"]), "path": path, "body": body, "save": {"token": "status.token"},
                 "ignore": ["body.status.token", "body.status.expirationTimestamp"]}  # fmt: skip
    if dice.chance(0.1):
        ask["query"] = {"dryRun": "All"}
    review: Any = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": dice.one(["{token}", "{token}", "x", ""])},
    }
    if dice.chance(0.4):
        review["spec"]["audiences"] = dice.one([["a"], ["b", "c"], [], ["https://kubernetes.default.svc"]])
    if dice.chance(0.08):
        review = damaged(dice, review, 1)
    hidden = ["body.spec.token", "body.status.user.extra"]  # a token's own id is random
    again: Step = {
        "method": "POST",
        "path": "/apis/authentication.k8s.io/v1/tokenreviews",
        "body": review,
        "ignore": hidden,
    }
    steps = [_as(dice, ask) if dice.chance(0.2) else ask, again]
    if dice.chance(0.4):
        steps.append(
            {"method": "GET", "path": kind.item("a"), "headers": {"Authorization": "Bearer {token}"}}
        )
    return steps


def _url(dice: Dice, kind: Kind) -> list[Step]:
    path = dice.one(
        [
            "/healthz",
            "/version",
            "/apis",
            "/nothing",
            "/own-{own}",
            "/own-{own}/x",
            "/api",
            "/openapi/v2x",
            "/logs/x",
            "/metrics/x",
        ]
    )
    return [_as(dice, {"method": dice.one(["GET", "POST", "HEAD"]), "path": path, "ignore": ["body.gitVersion", "body.groups", "body"] if path in ("/version", "/apis", "/api") else []})]  # fmt: skip


def _impersonate(dice: Dice, kind: Kind) -> list[Step]:
    """Somebody with a token of their own impersonates another: a right to be had first."""
    rule = dice.one(
        [
            {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": [_USER]},
            {"apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"], "verbs": ["impersonate"]},
            {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes", "uids"], "verbs": ["impersonate"]},
        ]
    )  # fmt: skip
    role, binding = "i-{own}", "ib-{own}"
    token: Step = {
        "method": "POST",
        "path": "/api/v1/namespaces/{ns}/serviceaccounts/sa/token",
        "body": {"spec": {}},
        "save": {"mine": "status.token"},
        "quiet": True,
    }
    steps: list[Step] = [token]
    if dice.chance(0.8):
        steps += [
            {"method": "POST", "path": f"{_RBAC}/clusterroles", "body": {"metadata": {"name": role}, "rules": [rule]}},
            {"method": "POST", "path": f"{_RBAC}/clusterrolebindings", "body": {"metadata": {"name": binding}, "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role}, "subjects": [{"kind": "ServiceAccount", "name": "sa", "namespace": "{ns}"}]}},
            {"sleep": _NOTICED},
        ]  # fmt: skip
    identity = dice.one(_IDENTITIES)
    review: Any = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    steps.append(
        {
            "method": "POST",
            "path": "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            "body": review,
            "headers": {"Authorization": "Bearer {mine}", **identity},
        }
    )
    return steps
