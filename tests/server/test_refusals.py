"""What a refusal says: its words, and the warnings that go with it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.test_api import CM, CUPS, MERGE, NS, ask, cup, define, definition, run

from apimachinery.server.assembly.api import AssembledApi

LEASES = f"{NS}/default/leases".replace("/api/v1", "/apis/coordination.k8s.io/v1")
STATUS = {"type": "object", "properties": {"seen": {"type": "integer"}}}
YAML = {"content-type": "application/yaml"}


def with_status() -> dict[str, Any]:
    crd = definition()
    version = crd["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = STATUS
    version["subresources"] = {"status": {}}
    return crd


def test_a_refused_write_tells_its_warnings_too() -> None:
    async def story(api: AssembledApi) -> None:
        await define(api, definition())
        code, _, headers = await ask(api, "POST", CUPS, cup(color="blue", handle=True))
        assert (code, headers.get("Warning")) == (422, '299 - "unknown field \\"spec.handle\\""')
        code, _, headers = await ask(api, "POST", f"{CUPS}?fieldValidation=Strict", cup(handle=True))
        assert (code, headers.get("Warning")) == (400, None)

    run(story)


def test_a_missing_object_of_a_deprecated_version_warns() -> None:
    async def story(api: AssembledApi) -> None:
        crd = definition()
        crd["spec"]["versions"][0] |= {"deprecated": True, "deprecationWarning": "use v2"}
        await define(api, crd)
        code, _, headers = await ask(api, "GET", f"{CUPS}/none")
        assert (code, headers.get("Warning")) == (404, '299 - "use v2"')

    run(story)


@pytest.mark.parametrize(
    ("finalizers", "warns"), [(["nodomain"], True), (["x.io/a"], False), (["orphan"], False)]
)
def test_a_finalizer_without_a_domain_warns(finalizers: list[str], warns: bool) -> None:
    async def story(api: AssembledApi) -> None:
        await define(api, definition())
        made = cup()
        made["metadata"]["finalizers"] = finalizers
        code, _, headers = await ask(api, "POST", CUPS, made)
        assert code == 201
        assert ("prefer a domain-qualified" in headers.get("Warning", "")) is warns

    run(story)


def test_a_status_is_named_by_its_own_fields() -> None:
    async def story(api: AssembledApi) -> None:
        await define(api, with_status())
        await ask(api, "POST", CUPS, cup())
        code, body, _ = await ask(api, "PATCH", f"{CUPS}/c/status", {"status": {"seen": "x"}}, MERGE)
        assert code == 422
        assert body["details"]["causes"] == [
            {
                "reason": "FieldValueTypeInvalid",
                "field": "status.seen",
                "message": 'Invalid value: "string": seen in body must be of type integer: "string"',
            }
        ]

    run(story)


MESSAGES: list[tuple[str, str, Any, dict[str, str] | None, str]] = [
    (
        "POST",
        CM,
        b'{"data":{"a":1e400}}',
        None,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number 1e400 into Go '
        "value of type float64",
    ),
    (
        "POST",
        f"{CM}?fieldValidation=Strict",
        b"metadata:\n  name: a\ndata:\n  k: a\n  k: b\nzz: 1\n",
        YAML,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: yaml: unmarshal '
        'errors:\n  line 5: key "k" already set in map, unknown field "zz"',
    ),
    (
        "POST",
        LEASES,
        {"metadata": {"name": "a"}, "spec": {"renewTime": "2020-01-01T00:00:00Z"}},
        None,
        'Lease in version "v1" cannot be handled as a Lease: parsing time "2020-01-01T00:00:00Z" as '
        '"2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
    ),
    (
        "POST",
        LEASES,
        {"metadata": {"name": "a"}, "spec": {"renewTime": "2020-01-01T00:00:00.1234567Z"}},
        None,
        'Lease in version "v1" cannot be handled as a Lease: parsing time "2020-01-01T00:00:00.1234567Z" as '
        '"2006-01-02T15:04:05.000000Z07:00": cannot parse "7Z" as "Z07:00"',
    ),
    (
        "DELETE",
        f"{CM}/a",
        {"kind": "Secret", "apiVersion": "v1"},
        None,
        'no kind "Secret" is registered for version "v1" in scheme '
        '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"',
    ),
    (
        "DELETE",
        f"{CM}/a",
        b"nope",
        None,
        "couldn't get version/kind; json parse error: invalid character 'o' in literal null (expecting 'u')",
    ),
]


@pytest.mark.parametrize(("method", "path", "body", "headers", "message"), MESSAGES)
def test_message(method: str, path: str, body: Any, headers: dict[str, str] | None, message: str) -> None:
    async def story(api: AssembledApi) -> None:
        code, answer, _ = await ask(api, method, path, body, headers)
        assert (code, answer["message"]) == (400, message)

    run(story)


def test_a_time_with_all_its_digits_is_taken() -> None:
    async def story(api: AssembledApi) -> None:
        lease = {"metadata": {"name": "a"}, "spec": {"renewTime": "2020-01-01T00:00:00.123456Z"}}
        code, body, _ = await ask(api, "POST", LEASES, lease)
        assert (code, body["spec"]["renewTime"]) == (201, "2020-01-01T00:00:00.123456Z")

    run(story)
