"""ValidatingAdmissionPolicy (KEP-3488): CEL expressions that an object must satisfy, enforced, warned about or audited.

For each binding and parameter the policy is evaluated again. A validation fails if it is false, or if it cannot be
computed and the failure policy is Fail. The first failure under a binding that denies is the answer; its reason gives
the code. Failures under Warn become warnings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apimachinery.meta.errors import ApiError
from apimachinery.rules.policy_expressions import (
    BOOL,
    STRING,
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
from apimachinery.server.catalog.served import Served

_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
MESSAGE_BYTES = 5 * 1024
"""A longer messageExpression is not used (kube-apiserver's limit)."""


@dataclass(frozen=True, slots=True)
class _Validation:
    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Failure:
    text: str
    reason: str = "Invalid"


class ValidatingPolicies:
    """Enforces the validating policies in force."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._validations: dict[int, tuple[Policy, list[_Validation], str]] = {}

    def admit(self, operation: Operation) -> None:
        """See Admission: nothing is changed."""

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 401, 403, 413, 422."""
        denials: list[ApiError] = []
        for policy, binding, served in self._policies.about(operation):
            for failure in self._failures(policy, binding, served, operation):
                self._act(policy, binding, failure, operation, denials)
        if denials:
            raise denials[0]

    def _act(
        self,
        policy: Policy,
        binding: Binding,
        failure: _Failure,
        operation: Operation,
        denials: list[ApiError],
    ) -> None:
        actions = binding.spec.get("validationActions") or ()
        if "Deny" in actions:
            if failure.text.startswith("failed to configure policy"):
                text = f"ValidatingAdmissionPolicy '{policy.name}' denied request: {failure.text}"
            else:
                named = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
                text = f"{named} denied request: {failure.text}"
            denials.append(denied(operation, text, _CODES.get(failure.reason, 422), failure.reason))
        if "Warn" in actions:
            operation.target.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}': "
                f"{failure.text}"
            )

    def _failures(
        self, policy: Policy, binding: Binding, served: Served, operation: Operation
    ) -> Iterator[_Failure]:
        try:
            for params in self._policies.params(policy, binding, operation):
                match = Match(policy, binding, served, params)
                yield from self._failures_with(match, operation)
        except PolicyFailure as failure:
            if not policy.ignores_failures:
                yield _Failure(str(failure))

    def _failures_with(self, match: Match, operation: Operation) -> Iterator[_Failure]:
        policy = match.policy
        validations, fault = self._compiled(policy)
        if fault:
            raise PolicyFailure(fault)
        values = self._policies.values(match, operation, operation.obj)
        if not conditions_hold(match, values):
            return
        evaluation = evaluation_of(match, values)
        for validation in validations:
            try:
                failure = _run(validation, evaluation)
            except BudgetSpent:
                raise PolicyFailure(
                    "validation failed due to running out of cost budget, no further validation rules will be run"
                ) from None
            if failure is None:
                continue
            text, is_error = failure
            if is_error and policy.ignores_failures:
                continue
            yield _Failure(text, "Invalid" if is_error else validation.reason)

    def _compiled(self, policy: Policy) -> tuple[list[_Validation], str]:
        kept = self._validations.get(id(policy))
        if kept is None or kept[0] is not policy:
            if len(self._validations) > 2 * len(self._policies.in_force()) + 16:
                self._validations.clear()
            kept = self._validations[id(policy)] = (policy, *_compile(policy))
        return kept[1], kept[2]


def _compile(policy: Policy) -> tuple[list[_Validation], str]:
    if policy.fault:
        return [], policy.fault
    validations = []
    try:
        for stated in policy.spec.get("validations") or ():
            message = stated.get("messageExpression")
            validations.append(
                _Validation(
                    policy.compiler.compile(stated["expression"], BOOL),
                    (stated.get("message") or "").strip(),
                    policy.compiler.compile(message, STRING) if message else None,
                    stated.get("reason") or "Invalid",
                )
            )
    except ExpressionFault as fault:
        return [], str(fault)
    return validations, ""


def _run(validation: _Validation, evaluation: Evaluation) -> tuple[str, bool] | None:
    """The text of a failed validation and whether it could not be computed; None where it holds."""
    outcome = evaluation.run(validation.expression)
    if outcome.error is not None:
        return f"expression '{validation.expression.source}' resulted in error: {outcome.error}", True
    if outcome.value is True:
        return None
    return _message(validation, evaluation), False


def _message(validation: _Validation, evaluation: Evaluation) -> str:
    """The message expression's text if it gives one line that is not blank, else the message, else the expression."""
    if validation.message_expression is not None:
        outcome = evaluation.run(validation.message_expression)
        text = outcome.value.strip() if isinstance(outcome.value, str) else ""
        if outcome.error is None and text and "\n" not in text and len(text.encode()) <= MESSAGE_BYTES:
            return text
    return validation.message or f"failed expression: {validation.expression.source.strip()}"
