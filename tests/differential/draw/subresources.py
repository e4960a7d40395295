"""Subresources: scale, status, resize, eviction, binding, ephemeral containers, logs and others, each with its own bodies."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import words
from tests.differential.draw.kinds import BY_KIND, CUSTOM, Kind
from tests.differential.draw.rest import delete_options, write_options
from tests.differential.draw.words import Dice, damaged, merged

_POD: dict[str, Any] = {
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}}],
    }
}  # fmt: skip
_POD_MORE: list[dict[str, Any]] = [
    {"metadata": {"labels": {"app": "web"}}}, {"spec": {"containers": [{"name": "c", "image": "nginx"}]}}, {"spec": {"schedulingGates": [{"name": "example.com/g"}]}}, {"spec": {"nodeName": "n-{own}"}},
    {"spec": {"initContainers": [{"name": "i", "image": "busybox", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1m"}}}]}}, {"spec": {"resources": {"requests": {"cpu": "2"}}}},
    {"spec": {"containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}, "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}, {"name": "d", "image": "x"}]}},
    {"spec": {"restartPolicy": "Never"}}, {"spec": {"terminationGracePeriodSeconds": 30}},
]  # fmt: skip
_QUANTITIES = ["100m", "1", "2", "0", "-1", "64Mi", "1e3", "x", None, 1, 0.5]
_CONDITION = {"type": "Ready", "status": "True"}
_KINDS = [*(BY_KIND[kind] for kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "DaemonSet", "Job", "Service", "PersistentVolumeClaim", "PersistentVolume", "Node", "Namespace", "ResourceQuota",
                                       "PodDisruptionBudget", "HorizontalPodAutoscaler", "Ingress", "CertificateSigningRequest", "CronJob", "ServiceAccount", "ResourceClaim", "VolumeAttachment")), CUSTOM[0], CUSTOM[0], CUSTOM[1]]  # fmt: skip
_STATUSES: list[dict[str, Any]] = [
    {"replicas": 2}, {"replicas": -1}, {"replicas": "x"}, {"conditions": [_CONDITION]}, {"conditions": [_CONDITION, _CONDITION]}, {"conditions": [{"type": "A"}]}, {"observedGeneration": 3}, {"phase": "Running"}, {"phase": "x"}, {},
    {"readyReplicas": 1, "replicas": 1, "availableReplicas": 1}, {"availableReplicas": 5, "replicas": 1}, {"succeeded": 1}, {"active": 1}, {"unknown": 1}, {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}, {"loadBalancer": {"ingress": [{"ip": "x"}]}},
    {"capacity": {"storage": "1Gi"}}, {"hard": {"pods": "3"}, "used": {"pods": "1"}}, {"used": {"pods": "x"}}, {"podIP": "10.0.0.3", "podIPs": [{"ip": "10.0.0.3"}]}, {"podIP": "bad"}, {"startTime": "2024-01-02T03:04:05Z"}, {"startTime": "x"},
    {"containerStatuses": [{"name": "c", "ready": True, "restartCount": 0, "image": "nginx", "imageID": "", "state": {"running": {"startedAt": "2024-01-02T03:04:05Z"}}}]}, {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
    {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 1, "expectedPods": 1, "observedGeneration": 1}, {"disruptionsAllowed": 1, "observedGeneration": 1}, {"disruptionsAllowed": -1}, {"qosClass": "Guaranteed"}, {"certificate": "eA=="},
    {"nodeInfo": {"kernelVersion": "x"}}, {"images": [{"names": ["a"]}]}, {"currentReplicas": 1, "desiredReplicas": 2}, {"lastScheduleTime": "2024-01-02T03:04:05Z"}, {"attached": True}, {"allocation": {}}, {"completionTime": "2024-01-02T03:04:05Z"},
]  # fmt: skip


def draw(dice: Dice, name: str) -> Conversation:
    """An object, and requests for its subresources; every third conversation is about a Pod."""
    if dice.chance(0.45):
        return Conversation("subresources", name, _of_pod(dice))
    kind = dice.one(_KINDS)
    steps: list[Step] = [
        {
            "method": "POST",
            "path": kind.collection(),
            "body": kind.make(dice, "a"),
            "save": {"rv": "metadata.resourceVersion", "uid": "metadata.uid"},
        }
    ]
    makes: list[Make] = [_status, _status, _plain]
    makes += [_scale] * 3 if "scale" in kind.sub or kind.crd else [_scale]
    if own := _OWN.get(kind.kind):
        makes += [own] * 3
    steps += [_finish(dice, dice.one(makes)(dice, kind), kind) for _ in range(dice.randint(8, 14))]
    return Conversation("subresources", name, steps, [kind.crd] if kind.crd else [])


Make = Callable[[Dice, Kind], Step]


def _finish(dice: Dice, step: Step, kind: Kind) -> Step:
    """A step with options, forms and, now and then, something wrong with it."""
    if step["method"] in ("PUT", "POST", "PATCH"):
        query = write_options(dice, 0.15) | step.get("query", {})
        if query:
            step["query"] = query
        body = step.get("body")
        if isinstance(body, dict) and dice.chance(0.2):
            step["body"] = damaged(dice, body, 1, keep=() if dice.chance(0.3) else ("apiVersion", "kind"))
        if isinstance(body, dict) and isinstance(body.get("metadata"), dict) and dice.chance(0.2):
            step["body"]["metadata"] = merged(
                body["metadata"],
                dice.one(
                    [
                        {"resourceVersion": "{rv}"},
                        {"resourceVersion": "1"},
                        {"uid": "{uid}"},
                        {"uid": "x"},
                        {"labels": {"s": "1"}},
                        {"annotations": {"s": "1"}},
                        {"name": "other"},
                        {"namespace": "other"},
                        {"finalizers": ["example.com/s"]},
                        {"generation": 9},
                    ]
                ),
            )
        if kind.crd is None and step["method"] != "PATCH" and dice.chance(0.06):
            step["encoding"] = dice.one(["yaml", "protobuf"])
            step.pop("headers", None)
            if step["encoding"] == "protobuf" and not isinstance(step.get("body"), dict):
                step["encoding"] = "yaml"
    if dice.chance(0.12):
        step.setdefault("headers", {})["Accept"] = dice.one(words.ACCEPTS)
    return step


def _change(dice: Dice, path: str, whole: dict[str, Any], part: Any) -> Step:
    """The whole as a PUT or an apply, or a part as a patch."""
    how = dice.one(["put", "put", "merge", "merge", "strategic", "json", "apply"])
    if how == "put":
        return {"method": "PUT", "path": path, "body": whole}
    step: Step = {
        "method": "PATCH",
        "path": path,
        "headers": {"Content-Type": words.PATCH_TYPES[how]},
        "body": part,
    }
    if how == "apply":
        step["body"] = whole
        step["query"] = {
            "fieldManager": dice.one(["m1", "m2"]),
            **({"force": "true"} if dice.chance(0.5) else {}),
        }
    elif how == "json":
        step["body"] = [
            {"op": dice.one(["add", "replace", "test"]), "path": f"/{top}/{key}", "value": value}
            for top, inner in part.items()
            for key, value in (inner.items() if isinstance(inner, dict) else ())
        ]
    return step


def _whole(dice: Dice, kind: Kind, more: dict[str, Any]) -> dict[str, Any]:
    body = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": kind.named("a")},
        **copy.deepcopy(kind.body),
    }
    return dict(merged(body, more))


def _status(dice: Dice, kind: Kind) -> Step:
    status = {"status": {}}
    for each in dice.some(_STATUSES, 1, 2) if dice.chance(0.2) else [dice.one(_STATUSES)]:
        status = merged(status, {"status": each})
    path = f"{kind.item('a')}/status"
    roll = dice.random()
    if roll < 0.12:
        return {"method": "GET", "path": path}
    if roll < 0.16:
        return {"method": dice.one(["POST", "DELETE"]), "path": path, "body": _whole(dice, kind, status)}
    if dice.chance(0.2):
        status["spec"] = {"replicas": 7}
    return _change(dice, path, _whole(dice, kind, status), status)


def _scale(dice: Dice, kind: Kind) -> Step:
    path = f"{kind.item('a')}/scale"
    if dice.chance(0.15):
        return {"method": dice.one(["GET", "GET", "GET", "POST", "DELETE"]), "path": path}
    spec = {
        "spec": dice.one(
            [
                {"replicas": dice.one([0, 1, 5, 2**31 - 1])},
                {"replicas": dice.one([-1, 2**31, "2", None, 1.5, 1.0])},
                {},
                {"replicas": 1, "unknown": 1},
            ]
        )
    }
    body: dict[str, Any] = {
        "apiVersion": dice.one(
            ["autoscaling/v1"] * 6 + ["autoscaling/v2", "apps/v1", "extensions/v1beta1", ""]
        ),
        "kind": dice.one(["Scale"] * 9 + ["Deployment"]),
        "metadata": {"name": kind.named("a")},
    }
    if dice.chance(0.3):
        body["metadata"]["namespace"] = dice.one(["{ns}", "{ns}", "other", ""])
    return _change(dice, path, {**body, **spec}, spec)


def _plain(dice: Dice, kind: Kind) -> Step:
    """Reads, and writes of the object itself in between."""
    step: Step = dice.one(
        [
            {"method": "GET", "path": kind.item("a")},
            {"method": "GET", "path": kind.item("a"), "headers": {"Accept": dice.one([each for each in words.ACCEPTS if "Table" in each])}},
            {"method": "PATCH", "path": kind.item("a"), "body": {"metadata": {"labels": {"l": "1"}}, "status": {"replicas": 3}}, "headers": {"Content-Type": words.PATCH_TYPES["merge"]}},
            {"method": "PUT", "path": kind.item("a"), "body": _whole(dice, kind, dice.one(kind.more) if kind.more else {})},
            {"method": "GET", "path": f"{kind.item('a')}/{dice.one(['nothing', 'log', 'token', 'scale', 'status', 'finalize', 'proxy'])}"},
        ]
    )  # fmt: skip
    return step


def _approval(dice: Dice, kind: Kind) -> Step:
    condition = {
        "type": dice.one(["Approved", "Denied", "Failed", "Other", ""]),
        "status": dice.one(["True", "True", "False", "Unknown", "x"]),
        "reason": "Why",
        "message": "because",
    }
    status = {
        "status": {
            "conditions": [condition, *([{**condition, "type": "Denied"}] if dice.chance(0.1) else [])]
        }
    }
    return _change(dice, f"{kind.item('a')}/approval", _whole(dice, kind, status), status)


def _finalize(dice: Dice, kind: Kind) -> Step:
    body = _whole(
        dice,
        kind,
        {
            "spec": {
                "finalizers": dice.one(
                    [["kubernetes"], ["kubernetes", "example.com/f"], ["bad finalizer"], ["nodomain"]]
                )
            }
        },
    )
    return {
        "method": dice.one(["PUT", "PUT", "PUT", "GET", "PATCH", "POST"]),
        "path": f"{kind.item('a')}/finalize",
        "body": body,
    }


def _proxy(dice: Dice, kind: Kind) -> Step:
    name = dice.one(
        [
            kind.named("a"),
            "none",
            f"{kind.named('a')}:80",
            f"https:{kind.named('a')}:1",
            f"{kind.named('a')}:web",
            "x:y:z:w",
        ]
    )
    path = f"{kind.collection()}/{name}/proxy"
    return {"method": dice.one(["GET", "GET", "POST", "HEAD"]), "path": path + dice.one(["", "/", "/x"])}


def _token(dice: Dice, kind: Kind) -> Step:
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"name": dice.one(["a", "a", "b"])},
        "spec": dice.one([{}, {"expirationSeconds": 600}, {"audiences": ["x"]}, {"expirationSeconds": 1}]),
    }
    return {
        "method": dice.one(["POST", "POST", "POST", "POST", "GET", "PUT"]),
        "path": f"{kind.item('a')}/token",
        "body": body,
        "ignore": ["body.status.token", "body.status.expirationTimestamp"],
    }


_OWN: dict[str, Make] = {
    "CertificateSigningRequest": _approval,
    "Namespace": _finalize,
    "Service": _proxy,
    "ServiceAccount": _token,
}


_EPHEMERAL: list[tuple[str, Any]] = [
    ("command", ["sh"]), ("ports", [{"containerPort": 80}]), ("resources", {"limits": {"cpu": "1"}}), ("livenessProbe", {"tcpSocket": {"port": 1}}), ("stdin", True), ("tty", True), ("env", [{"name": "A", "value": "b"}]),
    ("volumeMounts", [{"name": "v", "mountPath": "/v"}]), ("securityContext", {"privileged": True}), ("restartPolicy", "Always"), ("lifecycle", {}), ("terminationMessagePolicy", "File"), ("targetContainerName", "c"), ("targetContainerName", "none"),
]  # fmt: skip
_LOGS: list[dict[str, str]] = [
    {}, {"container": "c"}, {"container": "none"}, {"tailLines": "3"}, {"tailLines": "-1"}, {"tailLines": "x"}, {"sinceSeconds": "1"}, {"sinceSeconds": "0"}, {"sinceTime": "2024-01-02T03:04:05Z"}, {"sinceTime": "x"}, {"limitBytes": "0"}, {"limitBytes": "9"},
    {"follow": "true"}, {"follow": "x"}, {"previous": "true"}, {"timestamps": "true"}, {"sinceSeconds": "1", "sinceTime": "2024-01-02T03:04:05Z"}, {"insecureSkipTLSVerifyBackend": "true"}, {"stream": "Stdout"}, {"stream": "x"}, {"stream": "Stderr", "tailLines": "1"}, {"unknown": "1"}, {"container": "i"},
]  # fmt: skip


def _of_pod(dice: Dice) -> list[Step]:
    kind = BY_KIND["Pod"]
    body: Any = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"app": "web"}},
        **copy.deepcopy(_POD),
    }
    for more in dice.some(_POD_MORE, 0, 2):
        body = merged(body, more)
    steps: list[Step] = [
        {
            "method": "POST",
            "path": kind.collection(),
            "body": body,
            "save": {"rv": "metadata.resourceVersion", "uid": "metadata.uid"},
        }
    ]
    if dice.chance(0.25):
        budget = {
            "metadata": {"name": "b"},
            "spec": {
                "selector": {"matchLabels": dice.one([{"app": "web"}, {"app": "no"}])},
                dice.one(["minAvailable", "maxUnavailable"]): dice.one([0, 1, "50%"]),
            },
        }
        steps.append(
            {"method": "POST", "path": "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets", "body": budget}
        )
    for _ in range(dice.randint(8, 14)):
        make = dice.choices(
            [_resize, _evict, _bind, _ephemeral, _log, _connect, _status, _plain],
            [20, 14, 12, 16, 10, 5, 16, 6],
        )[0]
        step = make(dice, kind)
        if make in (_status, _plain) and step["method"] == "PUT":
            step["body"] = merged(body, step["body"] | {"spec": body["spec"]})
        steps.append(_finish(dice, step, kind))
    return steps


def _resources(dice: Dice) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in dice.some(["requests", "limits"], 1, 2):
        found[key] = {
            name: dice.one(_QUANTITIES[:6] if dice.chance(0.85) else _QUANTITIES)
            for name in dice.some(["cpu", "memory", "example.com/gpu"], 1, 2 if dice.chance(0.9) else 3)
        }
    return found


def _resize(dice: Dice, kind: Kind) -> Step:
    path = f"{kind.item('a')}/resize"
    if dice.chance(0.08):
        return {"method": dice.one(["GET", "POST", "DELETE"]), "path": path}
    containers: list[dict[str, Any]] = [
        {"name": dice.one(["c", "c", "c", "d", "none"]), "resources": _resources(dice)}
    ]
    if dice.chance(0.1):
        containers[0] |= dice.one(
            [
                {"image": "other"},
                {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]},
                {"resources": None},
            ]
        )
    spec: dict[str, Any] = {"spec": {"containers": containers}}
    if dice.chance(0.15):
        spec["spec"] |= dice.one(
            [
                {"resources": _resources(dice)},
                {"nodeName": "x"},
                {"initContainers": [{"name": "i", "resources": _resources(dice)}]},
                {"tolerations": [{"operator": "Exists"}]},
            ]
        )
    whole: Any = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, **copy.deepcopy(_POD)}
    whole = merged(
        whole, {"spec": {"containers": [{"name": "c", "image": "nginx", "resources": _resources(dice)}]}}
    )
    return _change(dice, path, whole, spec)


def _evict(dice: Dice, kind: Kind) -> Step:
    body: dict[str, Any] = {
        "apiVersion": dice.one(["policy/v1"] * 6 + ["policy/v1beta1", "v1", "apps/v1"]),
        "kind": dice.one(["Eviction"] * 9 + ["Pod"]),
        "metadata": {"name": dice.one(["a"] * 6 + ["b", ""])},
    }
    if dice.chance(0.5):
        body["deleteOptions"] = delete_options(dice)
    if dice.chance(0.6):
        body["deleteOptions"] = {"dryRun": ["All"], **body.get("deleteOptions", {})}
    step: Step = {
        "method": dice.one(["POST"] * 8 + ["GET", "PUT"]),
        "path": f"{kind.item(dice.one(['a', 'a', 'a', 'none']))}/eviction",
        "body": body,
    }
    if dice.chance(0.2):
        step["query"] = {"dryRun": "All"}
    return step


def _bind(dice: Dice, kind: Kind) -> Step:
    target = dice.one(
        [
            {"kind": "Node", "name": "n-{own}"},
            {"kind": "Node", "name": "n-{own}"},
            {"name": "m"},
            {"kind": "Pod", "name": "n"},
            {"kind": "Node", "name": ""},
            {"kind": "Node", "name": "Bad Name"},
            {"apiVersion": "v1", "kind": "Node", "name": "n-{own}", "uid": "x"},
            {},
        ]
    )
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a"},
        "target": target,
    }
    if dice.chance(0.3):
        body["metadata"] = merged(
            body["metadata"],
            dice.one(
                [
                    {"annotations": {"b": "1"}},
                    {"labels": {"l": "1"}},
                    {"uid": "{uid}"},
                    {"uid": "x"},
                    {"resourceVersion": "{rv}"},
                    {"name": "b"},
                    {"labels": {"app": "z"}, "annotations": {"x/y": "z"}},
                ]
            ),
        )
    path = (
        f"{kind.item(dice.one(['a', 'a', 'a', 'none']))}/binding"
        if dice.chance(0.8)
        else "/api/v1/namespaces/{ns}/bindings"
    )
    return {
        "method": dice.one(["POST"] * 8 + ["GET", "PATCH"]),
        "path": path,
        "body": body,
        **({"query": {"dryRun": "All"}} if dice.chance(0.35) else {}),
    }


def _ephemeral(dice: Dice, kind: Kind) -> Step:
    containers: list[dict[str, Any]] = []
    for number in range(dice.randint(1, 2)):
        one: dict[str, Any] = {
            "name": dice.one([f"e{number}", f"e{number}", "c", "Bad"]),
            "image": dice.one(["busybox", "busybox", "", "other"]),
        }
        containers.append(one | dict(each for each in _EPHEMERAL if dice.chance(0.12)))
    spec = {"spec": {"ephemeralContainers": containers}}
    whole: Any = merged(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, **copy.deepcopy(_POD)}, spec
    )
    path = f"{kind.item('a')}/ephemeralcontainers"
    if dice.chance(0.1):
        return {"method": dice.one(["GET", "POST", "DELETE"]), "path": path}
    return _change(dice, path, whole, spec)


def _log(dice: Dice, kind: Kind) -> Step:
    return {
        "method": dice.one(["GET"] * 9 + ["POST"]),
        "path": f"{kind.item(dice.one(['a', 'a', 'a', 'none']))}/log",
        "query": dict(dice.one(_LOGS)),
    }


def _connect(dice: Dice, kind: Kind) -> Step:
    sub = dice.one(["exec", "attach", "portforward", "proxy", "proxy/x", "nothing"])
    query = dice.one(
        [
            {},
            {"command": "ls"},
            {"command": "ls", "stdout": "true"},
            {"container": "none", "stdout": "true"},
            {"ports": "80"},
            {"ports": "x"},
            {"path": "x"},
            {"stdin": "x"},
        ]
    )
    return {
        "method": dice.one(["GET", "GET", "POST", "PUT"]),
        "path": f"{kind.item(dice.one(['a', 'a', 'none']))}/{sub}",
        "query": dict(query),
    }
