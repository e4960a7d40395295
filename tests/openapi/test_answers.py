"""Answers as values: of the type that is declared for their status and media type."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from apimachinery.client.endpoint import TransportResponse
from apimachinery.openapi.answers import read_answer
from apimachinery.openapi.errors import HttpError, UnreadableAnswerError
from apimachinery.openapi.operation import Operation


class Pet(msgspec.Struct):
    name: str


class Problem(msgspec.Struct):
    title: str = ""


GET: Operation[Any] = Operation(
    name="get",
    method="GET",
    path="/pets",
    answers={
        "200": {"application/json": Pet, "text/csv": str, "image/*": bytes},
        "204": {},
        "4XX": {"application/problem+json": Problem},
        "default": {"application/json": dict[str, int]},
    },
)


def read(code: int, media_type: str, body: bytes) -> Any:
    return read_answer(GET, TransportResponse(code, {"content-type": media_type} if media_type else {}, body))


@pytest.mark.parametrize(
    ("code", "media_type", "body", "value"),
    [
        (200, "application/json; charset=utf-8", b'{"name":"a"}', Pet("a")),
        (200, "", b'{"name":"a"}', Pet("a")),
        (200, "application/vnd.x+json", b'{"name":"a"}', Pet("a")),
        (200, "text/csv", "é".encode(), "é"),
        (200, "image/png", b"\x89", b"\x89"),
        (200, "text/plain", b"a", "a"),
        (200, "application/zip", b"a", b"a"),
        (200, "application/json", b"", None),
        (201, "application/json", b'{"a":1}', {"a": 1}),
        (204, "", b"", None),
    ],
)
def test_successes(code: int, media_type: str, body: bytes, value: Any) -> None:
    assert read(code, media_type, body) == value


@pytest.mark.parametrize(
    ("code", "media_type", "body", "problem"),
    [
        (404, "application/problem+json", b'{"title":"no"}', Problem("no")),
        (404, "application/json", b'{"title":"no"}', Problem("no")),
        (500, "application/json", b'{"a":1}', {"a": 1}),
        (500, "application/json", b"oh \xff", "oh \ufffd"),
        (302, "", b"", None),
    ],
)
def test_failures(code: int, media_type: str, body: bytes, problem: Any) -> None:
    with pytest.raises(HttpError) as raised:
        read(code, media_type, body)
    assert (raised.value.status, raised.value.problem) == (code, problem)


def test_a_success_that_cannot_be_read() -> None:
    with pytest.raises(UnreadableAnswerError, match="name"):
        read(200, "application/json", b"{}")
