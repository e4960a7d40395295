"""Values of the wrong form where the server itself reads them: each once ended in a 500 and a traceback."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.server.test_api import run

from apimachinery.http.messages import Request

MAPS = "/api/v1/namespaces/default/configmaps"
DIGITS = b"1" * 5000
ODD: list[Any] = [1, [], {}, True, 1.5]
JSON, MERGE, STRATEGIC, APPLY, PATCH = (
    "application/json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/json-patch+json",
)


def sent(value: Any) -> bytes:
    return json.dumps(value).encode()


BROKEN_NAME = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x06\x0a\x04\x0a\x02\xff\xfe"
CASES: list[tuple[str, str, bytes]] = [
    *[("PATCH", media, sent({"apiVersion": odd})) for odd in ODD for media in (MERGE, STRATEGIC, APPLY)],
    *[("PATCH", media, sent({"kind": odd})) for odd in ODD for media in (MERGE, STRATEGIC, APPLY)],
    *[("PATCH", PATCH, sent([{"op": "replace", "path": "/apiVersion", "value": odd}])) for odd in ODD],
    *[("PUT", JSON, sent({"metadata": {"name": odd}})) for odd in ODD],
    *[("PATCH", MERGE, sent({"metadata": {"resourceVersion": odd}})) for odd in ODD],
    *[
        ("POST", media, b'{"metadata":{"name":"a"},"x":' + number + b"}")
        for media in (JSON, "application/yaml")
        for number in (DIGITS, b"1e999", b"-" + DIGITS)
    ],
    *[
        ("PATCH", media, b'{"metadata":{"generation":' + DIGITS + b"}}")
        for media in (MERGE, STRATEGIC, APPLY)
    ],
    ("POST", JSON, b'{"metadata":{"name":"a","\xff":1,"\xff":2}}'),
    ("POST", JSON, b'{"metadata":{"name":"a","\\ud800":1,"\\ud800":2}}'),
    ("POST", "application/cbor", b"\xa1\x81\x01\x02"),
    (
        "POST",
        "application/vnd.kubernetes.protobuf",
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x06\x0a\x04\x0a\x02\xff\xfe",
    ),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_value_of_the_wrong_form_is_the_clients_mistake(number):
    async def story(api) -> None:
        made = Request("POST", MAPS, "", {"content-type": JSON}, sent({"metadata": {"name": "small"}}))
        assert (await api.handle(made)).status == 201
        method, media, body = CASES[number]
        path = MAPS if method == "POST" else f"{MAPS}/small"
        answer = await api.handle(Request(method, path, "fieldManager=a", {"content-type": media}, body))
        assert answer.status in (201, 400, 409, 422), answer.body

    run(story)


@pytest.mark.parametrize(
    ("version", "updated", "created"),
    [
        ("9" * 5000, (500, "value out of range"), (201, "")),
        ("18446744073709551616", (500, "value out of range"), (201, "")),
        ("18446744073709551615", (409, "has been modified"), (500, "should not be set")),
        ("x", (500, "invalid syntax"), (201, "")),
        ("-1", (500, "invalid syntax"), (201, "")),
        ("000", (200, ""), (201, "")),
        ("0" * 5000 + "7", (409, "has been modified"), (500, "should not be set")),
    ],
)
def test_versions_are_read_as_unsigned_numbers_of_64_bits(version, updated, created):
    """As kube-apiserver answers, its two plain failures included."""

    async def story(api) -> None:
        fields = {"content-type": JSON}
        assert (
            await api.handle(Request("POST", MAPS, "", fields, sent({"metadata": {"name": "small"}})))
        ).status == 201
        for method, name, (code, text) in (("PUT", "small", updated), ("POST", "other", created)):
            path = MAPS if method == "POST" else f"{MAPS}/{name}"
            body = sent({"metadata": {"name": name, "resourceVersion": version}})
            answer = await api.handle(Request(method, path, "", fields, body))
            assert answer.status == code
            assert text in json.loads(answer.body).get("message", "")

    run(story)
