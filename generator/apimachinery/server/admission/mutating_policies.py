"""MutatingAdmissionPolicy (KEP-3962): CEL expressions that change an object before it is validated.

A mutation is an apply configuration (an ``Object`` that is merged as server-side apply merges, without owners) or a
JSON patch. Mutations see what those before them made. A policy that says ``IfNeeded`` is evaluated once more if another
one changed the object after it. The result is read as the kind again: unknown fields go, defaults are filled in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apimachinery.merge import json_patch
from apimachinery.merge.errors import MergeError
from apimachinery.merge.json_patch import JsonPatchFailed
from apimachinery.rules.policy_expressions import (
    CONFIGURATION,
    PATCHES,
    BudgetSpent,
    Evaluation,
    Expression,
    ExpressionFault,
)
from apimachinery.server.admission.interface import Operation
from apimachinery.server.admission.policies import (
    Binding,
    Match,
    Policies,
    Policy,
    PolicyFailure,
    conditions_hold,
    denied,
    evaluation_of,
)
from apimachinery.server.catalog.hooks import Json
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.bodies import finish_form
from apimachinery.wire.json import decode, encode

Mutation = Callable[[Json, Evaluation, Served], Json]


class MutatingPolicies:
    """Applies the mutating policies in force."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies

    def admit(self, operation: Operation) -> None:
        """Changes ``operation.obj`` in place. Raises ApiError 403."""
        if operation.obj is None or operation.verb not in ("CREATE", "UPDATE"):
            return
        ran: list[tuple[Policy, Binding, Served, bytes]] = []
        for policy, binding, served in self._policies.about(operation):
            self._mutate(policy, binding, served, operation)
            ran.append((policy, binding, served, encode(operation.obj)))
        for policy, binding, served, after in ran[:-1]:
            if policy.spec.get("reinvocationPolicy") == "IfNeeded" and encode(operation.obj) != after:
                self._mutate(policy, binding, served, operation)

    def validate(self, operation: Operation) -> None:
        """See Admission: nothing is refused."""

    def _mutate(self, policy: Policy, binding: Binding, served: Served, operation: Operation) -> None:
        try:
            for params in self._policies.params(policy, binding, operation):
                self._apply(Match(policy, binding, served, params), operation)
        except PolicyFailure as failure:
            if policy.ignores_failures:
                return
            text = f"policy '{policy.name}' with binding '{binding.name}' denied request: {failure}"
            raise denied(operation, text, 403, "Invalid", names_object=False) from None

    def _apply(self, match: Match, operation: Operation) -> None:
        obj = operation.obj
        assert obj is not None
        if match.policy.fault:
            raise PolicyFailure(match.policy.fault)
        values = self._policies.values(match, operation, obj)
        if not conditions_hold(match, values):
            return
        own = operation.target.served
        changed: Json = decode(encode({"kind": own.kind, "apiVersion": own.api_version, **obj}))
        for mutation in match.policy.spec.get("mutations") or ():
            values["object"] = changed
            changed = _mutated(match.policy, mutation, changed, evaluation_of(match, values), own)
        if changed == obj:
            return
        _keep_identity(changed, obj)
        own.compiled.schema.prune(changed)
        finish_form(changed, own)
        obj.clear()
        obj.update(changed)


def _keep_identity(changed: Json, obj: Json) -> None:
    """A mutation may not rename an object, nor say who owns its fields."""
    metadata = changed.setdefault("metadata", {})
    for key in ("name", "generateName", "namespace", "uid", "managedFields"):
        if key in obj.get("metadata", {}):
            metadata[key] = obj["metadata"][key]
        else:
            metadata.pop(key, None)


def _mutated(policy: Policy, mutation: Json, obj: Json, evaluation: Evaluation, served: Served) -> Json:
    is_patch = mutation.get("patchType") == "JSONPatch"
    stated = mutation.get("jsonPatch" if is_patch else "applyConfiguration") or {}
    try:
        expression = policy.compiler.compile(
            stated.get("expression") or "", PATCHES if is_patch else CONFIGURATION
        )
    except ExpressionFault as fault:
        raise PolicyFailure(str(fault)) from None
    value = _value(expression, evaluation)
    return _patched(obj, value) if is_patch else _merged(obj, value, served)


def _value(expression: Expression, evaluation: Evaluation) -> Any:
    try:
        outcome = evaluation.run(expression)
    except BudgetSpent:
        raise PolicyFailure("mutation failed due to running out of cost budget") from None
    if outcome.error is not None:
        raise PolicyFailure(f"expression '{expression.source}' resulted in error: {outcome.error}")
    return outcome.value


def _patched(obj: Json, operations: Any) -> Json:
    try:
        patched: Json = json_patch.apply(obj, operations)
    except JsonPatchFailed as failed:
        # A test that does not hold means that the patch is not for this object.
        if operations[failed.operation].get("op") == "test":
            return obj
        before = json_patch.apply(obj, operations[: failed.operation])
        raise PolicyFailure(f"JSON Patch: {_why(before, operations[failed.operation])}") from None
    except MergeError as error:
        raise PolicyFailure(f"JSON Patch: {error}") from None
    return patched


def _why(document: Any, operation: Json) -> str:
    """Why an operation cannot be done, in the words of kube-apiserver's JSON patch library."""
    word, path = str(operation.get("op")), str(operation.get("path") or "")
    if word in ("move", "copy") and _found(document, str(operation.get("from") or "")) is _MISSING:
        return f"{word} operation does not apply: doc is missing from path: {operation.get('from')}: missing value"
    parent, _, key = path.rpartition("/")
    held = _found(document, parent)
    if not isinstance(held, (dict, list)):
        shown = path if word == "replace" else f'"{path}"'
        return f"{word} operation does not apply: doc is missing path: {shown}: missing value"
    if isinstance(held, list):
        return f"error in {word} for path: '{path}': Unable to access invalid index: {key}: invalid index referenced"
    if word == "replace":
        return f"replace operation does not apply: doc is missing key: {path}: missing value"
    return f"error in {word} for path: '{path}': Unable to remove nonexistent key: {key}: missing value"


_MISSING = object()


def _found(document: Any, path: str) -> Any:
    held = document
    for part in path.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(held, dict):
            held = held.get(name, _MISSING)
        elif isinstance(held, list) and name.isdigit() and int(name) < len(held):
            held = held[int(name)]
        else:
            return _MISSING
    return held


def _merged(obj: Json, configuration: Any, served: Served) -> Json:
    """``obj`` with the fields of an apply configuration, lists merged by their keys, nobody's ownership asked."""
    applied = {**configuration, "apiVersion": served.api_version, "kind": served.kind}
    if "metadata" not in applied:
        applied["metadata"] = {}
    ownership = served.ownership("")
    live: Json = decode(encode(obj))
    live.get("metadata", {}).pop("managedFields", None)
    try:
        merged: Json = ownership.apply(live, applied, "admission", force=True, now="")
    except MergeError as error:
        raise PolicyFailure(f"invalid ApplyConfiguration: {error}") from None
    merged.get("metadata", {}).pop("managedFields", None)
    return merged
