"""ValidatingAdmissionPolicy (KEP-3488): CEL expressions that an object must satisfy, enforced, warned about or audited.

For each binding and parameter the policy is evaluated again. A validation fails if it is false, or if it cannot be
computed and the failure policy is Fail. The first failure under a binding that denies is the answer; its reason gives
the code. Failures under Warn become warnings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apimachinery.kinds.admissionregistration.policy_expressions import (
    BOOL,
    STRING,
    TEXT_OR_NULL,
    BudgetSpent,
    Evaluation,
    Expression,
    ExpressionFault,
)
from apimachinery.meta.errors import ApiError
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.policies.policies import (
    Match,
    Policies,
    Policy,
    PolicyBinding,
    PolicyFailure,
    conditions_hold,
    denied,
    evaluation_of,
)
from apimachinery.server.catalog.served import Served
from apimachinery.wire.json import encode

_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
_SPENT = "validation failed due to running out of cost budget, no further validation rules will be run"
FAILURE = "validation.policy.admission.k8s.io/validation_failure"
ANNOTATION_CHARACTERS = 10 * 1024
MESSAGE_BYTES = 5 * 1024
"""A longer messageExpression is not used (kube-apiserver's limit)."""


@dataclass(frozen=True, slots=True)
class PolicyValidation:
    """An expression that must hold, and the message where it does not."""

    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


@dataclass(frozen=True, slots=True)
class _Failure:
    text: str
    reason: str = "Invalid"
    number: int = 0
    """Which expression of the policy failed."""
    denies: bool = False
    """Whether it denies whatever a binding does about failures: an audit annotation that cannot be computed does, and
    parameters that cannot be found."""


@dataclass(frozen=True, slots=True)
class _Annotation:
    """What a policy has to say in the audit event."""

    key: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Checks:
    """What a policy has compiled: ``fault`` says why it cannot be used."""

    policy: Policy
    validations: list[PolicyValidation]
    annotations: list[_Annotation]
    fault: str = ""


class ValidatingPolicies(Plugin):
    """Enforces the validating policies in force."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies
        self._validations: dict[int, Checks] = {}

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 401, 403, 413, 422."""
        denials: list[ApiError] = []
        annotations: dict[str, list[str]] = {}
        known: dict[str, dict[str, Any]] = {}
        for policy, binding, served in self._policies.about(operation):
            for failure in self._failures(policy, binding, served, operation, annotations, known):
                self._act(policy, binding, failure, operation, denials)
        for key, values in annotations.items():
            operation.annotate(key, ", ".join(values))
        if denials:
            raise denials[0]

    def _act(
        self,
        policy: Policy,
        binding: PolicyBinding,
        failure: _Failure,
        operation: Operation,
        denials: list[ApiError],
    ) -> None:
        actions = binding.spec.get("validationActions") or ()
        if "Deny" in actions or failure.denies:
            if failure.text.startswith("failed to configure policy"):
                text = f"ValidatingAdmissionPolicy '{policy.name}' denied request: {failure.text}"
            else:
                named = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
                text = f"{named} denied request: {failure.text}"
            denials.append(denied(operation, text, _CODES.get(failure.reason, 422), failure.reason))
        if failure.denies:
            return
        if "Audit" in actions:
            told = {
                "message": failure.text,
                "policy": policy.name,
                "binding": binding.name,
                "expressionIndex": failure.number,
                "validationActions": list(actions),
            }
            operation.annotate(FAILURE, encode([told]).decode())
        if "Warn" in actions:
            operation.target.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}': "
                f"{failure.text}"
            )

    def _failures(
        self,
        policy: Policy,
        binding: PolicyBinding,
        served: Served,
        operation: Operation,
        annotations: dict[str, list[str]],
        known: dict[str, dict[str, Any]],
    ) -> Iterator[_Failure]:
        try:
            every = self._policies.params(policy, binding, operation)
        except PolicyFailure as failure:
            if not policy.ignores_failures:
                yield _Failure(str(failure), denies=True)
            return
        for params in every:
            try:
                match = Match(policy, binding, served, params)
                yield from self._failures_with(match, operation, annotations, known)
            except PolicyFailure as failure:
                if not policy.ignores_failures:
                    yield _Failure(str(failure))

    def _failures_with(
        self,
        match: Match,
        operation: Operation,
        annotations: dict[str, list[str]],
        known: dict[str, dict[str, Any]],
    ) -> Iterator[_Failure]:
        policy = match.policy
        compiled = self._compiled(policy)
        if compiled.fault:
            raise PolicyFailure(compiled.fault)
        values = self._policies.values(match, operation, operation.obj, known)
        if not conditions_hold(policy, values):
            return
        evaluation = evaluation_of(policy, values)
        for number, validation in enumerate(compiled.validations):
            try:
                failure = failure_of(validation, evaluation)
            except BudgetSpent:
                raise PolicyFailure(_SPENT) from None
            if failure is None:
                continue
            text, is_error = failure
            if is_error and policy.ignores_failures:
                continue
            yield _Failure(text, "Invalid" if is_error else validation.reason, number)
        # What is told in the audit may name the authorizer, and never finds it.
        known_there = {key: value for key, value in values.items() if not key.startswith("authorizer")}
        telling = evaluation_of(policy, known_there) if compiled.annotations else evaluation
        for annotation in compiled.annotations:
            try:
                outcome = telling.run(annotation.value)
            except BudgetSpent:
                raise PolicyFailure(_SPENT) from None
            if outcome.error is not None:
                if not policy.ignores_failures:
                    fault = f"expression '{annotation.value.source}' resulted in error: {outcome.error}"
                    yield _Failure(fault, denies=True)
            elif isinstance(outcome.value, str) and (value := outcome.value.strip()):
                values_of = annotations.setdefault(f"{policy.name}/{annotation.key}", [])
                if (value := value[:ANNOTATION_CHARACTERS]) not in values_of:
                    values_of.append(value)

    def _compiled(self, policy: Policy) -> Checks:
        kept = self._validations.get(id(policy))
        if kept is None or kept.policy is not policy:
            if len(self._validations) > 2 * len(self._policies.in_force()) + 16:
                self._validations.clear()
            kept = self._validations[id(policy)] = checks_of(policy)
        return kept


def checks_of(policy: Policy) -> Checks:
    """The validations and annotations of a policy."""
    if policy.fault:
        return Checks(policy, [], [], policy.fault)
    validations = []
    try:
        for stated in policy.spec.get("validations") or ():
            message = stated.get("messageExpression")
            validations.append(
                PolicyValidation(
                    policy.compiler.compile(stated["expression"], BOOL),
                    (stated.get("message") or "").strip(),
                    policy.compiler.compile(message, STRING, asks=False) if message else None,
                    stated.get("reason") or "Invalid",
                )
            )
        annotations = [
            _Annotation(
                stated["key"], policy.compiler.compile(stated["valueExpression"].strip(), TEXT_OR_NULL)
            )
            for stated in policy.spec.get("auditAnnotations") or ()
        ]
    except ExpressionFault as fault:
        return Checks(policy, [], [], str(fault))
    return Checks(policy, validations, annotations)


def failure_of(validation: PolicyValidation, evaluation: Evaluation) -> tuple[str, bool] | None:
    """The text of a failed validation and whether it could not be computed; None where it holds."""
    outcome = evaluation.run(validation.expression)
    if outcome.error is not None:
        return f"expression '{validation.expression.source}' resulted in error: {outcome.error}", True
    if outcome.value is True:
        return None
    return _message(validation, evaluation), False


def _message(validation: PolicyValidation, evaluation: Evaluation) -> str:
    """The message expression's text if it gives one line that is not blank, else the message, else the expression."""
    if validation.message_expression is not None:
        outcome = evaluation.run(validation.message_expression)
        text = outcome.value.strip() if isinstance(outcome.value, str) else ""
        if outcome.error is None and text and "\n" not in text and len(text.encode()) <= MESSAGE_BYTES:
            return text
    return validation.message or f"failed expression: {validation.expression.source.strip()}"
