"""A fuzzer that knows the structure of requests: good ones of many kinds, in which a few things are changed.

What must never be answered: nothing, a 500 that kube-apiserver would not give, or a traceback.
"""

from __future__ import annotations

import argparse
import copy
import http.client
import json
import random
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tests.attack.inputs import CONFIG_MAPS, PODS, THINGS
from tests.attack.target import Target
from tests.differential.answers import is_own_failure

THREADS = 4
GOOD: list[tuple[str, dict[str, Any]]] = [
    (
        CONFIG_MAPS,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "f", "labels": {"a": "b"}},
            "data": {"k": "v"},
        },
    ),
    (
        PODS,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "f"},
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "ports": [{"containerPort": 80}],
                        "resources": {"limits": {"cpu": "1"}},
                    }
                ],
                "tolerations": [{"key": "a", "operator": "Exists"}],
            },
        },
    ),
    (
        "/apis/apps/v1/namespaces/default/deployments",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "f"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        },
    ),
    (
        "/api/v1/namespaces/default/services",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "f"},
            "spec": {"ports": [{"port": 80, "targetPort": "http"}], "selector": {"a": "b"}},
        },
    ),
    (
        "/apis/batch/v1/namespaces/default/jobs",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "f"},
            "spec": {
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
            },
        },
    ),
    ("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fuzzed"}}),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "f"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
        },
    ),
    (
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "f"},
            "spec": {"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]},
        },
    ),
    (
        THINGS,
        {
            "apiVersion": "attack.example.com/v1",
            "kind": "Thing",
            "metadata": {"name": "f"},
            "spec": {"list": [{}], "set": ["a"], "keyed": [{"name": "a"}]},
        },
    ),
    (
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "f"},
            "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15},
        },
    ),
    (
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
        },
    ),
]
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**63) - 1,
    1.5,
    1e300,
    "",
    "a",
    "A",
    "a" * 300,
    "-",
    "/",
    "a/b/c",
    "\u0000",
    "é",
    "\ud800",
    "999999999999999999999",
    "$(x)",
    [],
    {},
    [None],
    [[]],
    [{}],
    {"": None},
    {"a": {"b": []}},
    ["a", "a"],
    "2026-01-01T00:00:00Z",
    "1Ki",
    "100%",
    "0x1",
]
QUERIES = [
    "",
    "",
    "",
    "dryRun=All",
    "fieldValidation=Strict",
    "fieldValidation=Warn",
    "fieldManager=f",
    "force=true",
    "limit=1",
    "continue=x",
    "resourceVersion=1",
    "labelSelector=a%3Db",
    "fieldSelector=metadata.name%3Df",
    "pretty=true",
    "gracePeriodSeconds=0",
    "propagationPolicy=Foreground",
    "resourceVersionMatch=Exact",
    "timeoutSeconds=1",
]
MEDIA = ["application/json"] * 4 + [
    "application/yaml",
    "application/cbor",
    "application/vnd.kubernetes.protobuf",
]
PATCHES = [
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
]
ACCEPTED = ["application/json"] * 3 + [
    "application/yaml",
    "application/cbor",
    "application/vnd.kubernetes.protobuf",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "*/*",
    "application/*",
    ";",
]
METHODS = ["POST"] * 4 + ["PUT"] * 3 + ["PATCH"] * 5 + ["GET"] * 2 + ["DELETE"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a value."""
    if path:
        yield path
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in below:
        yield from places(item, (*path, key))


def changed(obj: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The object with one to three places changed: another value, gone, doubled, or one key more."""
    obj = copy.deepcopy(obj)
    for _ in range(chance.randint(1, 3)):
        found = list(places(obj))
        if not found:
            break
        path = chance.choice(found)
        holder: Any = obj
        for key in path[:-1]:
            holder = holder[key]
        match chance.randrange(5):
            case 0:
                del holder[path[-1]]
            case 1 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[path[-1]]))
            case 2 if isinstance(holder, dict):
                holder[
                    chance.choice(
                        ["metadata", "x", "", "status", "finalizers", "ownerReferences", "managedFields"]
                    )
                ] = copy.deepcopy(chance.choice(ODD))
            case _:
                holder[path[-1]] = copy.deepcopy(chance.choice(ODD))
    return obj


def request(chance: random.Random) -> tuple[str, str, bytes, dict[str, str]]:
    """A request: method, target, body, fields."""
    path, good = chance.choice(GOOD)
    method = chance.choice(METHODS)
    obj: Any = good if chance.random() < 0.2 else changed(good, chance)
    media = chance.choice(PATCHES if method == "PATCH" else MEDIA)
    if media == "application/json-patch+json":
        pointer = "/" + "/".join(map(str, chance.choice(list(places(good)))))
        operations = [
            {
                "op": chance.choice(["add", "remove", "replace", "copy", "move", "test", "x"]),
                "path": pointer,
                "from": pointer,
                "value": chance.choice(ODD),
            }
            for _ in range(chance.randint(1, 3))
        ]
        obj = operations if chance.random() < 0.9 else chance.choice(ODD)
    body = json.dumps(obj).encode()
    if chance.random() < 0.1:
        place = chance.randrange(len(body))
        body = body[:place] + bytes([chance.randrange(256)]) + body[place + chance.randrange(3) :]
    if "cbor" in media and chance.random() < 0.7:
        import cbor2

        body = cbor2.dumps(json.loads(json.dumps(obj).replace("\\ud800", "?")))
    if "protobuf" in media:
        body = b"k8s\0" + (
            chance.randbytes(chance.randrange(40))
            if chance.random() < 0.5
            else b"\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12"
            + bytes([chance.randrange(30)])
            + chance.randbytes(20)
        )
    if method != "POST":
        path += chance.choice(["/f"] * 5 + ["/f/status", "/f/scale", "/f/x", "/..", "/%00", ""])
    query = "&".join({chance.choice(QUERIES) for _ in range(2)} - {""})
    target = quote(path, safe="/%") + (f"?{query}" if query else "")
    return (
        method,
        target,
        body if method != "GET" else b"",
        {"Content-Type": media, "Accept": chance.choice(ACCEPTED)},
    )


def requests(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Sends ``--requests`` of them over a few connections."""
    wrong: list[str] = []
    seeds = [chance.random() for _ in range(THREADS)]

    def work(seed: float) -> None:
        own = random.Random(seed)
        connection = target.connect(20)
        for _ in range(options.requests // THREADS):
            method, path, body, headers = request(own)
            try:
                connection.request(method, path, body or None, headers)
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException) as fault:
                wrong.append(f"{method} {path}: {fault!r} for {body[:200]!r}")
                connection.close()
                connection = target.connect(20)
                continue
            if is_own_failure(answer.status, text.decode("utf-8", "replace")):
                wrong.append(f"{method} {path} {headers}: {answer.status} for {body[:300]!r}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield from wrong
