"""Role-based access control: who holds which rules, kept ready so that a decision costs microseconds.

Theory. A binding gives the rules of one role to its subjects: a ClusterRoleBinding everywhere, a RoleBinding in its
namespace. A decision needs the rules of the bindings that name the user or one of his groups, so:

- bindings are indexed by subject, and by namespace ("" for the whole cluster);
- what a user holds in one of them is a ``RuleTable``, made at his first question there and kept until a binding or role
  that could change it is written. A Role or RoleBinding touches the tables of its namespace, a ClusterRoleBinding those
  of the cluster, a ClusterRole all.

The index is called with every write by the watch cache before the writer is answered, so no decision is older than the
newest answered write. The same class answers offline questions: ``put`` it what there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apimachinery.meta.printing import go_quote
from apimachinery.server.access.authorization import (
    NO_OPINION,
    SERVICE_ACCOUNT_PREFIX,
    Attributes,
    PathRule,
    ResourceRule,
    Rules,
    Verdict,
    aggregate,
)
from apimachinery.server.access.rbac_rules import Rule, RuleTable, decode_rules, read_rules
from apimachinery.server.http.messages import User
from apimachinery.storage.interface import Event
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

GROUP = "rbac.authorization.k8s.io"
KINDS = {
    "clusterroles": "ClusterRole",
    "roles": "Role",
    "clusterrolebindings": "ClusterRoleBinding",
    "rolebindings": "RoleBinding",
}
KEPT_TABLES = 20_000
"""Tables of users and namespaces kept at once; past it all are dropped and made again as they are asked for."""

Key = tuple[str, str]
"""Namespace ("" for none) and name of a role or binding."""
Holder = tuple[str, str]
"""``("user", NAME)`` or ``("group", NAME)``: whom a subject names. A service account is the user it asks as."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One subject of a binding, in words of the API."""

    kind: str
    name: str
    namespace: str = ""

    def holder(self, binding_namespace: str) -> Holder | None:
        """Whom it names, None for nobody."""
        if self.kind == "User":
            return "user", self.name
        if self.kind == "Group":
            return "group", self.name
        namespace = self.namespace or binding_namespace
        if self.kind == "ServiceAccount" and namespace:
            return "user", f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{self.name}"
        return None

    def shown(self, binding_namespace: str) -> str:
        """As a reason names it."""
        name = self.name
        if self.kind == "ServiceAccount":
            name = f"{name}/{self.namespace or binding_namespace}"
        return f"{self.kind} {go_quote(name)}"


@dataclass(frozen=True, slots=True)
class Binding:
    """A ClusterRoleBinding (``namespace`` empty) or a RoleBinding."""

    namespace: str
    name: str
    role_kind: str
    role_name: str
    subjects: tuple[Subject, ...]

    @property
    def role(self) -> Key:
        """Where its role is found."""
        return ("" if self.role_kind == "ClusterRole" else self.namespace), self.role_name

    def shown(self, subject: Subject) -> str:
        """As a reason names it."""
        kind, name = "ClusterRoleBinding", self.name
        if self.namespace:
            kind, name = "RoleBinding", f"{name}/{self.namespace}"
        role = f"{self.role_kind} {go_quote(self.role_name)}"
        return f"{kind} {go_quote(name)} of {role} to {subject.shown(self.namespace)}"


class Grant:
    """A binding that applies to a user, through the subject at ``position``."""

    __slots__ = ("_verdict", "binding", "position")

    def __init__(self, binding: Binding, position: int) -> None:
        self.binding = binding
        self.position = position
        self._verdict: Verdict | None = None

    @property
    def subject(self) -> Subject:
        """The subject that applies."""
        return self.binding.subjects[self.position]

    @property
    def verdict(self) -> Verdict:
        """The allowance, and why."""
        if self._verdict is None:
            reason = f"RBAC: allowed by {self.binding.shown(self.subject)}"
            self._verdict = Verdict(allowed=True, reason=reason)
        return self._verdict


@dataclass(frozen=True, slots=True)
class _Table:
    rules: RuleTable[Grant]
    errors: tuple[str, ...]


class Rbac:
    """The authorizer, and what else is asked of roles and bindings."""

    def __init__(self) -> None:
        self._roles: dict[Key, tuple[Rule, ...]] = {}
        self._bindings: dict[Key, Binding] = {}
        self._by_holder: dict[str, dict[Holder, dict[str, Grant]]] = {}
        self._tables: dict[str, dict[tuple[str, tuple[str, ...]], _Table]] = {}
        self._count = 0

    def follow(self, cache: WatchCache) -> None:
        """Takes all roles and bindings of a storage, now and from now on."""
        for plural, kind in KINDS.items():
            prefix = f"/{GROUP}/{plural}/"
            resource = cache.resource(prefix)

            def heard(event: Event, kind: str = kind, prefix: str = prefix) -> None:
                namespace, _, name = event.record.key[len(prefix) :].rpartition("/")
                if event.deleted:
                    self.drop(kind, namespace, name)
                else:
                    self._take(kind, namespace, name, event.record.value)

            resource.listen(prefix, heard)
            for record in resource.snapshot(prefix).records:
                namespace, _, name = record.key[len(prefix) :].rpartition("/")
                self._take(kind, namespace, name, record.value)

    # What there is.

    def _take(self, kind: str, namespace: str, name: str, value: bytes) -> None:
        if kind in ("ClusterRole", "Role"):
            self._roles[namespace, name] = decode_rules(value)
            self._touch(kind, namespace)
        else:
            self.put(kind, decode(value))

    def put(self, kind: str, obj: dict[str, Any]) -> None:
        """Takes a role or binding, new or changed."""
        metadata = obj.get("metadata") or {}
        namespace = "" if kind.startswith("Cluster") else str(metadata.get("namespace") or "")
        name = str(metadata.get("name") or "")
        if kind in ("ClusterRole", "Role"):
            self._roles[namespace, name] = read_rules(obj.get("rules"))
        else:
            self._unindex((namespace, name))
            binding = _read_binding(obj, namespace, name)
            self._bindings[namespace, name] = binding
            self._index(binding)
        self._touch(kind, namespace)

    def drop(self, kind: str, namespace: str, name: str) -> None:
        """Forgets a role or binding."""
        if kind in ("ClusterRole", "Role"):
            self._roles.pop((namespace, name), None)
        else:
            self._unindex((namespace, name))
        self._touch(kind, namespace)

    def _index(self, binding: Binding) -> None:
        holders = self._by_holder.setdefault(binding.namespace, {})
        for position, subject in enumerate(binding.subjects):
            holder = subject.holder(binding.namespace)
            if holder is not None:
                holders.setdefault(holder, {}).setdefault(binding.name, Grant(binding, position))

    def _unindex(self, key: Key) -> None:
        binding = self._bindings.pop(key, None)
        if binding is None:
            return
        holders = self._by_holder[binding.namespace]
        for subject in binding.subjects:
            holder = subject.holder(binding.namespace)
            if holder is not None and holder in holders:
                holders[holder].pop(binding.name, None)
                if not holders[holder]:
                    del holders[holder]
        if not holders:
            del self._by_holder[binding.namespace]

    def _touch(self, kind: str, namespace: str) -> None:
        if kind == "ClusterRole":
            self._tables.clear()
            self._count = 0
        else:
            self._count -= len(self._tables.pop(namespace, ()))

    # Questions.

    def decide(self, attributes: Attributes) -> Verdict:
        """See Authorizer."""
        user = attributes.user
        key = (user.name, user.groups)
        cluster = self._table("", key)
        grant = cluster.rules.find(attributes)
        if grant is not None:
            return grant.verdict
        errors = cluster.errors
        if attributes.namespace:
            local = self._table(attributes.namespace, key)
            grant = local.rules.find(attributes)
            if grant is not None:
                return grant.verdict
            errors += local.errors
        return Verdict(reason=f"RBAC: {aggregate(errors)}") if errors else NO_OPINION

    async def ask(self, attributes: Attributes) -> Verdict:
        """See Authorizer."""
        return self.decide(attributes)

    def rules_for(self, user: User, namespace: str) -> Rules:
        """See ListsRules."""
        rules = Rules([], [])
        held, errors = self.held(user, namespace)
        for rule in held:
            if rule.resources:
                rules.resources.append(ResourceRule(rule.verbs, rule.groups, rule.resources, rule.names))
            if rule.paths:
                rules.paths.append(PathRule(rule.verbs, rule.paths))
        rules.error = aggregate(errors)
        return rules

    def held(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """All rules that a user holds in a namespace, and which bindings name roles that do not exist."""
        rules: list[Rule] = []
        errors: list[str] = []
        for grant in self.grants(user, namespace):
            role = self.role_of(grant.binding)
            if role is None:
                errors.append(_no_role(grant.binding))
            else:
                rules += role
        return rules, errors

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """The bindings that apply to a user: of the cluster, then of a namespace, each by name."""
        for scope in ("", namespace) if namespace else ("",):
            yield from self._grants(scope, (user.name, user.groups))

    def bindings(self) -> Iterator[Binding]:
        """All bindings."""
        return iter(self._bindings.values())

    def role_of(self, binding: Binding) -> tuple[Rule, ...] | None:
        """The rules of a binding's role, None where there is no such role."""
        return self._roles.get(binding.role)

    def role(self, namespace: str, name: str) -> tuple[Rule, ...] | None:
        """The rules of a Role, or of a ClusterRole where the namespace is empty."""
        return self._roles.get((namespace, name))

    def _grants(self, scope: str, key: tuple[str, tuple[str, ...]]) -> list[Grant]:
        holders = self._by_holder.get(scope)
        if not holders:
            return []
        name, groups = key
        found: dict[str, Grant] = dict(holders.get(("user", name), ()))
        for group in groups:
            for binding_name, grant in holders.get(("group", group), {}).items():
                # The first subject that applies is the one that is named as the reason.
                other = found.get(binding_name)
                if other is None or grant.position < other.position:
                    found[binding_name] = grant
        return [found[binding_name] for binding_name in sorted(found)]

    def _table(self, scope: str, key: tuple[str, tuple[str, ...]]) -> _Table:
        tables = self._tables.get(scope)
        if tables is not None and (table := tables.get(key)) is not None:
            return table
        sources, errors = [], []
        for grant in self._grants(scope, key):
            rules = self.role_of(grant.binding)
            if rules is None:
                errors.append(_no_role(grant.binding))
            else:
                sources.append((grant, rules))
        table = _Table(RuleTable(sources), tuple(errors))
        if self._count >= KEPT_TABLES:
            self._tables.clear()
            self._count = 0
        self._tables.setdefault(scope, {})[key] = table
        self._count += 1
        return table


def _read_binding(obj: dict[str, Any], namespace: str, name: str) -> Binding:
    ref = obj.get("roleRef") or {}
    subjects = tuple(
        Subject(str(s.get("kind") or ""), str(s.get("name") or ""), str(s.get("namespace") or ""))
        for s in obj.get("subjects") or ()
        if isinstance(s, dict)
    )
    return Binding(namespace, name, str(ref.get("kind") or ""), str(ref.get("name") or ""), subjects)


def _no_role(binding: Binding) -> str:
    return f"{binding.role_kind.lower()}.{GROUP} {go_quote(binding.role_name)} not found"
