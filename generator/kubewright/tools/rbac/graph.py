"""Roles and bindings as a graph to ask: who can do something, what somebody can do, and by which chain.

A chain is binding → role → rule. Members of system:masters can do everything without any; they are reported apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from apimachinery.access.authorization import (
    AUTHENTICATED,
    SERVICE_ACCOUNT_PREFIX,
    Attributes,
    service_account_groups,
    service_account_name,
)
from apimachinery.access.bindings import (
    GROUP,
    KINDS,
    Binding,
    Subject,
)
from apimachinery.access.bootstrap import wanted_objects
from apimachinery.access.rbac import Rbac
from apimachinery.access.rbac_rules import RbacRule
from apimachinery.http.messages import User

_KINDS = frozenset(KINDS.values())
NOBODY = User("")


@dataclass(frozen=True, slots=True)
class GrantChain:
    """Why somebody may do something: through this binding, to this subject of it, this rule of its role."""

    binding: Binding
    subject: Subject
    rule: RbacRule

    @property
    def who(self) -> str:
        """The subject, as the command line takes it."""
        if self.subject.kind == "ServiceAccount":
            return f"sa:{self.subject.namespace or self.binding.namespace}/{self.subject.name}"
        return f"{self.subject.kind.lower()}:{self.subject.name}"

    @property
    def bound_by(self) -> str:
        """The binding."""
        if self.binding.namespace:
            return f"RoleBinding {self.binding.namespace}/{self.binding.name}"
        return f"ClusterRoleBinding {self.binding.name}"

    @property
    def role(self) -> str:
        """The role."""
        namespace, name = self.binding.role
        return f"Role {namespace}/{name}" if namespace else f"ClusterRole {name}"


class SubjectError(ValueError):
    """A subject that cannot be read; the text says how to write one."""


def read_subject(text: str) -> User:
    """``user:NAME``, ``group:NAME``, ``sa:NAMESPACE/NAME``, or the name of a user. Raises SubjectError."""
    kind, found, name = text.partition(":")
    if not found or kind not in ("user", "group", "sa", "serviceaccount"):
        return as_user(text)
    if kind == "group":
        return User("", groups=(name,))
    if kind == "user":
        return as_user(name)
    namespace, slash, account = name.partition("/")
    if not slash or not namespace or not account:
        raise SubjectError(f"{text}: a service account is sa:NAMESPACE/NAME")
    return as_user(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{account}")


def as_user(name: str) -> User:
    """A user with the groups that his name alone says."""
    account = service_account_name(name)
    own = service_account_groups(account[0]) if account is not None else ()
    return User(name, groups=(*own, AUTHENTICATED))


class AccessGraph:
    """What there is, and questions to it."""

    def __init__(self, objects: Iterable[Mapping[str, Any]], *, bootstrap: bool = False) -> None:
        self.rbac = Rbac()
        self.count = 0
        if bootstrap:
            for wanted in wanted_objects():
                self.rbac.put(wanted.kind, wanted.obj)
        for obj in objects:
            kind = obj.get("kind")
            if kind in _KINDS and str(obj.get("apiVersion") or "").partition("/")[0] == GROUP:
                self.rbac.put(str(kind), dict(obj))
                self.count += 1

    def who_can(self, asked: Attributes, *, everywhere: bool = False) -> Iterator[GrantChain]:
        """All chains that allow what is asked, whoever asks. ``everywhere``: in any namespace, not in the one asked."""
        for binding in sorted(self.rbac.bindings(), key=lambda b: (b.namespace, b.name)):
            if binding.namespace and not everywhere and binding.namespace != asked.namespace:
                continue
            rule = self._allowing(binding, asked)
            if rule is not None:
                for subject in binding.subjects:
                    yield GrantChain(binding, subject, rule)

    def why(self, user: User, asked: Attributes) -> Iterator[GrantChain]:
        """All chains that allow a user what is asked."""
        for grant in self.rbac.grants(user, asked.namespace):
            rule = self._allowing(grant.binding, replace(asked, user=user))
            if rule is not None:
                yield GrantChain(grant.binding, grant.subject, rule)

    def what_can(self, user: User, namespace: str) -> Iterator[GrantChain]:
        """All rules that a user holds in a namespace."""
        for grant in self.rbac.grants(user, namespace):
            for rule in self.rbac.role_of(grant.binding) or ():
                yield GrantChain(grant.binding, grant.subject, rule)

    def _allowing(self, binding: Binding, asked: Attributes) -> RbacRule | None:
        rules = self.rbac.role_of(binding) or ()
        # A RoleBinding to a ClusterRole gives what the role has within its namespace: no paths, no cluster objects.
        if binding.namespace and not asked.is_resource:
            return None
        return next((rule for rule in rules if rule.allows(asked)), None)
