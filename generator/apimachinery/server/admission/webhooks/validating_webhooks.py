"""ValidatingAdmissionWebhook: everybody is asked at once, and the first refusal in order counts."""

from __future__ import annotations

import asyncio

from apimachinery.meta.errors import ApiError
from apimachinery.server.admission.interface import Operation, Plugin, Waiting
from apimachinery.server.admission.webhooks.webhook_configurations import (
    Call,
    Webhooks,
    failed,
    rejected,
)
from apimachinery.server.network.webhook_calls import WebhookFailed


class ValidatingWebhooks(Plugin):
    """Asks the validating webhooks in force."""

    def __init__(self, webhooks: Webhooks) -> None:
        self._webhooks = webhooks

    def validate(self, operation: Operation) -> Waiting:
        """Raises ApiError."""
        if not self._webhooks.is_asked(operation):
            return None
        hooks = enumerate(self._webhooks.in_force())
        calls = [
            (number, call)
            for number, hook in hooks
            if (call := self._webhooks.call(hook, operation)) is not None
        ]
        return self._ask(calls, operation) if calls else None

    async def _ask(self, calls: list[tuple[int, Call]], operation: Operation) -> None:
        """Nobody is left waiting once somebody has refused."""
        asked = [asyncio.ensure_future(self._refusal(number, call, operation)) for number, call in calls]
        try:
            for answer in asked:
                if (refusal := await answer) is not None:
                    raise refusal
        finally:
            for answer in asked:
                answer.cancel()

    async def _refusal(self, number: int, call: Call, operation: Operation) -> ApiError | None:
        hook = call.hook
        try:
            verdict = await self._webhooks.ask(call, operation)
        except WebhookFailed as failure:
            if not hook.ignores_failures:
                return failed(hook, failure)
            operation.annotate(
                f"failed-open.validating.webhook.admission.k8s.io/round_0_index_{number}", hook.name
            )
            return None
        except ApiError as refusal:
            return refusal
        return None if verdict.allowed else rejected(hook, verdict)
