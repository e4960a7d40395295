"""ValidatingAdmissionWebhook: everybody is asked at once, and the first refusal in order counts."""

from __future__ import annotations

from apimachinery.http.steps import Asking, AtOnce, Waiting
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.webhooks.webhook_configurations import (
    ConfiguredWebhooks,
    WebhookCall,
    failed,
    rejected,
)
from apimachinery.server.network.webhook_calls import WebhookFailed


class ValidatingWebhooks(Plugin):
    """Asks the validating webhooks in force."""

    def __init__(self, webhooks: ConfiguredWebhooks) -> None:
        self._webhooks = webhooks

    def validate(self, operation: Operation) -> Waiting:
        """Raises ApiError."""
        if not self._webhooks.is_asked(operation):
            return None
        calls = [
            (number, call)
            for number, hook in self._webhooks.may_be_about(operation)
            if (call := self._webhooks.call(hook, operation)) is not None
        ]
        return self._ask(calls, operation) if calls else None

    def _ask(self, calls: list[tuple[int, WebhookCall]], operation: Operation) -> Asking[None]:
        # At once, since none of them may change the object; the order counts only for the refusal that is shown.
        yield AtOnce([self._judge(number, call, operation) for number, call in calls])

    def _judge(self, number: int, call: WebhookCall, operation: Operation) -> Asking[None]:
        """Asks one webhook. Raises ApiError where it refuses."""
        hook = call.hook
        try:
            verdict = yield from self._webhooks.ask(call, operation)
        except WebhookFailed as failure:
            if not hook.ignores_failures:
                raise failed(hook, failure) from None
            operation.annotate(
                f"failed-open.validating.webhook.admission.k8s.io/round_0_index_{number}", hook.name
            )
            return
        if not verdict.allowed:
            raise rejected(hook, verdict)
