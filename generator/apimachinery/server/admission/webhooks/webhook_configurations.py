"""Which webhooks there are now, which of them are about an operation, and how one is asked.

As with policies, configurations are read from the watch cache when one of them has changed, so a webhook is in force
with the first request after the write that made it; internal writes of the server meet none. Webhooks are ordered by
the name of their configuration, then as it lists them. A match condition that is false decides, whatever others fail
with; where none is false, one that fails refuses the request or skips the webhook, as the failure policy says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from apimachinery.access.control import Access
from apimachinery.http.steps import Asking, Wait, compute
from apimachinery.kinds.admissionregistration.policy_expressions import (
    BOOL,
    CONDITIONS_BUDGET,
    BudgetSpent,
    Compiler,
    Evaluation,
    Expression,
    ExpressionFault,
)
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError, bad_request, forbidden, internal
from apimachinery.meta.field_errors import aggregate
from apimachinery.server.admission.interface import Operation
from apimachinery.server.admission.objects import check_readable
from apimachinery.server.admission.policies.matching import (
    Candidates,
    MatchConstraints,
    NamespaceLabels,
    is_exempt,
)
from apimachinery.server.admission.policies.policies import GROUP
from apimachinery.server.admission.policies.request_values import request_values
from apimachinery.server.admission.webhooks.reviews import (
    VERSIONS,
    ReviewVerdict,
    review_of,
    verdict_of,
)
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.server.network.webhook_calls import WebhookAnswer, WebhookCalls, WebhookFailed, read_review
from apimachinery.storage.interface import Event
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import encode

AGENT = "kube-apiserver-admission"
SECONDS = 10
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Hook:
    """One webhook of a configuration, compiled once."""

    def __init__(self, configuration: str, stated: Json, number: int) -> None:
        self.configuration = configuration
        self.name: str = stated["name"]
        self.key = (configuration, self.name, number)
        self.stated = stated
        self.ignores_failures = stated.get("failurePolicy") == "Ignore"
        self.seconds = int(stated.get("timeoutSeconds") or SECONDS)
        self.is_reinvoked = stated.get("reinvocationPolicy") == "IfNeeded"
        offered = stated.get("admissionReviewVersions") or ()
        # The first offered version that is known, as the webhook prefers.
        self.version = next((version for version in offered if version in VERSIONS), "")
        self.constraints = MatchConstraints({**stated, "resourceRules": stated.get("rules") or ()})
        self.conditions: list[Expression] = []
        self.fault = ""
        compiler = Compiler(has_params=False)
        try:
            for condition in stated.get("matchConditions") or ():
                self.conditions.append(compiler.compile(condition["expression"], BOOL))
        # Configurations are validated when written; one stored by another release may still fail to compile.
        except ExpressionFault as fault:
            self.fault = str(fault)


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """A webhook that is about an operation; ``served`` is the version that its rule matched."""

    hook: Hook
    served: Served


class ConfiguredWebhooks:
    """The webhooks of one kind that are in force. ``kind`` is ``validating`` or ``mutating``."""

    def __init__(
        self, kind: str, catalog: Catalog, cache: WatchCache, access: Access, calls: WebhookCalls
    ) -> None:
        self._mutates = kind == "mutating"
        self._plural = f"{kind}webhookconfigurations"
        self._catalog = catalog
        self._cache = cache
        self._access = access
        self._calls = calls
        self._namespaces = NamespaceLabels(cache)
        self._compiled: dict[str, tuple[int, list[Hook]]] = {}
        self._hooks: list[Hook] = []
        self._candidates: Candidates[tuple[int, Hook]] = Candidates(
            catalog, lambda numbered: numbered[1].constraints
        )
        self._stale = True
        self._prefix = f"/{GROUP}/{self._plural}/"
        cache.resource(self._prefix).listen(self._prefix, self._changed)

    def _changed(self, event: Event) -> None:
        self._stale = True

    def in_force(self) -> list[Hook]:
        """All webhooks, in order."""
        if self._stale:
            self._hooks = self._read()
            # Without rules a webhook is about nothing.
            self._candidates.replace(
                [(number, hook) for number, hook in enumerate(self._hooks) if hook.constraints.has_rules]
            )
            self._stale = False
        return self._hooks

    def may_be_about(self, operation: Operation) -> list[tuple[int, Hook]]:
        """The webhooks that may be about an operation, in order, with their numbers among all."""
        self.in_force()
        return self._candidates.of(operation)

    def _read(self) -> list[Hook]:
        served = self._catalog.find(GROUP, "v1", self._plural)
        if served is None:
            return []
        compiled: dict[str, tuple[int, list[Hook]]] = {}
        for record in self._cache.resource(served.prefix).snapshot(served.prefix).records:
            name = record.key[len(served.prefix) :]
            known = self._compiled.get(name)
            # Only changed configurations are compiled again.
            if known is None or known[0] != record.revision:
                stated = served.read(record).get("webhooks") or ()
                known = (
                    record.revision,
                    [Hook(name, webhook, number) for number, webhook in enumerate(stated)],
                )
            compiled[name] = known
        self._compiled = compiled
        # By name of configuration, so that every server asks in the same order.
        return [hook for name in sorted(compiled) for hook in compiled[name][1]]

    def is_asked(self, operation: Operation) -> bool:
        """Whether any webhook may be about an operation. Raises ApiError 500 where a configuration cannot be read: one
        of its webhooks might forbid the operation."""
        # Writes of the server itself, and of webhook configurations, must not depend on a webhook.
        if operation.target.user is None or is_exempt(operation):
            return False
        if self._cache.hides:
            check_readable(self._cache, self._prefix)
        return bool(self.in_force())

    def call(self, hook: Hook, operation: Operation) -> WebhookCall | None:
        """Whether a webhook is about an operation as it is now, and at which version. Raises ApiError 403."""
        versions = self._candidates.versions(operation)
        served = hook.constraints.match(operation, self._namespaces.of, versions)
        if served is None or not self._conditions_hold(hook, served, operation):
            return None
        return WebhookCall(hook, served)

    def _conditions_hold(self, hook: Hook, served: Served, operation: Operation) -> bool:
        """Raises ApiError 403."""
        if not hook.conditions and not hook.fault:
            return True
        values = request_values(operation, served, operation.obj, self._access)
        evaluation = Evaluation({}, values, CONDITIONS_BUDGET)
        failed = [hook.fault] if hook.fault else []
        for condition in hook.conditions:
            try:
                outcome = evaluation.run(condition)
            except BudgetSpent:
                failed = [
                    "validation failed due to running out of cost budget, no further validation rules will be run"
                ]
                break
            if outcome.error is not None:
                failed.append(f"expression '{condition.source}' resulted in error: {outcome.error}")
            # One false condition decides, whatever others failed with.
            elif outcome.value is not True:
                return False
        if failed and not hook.ignores_failures:
            own = operation.target.served
            text = aggregate(failed)
            raise forbidden(own.plural, own.group, operation.name, text)
        return not failed

    def ask(self, call: WebhookCall, operation: Operation) -> Asking[ReviewVerdict]:
        """Asks a webhook; its answer, its warnings and annotations taken. Raises ApiError 400, WebhookFailed."""
        hook = call.hook
        # Before the call: a webhook with side effects must not even be asked.
        if operation.dry_run and hook.stated.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        review = review_of(operation, call.served, hook.version)
        body = encode(review)

        async def read(answer: WebhookAnswer) -> ReviewVerdict:
            # Within the call, which holds a place among those that read large answers.
            return await compute(len(answer.content), self._verdict, call, review, answer, operation)

        began, code = perf_counter(), 0
        try:
            verdict: ReviewVerdict = yield Wait(
                partial(self._calls.post, hook.stated["clientConfig"], body, hook.seconds, AGENT, read)
            )
            code = 200 if verdict.allowed else rejected(hook, verdict).code
        finally:
            kind = "admit" if self._mutates else "validating"
            self._calls.observe(hook.name, operation.verb, kind, code, perf_counter() - began)
        return verdict

    def _verdict(
        self, call: WebhookCall, review: Json, answer: WebhookAnswer, operation: Operation
    ) -> ReviewVerdict:
        """The verdict of an answer; what it says besides is noted. Raises WebhookFailed."""
        verdict = verdict_of(review, read_review(answer, review), mutating=self._mutates)
        for key, value in verdict.annotations.items():
            operation.annotate(f"{call.hook.name}/{key}", value)
        for text in verdict.warnings:
            # No header can carry the others.
            if text and not _CONTROL.search(text):
                operation.warn(text)
        return verdict


def failed(hook: Hook, failure: WebhookFailed) -> ApiError:
    """500 for a webhook that could not be asked, where its failure policy is Fail."""
    return internal(f'failed calling webhook "{hook.name}": {failure}')


class _Rejected(ApiError):
    """The refusal of a webhook: its own Status, completed."""

    def __init__(self, status: Json) -> None:
        super().__init__(status["code"], status.get("reason") or "", status["message"])
        self._status = status

    def status(self) -> Json:
        return self._status


def rejected(hook: Hook, verdict: ReviewVerdict) -> ApiError:
    """The refusal of a webhook, at least 400."""
    given = verdict.status or {}
    text = f'admission webhook "{hook.name}" denied the request'
    why = given.get("message") or given.get("reason")
    status: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": given.get("metadata") or {},
        "status": "Failure",
        "message": f"{text}: {why}" if why else f"{text} without explanation",
    }
    for key in ("reason", "details"):
        if given.get(key):
            status[key] = given[key]
    # A refusal is never answered with a success code.
    status["code"] = max(int(given.get("code") or 0), 400)
    return _Rejected(status)
