"""JSON Patch (RFC 6902) as kube-apiserver applies it.

More lenient than the RFC: ``replace`` and ``copy`` of a missing key succeed (the copy gives null), ``test`` of a
missing key against null holds, a pointer need not start with a slash (what is before the first one is
ignored), an ``add`` without value adds null, negative indices count from the end. Unlike in the RFC the whole
document can be replaced and tested, but not added. Whatever fails makes the whole patch fail, with one answer
that does not say why; ``JsonPatchFailed.detail`` does.

A short patch must not make a large document or take long: all copies together may have 3 MiB as JSON, which is
kube-apiserver's limit too, and all insertions and removals may shift 50 million list items.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any, Final

from apimachinery.merge.errors import BadPatch, MergeError, refuse_deep
from apimachinery.merge.value import json_form, same

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 << 20
MAX_SHIFTED_ITEMS: Final = 50_000_000
_GENERIC: Final = "the server rejected our request due to an error in our request"
_MEMBERS: Final = {"op": "string", "path": "string", "from": "string"}


class JsonPatchFailed(MergeError):
    """422: an operation that cannot be done. ``operation`` is its number, ``detail`` says why, with the pointer."""

    def __init__(self, operation: int, detail: str) -> None:
        super().__init__(_GENERIC, code=422, reason="Invalid")
        self.operation = operation
        self.detail = f"operation {operation}: {detail}"


class _Impossible(Exception):
    """Why an operation cannot be done."""


@refuse_deep
def apply(document: Any, operations: Any, *, checked: bool = True) -> Any:
    """The patched document; the given one is not changed, and shares no lists or objects with the answer that a
    later change could reach. ``checked``: members of a wrong type are refused before anything is done.

    Raises ``BadPatch`` for what is not a list of operations, ``MergeError`` 413 for more than 10,000 of them,
    ``JsonPatchFailed`` for one that cannot be done.
    """
    if operations is None:
        return document
    if not isinstance(operations, list):
        raise BadPatch(
            f"{_prefix(checked)}json: cannot unmarshal {json_form(operations)} into Go value of type "
            + ("[]handlers.jsonPatchOp" if checked else "jsonpatch.Patch")
        )
    for operation in operations:
        _check_form(operation, checked)
    if len(operations) > MAX_OPERATIONS:
        raise MergeError(
            "Request entity is too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(operations)}",
            code=413,
            reason="RequestEntityTooLarge",
        )
    patching = _Patching(_copied(document))
    for number, operation in enumerate(operations):
        try:
            patching.do(operation or {})
        except _Impossible as error:
            raise JsonPatchFailed(number, str(error)) from None
    return patching.document


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if type(value) is list else value


def _prefix(checked: bool) -> str:
    return "error decoding patch: " if checked else ""


def _check_form(operation: Any, checked: bool) -> None:
    if operation is None:
        return
    if not isinstance(operation, dict):
        raise BadPatch(
            f"{_prefix(checked)}json: cannot unmarshal {json_form(operation)} into Go value of type "
            + ("handlers.jsonPatchOp" if checked else "jsonpatch.Operation")
        )
    if not checked:
        return
    for member, form in _MEMBERS.items():
        value = operation.get(member)
        if value is not None and not isinstance(value, str):
            raise BadPatch(
                f"error decoding patch: json: cannot unmarshal {json_form(value)} into Go struct field "
                f"jsonPatchOp.{member} of type {form}"
            )


class _Patching:
    """A document under change."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self.copied = 0
        self.shifted = 0

    def do(self, operation: dict[str, Any]) -> None:
        path = operation.get("path")
        kind = operation.get("op")
        if not isinstance(path, str):
            raise _Impossible("has no path")
        if kind == "add":
            # A copy: later operations may change what was added.
            self._add(path, copy.deepcopy(operation.get("value")))
        elif kind == "remove":
            self._remove(path)
        elif kind == "replace":
            self._replace(path, copy.deepcopy(operation.get("value")))
        elif kind == "test":
            self._test(path, operation.get("value"))
        elif kind in ("move", "copy"):
            source = operation.get("from")
            if not isinstance(source, str):
                raise _Impossible("has no from")
            value = self._get(source)
            if kind == "move":
                # Removed first: the target may lie behind the source in the same list.
                self._remove(source)
            else:
                value = self._copy(value)
            self._add(path, value)
        else:
            raise _Impossible(f"unknown operation {kind!r}")

    def _place(self, path: str) -> tuple[Any, str]:
        """The container that holds the last step of a pointer, and that step."""
        # ~1 before ~0, or "~01" would become a slash (RFC 6901 section 4).
        steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]
        if len(steps) < 2:
            raise _Impossible(f"no place at {path!r}")
        place = self.document
        for step in steps[1:-1]:
            place = place[_index(place, step)] if isinstance(place, list) else place.get(step)
            if not isinstance(place, dict | list):
                raise _Impossible(f"nothing at {path!r}")
        return place, steps[-1]

    def _get(self, path: str) -> Any:
        place, step = self._place(path)
        return place[_index(place, step)] if isinstance(place, list) else place.get(step)

    def _add(self, path: str, value: Any) -> None:
        place, step = self._place(path)
        if isinstance(place, dict):
            place[step] = value
        elif step == "-":
            place.append(value)
        else:
            index = _index(place, step, room=1)
            self._shift(len(place) - index)
            place.insert(index, value)

    def _remove(self, path: str) -> None:
        place, step = self._place(path)
        if isinstance(place, list):
            index = _index(place, step)
            self._shift(len(place) - index)
            del place[index]
        elif step in place:
            del place[step]
        else:
            raise _Impossible(f"nothing to remove at {path!r}")

    def _replace(self, path: str, value: Any) -> None:
        if not path:
            if not isinstance(value, dict | list):
                raise _Impossible("a document can only be an object or a list")
            self.document = value
            return
        place, step = self._place(path)
        if isinstance(place, list):
            place[_index(place, step)] = value
        else:
            place[step] = value

    def _test(self, path: str, value: Any) -> None:
        found = self._get(path) if path else self.document
        # Scalars are compared as they are written: 3.0 is not 3.
        if not same(found, value) or isinstance(found, float) != isinstance(value, float):
            raise _Impossible(f"test failed at {path!r}")

    def _shift(self, items: int) -> None:
        # Shifting is what makes a short patch long: each insertion at the front moves the whole list.
        self.shifted += items
        if self.shifted > MAX_SHIFTED_ITEMS:
            raise _Impossible(f"insertions and removals that shift more than {MAX_SHIFTED_ITEMS} items")

    def _copy(self, value: Any) -> Any:
        """A deep copy, counted."""
        # Measured as JSON, like kube-apiserver's limit.
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        self.copied += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if self.copied > MAX_COPIED_BYTES:
            raise _Impossible(f"copies of more than {MAX_COPIED_BYTES} bytes")
        return copy.deepcopy(value)


def _index(items: Sequence[Any], step: str, room: int = 0) -> int:
    """A list index; ``room`` is 1 where one past the end is allowed."""
    # Go's Atoi takes a plus sign too.
    digits = step[1:] if step[:1] in ("-", "+") else step
    # Python would convert any number of digits, slowly.
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise _Impossible(f"{step!r} is no index")
    index = int(step)
    length = len(items) + room
    if index >= length or index < -length:
        raise _Impossible(f"index {index} is out of range")
    return index if index >= 0 else index + length
