"""What is tried again, what is raised, and how a Status reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apimachinery.client import errors
from apimachinery.client.endpoint import TransportError, TransportResponse
from apimachinery.client.errors import ApplyConflict, FieldConflict, error_of, error_of_status
from apimachinery.client.retry import RetryPolicy
from apimachinery.meta.errors import ApiError, Cause

REASONS = [
    (404, "NotFound", errors.NotFound),
    (409, "AlreadyExists", errors.AlreadyExists),
    (409, "Conflict", errors.Conflict),
    (410, "Expired", errors.Gone),
    (410, "Gone", errors.Gone),
    (422, "Invalid", errors.Invalid),
    (403, "Forbidden", errors.Forbidden),
    (429, "TooManyRequests", errors.TooManyRequests),
    (500, "", errors.InternalError),
    (504, "Timeout", errors.Timeout),
    (418, "Teapot", ApiError),
]


@pytest.mark.parametrize(("code", "reason", "kind"), REASONS)
def test_a_status_is_raised_as_the_class_of_its_reason(code: int, reason: str, kind: type[ApiError]) -> None:
    status = {
        "kind": "Status",
        "message": "m",
        "reason": reason,
        "code": code,
        "details": {"name": "n", "kind": "pods"},
    }
    error = error_of(TransportResponse(code, {}, json.dumps(status).encode()))
    assert type(error) is kind
    assert (error.code, error.message, error.name, error.kind) == (code, "m", "n", "pods")


def test_a_page_of_a_proxy_is_the_class_of_its_code() -> None:
    error = error_of(TransportResponse(503, {"retry-after": "7"}, b"<html>busy"))
    assert type(error) is errors.ServiceUnavailable
    assert (str(error), error.retry_after) == ("<html>busy", 7)


def test_causes_of_invalid_are_data() -> None:
    causes = [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.x"}]
    error = error_of_status({"code": 422, "reason": "Invalid", "message": "m", "details": {"causes": causes}})
    assert error.causes == (Cause("FieldValueRequired", "Required value", "spec.x"),)


def test_conflicts_of_apply_are_data() -> None:
    def cause(message: str, field: str) -> dict[str, Any]:
        return {"reason": "FieldManagerConflict", "message": message, "field": field}

    status = {
        "code": 409,
        "reason": "Conflict",
        "message": "Apply failed with 3 conflicts",
        "details": {
            "causes": [
                cause('conflict with "m1"', ".data.a"),
                cause('conflict with "kubectl" using apps/v1', ".spec.replicas"),
                cause(
                    'conflict with "hpa" with subresource "scale" using apps/v1 at 2026-01-02T03:04:05Z',
                    ".spec.x",
                ),
            ]
        },
    }
    error = error_of_status(status)
    assert isinstance(error, ApplyConflict)
    assert error.conflicts == (
        FieldConflict("m1", ".data.a", "Apply"),
        FieldConflict("kubectl", ".spec.replicas", "Update", "apps/v1"),
        FieldConflict("hpa", ".spec.x", "Update", "apps/v1", "scale"),
    )


def api(code: int, retry_after: int = 0) -> ApiError:
    return ApiError(code, "", "m", retry_after=retry_after)


RETRIED = [
    ("429 of any call", api(429), False, True),
    ("503 of a read", api(503), True, True),
    ("503 of a create", api(503), False, False),
    ("503 with Retry-After of a create", api(503, 1), False, True),
    ("500 of a read", api(500), True, False),
    ("404", api(404), True, False),
    ("never sent", TransportError("m", sent=False), False, True),
    ("broken while reading, of a read", TransportError("m", sent=True), True, True),
    ("broken while reading, of a create", TransportError("m", sent=True), False, False),
    ("deadline passed, of a read", TransportError("m", sent=True, timed_out=True), True, False),
]


@pytest.mark.parametrize(
    ("error", "repeatable", "again"), [r[1:] for r in RETRIED], ids=[r[0] for r in RETRIED]
)
def test_what_is_tried_again(error: Exception, repeatable: bool, again: bool) -> None:
    wait = RetryPolicy().start().wait_before_next(error, repeatable=repeatable)
    assert (wait is not None) is again


def test_waits_grow_honour_retry_after_and_end() -> None:
    patience = RetryPolicy(attempts=4, first_wait=1, longest_wait=3, budget=100).start()
    waits = [patience.wait_before_next(api(429), repeatable=False) for _ in range(4)]
    assert waits[3] is None
    for wait, most in zip(waits, (1, 2, 3), strict=False):
        assert wait is not None
        assert most / 2 <= wait <= most
    assert RetryPolicy().start().wait_before_next(api(429, 9), repeatable=False) == 9
    assert RetryPolicy(budget=5).start().wait_before_next(api(429, 9), repeatable=False) is None
