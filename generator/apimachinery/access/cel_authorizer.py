"""CEL's ``authorizer``, answered by a server's authorizers.

Expressions are computed without waiting. Where an authorizer must ask somebody else, its question is kept and the check
fails; ``Questions.answer`` asks all that are kept, and the policy is evaluated again with what is known then::

    questions = Questions(access, user)
    while True:
        result = evaluate(authorizer=questions.authorizer)
        if not await questions.answer():
            break
"""

from __future__ import annotations

from dataclasses import replace

from apimachinery.access.attributes import field_requirements, label_requirements
from apimachinery.access.authorization import (
    AUTHENTICATED,
    SERVICE_ACCOUNT_PREFIX,
    Attributes,
    Verdict,
    service_account_groups,
)
from apimachinery.access.control import Access
from apimachinery.cel.libraries.authorizer import Authorizer, Decision, Question
from apimachinery.http.messages import User
from apimachinery.meta.selectors import SelectorError, parse_field_selector, parse_label_selector


class Questions:
    """What the expressions of one request ask of authorization, each question answered once."""

    def __init__(self, access: Access, user: User) -> None:
        self._access = access
        self._user = user
        self._known: dict[Question, Decision] = {}
        self._open: dict[Question, Attributes] = {}
        self.authorizer = Authorizer(self._ask)

    def _ask(self, question: Question) -> Decision:
        decision = self._known.get(question)
        if decision is not None:
            return decision
        attributes, fault = attributes_of_question(question, self._user)
        verdict = self._access.authorizer.decide(attributes)
        # A failed check ends the evaluation; it is repeated once the answer is here.
        if verdict is None:
            self._open[question] = attributes
            return Decision(False, error="the authorizer has not answered yet")
        decision = self._known[question] = _decision(verdict, fault)
        return decision

    async def answer(self) -> bool:
        """Asks what could not be decided at once; whether there was any, so that evaluating again gives more."""
        asked, self._open = self._open, {}
        for question, attributes in asked.items():
            self._known[question] = _decision(await self._access.authorizer.ask(attributes), "")
        return bool(asked)


def _decision(verdict: Verdict, fault: str) -> Decision:
    return Decision(verdict.allowed, verdict.reason, verdict.error or fault)


def attributes_of_question(question: Question, user: User) -> tuple[Attributes, str]:
    """What a question of CEL asks of authorizers, and which selector could not be read (it is left out)."""
    if question.service_account is not None:
        namespace, name = question.service_account
        # The groups that a token of the account would have.
        groups = (*service_account_groups(namespace), AUTHENTICATED)
        user = User(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}", groups=groups)
    if question.path:
        return Attributes(user, question.verb, path=question.path, is_resource=False), ""
    attributes = Attributes(
        user,
        question.verb,
        question.namespace,
        question.group,
        # As kube-apiserver's CEL library, which asks for any version.
        "*",
        question.resource,
        question.subresource,
        question.name,
    )
    try:
        if question.field_selector:
            selector = parse_field_selector(question.field_selector)
            attributes = replace(attributes, field_selector=field_requirements(selector))
        if question.label_selector:
            labels = parse_label_selector(question.label_selector)
            attributes = replace(attributes, label_selector=label_requirements(labels))
    except SelectorError as fault:
        return attributes, str(fault)
    return attributes, ""
