"""Writes that are rights in themselves: roles and bindings, and what an update creates.

These checks come last of everything that may change an object, so they see what would be stored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from apimachinery.access.authorization import (
    MASTERS,
    Attributes,
    Chain,
    refusal,
)
from apimachinery.access.bindings import GROUP, KINDS
from apimachinery.access.escalation import Escalation
from apimachinery.http.messages import User
from apimachinery.http.steps import HEAVY, Asking, Waiting
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.request.target import WriteTarget


class RoleEscalation(Plugin):
    """Nobody writes a role or binding that gives more than he holds."""

    resources = frozenset((GROUP, plural) for plural in KINDS)

    def __init__(self, escalation: Escalation) -> None:
        self._escalation = escalation

    def admit(self, operation: Operation) -> Waiting:
        """Raises ApiError 403, 404."""
        target, obj, user = operation.target, operation.obj, operation.target.user
        plural, namespace = target.served.plural, target.namespace
        if obj is None or user is None or self._escalation.may(plural, namespace, target.name, user, obj):
            return None
        check = partial(self._escalation.check, plural, namespace, target.name, user, obj, operation.old)
        if self._escalation.takes_long(plural, namespace, user, obj):
            return _judged(check)
        check()
        return None


def _judged(check: Callable[[], None]) -> Asking[None]:
    yield HEAVY
    check()


class CreateRights(Plugin):
    """An update or apply that creates needs the right to create as well as that to update or patch."""

    def __init__(self, authorizer: Chain) -> None:
        self._authorizer = authorizer

    def validate(self, operation: Operation) -> None:
        """Raises ApiError 403."""
        target = operation.target
        # Only the path of an update names what is created.
        if (
            operation.verb != "CREATE"
            or target.user is None
            or not target.name
            or MASTERS in target.user.groups
        ):
            return
        attributes = create_attributes(target, target.user)
        verdict = self._authorizer.settle(attributes)
        if verdict is None or not verdict.allowed:
            raise refusal(attributes, "" if verdict is None else verdict.reason)


def create_attributes(target: WriteTarget, user: User) -> Attributes:
    """What an update that creates asks for besides."""
    served = target.served
    return Attributes(
        user,
        "create",
        target.namespace,
        served.group,
        served.version,
        served.plural,
        target.subresource,
        target.name,
    )
