"""Server-side apply by several managers and versions, and the other patches and updates around it."""

from __future__ import annotations

import copy
from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import schemas, words
from tests.differential.draw.kinds import BY_KIND, CUSTOM, Kind, crd, custom, version
from tests.differential.draw.rest import json_patch
from tests.differential.draw.words import Dice, damaged, merged

_BUILTIN = [
    BY_KIND[k]
    for k in (
        "ConfigMap",
        "Deployment",
        "Service",
        "Pod",
        "Secret",
        "StatefulSet",
        "Role",
        "RoleBinding",
        "Ingress",
        "Job",
        "HorizontalPodAutoscaler",
        "EndpointSlice",
        "ServiceAccount",
        "PersistentVolumeClaim",
        "NetworkPolicy",
        "CronJob",
        "DaemonSet",
        "Endpoints",
        "ResourceQuota",
    )
]

# What managers apply to the kinds above, besides what the catalog of kinds has.
_PARTS: dict[str, list[dict[str, Any]]] = {
    "ConfigMap": [{"data": {"a": "2"}}, {"data": {"d": "x", "e": "y"}}, {"immutable": False}, {"data": {}}, {"data": None}],
    "Deployment": [
        {"spec": {"replicas": 1}}, {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "other", "env": [{"name": "A", "value": "1"}]}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]}]}}}},
        {"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "tolerations": [{"key": "k"}], "nodeSelector": {"n": "m"}}}}},
        {"spec": {"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}, "args": ["a", "b"]}]}}}},
        {"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}}, {"spec": {"template": {"spec": {"securityContext": {"runAsUser": 1}, "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["h"]}]}}}},
        {"spec": {"template": {"spec": {"containers": [{"image": "no-name"}]}}}}, {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "j"}]}}}},
        {"spec": {"strategy": None}}, {"spec": {"template": {"spec": {"containers": []}}}}, {"spec": {"template": {"spec": {"imagePullSecrets": [{"name": "a"}, {"name": "b"}]}}}},
    ],
    "Service": [{"spec": {"ports": [{"port": 80, "protocol": "TCP", "name": "p"}]}}, {"spec": {"ports": [{"port": 81}, {"port": 82, "name": "x"}]}}, {"spec": {"selector": {"b": "c"}}}, {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}],
    "Pod": [{"spec": {"containers": [{"name": "c", "image": "new"}]}}, {"metadata": {"labels": {"p": "q"}}}, {"spec": {"tolerations": [{"key": "z", "operator": "Exists"}]}}],
}  # fmt: skip


def draw(dice: Dice, name: str) -> Conversation:
    """Managers that write to one object (now and then to a second one), in every way there is."""
    roll = dice.random()
    if roll < 0.35:
        kinds = [dice.one(CUSTOM[:1] + CUSTOM[:2])]
    elif roll < 0.65:
        kinds = _drawn(dice)
    else:
        kinds = [dice.one(_BUILTIN[:5] if dice.chance(0.6) else _BUILTIN)]
    if kinds[0].kind == "HorizontalPodAutoscaler" and dice.chance(0.5):
        kinds = [BY_KIND["HorizontalPodAutoscaler"]]
    steps = [_step(dice, dice.one(kinds)) for _ in range(dice.randint(6, 16))]
    definitions = [kind.crd for kind in kinds[:1] if kind.crd]
    return Conversation("apply", name, steps, definitions)


# A few random schemas for a run, not one a conversation: installing a CRD takes a server longer than fifty requests.
_POOL: dict[int, list[Kind]] = {}


def _drawn(dice: Dice) -> list[Kind]:
    number = dice.randrange(12)
    if number not in _POOL:
        own = Dice(f"schemas of apply {number}")
        schema = schemas.root(own, depth=3, checks=0.1, defaults=0.15)
        if any("x-kubernetes-validations" in each for each in schemas.walk(schema)):
            schemas.bound(schema)
        other = copy.deepcopy(schema)
        if own.chance(0.5):
            schemas.retype(own, other)
        versions = [
            version("v1", schema, subresources={"status": {}} if own.chance(0.6) else {}),
            version("v2", other, storage=False, subresources={"status": {}}),
        ]
        definition = crd("things", "Thing", f"da{number}", versions)
        _POOL[number] = [custom(definition, {}, [], 0), custom(definition, {}, [], 1)]
    return _POOL[number]


def _content(dice: Dice, kind: Kind, wrong: float) -> dict[str, Any]:
    if kind.crd is not None and kind.crd["spec"]["names"]["kind"] == "Thing":
        served = next(v for v in kind.crd["spec"]["versions"] if kind.api_version.endswith("/" + v["name"]))
        value = schemas.value(dice, served["schema"]["openAPIV3Schema"], wrong=wrong, sparse=0.5)
        return value if isinstance(value, dict) else {}
    found: Any = copy.deepcopy(kind.body) if dice.chance(0.6) else {}
    for more in dice.some([*kind.more, *_PARTS.get(kind.kind, [])], 0, 3):
        found = merged(found, more)
    if dice.chance(wrong):
        found = damaged(dice, found)
    if dice.chance(0.1):
        found = damaged(dice, found)
    return dict(found) if isinstance(found, dict) else {}


def _metadata(dice: Dice, kind: Kind) -> dict[str, Any]:
    found: dict[str, Any] = {"name": kind.named("a")}
    if dice.chance(0.3):
        found["labels"] = dice.one(
            [{"l": "1"}, {"l": "2"}, {"m": "1"}, {"l": "1", "m": "2"}, {}, None, {"l": None}]
        )
    if dice.chance(0.15):
        found["annotations"] = dice.one(
            [{"n": "1"}, {"n": "2"}, {}, {"kubectl.kubernetes.io/last-applied-configuration": "{}"}]
        )
    if dice.chance(0.08):
        found["finalizers"] = dice.one([["example.com/f"], ["example.com/g", "example.com/f"], []])
    if dice.chance(0.05):
        found["ownerReferences"] = dice.one(words.OWNERS)
    if dice.chance(0.06):
        key, value = dice.one(
            [
                ("uid", "wrong"),
                ("resourceVersion", "1"),
                ("managedFields", None),
                ("managedFields", []),
                ("managedFields", [{"manager": "x"}]),
                ("creationTimestamp", None),
                ("generation", 3),
                ("namespace", "{ns}"),
                ("namespace", "other"),
                ("name", "b"),
                ("unknown", "x"),
                ("name", ""),
                ("deletionTimestamp", None),
                ("resourceVersion", ""),
            ]
        )
        found[key] = value
    return found


def _step(dice: Dice, kind: Kind) -> Step:
    name = "a" if dice.chance(0.95) else "b"
    make = dice.choices(
        [_apply, _merge, _json, _strategic, _put, _fields, _post, _get, _delete], [50, 9, 7, 6, 9, 5, 5, 6, 3]
    )[0]
    step = make(dice, kind, kind.item(name))
    if dice.chance(0.03):
        step.setdefault("headers", {}).update(dice.one(words.HEADERS[:6]))
    if step["method"] in ("PUT", "PATCH") and dice.chance(0.14):
        step["path"] += "/status" if dice.chance(0.7) or "scale" not in kind.sub else "/scale"
    return step


def _options(dice: Dice) -> dict[str, Any]:
    query: dict[str, Any] = {}
    if dice.chance(0.5):
        query["fieldManager"] = dice.one(words.MANAGERS[:4])
    if dice.chance(0.05):
        query["dryRun"] = "All"
    if dice.chance(0.08):
        query["fieldValidation"] = dice.one(words.FIELD_VALIDATION)
    return query


def _apply(dice: Dice, kind: Kind, path: str) -> Step:
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": _metadata(dice, kind)}
    body = merged(body, _content(dice, kind, 0.05))
    if dice.chance(0.03):
        body[dice.one(["apiVersion", "kind", "metadata"])] = dice.one([None, "", "v1", "Other", {}])
    query = _options(dice)
    query["fieldManager"] = (
        dice.one(["m1", "m1", "m2", "m2", "m3"]) if dice.chance(0.97) else dice.one(words.BAD_MANAGERS)
    )
    if dice.chance(0.35):
        query["force"] = "true"
    step: Step = {
        "method": "PATCH",
        "path": path,
        "query": query,
        "body": body,
        "headers": {"Content-Type": words.PATCH_TYPES["apply"]},
    }
    if dice.chance(0.06):
        step |= {"encoding": "cbor", "headers": {"Content-Type": "application/apply-patch+cbor"}}
    return step


def _merge(dice: Dice, kind: Kind, path: str) -> Step:
    body = merged(
        {"metadata": {k: v for k, v in _metadata(dice, kind).items() if k != "name"}},
        _content(dice, kind, 0.1),
    )
    return {
        "method": "PATCH",
        "path": path,
        "query": _options(dice),
        "body": body,
        "headers": {"Content-Type": words.PATCH_TYPES["merge"]},
    }


def _json(dice: Dice, kind: Kind, path: str) -> Step:
    whole = {"metadata": _metadata(dice, kind), **_content(dice, kind, 0.0)}
    return {
        "method": "PATCH",
        "path": path,
        "query": _options(dice),
        "body": json_patch(dice, whole),
        "headers": {"Content-Type": words.PATCH_TYPES["json"]},
    }


_DIRECTIVES: list[dict[str, Any]] = [
    {"$patch": "replace"}, {"$patch": "delete"}, {"$patch": "merge"}, {"$patch": "x"}, {"$retainKeys": ["type"]}, {"$retainKeys": "x"},
    {"$setElementOrder/containers": [{"name": "c"}]}, {"$setElementOrder/finalizers": ["example.com/g"]}, {"$deleteFromPrimitiveList/finalizers": ["example.com/f"]}, {"$setElementOrder/ports": [{"port": 80}]},
]  # fmt: skip


def _strategic(dice: Dice, kind: Kind, path: str) -> Step:
    step = _merge(dice, kind, path)
    step["headers"] = {"Content-Type": words.PATCH_TYPES["strategic"]}
    if dice.chance(0.5):
        body = step["body"]
        options: list[Any] = [body] + [v for v in body.values() if isinstance(v, dict)]
        template = (
            body.get("spec", {}).get("template", {}).get("spec")
            if isinstance(body.get("spec"), dict) and isinstance(body["spec"].get("template"), dict)
            else None
        )
        if isinstance(template, dict):
            options += [template, *[c for c in template.get("containers") or [] if isinstance(c, dict)]]
        dice.one(options).update(copy.deepcopy(dice.one(_DIRECTIVES)))
    return step


def _put(dice: Dice, kind: Kind, path: str) -> Step:
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": _metadata(dice, kind)}
    return {
        "method": "PUT",
        "path": path,
        "query": _options(dice),
        "body": merged(merged(body, kind.body), _content(dice, kind, 0.05)),
    }


def _post(dice: Dice, kind: Kind, path: str) -> Step:
    step = _put(dice, kind, path)
    return {**step, "method": "POST", "path": kind.collection()}


_ENTRIES: list[Any] = [
    [{}], [], None, [{"manager": "hand", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}, "time": "2024-01-01T00:00:00Z"}],
    [{"manager": "hand", "operation": "Update", "apiVersion": "v9", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}], [{"manager": "", "operation": "Update"}], [{"operation": "x", "manager": "y"}],
    [{"manager": "h", "operation": "Update", "apiVersion": "v1", "fieldsType": "other"}], [{"manager": "h", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"x": 1}}],
    [{"manager": "h", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:l": {}}}}, "subresource": "status"}],
]  # fmt: skip


def _fields(dice: Dice, kind: Kind, path: str) -> Step:
    entries = copy.deepcopy(dice.one(_ENTRIES))
    for entry in entries or []:
        if entry.get("apiVersion") == "v1":
            entry["apiVersion"] = kind.api_version
    return {
        "method": "PATCH",
        "path": path,
        "query": _options(dice),
        "body": {"metadata": {"managedFields": entries}},
        "headers": {"Content-Type": words.PATCH_TYPES["merge"]},
    }


def _get(dice: Dice, kind: Kind, path: str) -> Step:
    return {"method": "GET", "path": path}


def _delete(dice: Dice, kind: Kind, path: str) -> Step:
    return {"method": "DELETE", "path": path}
