"""MutatingAdmissionWebhook: one after another, each sees what those before it made of the object.

A patch is applied to the object at the version that the webhook's rule matched. The result is read as the kind again:
unknown fields go, defaults are filled in. A webhook that says ``IfNeeded`` is called once more if somebody changed the
object after it.
"""

from __future__ import annotations

from typing import Any

from apimachinery.http.messages import LARGE_BYTES
from apimachinery.http.steps import HEAVY, Asking, Waiting
from apimachinery.merge import json_patch
from apimachinery.merge.errors import MergeError
from apimachinery.merge.json_patch import JsonPatchFailed
from apimachinery.meta.errors import internal
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.policies.patching import patch_fault, take
from apimachinery.server.admission.policies.request_values import at_version
from apimachinery.server.admission.reinvocation import Reinvocation
from apimachinery.server.admission.webhooks.reviews import ReviewVerdict
from apimachinery.server.admission.webhooks.webhook_configurations import (
    ConfiguredWebhooks,
    WebhookCall,
    failed,
    rejected,
)
from apimachinery.server.network.webhook_calls import WebhookFailed
from apimachinery.wire.json import DecodeFault, decode, encode, type_name

_PLUGIN = "MutatingAdmissionWebhook"


class MutatingWebhooks(Plugin):
    """Asks the mutating webhooks in force."""

    def __init__(self, webhooks: ConfiguredWebhooks) -> None:
        self._webhooks = webhooks

    def admit(self, operation: Operation) -> Waiting:
        """Changes ``operation.obj`` in place. Raises ApiError."""
        return self._ask(operation) if self._webhooks.is_asked(operation) else None

    def _ask(self, operation: Operation) -> Asking[None]:
        memory = Reinvocation.of(operation, _PLUGIN)
        for number, hook in self._webhooks.may_be_about(operation):
            # Asked again for each webhook: one before it may have changed what its rules match.
            call = self._webhooks.call(hook, operation)
            if call is None or not memory.may_call(hook.key):
                continue
            where = f"round_{int(operation.second_round)}_index_{number}"
            try:
                changed = yield from self._mutate(call, operation)
            except WebhookFailed as failure:
                if not hook.ignores_failures:
                    raise failed(hook, failure) from None
                # The audit shows which requests passed because a webhook did not answer.
                operation.annotate(f"failed-open.mutation.webhook.admission.k8s.io/{where}", hook.name)
                continue
            told = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
            operation.annotate(f"mutation.webhook.admission.k8s.io/{where}", encode(told).decode())
            memory.called(hook.key, changed=changed, willing=hook.is_reinvoked)
        memory.leave()

    def _mutate(self, call: WebhookCall, operation: Operation) -> Asking[bool]:
        """Asks the webhook; whether it changed the object. Raises ApiError, WebhookFailed."""
        verdict = yield from self._webhooks.ask(call, operation)
        if not verdict.allowed:
            raise rejected(call.hook, verdict)
        if not verdict.patch:
            return False
        if len(verdict.patch) > LARGE_BYTES:
            yield HEAVY
        return _changed(call, verdict, operation)


def _changed(call: WebhookCall, verdict: ReviewVerdict, operation: Operation) -> bool:
    """Applies a patch to the object."""
    operations = _operations(verdict)
    if not operations:
        return False
    if operation.obj is None:
        raise internal(
            f'admission webhook "{call.hook.name}" attempted to modify the object, which is not supported for this '
            "operation"
        )
    before = at_version(operation, call.served, operation.obj)
    assert before is not None
    try:
        after = json_patch.apply(before, operations)
    except JsonPatchFailed as fault:
        raise internal(patch_fault(before, operations, fault)) from None
    except MergeError as fault:
        raise internal(str(fault)) from None
    # A patch that changes nothing must not cause another round.
    if after == before:
        return False
    take(operation, after, before, call.served)
    return True


def _operations(verdict: ReviewVerdict) -> Any:
    """The operations of a patch. Raises WebhookFailed."""
    if verdict.patch_type != "JSONPatch":
        raise WebhookFailed(f'unsupported patch type "{verdict.patch_type}"')
    try:
        operations = decode(verdict.patch)
    except DecodeFault as fault:
        raise WebhookFailed(f"received undecodable patch in webhook response: {fault}") from None
    if operations is not None and not isinstance(operations, list):
        why = f"json: cannot unmarshal {type_name(operations)} into Go value of type jsonpatch.Patch"
        raise WebhookFailed(f"received undecodable patch in webhook response: {why}")
    return operations
