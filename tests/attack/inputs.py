"""Single requests that once held the server, or cost it more than their size should.

One list for the test of stalls and for ``make attack``. Each is as large as a request may be, or as it takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
THINGS = "/apis/attack.example.com/v1/namespaces/default/things"
COLUMNS = "/apis/columns.example.com/v1/namespaces/default/columns"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Input:
    """A request; ``body`` is made when it is sent. ``statuses`` are the answers that are right."""

    name: str
    method: str
    path: str
    body: Callable[[], bytes] = bytes
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": JSON})


def packed(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def named(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "attack", **metadata}}


def owners(count: int) -> bytes:
    each = [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": f"u{number}"} for number in range(count)]
    return packed(named(ownerReferences=each))


def managed(count: int) -> bytes:
    each = [
        {
            "manager": f"m{number}",
            "operation": "Apply" if number % 2 else "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {f"f:k{number}": {}}},
        }
        for number in range(count)
    ]
    return packed(named(managedFields=each))


def pod(**spec: Any) -> bytes:
    base = {"containers": [{"name": "a", "image": "a"}]}
    return packed({**named(), "spec": {**base, **spec}})


def container(**fields: Any) -> bytes:
    return pod(containers=[{"name": "a", "image": "a", **fields}])


def webhooks(count: int) -> bytes:
    each = [
        {
            "name": f"h{number}.example.com",
            "clientConfig": {"url": "https://a.example.com"},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["x"]}
            ],
            "failurePolicy": "Ignore",
            "namespaceSelector": {"matchLabels": {"a": "b"}},
        }
        for number in range(count)
    ]
    return packed({**named(), "webhooks": each})


def definition_of_columns(count: int = 200, path: str = "..k") -> dict[str, Any]:
    """A definition with so many printer columns, each of which goes through all of an object."""
    columns = [{"name": f"c{number}", "type": "string", "jsonPath": path} for number in range(count)]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "additionalPrinterColumns": columns,
    }
    return {
        "metadata": {"name": "columns.columns.example.com"},
        "spec": {
            "group": "columns.example.com",
            "scope": "Namespaced",
            "names": {"kind": "Column", "plural": "columns"},
            "versions": [version],
        },
    }


def crd_of_properties(count: int) -> bytes:
    properties = {
        f"p{number}": {"type": "object", "properties": {"a": {"type": "string"}}} for number in range(count)
    }
    return packed(
        {
            "metadata": {"name": "larges.attack2.example.com"},
            "spec": {
                "group": "attack2.example.com",
                "scope": "Namespaced",
                "names": {"kind": "Large", "plural": "larges"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                    }
                ],
            },
        }
    )


SPREADS = [
    {"maxSkew": 1, "topologyKey": f"k{number}", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    for number in range(8000)
]
YAML = {"Content-Type": "application/yaml"}
PATCHES = "application/json-patch+json"
APPLY = {"Content-Type": "application/apply-patch+yaml"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
MERGE = {"Content-Type": "application/merge-patch+json"}
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

INPUTS = [
    Input("owner references", "POST", CONFIG_MAPS, lambda: owners(40_000)),
    Input("managed fields", "POST", CONFIG_MAPS, lambda: managed(16_000)),
    Input(
        "finalizers",
        "POST",
        CONFIG_MAPS,
        lambda: packed(named(finalizers=[f"a.b/c{n}" for n in range(150_000)])),
    ),
    Input(
        "labels", "POST", CONFIG_MAPS, lambda: packed(named(labels={f"l{n}": "v" for n in range(150_000)}))
    ),
    Input(
        "annotations",
        "POST",
        CONFIG_MAPS,
        lambda: packed(named(annotations={f"a{n}": "v" for n in range(150_000)})),
    ),
    Input(
        "data",
        "POST",
        CONFIG_MAPS,
        lambda: packed({**named(), "data": {f"k{n}": "v" for n in range(150_000)}}),
    ),
    Input(
        "unknown fields",
        "POST",
        CONFIG_MAPS,
        lambda: packed({**named(), **{f"u{n}": 1 for n in range(200_000)}}),
    ),
    Input("deep json", "POST", CONFIG_MAPS, lambda: b'{"a":' * 500_000),
    Input("open lists", "POST", CONFIG_MAPS, lambda: b"[" * 3_000_000),
    Input(
        "equal keys",
        "POST",
        CONFIG_MAPS,
        lambda: b'{"metadata":{"name":"a"},"data":{' + b'"a":"b",' * 300_000 + b'"a":"b"}}',
    ),
    Input(
        "yaml flow",
        "POST",
        CONFIG_MAPS,
        lambda: (
            b"{metadata: {name: attack}, data: {" + b"".join(b"k%d: v, " % n for n in range(250_000)) + b"}}"
        ),
        YAML,
    ),
    Input("yaml lists", "POST", CONFIG_MAPS, lambda: b"a: [" + b"[]," * 900_000 + b"]", YAML),
    Input(
        "yaml lines",
        "POST",
        CONFIG_MAPS,
        lambda: b"metadata: {name: attack}\ndata:\n" + b"".join(b"  k%d: v\n" % n for n in range(240_000)),
        YAML,
    ),
    Input("topology spreads", "POST", PODS, lambda: pod(topologySpreadConstraints=SPREADS)),
    Input(
        "ports",
        "POST",
        PODS,
        lambda: container(
            ports=[
                {"containerPort": n % 60_000 + 1, "protocol": "TCP", "name": f"p{n}"} for n in range(40_000)
            ]
        ),
    ),
    Input(
        "host ports",
        "POST",
        PODS,
        lambda: container(
            ports=[
                {"containerPort": n % 60_000 + 1, "hostPort": n % 60_000 + 1, "protocol": "TCP"}
                for n in range(40_000)
            ]
        ),
    ),
    Input(
        "env", "POST", PODS, lambda: container(env=[{"name": f"E{n}", "value": "x"} for n in range(80_000)])
    ),
    Input(
        "containers",
        "POST",
        PODS,
        lambda: pod(containers=[{"name": f"c{n}", "image": "a"} for n in range(60_000)]),
    ),
    Input(
        "volumes",
        "POST",
        PODS,
        lambda: pod(volumes=[{"name": f"v{n}", "emptyDir": {}} for n in range(60_000)]),
    ),
    Input(
        "mounts",
        "POST",
        PODS,
        lambda: container(volumeMounts=[{"name": f"v{n}", "mountPath": f"/m{n}"} for n in range(60_000)]),
    ),
    Input(
        "tolerations",
        "POST",
        PODS,
        lambda: pod(tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(60_000)]),
    ),
    Input(
        "affinity",
        "POST",
        PODS,
        lambda: pod(
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": f"k{n}", "operator": "In", "values": ["a"]}]}
                            for n in range(30_000)
                        ]
                    }
                }
            }
        ),
    ),
    Input(
        "host aliases",
        "POST",
        PODS,
        lambda: pod(hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a"]} for n in range(60_000)]),
    ),
    Input("webhooks", "POST", WEBHOOKS, lambda: webhooks(8_000)),
    Input(
        "a large definition",
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        lambda: crd_of_properties(30_000),
    ),
    Input(
        "label selector",
        "GET",
        CONFIG_MAPS + "?labelSelector=" + ",".join(f"a{n}%3Db" for n in range(8_000)),
    ),
    Input(
        "label selector of values",
        "GET",
        CONFIG_MAPS + "?labelSelector=a+in+(" + ",".join(f"v{n}" for n in range(9_000)) + ")",
    ),
    Input(
        "field selector",
        "GET",
        CONFIG_MAPS + "?fieldSelector=" + ",".join("metadata.name%3Db" for n in range(4_000)),
    ),
    Input(
        "recursive columns",
        "GET",
        COLUMNS,
        headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"},
    ),
    Input("query pairs", "GET", CONFIG_MAPS + "?" + "a=b&" * 65_000),
    Input("a list of kinds wanted", "GET", CONFIG_MAPS, headers={"Accept": "application/x," * 60_000}),
    Input(
        "items of a custom list",
        "POST",
        THINGS,
        lambda: packed({**named(), "spec": {"list": [{} for _ in range(700_000)]}}),
    ),
    Input(
        "a custom map",
        "POST",
        THINGS,
        lambda: packed({**named(), "spec": {"map": {f"k{n}": {} for n in range(200_000)}}}),
    ),
    Input(
        "a custom set",
        "POST",
        THINGS,
        lambda: packed({**named(), "spec": {"set": [f"v{n}" for n in range(200_000)]}}),
    ),
    Input(
        "a custom keyed list",
        "POST",
        THINGS,
        lambda: packed({**named(), "spec": {"keyed": [{"name": f"v{n}"} for n in range(120_000)]}}),
    ),
    Input(
        "default amplification",
        "POST",
        THINGS,
        lambda: packed({**named(), "spec": {"large": [{} for _ in range(100_000)]}}),
    ),
    Input(
        "apply of many fields",
        "PATCH",
        CONFIG_MAPS + "/applied?fieldManager=a&force=true",
        lambda: packed(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "applied"},
                "data": {f"k{n}": "v" for n in range(100_000)},
            }
        ),
        APPLY,
    ),
    Input(
        "apply of a keyed list",
        "PATCH",
        THINGS + "/applied?fieldManager=a&force=true",
        lambda: packed(
            {
                "apiVersion": "attack.example.com/v1",
                "kind": "Thing",
                "metadata": {"name": "applied"},
                "spec": {"keyed": [{"name": f"v{n}"} for n in range(60_000)]},
            }
        ),
        APPLY,
    ),
    Input(
        "apply of yaml",
        "PATCH",
        CONFIG_MAPS + "/applied?fieldManager=a&force=true",
        lambda: (
            b"{apiVersion: v1, kind: ConfigMap, metadata: {name: applied}, data: {"
            + b"".join(b"k%d: v, " % n for n in range(200_000))
            + b"}}"
        ),
        APPLY,
    ),
    Input(
        "json patch copies",
        "PATCH",
        CONFIG_MAPS + "/small",
        lambda: packed([{"op": "copy", "from": "/data", "path": f"/data/k{n}"} for n in range(10_000)]),
        {"Content-Type": PATCHES},
    ),
    Input(
        "json patch adds",
        "PATCH",
        THINGS + "/listed",
        lambda: packed([{"op": "add", "path": "/spec/list/0", "value": {}} for n in range(10_000)]),
        {"Content-Type": PATCHES},
    ),
    Input(
        "merge patch",
        "PATCH",
        CONFIG_MAPS + "/small",
        lambda: packed({"data": {f"k{n}": "v" for n in range(150_000)}}),
        MERGE,
    ),
    Input(
        "strategic patch",
        "PATCH",
        PODS + "/small",
        lambda: packed({"spec": {"containers": [{"name": f"c{n}", "image": "a"} for n in range(40_000)]}}),
        STRATEGIC,
    ),
    Input(
        "strategic order",
        "PATCH",
        PODS + "/small",
        lambda: packed(
            {
                "spec": {
                    "$setElementOrder/containers": [{"name": f"c{n}"} for n in range(40_000)],
                    "containers": [{"name": f"c{n}", "image": "a"} for n in range(20_000)],
                }
            }
        ),
        STRATEGIC,
    ),
    Input(
        "delete options",
        "DELETE",
        CONFIG_MAPS + "/none",
        lambda: packed({"kind": "DeleteOptions", "dryRun": ["All"] * 300_000}),
    ),
    Input(
        "access review",
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        lambda: packed(
            {
                "spec": {
                    "user": "a",
                    "groups": [f"g{n}" for n in range(200_000)],
                    "nonResourceAttributes": {"path": "/a", "verb": "get"},
                }
            }
        ),
    ),
]

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

STORED = [
    Input("stored owner references", "POST", CONFIG_MAPS, lambda: owners(6_000)),
    Input("stored managed fields", "POST", CONFIG_MAPS, lambda: managed(8_000)),
    Input(
        "stored finalizers",
        "POST",
        CONFIG_MAPS,
        lambda: packed(named(name="finalized", finalizers=[f"a.b/c{n}" for n in range(25_000)])),
    ),
    Input(
        "stored labels",
        "POST",
        CONFIG_MAPS,
        lambda: packed(named(labels={f"l{n}": "v" for n in range(30_000)})),
    ),
    Input(
        "a stored role",
        "POST",
        ROLES,
        lambda: packed(
            {
                **named(),
                "rules": [
                    {"apiGroups": ["a"], "resources": [f"r{n}"], "verbs": ["get"]} for n in range(20_000)
                ],
            }
        ),
    ),
    Input(
        "a stored binding",
        "POST",
        BINDINGS,
        lambda: packed(
            {
                **named(),
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "attack"},
                "subjects": [
                    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"u{n}"}
                    for n in range(15_000)
                ],
            }
        ),
    ),
    Input("stored webhooks", "POST", WEBHOOKS, lambda: webhooks(1_500)),
    Input("a stored definition", "POST", CRDS, lambda: crd_of_properties(12_000)),
    Input(
        "stored containers",
        "POST",
        PODS,
        lambda: pod(containers=[{"name": f"c{n}", "image": "a"} for n in range(5_000)]),
    ),
    Input(
        "stored tolerations",
        "POST",
        PODS,
        lambda: pod(tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(25_000)]),
    ),
    Input(
        "stored ports",
        "POST",
        "/api/v1/namespaces/default/services",
        lambda: packed(
            {**named(), "spec": {"ports": [{"port": n % 65_000 + 1, "name": f"p{n}"} for n in range(8_000)]}}
        ),
    ),
    Input(
        "stored endpoints",
        "POST",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        lambda: packed(
            {
                **named(),
                "addressType": "IPv4",
                "endpoints": [{"addresses": [f"10.0.{n // 250}.{n % 250 + 1}"]} for n in range(1_000)],
            }
        ),
    ),
    Input(
        "a stored quota",
        "POST",
        "/api/v1/namespaces/default/resourcequotas",
        lambda: packed(
            {**named(), "spec": {"hard": {f"count/r{n}.example.com": "1" for n in range(12_000)}}}
        ),
    ),
    Input(
        "stored policies",
        "POST",
        "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
        lambda: packed(
            {
                **named(),
                "spec": {
                    "podSelector": {},
                    "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]} for n in range(15_000)],
                },
            }
        ),
    ),
    Input(
        "stored expressions",
        "POST",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        lambda: packed(
            {
                **named(),
                "spec": {
                    "matchConstraints": {
                        "resourceRules": [
                            {
                                "apiGroups": ["attack3.example.com"],
                                "apiVersions": ["v1"],
                                "operations": ["CREATE"],
                                "resources": ["none"],
                            }
                        ]
                    },
                    "validations": [{"expression": f"object.spec.replicas + {n} > 5"} for n in range(2_000)],
                },
            }
        ),
    ),
    Input(
        "a stored flow schema",
        "POST",
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
        lambda: packed(
            {
                **named(),
                "spec": {
                    "priorityLevelConfiguration": {"name": "global-default"},
                    "matchingPrecedence": 9999,
                    "rules": [
                        {
                            "subjects": [{"kind": "User", "user": {"name": f"u{n}"}}],
                            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/a"]}],
                        }
                        for n in range(8_000)
                    ],
                },
            }
        ),
    ),
]
"""What is just small enough to be stored, so that caches, controllers and access control read it too."""
INPUTS += STORED

THING = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.attack.example.com"},
    "spec": {
        "group": "attack.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "list": {"type": "array", "items": {"type": "object"}},
                                    "map": {"type": "object", "additionalProperties": {"type": "object"}},
                                    "set": {
                                        "type": "array",
                                        "items": {"type": "string"},
                                        "x-kubernetes-list-type": "set",
                                    },
                                    "keyed": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {"name": {"type": "string"}},
                                        },
                                    },
                                    "large": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {
                                                "text": {"type": "string", "default": "x" * 5000},
                                                "many": {
                                                    "type": "array",
                                                    "items": {"type": "integer"},
                                                    "default": list(range(200)),
                                                },
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


def objects() -> list[tuple[str, dict[str, Any]]]:
    """What the inputs need to be there: path and body, in order."""
    container = {"name": "a", "image": "a"}
    return [
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", THING),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition_of_columns()),
        (
            COLUMNS,
            {
                "apiVersion": "columns.example.com/v1",
                "kind": "Column",
                "metadata": {"name": "recursive"},
                "spec": {f"k{number}": [number] for number in range(900)},
            },
        ),
        (CONFIG_MAPS, {"metadata": {"name": "small"}, "data": {"a": "x" * 900}}),
        (PODS, {"metadata": {"name": "small"}, "spec": {"containers": [container]}}),
        (
            THINGS,
            {
                "apiVersion": "attack.example.com/v1",
                "kind": "Thing",
                "metadata": {"name": "listed"},
                "spec": {"list": [{}] * 100_000},
            },
        ),
    ]
