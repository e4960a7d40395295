"""A ValidatingAdmissionPolicy tried against objects that are there, before anybody binds it.

Each object is judged as if it were created (or updated to what it is) now, by the same compiler and the same
budgets as the server's. What only a request has (the user, the namespace's labels) is given where it is known. A
policy that asks the ``authorizer`` cannot be tried here; such an expression fails, and says so.
"""

from __future__ import annotations

from typing import Any

from apimachinery.kinds.admissionregistration.policy_expressions import (
    BOOL,
    CONDITIONS_BUDGET,
    POLICY_BUDGET,
    STRING,
    BudgetSpent,
    Compiler,
    Evaluation,
    Expression,
    ExpressionFault,
)

MOST_OBJECTS = 1_000
Json = dict[str, Any]


def try_policy(asked: Json) -> Json:
    """``policy`` against ``objects``, with ``params`` and ``user``: what became of each, and what is wrong with the
    policy itself."""
    spec = (asked.get("policy") or {}).get("spec") or {}
    try:
        trial = _Trial(spec)
    except ExpressionFault as fault:
        return {"fault": str(fault), "results": []}
    except (KeyError, TypeError, AttributeError) as fault:
        return {"fault": f"the policy is not whole: {fault}", "results": []}
    objects = [each for each in asked.get("objects") or () if isinstance(each, dict)]
    results = [trial.judge(obj, asked) for obj in objects[:MOST_OBJECTS]]
    return {"results": results, "left": max(0, len(objects) - MOST_OBJECTS)}


class _Trial:
    """A policy as compiled. Raises ExpressionFault."""

    def __init__(self, spec: Json) -> None:
        has_params = bool(spec.get("paramKind"))
        self._compiler = Compiler(has_params=has_params)
        for variable in spec.get("variables") or ():
            self._compiler.declare(variable["name"], variable["expression"])
        plain = Compiler(has_params=has_params)
        self._conditions = [
            plain.compile(each["expression"], BOOL) for each in spec.get("matchConditions") or ()
        ]
        self._validations: list[tuple[Expression, str, Expression | None]] = []
        for each in spec.get("validations") or ():
            message = each.get("messageExpression")
            self._validations.append(
                (
                    self._compiler.compile(each["expression"], BOOL),
                    str(each.get("message") or "").strip(),
                    self._compiler.compile(message, STRING, asks=False) if message else None,
                )
            )

    def judge(self, obj: Json, asked: Json) -> Json:
        """What the policy says of one object."""
        metadata = obj.get("metadata") or {}
        values = {
            "object": obj,
            "oldObject": obj if asked.get("operation") == "UPDATE" else None,
            "request": _request(obj, metadata, asked),
            "params": asked.get("params"),
            "namespaceObject": None,
        }
        answer: Json = {"name": metadata.get("name", ""), "namespace": metadata.get("namespace", "")}
        try:
            conditions = Evaluation({}, values, CONDITIONS_BUDGET)
            outcomes = [conditions.run(each) for each in self._conditions]
            if any(outcome.error is None and outcome.value is not True for outcome in outcomes):
                return {**answer, "outcome": "not matched"}
            failures = [str(outcome.error) for outcome in outcomes if outcome.error is not None]
            failures += self._failures(Evaluation(self._compiler.variables, values, POLICY_BUDGET))
        except BudgetSpent:
            failures = ["the policy costs more than it may"]
        return {**answer, "outcome": "refused" if failures else "allowed", "messages": failures}

    def _failures(self, evaluation: Evaluation) -> list[str]:
        failures: list[str] = []
        for expression, message, told in self._validations:
            outcome = evaluation.run(expression)
            if outcome.error is not None:
                failures.append(f"expression '{expression.source}' resulted in error: {outcome.error}")
            elif outcome.value is not True:
                text = evaluation.run(told).value if told is not None else ""
                failures.append(str(text or message or f"failed expression: {expression.source.strip()}"))
        return failures


def _request(obj: Json, metadata: Json, asked: Json) -> Json:
    group, _, version = str(obj.get("apiVersion") or "").rpartition("/")
    kind = {"group": group, "version": version, "kind": str(obj.get("kind") or "")}
    resource = {"group": group, "version": version, "resource": str(asked.get("resource") or "")}
    return {
        "kind": kind,
        "requestKind": kind,
        "resource": resource,
        "requestResource": resource,
        "name": str(metadata.get("name") or ""),
        "namespace": str(metadata.get("namespace") or ""),
        "operation": str(asked.get("operation") or "CREATE"),
        "userInfo": asked.get("user") or {"username": "", "groups": []},
        "dryRun": True,
        "options": None,
    }
