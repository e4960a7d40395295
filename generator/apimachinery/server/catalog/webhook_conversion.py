"""Conversion of custom resources by webhook (ConversionReview of apiextensions.k8s.io/v1 and v1beta1).

A webhook is shown whole objects and gives them back at the version asked for. Only labels and annotations of their
metadata are its to change: the rest is restored, and another name, namespace or uid is refused, as are another version
or kind, too many or too few objects, and (for v1) an answer to another question.

The call blocks, since conversion happens deep in what computes. Whoever works with objects of a kind that ``asks`` does
it on a thread for that (``workers.ASKING``).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import plain_failure
from apimachinery.meta.field_errors import FieldError
from apimachinery.meta.object_meta import annotation_faults, label_faults
from apimachinery.wire.json import decode, encode, type_name

GROUP = "apiextensions.k8s.io"
VERSIONS = ("v1", "v1beta1")
Ask = Callable[[Mapping[str, Any], Json], Json]
"""Posts a review to a client configuration, and waits for the answer. Raises AskFailed."""


class AskFailed(Exception):
    """A webhook gave no answer; the text says why."""


class WebhookConversion:
    """The conversion webhook of one definition."""

    def __init__(self, stated: Json, kind: str, ask: Ask) -> None:
        self._client: Json = stated.get("clientConfig") or {}
        offered = stated.get("conversionReviewVersions") or ()
        self._version = next((version for version in offered if version in VERSIONS), "v1")
        self._kind = kind
        self._ask = ask

    def convert(self, objects: Sequence[Json], api_version: str) -> list[Json]:
        """The objects, which are of one other version, at ``api_version``. Raises ApiError 500."""
        name = f"conversion webhook for {objects[0]['apiVersion']}, Kind={self._kind}"
        review = {
            "kind": "ConversionReview",
            "apiVersion": f"{GROUP}/{self._version}",
            "request": {
                "uid": str(uuid.uuid4()),
                "desiredAPIVersion": api_version,
                "objects": list(objects),
            },
        }
        try:
            converted = self._converted(review, self._ask(self._client, review))
        except AskFailed as fault:
            raise plain_failure(f"{name} failed: {fault}") from None
        if len(converted) != len(objects):
            raise plain_failure(f"{name} returned {len(converted)} objects, expected {len(objects)}")
        found = []
        for number, (old, new) in enumerate(zip(objects, converted, strict=True)):
            self._check_type(name, number, new, api_version)
            _check_identity(name, old, new)
            found.append(_restored(name, old, new))
        return found

    def _converted(self, review: Json, answer: Json) -> Sequence[Any]:
        """The objects of an answer. Raises AskFailed."""
        response = answer.get("response")
        if not isinstance(response, dict):
            if self._version == "v1" and response is not None:
                raise AskFailed(_mistyped(response, "ConversionReview.response", "v1.ConversionResponse"))
            raise AskFailed("no response provided")
        if self._version == "v1":
            wanted, got = review["request"]["uid"], response.get("uid") or ""
            given, kind = answer.get("apiVersion") or "/", answer.get("kind") or ""
            if (given, kind) != (review["apiVersion"], review["kind"]):
                expected = f"{review['apiVersion']}, Kind=ConversionReview"
                raise AskFailed(f"expected webhook response of {expected}, got {given}, Kind={kind}")
            if wanted != got:
                raise AskFailed(f'expected response.uid="{wanted}", got "{got}"')
        result = response.get("result") or {}
        status = result.get("status") or "" if isinstance(result, dict) else ""
        if status != "Success":
            message = result.get("message") if isinstance(result, dict) else ""
            raise AskFailed(
                str(message) if message else f"response.result.status was '{status}', not 'Success'"
            )
        converted = response.get("convertedObjects")
        if converted is not None and not isinstance(converted, list):
            raise AskFailed(
                _mistyped(converted, "ConversionResponse.response.convertedObjects", "[]runtime.RawExtension")
            )
        return converted or ()

    def _check_type(self, name: str, number: int, new: Any, api_version: str) -> None:
        """Raises ApiError 500."""
        if new is None:
            raise plain_failure("unexpected end of JSON input")
        if not isinstance(new, dict):
            raise plain_failure(
                f"json: cannot unmarshal {type_name(new)} into Go value of type map[string]interface {{}}"
            )
        if not new.get("kind"):
            raise plain_failure(f"Object 'Kind' is missing in '{encode(new).decode()}'")
        invalid = f"{name} returned invalid object at index {number}: invalid"
        if new.get("apiVersion") != api_version:
            got = new.get("apiVersion") or ""
            raise plain_failure(f"{invalid} groupVersion (expected {api_version}, received {got})")
        if new["kind"] != self._kind:
            raise plain_failure(f"{invalid} kind (expected {self._kind}, received {new['kind']})")


def _mistyped(value: Any, place: str, go_type: str) -> str:
    return f"json: cannot unmarshal {type_name(value)} into Go struct field {place} of type {go_type}"


def _check_identity(name: str, old: Json, new: Json) -> None:
    """Raises ApiError 500."""
    before, after = old.get("metadata") or {}, new.get("metadata")
    after = after if isinstance(after, dict) else {}
    for key, said in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        wanted, got = before.get(key) or "", after.get(key) or ""
        if wanted != got:
            raise plain_failure(
                f"{name} returned invalid object: must have the same {said}: {wanted} != {got}"
            )


def _restored(name: str, old: Json, new: Json) -> Json:
    """A converted object with the metadata of the original but for labels and annotations. Raises ApiError 500."""
    before, after = old.get("metadata") or {}, new.get("metadata")
    if not isinstance(after, dict):
        raise plain_failure(f"{name} returned invalid metadata: missing metadata in converted object")
    metadata = {key: value for key, value in before.items() if key not in ("labels", "annotations")}
    for key in ("labels", "annotations"):
        if after.get(key) is None:
            continue
        metadata[key] = _texts(name, key, after[key])
    faults: list[FieldError] = []
    if metadata.get("labels") != before.get("labels"):
        faults += label_faults(metadata.get("labels") or {}, "metadata.labels")
    if metadata.get("annotations") != before.get("annotations"):
        faults += annotation_faults(metadata.get("annotations") or {}, "metadata.annotations")
    if faults:
        texts = list(dict.fromkeys(map(str, faults)))
        said = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        raise plain_failure(f"{name} returned invalid metadata: {said}")
    copied: Json = decode(encode({**new, "metadata": metadata}))
    return copied


def _texts(name: str, key: str, given: Any) -> Json:
    place = f"metadata.{key}"
    if not isinstance(given, dict):
        raise plain_failure(
            f"{name} returned invalid metadata: {place} must be a map, but is {_go_type(given)} in converted object"
        )
    for entry, value in given.items():
        if not isinstance(value, str):
            raise plain_failure(
                f"{name} returned invalid metadata: {place}[{entry}] must be a string, but is {_go_type(value)} "
                "in converted object"
            )
    return given


def _go_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    names = {
        int: "int64",
        float: "float64",
        str: "string",
        list: "[]interface {}",
        dict: "map[string]interface {}",
    }
    return names.get(type(value), "<nil>")
