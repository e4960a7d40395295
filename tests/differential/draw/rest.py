"""Requests of every verb, right and wrong: paths, methods, bodies, negotiation, options, selectors, subresources."""

from __future__ import annotations

import copy
from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import words
from tests.differential.draw.kinds import Kind, any_kind
from tests.differential.draw.words import Dice, damaged


def draw(dice: Dice, name: str) -> Conversation:
    """A conversation about one kind, with stray requests in between."""
    kind = any_kind(dice)
    steps = [create(dice, kind, "a", 0.0)]
    steps += [dice.choices([request, odd], [0.8, 0.2])[0](dice, kind) for _ in range(dice.randint(8, 16))]
    return Conversation("rest", name, steps, [kind.crd] if kind.crd else [])


def request(dice: Dice, kind: Kind) -> Step:
    """One request about a kind."""
    make = dice.choices(
        [_create, _get, _list, _put, _patch, delete, delete_all, subresource, _bodies],
        [20, 12, 14, 12, 14, 8, 3, 9, 8],
    )[0]
    step: Step = make(dice, kind)
    if dice.chance(0.12):
        step.setdefault("headers", {})["Accept"] = dice.one(words.ACCEPTS)
    if dice.chance(0.03):
        step.setdefault("headers", {}).update(dice.one(words.HEADERS))
    if dice.chance(0.04):
        query = step.setdefault("query", {})
        key, value = dice.one(
            [("pretty", "true"), ("pretty", "1"), ("pretty", "x"), ("unknown", "1"), ("timeout", "3s"), ("timeout", "x"), ("timeout", "0s"), ("timeout", "10"),
             ("timeout", "-1s"), ("timeout", "1h"), ("timeout", ""), ("fieldManager", "q"), ("dryRun", "All"), ("watch", "0"), ("limit", "1"), ("timeoutSeconds", "5"), ("timeout", "1.5s")]
        )  # fmt: skip
        query[key] = value
    return step


def _name(dice: Dice) -> str:
    return dice.one(words.NAMES) if dice.chance(0.3) else dice.one(["a", "a", "b"])


def write_options(dice: Dice, share: float = 0.3) -> dict[str, Any]:
    """Query parameters of a write."""
    query: dict[str, Any] = {}
    if dice.chance(share):
        query["fieldManager"] = dice.one(words.MANAGERS if dice.chance(0.85) else words.BAD_MANAGERS)
    if dice.chance(share / 3):
        query["dryRun"] = dice.one(
            ["All", "All", "All", "", "all", "None", ["All", "All"], "All,All", "true"]
        )
    if dice.chance(share / 2):
        query["fieldValidation"] = dice.one(
            words.FIELD_VALIDATION if dice.chance(0.8) else words.BAD_FIELD_VALIDATION
        )
    return query


def create(dice: Dice, kind: Kind, name: str, wrong: float = 0.1) -> Step:
    """A POST of a manifest."""
    step: Step = {"method": "POST", "path": kind.collection(), "body": kind.make(dice, name, wrong)}
    query = write_options(dice, 0.2)
    if query and wrong:
        step["query"] = query
    return step


def _create(dice: Dice, kind: Kind) -> Step:
    step = create(dice, kind, _name(dice), 0.15)
    body = step["body"]
    roll = dice.random()
    if roll < 0.15:
        body["metadata"]["name"] = dice.one(words.BAD_NAMES)
    elif roll < 0.22:
        del body["metadata"]["name"]
        if not kind.cluster and dice.chance(0.8):
            body["metadata"]["generateName"] = dice.one(["g-gen-", "y" * 50 + "-gen-", "Bad_-gen-", "-gen-"])
    elif roll < 0.4:
        step["body"] = damaged(dice, body, dice.randint(1, 2), keep=())
    if kind.crd is None and kind.sub and dice.chance(0.05):
        step["path"] += "/a/status"
    return step


def _get(dice: Dice, kind: Kind) -> Step:
    step: Step = {"method": "GET", "path": kind.item(_name(dice))}
    if dice.chance(0.2):
        step["query"] = {
            "resourceVersion": dice.one(
                ["0", "", "x", "-1", "999999999999", "0x1", "1.5", "00", "99999999999999999999999"]
            )
        }
    if dice.chance(0.35):
        step["headers"] = {"Accept": dice.one(words.ACCEPTS)}
    return step


def scoped(dice: Dice, kind: Kind, query: dict[str, Any]) -> dict[str, Any]:
    """Keeps a list of cluster-wide objects to what the conversation itself made."""
    return {**query, "fieldSelector": f"metadata.name={kind.named('a')}"} if kind.cluster else query


def _list(dice: Dice, kind: Kind) -> Step:
    query: dict[str, Any] = {}
    if dice.chance(0.4):
        query["labelSelector"] = dice.one(
            words.LABEL_SELECTORS if dice.chance(0.7) else words.BAD_LABEL_SELECTORS
        )
    if dice.chance(0.3):
        query["fieldSelector"] = dice.one(
            words.FIELD_SELECTORS if dice.chance(0.5) else words.BAD_FIELD_SELECTORS
        )
        if kind.crd and dice.chance(0.5):
            query["fieldSelector"] = dice.one(
                [
                    "spec.color=red",
                    "spec.size=3",
                    "spec.on=true",
                    "spec.color!=red",
                    "spec.size=x",
                    "spec.on=",
                    "spec.color=red,spec.size=3",
                    "spec.other=1",
                    "status.phase=new",
                ]
            )
    if dice.chance(0.15):
        query["limit"] = dice.one(["1", "2", "0", "-1", "x", "500", "", "1.5", "99999999999999999999"])
    if dice.chance(0.1):
        query["resourceVersion"] = dice.one(["0", "", "x", "-1", "999999999999"])
    if dice.chance(0.07):
        query["resourceVersionMatch"] = dice.one(["Exact", "NotOlderThan", "exact", "", "Other"])
    if dice.chance(0.05):
        query["continue"] = dice.one(["x", "", "e30", "W10", "====", "bnVsbA"])
    if dice.chance(0.05):
        query["allowWatchBookmarks"] = dice.one(["true", "x"])
    step: Step = {"method": "GET", "path": kind.collection(), "query": scoped(dice, kind, query)}
    if dice.chance(0.3):
        step["headers"] = {"Accept": dice.one(words.ACCEPTS)}
    if dice.chance(0.15):
        step["query"]["includeObject"] = dice.one(["None", "Object", "Metadata", "x", "", "none"])
        step.setdefault("headers", {})["Accept"] = dice.one([a for a in words.ACCEPTS if "Table" in a])
    return step


def _put(dice: Dice, kind: Kind) -> Step:
    name = _name(dice)
    body = kind.make(dice, name, 0.15)
    roll = dice.random()
    if roll < 0.3:
        body = damaged(dice, body, 1, keep=())
    elif roll < 0.4:
        body["metadata"]["resourceVersion"] = dice.one(["1", "x", "", "0", "-1"])
    elif roll < 0.45:
        body["metadata"]["name"] = "other"
    step: Step = {"method": "PUT", "path": kind.item(name), "body": body}
    if query := write_options(dice):
        step["query"] = query
    return step


def _patch(dice: Dice, kind: Kind) -> Step:
    how = dice.one(["merge", "merge", "json", "strategic", "apply"])
    whole = kind.make(dice, "a", 0.1)
    if how == "json":
        body: Any = json_patch(dice, whole)
    elif how == "apply":
        body = damaged(dice, whole, 1) if dice.chance(0.2) else whole
    else:
        body = {key: value for key, value in whole.items() if key not in ("apiVersion", "kind")}
        body["metadata"].pop("name", None)
        if dice.chance(0.4):
            body = damaged(dice, body, 1, keep=())
    if dice.chance(0.05):
        body = dice.one([{}, [], "x", None, 3, [{}], [{"op": "add"}]])
    step: Step = {
        "method": "PATCH",
        "path": kind.item(_name(dice)),
        "body": body,
        "headers": {"Content-Type": words.PATCH_TYPES[how]},
    }
    if dice.chance(0.05):
        step["headers"]["Content-Type"] = dice.one(words.CONTENT_TYPES)
    query = write_options(dice)
    if how == "apply" and dice.chance(0.93):
        query.setdefault("fieldManager", "m1")
    if dice.chance(0.3 if how == "apply" else 0.03):
        query["force"] = dice.one(["true", "true", "false", "x", ""])
    if query:
        step["query"] = query
    return step


def json_patch(dice: Dice, whole: dict[str, Any]) -> list[Any]:
    """A list of operations on the places of an object, some of them wrong."""
    found = words.places({key: value for key, value in whole.items() if key not in ("apiVersion", "kind")})
    paths = [
        "/" + "/".join(str(part).replace("~", "~0").replace("/", "~1") for part in place) for place in found
    ]
    paths += [
        "/metadata/labels",
        "/metadata/labels/new",
        "/metadata/annotations/a~1b",
        "/data/z",
        "/spec/new",
        "/spec/list/-",
        "/spec/list/0",
    ]
    patch: list[Any] = []
    for _ in range(dice.randint(1, 3)):
        op: dict[str, Any] = {
            "op": dice.one(["add", "replace", "remove", "test", "copy", "move"]),
            "path": dice.one(paths),
        }
        if op["op"] in ("copy", "move"):
            op["from"] = dice.one(paths)
        elif op["op"] != "remove":
            op["value"] = dice.one([1, "x", None, True, {}, [], {"k": "v"}, ["i"], "1"])
        if dice.chance(0.15):
            key, value = dice.one(
                [("op", "nothing"), ("path", ""), ("path", "x"), ("path", "/"), ("path", None), ("op", None), ("path", "/metadata/labels/~2"), ("from", 3), ("path", "/metadata//x"), ("extra", 1), ("path", "/spec/parts/9"), ("path", "/spec/parts/-1"), ("path", "/spec/parts/01"), ("op", "Add")]
            )  # fmt: skip
            op[key] = value
        if dice.chance(0.04):
            op.pop("value", None)
        patch.append(op)
    return patch


def delete_options(dice: Dice) -> dict[str, Any]:
    """A body of DeleteOptions, right or wrong."""
    body: dict[str, Any] = {}
    for key, values in (
        ("propagationPolicy", ["Background", "Foreground", "Orphan", "", "x", None]),
        ("gracePeriodSeconds", [0, 1, 30, -1, "0", None]),
        ("orphanDependents", [True, False]),
        ("dryRun", [["All"], [], ["x"], "All", ["All", "All"]]),
        (
            "preconditions",
            [
                {},
                {"uid": "no"},
                {"resourceVersion": "1"},
                {"uid": "{uid}"},
                {"resourceVersion": "{rv}"},
                {"uid": None},
                {"x": 1},
            ],
        ),
        ("apiVersion", ["v1", "meta.k8s.io/v1", "apps/v1", "nope/v1"]),
        ("kind", ["DeleteOptions", "Other", "Status"]),
        ("unknown", [1]),
        ("ignoreStoreReadErrorWithClusterBreakingPotential", [True, False]),
    ):
        if dice.chance(0.22):
            body[key] = dice.one(values)
    if "apiVersion" not in body and dice.chance(0.3):
        body |= {"apiVersion": "v1", "kind": "DeleteOptions"}
    return body


def delete(dice: Dice, kind: Kind) -> Step:
    """A DELETE of an object."""
    step: Step = {"method": "DELETE", "path": kind.item(_name(dice))}
    if dice.chance(0.5):
        step["body"] = delete_options(dice)
        if dice.chance(0.15):
            step["encoding"] = dice.one(["yaml", "cbor"])
    if dice.chance(0.3):
        step["query"] = dice.one(
            [{"propagationPolicy": "Foreground"}, {"propagationPolicy": "x"}, {"gracePeriodSeconds": "0"}, {"gracePeriodSeconds": "x"}, {"dryRun": "All"}, {"dryRun": "x"},
             {"orphanDependents": "true"}, {"orphanDependents": "x"}, {"propagationPolicy": "Orphan", "orphanDependents": "true"}, {"preconditions.uid": "x"}, {"resourceVersion": "1"}]
        )  # fmt: skip
    return step


def delete_all(dice: Dice, kind: Kind) -> Step:
    """A DELETE of a collection."""
    query: dict[str, Any] = {}
    if dice.chance(0.4):
        query["labelSelector"] = dice.one(words.LABEL_SELECTORS + words.BAD_LABEL_SELECTORS[:5])
    if dice.chance(0.2):
        query["fieldSelector"] = dice.one(words.FIELD_SELECTORS + words.BAD_FIELD_SELECTORS[:5])
    if dice.chance(0.1):
        query["limit"] = dice.one(["1", "x"])
    step: Step = {"method": "DELETE", "path": kind.collection(), "query": scoped(dice, kind, query)}
    if dice.chance(0.4):
        step["body"] = delete_options(dice)
    return step


def subresource(dice: Dice, kind: Kind) -> Step:
    """A request for a subresource, most often one that there is."""
    sub = dice.one(
        [
            *kind.sub,
            *kind.sub,
            "status",
            "scale",
            "nothing",
            "binding",
            "eviction",
            "log",
            "token",
            "approval",
            "finalize",
            "exec",
            "proxy",
            "resize",
            "ephemeralcontainers",
        ]
    )
    step: Step = {
        "method": dice.one(["GET", "GET", "PUT", "PATCH", "PATCH", "POST", "DELETE"]),
        "path": f"{kind.item('a')}/{sub}",
    }
    if step["method"] in ("PUT", "POST"):
        step["body"] = kind.make(dice, "a", 0.1)
        if sub == "scale":
            step["body"] = {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": kind.named("a")},
                "spec": {"replicas": dice.one([0, 1, 5, -1, "2", None])},
            }
            if dice.chance(0.2):
                step["body"]["metadata"]["resourceVersion"] = dice.one(["1", "x"])
            if dice.chance(0.3):
                step["body"] = damaged(dice, step["body"], 1, keep=())
    elif step["method"] == "PATCH":
        how = dice.one(["merge", "json", "strategic", "apply"])
        step["headers"] = {"Content-Type": words.PATCH_TYPES[how]}
        value: Any = (
            {"spec": {"replicas": dice.one([3, -2, "x", None])}}
            if sub == "scale"
            else {
                "status": dice.one(
                    [
                        {"phase": "x"},
                        {"replicas": 2},
                        {"replicas": "x"},
                        {},
                        None,
                        {"conditions": [{"type": "A", "status": "True"}]},
                        {"observedGeneration": 3},
                    ]
                )
            }
        )
        if how == "json":
            place = next(iter(value))
            value = [{"op": dice.one(["add", "replace", "test"]), "path": f"/{place}", "value": value[place]}]
        elif how == "apply":
            api_version, name = (
                ("autoscaling/v1", "Scale") if sub == "scale" else (kind.api_version, kind.kind)
            )
            value = {"apiVersion": api_version, "kind": name, "metadata": {"name": kind.named("a")}, **value}
            step["query"] = {"fieldManager": "m1", **({"force": "true"} if dice.chance(0.5) else {})}
        step["body"] = value
    elif dice.chance(0.3):
        step["headers"] = {"Accept": dice.one(words.ACCEPTS)}
    return step


def _bodies(dice: Dice, kind: Kind) -> Step:
    """Bodies that are no JSON, not the kind, or of another media type."""
    body = kind.make(dice, "b")
    step: Step = {"method": dice.one(["POST", "POST", "PUT"]), "path": kind.collection()}
    if step["method"] == "PUT":
        step["path"] = kind.item("b")
    roll = dice.randrange(6)
    if roll == 0:
        step["text"] = dice.one(
            ["", "{", "null", "[]", "3", '"x"', "{}", '{"kind":"X"}', '{"apiVersion":"v1"}', "a: b", "{}{}", '{"a":1,}', "\x00", "---\n", "true", '{"metadata":{"name":"x"}}', "[{}]",
             '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"}} x', '{"kind":3}', '{"apiVersion":3,"kind":"ConfigMap"}', '{"kind":"ConfigMap","apiVersion":"a/b/c"}', "<xml/>"]
        )  # fmt: skip
        step["headers"] = {
            "Content-Type": dice.one(
                [
                    "application/json",
                    "application/yaml",
                    "application/json",
                    "application/cbor",
                    *([words.ACCEPTS[2]] if kind.crd is None else []),
                ]
            )
        }
    elif roll == 1:
        body["kind" if dice.chance(0.5) else "apiVersion"] = dice.one(
            [
                "Other",
                "v2",
                "",
                "apps/v1",
                "v1",
                "Status",
                "List",
                "ConfigMap",
                "apps/v1beta1",
                "nope.example.com/v1",
                None,
                3,
            ]
        )
        step["body"] = body
    elif roll == 2:
        step |= {
            "body": body,
            "encoding": "yaml",
            "headers": {
                "Content-Type": dice.one(
                    [
                        "application/yaml",
                        "application/yaml",
                        "application/json",
                        "text/yaml",
                        "application/x-yaml",
                    ]
                )
            },
        }
    elif roll == 3:
        step |= {"body": body, "headers": {"Content-Type": dice.one(words.CONTENT_TYPES)}}
    elif roll == 4:
        step |= {"body": body, "encoding": dice.one(["cbor", "protobuf"] if kind.crd is None else ["cbor"])}
        if dice.chance(0.4):
            step["headers"] = {
                "Accept": dice.one(
                    ["application/cbor", "application/vnd.kubernetes.protobuf", "application/yaml"]
                )
            }
    else:
        step["body"] = dice.one([body, [body], {"kind": "List", "apiVersion": "v1", "items": [body]}])
        if dice.chance(0.5):
            step["body"] = copy.deepcopy(body)
            step["body"]["metadata"]["namespace"] = dice.one(["{ns}", "default", "", "other"])
    return step


_PATHS = [
    "/", "/api", "/apis", "/api/", "/apis/", "/healthz", "/livez", "/readyz", "/healthz/ping", "/healthz/nothing", "/nothing", "/api/v2", "/api/v1/nothing", "/apis/nothing", "/apis/apps", "/apis/apps/", "/apis/apps/v2",
    "/apis/apps/v1/nothing", "/api/v1/namespaces/{ns}/nothing", "/api/v1/namespaces/{ns}/configmaps/", "/api/v1/namespaces/{ns}/configmaps/a/", "/api//v1", "//api/v1", "/api/v1/namespaces/{ns}//configmaps", "/api/v1/namespaces//configmaps",
    "/api/v1/configmaps/a", "/api/v1/namespaces/{ns}/nodes", "/api/v1/nodes/none/status", "/apis/v1", "/api/v1/", "/api/v1/namespaces/{ns}/", "/api/v1/namespaces/", "/api/v1/watch/namespaces/{ns}/configmaps/nope/x", "/api/v1/proxy/x",
    "/api/v1/namespaces/{ns}/configmaps/a/status", "/api/v1/namespaces/{ns}/pods/a/log", "/api/v1/namespaces/{ns}/pods/a/exec", "/api/v1/namespaces/{ns}/services/a/proxy", "/api/v1/nodes/a/proxy", "/api/v1/namespaces/{ns}/status", "/api/v1/namespaces/{ns}/finalize",
    "/apis/apps/v1/namespaces/{ns}/deployments/a/rollback", "/apis/extensions/v1beta1", "/apis/apps/v1beta1/deployments", "/openapi", "/openapi/v3/", "/openapi/v3/apis/nothing", "/openapi/v4", "/swagger.json", "/swagger-2.0.0.pb-v1", "/metrics/x", "/logs", "/debug/x",
    "/api/v1/namespaces/{ns}/configmaps/%61", "/api/v1/namespaces/{ns}/configmaps/a%2Fb", "/api/v1/namespaces/{ns}/configmaps/..", "/api/v1/../v1/namespaces", "/api/v1/namespaces/{ns}/./configmaps", "/API/v1", "/api/V1", "/api/v1/Namespaces", "/api/v1/namespaces/{ns}/ConfigMaps",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nope.example.com", "/apis/nope.example.com/v1/things", "/apis/apps/v1/namespaces", "/apis/apps/v1/namespaces/{ns}", "/apis/apps/v1/namespaces/{ns}/deployments", "/apis/apps/v1/watch", "/api/v1/watch", "/api/v1/componentstatuses/x",
    "/.well-known/openid-configuration", "/openid/v1/jwks/x", "/readyz/ping", "/livez/ping", "/livez/etcd/x", "/readyz/nope", "/index.html", "/favicon.ico", "/apis/apps?x=1", "/api/v1/bindings", "/api/v1/namespaces/{ns}/bindings",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews", "/apis/authentication.k8s.io/v1/tokenreviews/x", "/api/v1/namespaces/{ns}/pods/a/eviction", "/api/v1/namespaces/{ns}/pods/a/binding", "/api/v1/namespaces/{ns}/serviceaccounts/default/token",
    "/api/v1/namespaces/NOPE/configmaps", "/api/v1/namespaces/no_such/configmaps/x", "/api/v1/namespaces/absent/configmaps", "/api/v1/namespaces/absent/configmaps/x",
]  # fmt: skip
_METHODS = [
    "GET",
    "GET",
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "FOO",
    "get",
    "PROPFIND",
    "Post",
]


def odd(dice: Dice, kind: Kind) -> Step:
    """A path or method that is not the kind's own."""
    path = dice.one(_PATHS) if dice.chance(0.6) else dice.one(
        [kind.collection(), kind.item("a"), kind.collection() + "/", kind.item("a") + "/", f"{kind.path}/{kind.plural}", f"{kind.path}/{kind.plural}/a", f"{kind.path}/watch/{kind.plural}", kind.path, f"{kind.path}/namespaces/{{ns}}/{kind.plural}", kind.item("a") + "/status/x", kind.path + "/" + kind.plural.upper(), kind.item("a").replace("/v1", "/v9", 1)]
    )  # fmt: skip
    step: Step = {"method": dice.one(_METHODS), "path": path}
    if step["method"] == "CONNECT":
        step["method"] = "GET"
    if "watch" in path.split("/"):
        within = "" if kind.cluster else ",metadata.namespace={ns}"
        step["query"] = {"timeoutSeconds": "1", "fieldSelector": f"metadata.name=a{within}"}
    if kind.cluster and step["method"] in ("GET", "DELETE", "get") and path.rstrip("/").endswith(kind.plural):
        step["query"] = {"fieldSelector": f"metadata.name={kind.named('a')}", **step.get("query", {})}
    if not kind.cluster and path in (f"{kind.path}/{kind.plural}", "/api/v1/namespaces//configmaps"):
        step["query"] = {"fieldSelector": "metadata.namespace={ns}"}  # other conversations have objects too
    if path.endswith("/openid-configuration"):
        step["ignore"] = ["body.jwks_uri", "body.id_token_signing_alg_values_supported"]
    if path.strip("/") in ("", "apis", "index.html", "openid/v1/jwks", "openapi/v3"):
        step["ignore"] = ["body.paths", "body.groups", "body.keys"]
    if step["method"] == "DELETE":
        step["query"] = {"dryRun": "All", **step.get("query", {})}
    if step["method"] in ("POST", "PUT", "PATCH") and dice.chance(0.7):
        step["body"] = kind.make(dice, "a")
        if step["method"] == "PATCH":
            step["headers"] = {"Content-Type": dice.one(list(words.PATCH_TYPES.values()))}
    if dice.chance(0.3):
        step.setdefault("headers", {})["Accept"] = dice.one(words.ACCEPTS)
    if path in ("/", "/api/v1/namespaces/", "/apis", "/apis/") or path.startswith("/openapi/v3"):
        step["method"] = "POST" if step["method"] in ("GET", "get") else step["method"]
    return step
