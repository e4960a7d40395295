# ruff: noqa: RUF005
"""Hostile requests: whatever is sent, the answer comes in bounded time and is no 500 of our making.

KUBEWRIGHT_FUZZ sets the number of examples (default 400).
"""

from __future__ import annotations

import http.client
import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.answers import is_own_failure

from kubewright.testing import ApiServer

BOMB = b"a: &a [x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%b]\n" % (n, n, b",".join([b"*%c" % (n - 1)] * 9)) for n in range(98, 110)
)
EXAMPLES = int(os.environ.get("KUBEWRIGHT_FUZZ", "400"))
PATIENCE_SECONDS = 60

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.fuzz.example.com"},
    "spec": {
        "group": "fuzz.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def server():
    with ApiServer() as running:
        running.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        yield running


words = st.sampled_from(
    [
        "a",
        "x",
        "",
        "0",
        "1",
        "-1",
        "true",
        "All",
        "Exact",
        "NotOlderThan",
        "v1",
        "metadata.name=a",
        "a in (b,c)",
        "!a",
    ]
    + [
        "a=b,c!=d",
        "((",
        "%",
        "99999999999999999999",
        "9223372036854775808",
        "Strict",
        "eyJ2IjoibWV0YSJ9",
        "\x00",
        "é" * 50,
    ]
)
COMMON = [
    "/api/v1/namespaces/default/configmaps",
    "/apis/fuzz.example.com/v1/namespaces/default/widgets",
    "/apis/apps/v1/namespaces/default/deployments",
]
names = st.sampled_from(
    ["a", "b", "..", "%2e%2e", "A", "x" * 300, "%00", "%ff", "a%2fb", "ä", "status", "scale", "a b"]
)
resources = st.sampled_from(
    [
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces",
        "/api/v1/nodes",
    ]
    + ["/apis/apps/v1/namespaces/default/deployments", "/apis/fuzz.example.com/v1/namespaces/default/widgets"]
    + [
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/coordination.k8s.io/v1/leases",
        "/openapi/v2",
    ]
    + [
        "/api",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/openapi/v3",
        "/version",
        "/livez",
        "/metrics",
        "/",
        "//",
        "/x",
    ]
    + [
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/api/v1/watch/configmaps",
        "/apis/fuzz.example.com/v1",
    ]
)
suffixes = st.one_of(
    st.just(""),
    st.sampled_from(["", "/a", "/b", "/a/status", "/a/scale"]),
    names.map("/{}".format),
    st.tuples(names, names).map(lambda pair: f"/{pair[0]}/{pair[1]}"),
)
queries = st.dictionaries(
    st.sampled_from(
        [
            "watch",
            "limit",
            "continue",
            "resourceVersion",
            "resourceVersionMatch",
            "labelSelector",
            "fieldSelector",
        ]
        + [
            "dryRun",
            "fieldManager",
            "force",
            "fieldValidation",
            "propagationPolicy",
            "gracePeriodSeconds",
            "pretty",
        ]
        + [
            "sendInitialEvents",
            "allowWatchBookmarks",
            "timeoutSeconds",
            "includeObject",
            "orphanDependents",
            "x",
        ]
    ),
    words,
    max_size=4,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10) | words,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "spec", "status", "name", "labels", "data", "kind", "apiVersion", "op", "path"]
            )
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
objects = st.builds(
    lambda kind, metadata, rest: {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, **rest},
    st.sampled_from(
        [
            ("v1", "ConfigMap"),
            ("v1", "Pod"),
            ("apps/v1", "Deployment"),
            ("fuzz.example.com/v1", "Widget"),
            ("", ""),
        ]
        + [("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("v1", "Namespace"), ("v1", "Node")]
    ),
    st.dictionaries(
        st.sampled_from(
            ["name", "generateName", "namespace", "labels", "finalizers", "ownerReferences", "managedFields"]
        )
        | st.sampled_from(
            ["resourceVersion", "uid", "annotations", "deletionTimestamp", "creationTimestamp"]
        ),
        words | values,
        max_size=4,
    ),
    st.dictionaries(st.sampled_from(["spec", "status", "data", "x"]), values, max_size=3),
)
bodies = st.one_of(
    st.just(b""),
    objects.map(lambda value: json.dumps(value).encode()),
    values.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=60),
    st.binary(max_size=40).map(lambda data: b"k8s\0" + data),
    st.sampled_from(
        [
            b"[" * 10_000,
            b'{"a":' * 10_000,
            b"\xff\xfe",
            b"{",
            b'{"a":1e999}',
            b"a: &a [*a]",
            b"[{}]",
            b'"' + b"x" * 5000,
        ]
        + [BOMB]
    ),
)
media = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/cbor",
        "text/plain",
        "",
    ]
    + [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ]
    + [
        "application/apply-patch+yaml",
        "application/apply-patch+cbor",
        "application/*",
        "*/*",
        ";;",
        "a/b;q=x",
    ]
    + [
        "application/json;as=Table;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    ]
)
methods = st.sampled_from(
    ["GET", "POST", "PUT", "PATCH", "DELETE"] * 4 + ["HEAD", "OPTIONS", "TRACE", "PURGE"]
)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    methods,
    st.one_of(resources, st.sampled_from(COMMON)),
    suffixes,
    queries,
    bodies,
    st.one_of(media, st.sampled_from(["application/json", "application/merge-patch+json"])),
    st.one_of(media, st.just("application/json")),
)
def test_no_request_breaks_the_server(server, caplog, method, resource, suffix, query, body, sent, wanted):
    caplog.clear()
    text = "&".join(f"{key}={quoted(value)}" for key, value in query.items())
    if "watch" in query or "/watch/" in resource:
        text += "&timeoutSeconds=1"
    target = quoted(resource + suffix, keep="/%") + (f"?{text}" if text else "")
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_SECONDS)
    headers = {"Content-Type": sent, "Accept": wanted, "User-Agent": "fuzz/1"}
    if any(query.get(name) not in (None, "false", "0") for name in ("watch",)) or "/watch/" in resource:
        headers["Accept"] = "application/xml"  # a watch would be right to stay open
    try:
        connection.request(method, target, body or None, headers)
        answer = connection.getresponse()
        raw = answer.read()
    finally:
        connection.close()
    assert b"Traceback" not in raw
    assert not [record for record in caplog.records if record.exc_info], caplog.text
    assert not is_own_failure(answer.status, raw.decode("utf-8", "replace")), raw


def quoted(text: str, keep: str = "") -> str:
    from urllib.parse import quote

    return quote(text, safe=keep)
