"""What is large: worked on apart from the loop, for what its values cost, not for the length of its text."""

from __future__ import annotations

import json

import pytest

from apimachinery.http.messages import Request

JSON, PATCH, YAML = "application/json", "application/merge-patch+json", "application/yaml"
CBOR, PROTOBUF = "application/cbor", "application/vnd.kubernetes.protobuf"


def object_of(values: int, each: int) -> bytes:
    return json.dumps({"data": {f"k{number}": "v" * each for number in range(values)}}).encode()


FEW = object_of(400, 110)
"""48 KB, most of it text."""
MANY = object_of(2_500, 6)
"""48 KB, most of it keys and quotes."""


@pytest.mark.parametrize(
    ("content_type", "body", "large"),
    [
        (JSON, b"", False),
        (JSON, object_of(1_500, 4), False),
        (JSON, FEW, False),
        (PATCH, FEW, False),
        (JSON, MANY, True),
        (JSON, b"[" * 40_000, True),
        (JSON, object_of(1, 66_000), True),
        (YAML, FEW, True),
        (YAML, object_of(1, 9_000), True),
        (YAML, object_of(1, 7_000), False),
        # Of a binary form the bytes say nothing about the values.
        (CBOR, FEW, True),
        (PROTOBUF, FEW, True),
        (PROTOBUF, b"\0" * 32_000, False),
        ("", FEW, True),
    ],
)
def test_a_body_is_large(content_type: str, body: bytes, large: bool) -> None:
    request = Request("POST", "/api/v1/namespaces/a/configmaps", "", {"content-type": content_type}, body)
    assert request.large is large
